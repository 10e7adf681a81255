/* wgmma_persistent, T6: blocks stay and take tile after tile.
 *
 * step      the panels of the next tile are on their way while one is stored, and tiles are walked in groups of
 *           rows, so that the L2 has what they share.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      232 a multiplying thread, of them 128 sums; 40 in the warpgroup that brings; local memory 0
 * per k     1 wgmma m64n256k16 for 16 k, 64 + 256 elements a k
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added up by the tensor cores in their order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      persistent grid: CUTLASS; pranjalssh/fast.cu, matmul_6 and 7
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
