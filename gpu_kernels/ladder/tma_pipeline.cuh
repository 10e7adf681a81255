/* tma_pipeline.cuh: a ring buffer of panels in shared memory between one producer thread, which starts TMA loads, and
 * consumer warpgroups, with two mbarriers a stage.
 *
 * At `full` the bytes of a panel are counted. At `empty` one thread of each consumer warpgroup arrives when its
 * products have been computed; in a cluster it arrives at those of all blocks, since each block loads a part of the
 * panels of all. Producer and consumers advance through the stages in the same order.
 */
#include "tma.cuh"

constexpr int WARPGROUP = 128, CONSUMER_GROUPS = 2, BLOCK_M = 64 * CONSUMER_GROUPS;
constexpr int CONSUMERS = CONSUMER_GROUPS * WARPGROUP; /* threads; the producer thread is the next one */

/* The blocks of a cluster: M tiles of C one below the other, which share panels of B, or K parts of one tile along
 * k. */
template <int M_, int K_ = 1>
struct Cluster {
    static constexpr int M = M_, K = K_;
    static_assert(M == 1 || K == 1, "");
};

/* Barrier `id` of the first COUNT threads of the block: `arrive` does not wait. */
template <int COUNT>
__device__ inline void named_barrier(int id) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(COUNT) : "memory");
}
template <int COUNT>
__device__ inline void named_barrier_arrive(int id) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(COUNT) : "memory");
}
/* Barriers 1 and 2 are those of the consumer warpgroups. */
constexpr int OPEN_BARRIER = 3, CONSUMER_BARRIER = 4;

/* Register reallocation: of 504 registers for one thread of each of the three warpgroups, the consumers' accumulators
 * take most. */
template <bool PRODUCER>
__device__ inline void reallocate_registers() {
    if constexpr (PRODUCER) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}

template <int STAGES_, int BYTES, class Shape>
struct TmaPipeline {
    static constexpr int STAGES = STAGES_;
    u32 panels, full, empty, stage = 0, phase = 0;

    /* All threads of the cluster call; there are 2 * STAGES `barriers`. Unless it loads to other blocks, the producer
     * does not wait for the consumers. */
    __device__ TmaPipeline(u32* memory, u64* barriers) {
        panels = shared_address(memory) + 1023 & ~1023, full = shared_address(barriers), empty = full + 8 * STAGES;
        if (threadIdx.x == CONSUMERS) {
#pragma unroll
            for (int i = 0; i < STAGES; ++i) {
                mbarrier_init(full + 8 * i, 1);
                mbarrier_init(empty + 8 * i, CONSUMER_GROUPS * Shape::M);
            }
            fence_mbarrier_init();
        }
        __syncwarp();
        if constexpr (Shape::M > 1) cluster_arrive(), cluster_wait();
        else if (threadIdx.x < CONSUMERS) named_barrier<CONSUMERS + 32>(OPEN_BARRIER);
        else if (threadIdx.x < CONSUMERS + 32) named_barrier_arrive<CONSUMERS + 32>(OPEN_BARRIER);
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
        if constexpr (Shape::M > 1) {
            if (thread < Shape::M) mbarrier_arrive_cluster(empty + 8 * stage, thread);
        } else {
            if (thread == 0) mbarrier_arrive(empty + 8 * stage);
        }
    }
    /* All threads, at the end: no block exits while others arrive at its mbarriers. */
    __device__ void close() const {
        if constexpr (Shape::M > 1) cluster_arrive(), cluster_wait();
    }
};

/* Loads one box to this block, or to the same address of all M blocks of a cluster. */
template <int M>
__device__ inline void tma_load_cluster(u32 to, const TensorMap& map, u32 barrier, int x, int y, int z) {
    if constexpr (M > 1) tma_load_multicast((1 << M) - 1, to, map, barrier, x, y, z);
    else tma_load(to, map, barrier, x, y, z);
}
