/* i8_dp4a_gemm, I1: int8 without tensor cores, four k an instruction.
 *
 * step      the block of streamk on words of four int8 along k (word.cuh), multiplied by dp4a. It runs at half the rate
 *           of FFMA, so a tile of 8 x 8 a thread is enough.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread, warp tile 32 x 64
 * regs      168 at launch, 208 a consumer and 88 a producer on sm_90a: 64 accumulators, 2 x 16 for fragments; local
 *           memory 0
 * per k     16 IDP.4A, 16 i8 from shared memory, 1 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  exact; everything wraps around at 32 bits
 * needs     sm_80
 * idea      dp4a, k packed by four: A. Atluri, Musings on GEMM (2017)
 * lanes     1
 * launch    384 threads a block, 128 of them producers; persistent grid, one block a multiprocessor
 * smem      97.5 KiB dynamic and 256 bytes static; at most 99 KiB dynamic for other layouts
 */
#include "warp_specialized.cuh"

template <Layout LA, Layout LB, int... TILE>
__global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    i8_dp4a_gemm(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    warp_specialized_gemm<Config<I8, LA, LB, BlockTile<TILE...>>>(p, s);
}

template <int BM, int BN>
__global__ void __launch_bounds__(256)
    i8_dp4a_gemm_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<I8, BM, BN>(p, s);
}
