/* ring.cuh: panels in shared memory that one thread has brought and that warpgroups multiply, one after the other, and
 * the barriers between them, two a stage.
 *
 * At `full` the bytes of a panel are counted. At `empty` one thread of each warpgroup arrives when its products are
 * done, in a cluster at those of all blocks: each brings a part of the panels of all. Both sides go round in step.
 */
constexpr int WARPGROUP = 128, GROUPS = 2, BLOCK_M = 64 * GROUPS;

/* Of 504 registers for three threads, one of each warpgroup: sums take most. */
template <bool GIVES>
__device__ inline void warpgroup_registers() {
    if constexpr (GIVES) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}

template <int STAGES, int BYTES, int CLUSTER>
struct Ring {
    u32 panels, full, empty, stage = 0, phase = 0;

    /* All threads of the cluster; `barriers` are 2 * STAGES. */
    __device__ Ring(u32* memory, u64* barriers) {
        panels = shared_address(memory) + 1023 & ~1023, full = shared_address(barriers), empty = full + 8 * STAGES;
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; ++i) {
                barrier_init(full + 8 * i, 1);
                barrier_init(empty + 8 * i, GROUPS * CLUSTER);
            }
            barriers_are_ready();
        }
        if constexpr (CLUSTER > 1) cluster_sync();
        else __syncthreads();
    }
    __device__ u32 panel() const { return panels + stage * BYTES; }
    __device__ u32 arrival() const { return full + 8 * stage; }
    __device__ void next() {
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }

    /* The thread that brings: waits for the place of the next panel. */
    __device__ void wait_for_place() const {
        barrier_wait(empty + 8 * stage, phase ^ 1);
        barrier_expect(arrival(), BYTES);
    }
    /* Warpgroups: wait for the panel, and give back the place of one. */
    __device__ void wait_for_panel() const { barrier_wait(arrival(), phase); }
    __device__ void release(u32 stage) const {
        u32 thread = threadIdx.x % WARPGROUP;
        if constexpr (CLUSTER > 1) {
            if (thread < CLUSTER) barrier_arrive_at(empty + 8 * stage, thread);
        } else {
            if (thread == 0) barrier_arrive(empty + 8 * stage);
        }
    }
    /* All threads at the end: nobody leaves while others arrive at its barriers. */
    __device__ void close() const {
        if constexpr (CLUSTER > 1) cluster_sync();
    }
};

/* The copy of one box to this block, or to the same place of all blocks of a cluster. */
template <int CLUSTER>
__device__ inline void bring(u32 to, const TensorMap& map, u32 barrier, int x, int y, int z) {
    if constexpr (CLUSTER > 1) tma_load_for((1 << CLUSTER) - 1, to, map, barrier, x, y, z);
    else tma_load(to, map, barrier, x, y, z);
}
