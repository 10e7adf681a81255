/* async.cuh: copies from global to shared memory that pass no register, and barriers in shared memory (sm_80). */

__device__ inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

/* 4 or 16 bytes; of the 4, only the first `bytes` are read and the others become 0. */
__device__ inline void copy4(u32 to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
__device__ inline void copy4(u32 to, const void* from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ inline void copy16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ inline void copy16(u32 to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ inline void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Waits until all groups of copies but the last N of this thread are there. */
template <int N>
__device__ inline void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Volatile, so that a load stays between the barriers where it was written; the address takes a constant offset. */
__device__ inline void shared_load4(u32* x, u32 from) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from));
}
__device__ inline void shared_store4(u32 to, u32 x, u32 y, u32 z, u32 w) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
__device__ inline void shared_store(u32 to, u32 x) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}

__device__ inline void barrier_init(u32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void barrier_arrive(u32 barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}
/* Every lane arrives, the warp together: on an H200 faster than one lane for all (56.2 against 54.9 TFLOP/s at 8192),
 * and what racecheck can follow. The predicate is always true: without it the compiler gives more multiply-adds
 * registers of one port (tile_loop.cuh). */
__device__ inline void barrier_arrive_together(u32 barrier, int lane) {
    asm volatile(
        "{ .reg .b64 state; .reg .pred all; bar.warp.sync 0xffffffff; setp.ge.s32 all, %1, 0;"
        "  @all mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier), "r"(lane) : "memory");
}
/* Arrives once all copies that this thread has asked for are there. */
__device__ inline void barrier_arrive_after_copies(u32 barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ inline bool barrier_passed(u32 barrier, u32 parity) {
    u32 passed;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(passed)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return passed;
}
__device__ inline void barrier_wait(u32 barrier, u32 parity) {
#if __CUDA_ARCH__ >= 900 /* sleeps while it waits */
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @p bra there; bra again; there: }" ::
            "r"(barrier),
        "r"(parity)
        : "memory");
#else
    while (!barrier_passed(barrier, parity)) {}
#endif
}
