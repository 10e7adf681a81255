/* wgmma_persistent, T5: warp specialisation, persistent blocks.
 *
 * step      one producer warpgroup keeps up to four panels in flight, two consumer warpgroups multiply and wait for
 *           nothing else. The accumulators of 64 x 256 take half of the register file, so the producer warpgroup gives
 *           its registers to the consumers (setmaxnreg). Blocks are persistent: while one tile is stored the panels of
 *           the next are in flight, and tiles are taken in groups of rows, so that the L2 holds what they share.
 *           On an H200 the persistent grid alone is worth 4 % at 4096 (654.9 instead of 627.3 TFLOP/s with a block a
 *           tile) and nothing at 8192 (650.9 and 653.0), where the power limit holds both back.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      232 a multiplying thread, of them 128 sums; 40 in the warpgroup that brings; local memory 0
 * per k     1 wgmma m64n256k16 for 16 k, 64 + 256 elements a k
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added up by the tensor cores in their order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      warp specialisation and persistent grid: CUTLASS; pranjalssh/fast.cu, matmul_4 to 7
 * lanes     128
 * launch    384 threads a block, 128 of them for one that brings; a grid of as many blocks as there are multiprocessors
 * smem      193 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "schedule.cuh"
#include "async.cuh"
#include "tma.cuh"
#include "wgmma.cuh"
#include "ring.cuh"
#include "wgmma_pipeline.cuh"

template <Layout LA, Layout LB, int BN, int STAGES>
__global__ void __launch_bounds__(384, 1)
    wgmma_persistent(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
                     const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b) {
    tensor_products<LA, LB, BN, STAGES, 1>(p, s, map_a, map_b);
}
