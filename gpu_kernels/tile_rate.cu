/* tile_rate: the rate of a register tile whose panels are already in shared memory: the main loop of a GEMM without its
 * global memory, to compare with the peak of the same instruction (peaks.cu).
 *
 * contract  every thread accumulates MR x NR over 8 * iterations words of k; the panels of a block are 8 words of k
 *           deep and are read again in every iteration. `words` holds (MR * WM * LM + NR * WN * LN) * 8 words. A thread
 *           stores the sum of its accumulators.
 * tile      MR x NR a thread, WM x WN warps of LM x LN lanes
 * per k     MR*NR multiply-adds, (MR + NR)/4 LDS.128
 * launch    256 threads a block, any grid that fills the device
 */
#include "ladder/vector.cuh"
#include "ladder/word.cuh"
#include "ladder/shared_memory.cuh"
#include "ladder/tile_loop.cuh"

template <class T, int MR, int NR, int WM, int WN, int LM, int LN>
__global__ void __launch_bounds__(256, 1) tile_rate(const u32* words, u32* out, int iterations) {
    constexpr int BK = 8, BM = WM * LM * MR, BN = WN * LN * NR;
    __shared__ __align__(16) u32 panels[BK * (BM + BN)];
    for (int i = threadIdx.x; i < BK * (BM + BN); i += 256) panels[i] = words[i];
    __syncthreads();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 at_a = shared_address(panels) + (warp / WN * LM * MR + lane / LN * 4) * 4;
    u32 at_b = shared_address(panels) + (BK * BM + warp % WN * LN * NR + lane % LN * 4) * 4;
    typename T::Acc acc[MR][NR] = {};
    u32 a[2][MR], b[2][NR];
    load_fragment<MR, 4 * LM>(a[0], at_a);
    load_fragment<NR, 4 * LN>(b[0], at_b);
#pragma unroll 1
    for (int n = 0; n < iterations; ++n)
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            load_fragment<MR, 4 * LM>(a[(k + 1) % 2], at_a + (k + 1) % BK * BM * 4);
            load_fragment<NR, 4 * LN>(b[(k + 1) % 2], at_b + (k + 1) % BK * BN * 4);
            rank1_update<T>(acc, a[k % 2], b[k % 2]);
        }
    typename T::Partial all = T::partial(acc[0][0]);
    unrolled<1, MR * NR>([&](int i) { all = T::add(all, T::partial(acc[i / NR][i % NR])); });
    out[blockIdx.x * blockDim.x + threadIdx.x] = *(const u32*)&all;
}
