/* streamk, S17: the tiles of the last wave are split along k.
 *
 * step      all multiprocessors finish at the same time, whatever the number of tiles (tile_scheduler.cuh); a second
 *           kernel, the fix-up, adds the partial tiles.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 8 x 16 a thread, warp tile 32 x 128
 * regs      168 at launch, 216 a consumer and 72 a producer on sm_90a: 128 accumulators, 2 x 24 for fragments; local
 *           memory 0
 * per k     128 FFMA, 24 f32 from shared memory, 6 LDS.128
 * ratio     8*16 / (8+16) = 5.33
 * rounding  one fma per term, k ascending, the partial tiles of a split tile added in the order of k; then one for
 *           alpha and one for beta; denormals are kept
 * needs     sm_80
 * idea      Osama et al., Stream-K (2023)
 * lanes     1
 * launch    384 threads a block, 128 of them producers; persistent grid, one block a multiprocessor
 * smem      145.5 KiB dynamic and 256 bytes static; at most 147 KiB dynamic for other layouts
 */
#include "warp_specialized.cuh"

template <Layout LA, Layout LB, int... TILE>
__global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    streamk(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    warp_specialized_gemm<Config<F32, LA, LB, BlockTile<TILE...>>>(p, s);
}

template <int BM, int BN>
__global__ void __launch_bounds__(256)
    streamk_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<F32, BM, BN>(p, s);
}
