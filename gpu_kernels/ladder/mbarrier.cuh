/* mbarrier.cuh: barriers in shared memory (mbarrier, sm_80). */
#include "shared_memory.cuh"

__device__ inline void mbarrier_init(u32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void mbarrier_arrive(u32 barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}
/* All lanes of a converged warp arrive: on an H200 faster than one lane for all 32 (56.2 and 54.9 TFLOP/s at 8192), and
 * racecheck can follow it. The predicate is always true: without it the compiler gives more multiply-adds two registers
 * of the same port (tile_loop.cuh). */
__device__ inline void mbarrier_arrive_warp(u32 barrier, int lane) {
    asm volatile(
        "{ .reg .b64 state; .reg .pred all; bar.warp.sync 0xffffffff; setp.ge.s32 all, %1, 0;"
        "  @all mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier), "r"(lane) : "memory");
}
/* Arrives once all cp.async copies of this thread have completed. */
__device__ inline void mbarrier_arrive_after_copies(u32 barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ inline bool mbarrier_test_wait(u32 barrier, u32 parity) {
    u32 passed;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(passed)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return passed;
}
__device__ inline void mbarrier_wait(u32 barrier, u32 parity) {
#if __CUDA_ARCH__ >= 900 /* the thread may be suspended while it waits */
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @p bra there; bra again; there: }" ::
            "r"(barrier),
        "r"(parity)
        : "memory");
#else
    while (!mbarrier_test_wait(barrier, parity)) {}
#endif
}
