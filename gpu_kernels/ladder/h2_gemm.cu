/* h2_gemm, H1: f16 without tensor cores, two k an instruction.
 *
 * step      the block of streamk on words of two f16 along k (word.cuh), multiplied by HFMA2. The accumulators are
 *           plain pairs, even and odd k: an f16 that is broadcast to two columns would use one of the two pipes only.
 *           An MN-major operand is transposed by the producers.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 8 x 16 a thread, warp tile 32 x 128
 * regs      168 at launch, 208 a consumer and 88 a producer on sm_90a: 128 accumulators, 2 x 24 for fragments; local
 *           memory 0
 * per k     64 HFMA2, 24 f16 from shared memory, 3 LDS.128
 * ratio     8*16 / (8+16) = 5.33
 * rounding  one f16 fma per term, even and odd k separately, each ascending; added in f16; then f32, and once to f16
 * needs     sm_80
 * idea      the packed f16 of A. Atluri, Musings on GEMM (2017), as an outer product
 * lanes     1
 * launch    384 threads a block, 128 of them producers; persistent grid, one block a multiprocessor
 * smem      145.5 KiB dynamic and 256 bytes static; at most 147 KiB dynamic for other layouts
 */
#include "warp_specialized.cuh"

template <Layout LA, Layout LB, int... TILE>
__global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    h2_gemm(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    warp_specialized_gemm<Config<F16, LA, LB, BlockTile<TILE...>>>(p, s);
}

template <int BM, int BN>
__global__ void __launch_bounds__(256)
    h2_gemm_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<F16, BM, BN>(p, s);
}
