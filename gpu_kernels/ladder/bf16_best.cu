/* bf16_best, T8: tile and cluster from the shape.
 *
 * step      products with few tiles get smaller ones, 128 x 128 or 128 x 64; the tile below is what large products
 *           get (gemm_tensor.py).
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      232 a multiplying thread, of them 128 sums; 40 in the warpgroup that brings; local memory 0
 * per k     1 wgmma m64n256k16 for 16 k, 64 + 256 elements a k
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added up by the tensor cores in their order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      auto-selection, as every BLAS does it
 * lanes     128
 * launch    384 threads a block, 128 of them for one that brings; as many blocks as the
 *           device has multiprocessors, in clusters of two or alone
 * smem      up to 225 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "schedule.cuh"
#include "async.cuh"
#include "tma.cuh"
#include "wgmma.cuh"
#include "ring.cuh"
#include "wgmma_pipeline.cuh"

template <Layout LA, Layout LB, int BN, int STAGES, int CLUSTER>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(384, 1)
    bf16_best(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
              const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
              const __grid_constant__ TensorMap map_c) {
    tensor_products<LA, LB, BN, STAGES, CLUSTER>(p, s, map_a, map_b, &map_c);
}
