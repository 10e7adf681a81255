/* tma_pipeline.cuh: a ring buffer of panels in shared memory between one producer thread, which starts TMA loads, and
 * consumer warpgroups, with two mbarriers a stage.
 *
 * At `full` the bytes of a panel are counted. At `empty` one thread of each consumer warpgroup arrives when its
 * products have been computed; in a cluster it arrives at those of all blocks, since each block loads a part of the
 * panels of all. Producer and consumers advance through the stages in the same order.
 */
#include "tma.cuh"

constexpr int WARPGROUP = 128, CONSUMER_GROUPS = 2, BLOCK_M = 64 * CONSUMER_GROUPS;

/* Register reallocation: of 504 registers for one thread of each of the three warpgroups, the consumers' accumulators
 * take most. */
template <bool PRODUCER>
__device__ inline void reallocate_registers() {
    if constexpr (PRODUCER) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}

template <int STAGES_, int BYTES, int CLUSTER>
struct TmaPipeline {
    static constexpr int STAGES = STAGES_;
    u32 panels, full, empty, stage = 0, phase = 0;

    /* All threads of the cluster call; there are 2 * STAGES `barriers`. */
    __device__ TmaPipeline(u32* memory, u64* barriers) {
        panels = shared_address(memory) + 1023 & ~1023, full = shared_address(barriers), empty = full + 8 * STAGES;
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; ++i) {
                mbarrier_init(full + 8 * i, 1);
                mbarrier_init(empty + 8 * i, CONSUMER_GROUPS * CLUSTER);
            }
            fence_mbarrier_init();
        }
        if constexpr (CLUSTER > 1) cluster_sync();
        else __syncthreads();
    }
    __device__ u32 panel() const { return panels + stage * BYTES; }
    __device__ u32 end() const { return panels + STAGES * BYTES; }
    __device__ u32 full_barrier() const { return full + 8 * stage; }
    __device__ void advance() {
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }

    /* The producer thread waits until the stage is free. */
    __device__ void producer_acquire() const {
        mbarrier_wait(empty + 8 * stage, phase ^ 1);
        mbarrier_arrive_expect_tx(full_barrier(), BYTES);
    }
    /* A consumer warpgroup waits for the panel, and releases a stage. */
    __device__ void consumer_wait() const { mbarrier_wait(full_barrier(), phase); }
    __device__ void consumer_release(u32 stage) const {
        u32 thread = threadIdx.x % WARPGROUP;
        if constexpr (CLUSTER > 1) {
            if (thread < CLUSTER) mbarrier_arrive_cluster(empty + 8 * stage, thread);
        } else {
            if (thread == 0) mbarrier_arrive(empty + 8 * stage);
        }
    }
    /* All threads, at the end: no block exits while others arrive at its mbarriers. */
    __device__ void close() const {
        if constexpr (CLUSTER > 1) cluster_sync();
    }
};

/* Loads one box to this block, or to the same address of all blocks of a cluster. */
template <int CLUSTER>
__device__ inline void tma_load_cluster(u32 to, const TensorMap& map, u32 barrier, int x, int y, int z) {
    if constexpr (CLUSTER > 1) tma_load_multicast((1 << CLUSTER) - 1, to, map, barrier, x, y, z);
    else tma_load(to, map, barrier, x, y, z);
}
