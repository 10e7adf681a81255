/* wgmma_store, T7: tiles go out by way of shared memory.
 *
 * step      the sums of a warpgroup go, box by box, into shared memory, from where the accelerator stores whole lines
 *           while the next box is written. Before, all multiprocessors at once sent 32 bytes at a time to the L2.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      232 a multiplying thread, of them 128 sums; 40 in the warpgroup that brings; local memory 0
 * per k     1 wgmma m64n256k16 for 16 k, 64 + 256 elements a k
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added up by the tensor cores in their order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      stores: pranjalssh/fast.cu, matmul_10
 * lanes     128
 * launch    384 threads a block, 128 of them for one that brings; clusters of two, as many as fit the device
 * smem      225 KiB, dynamic
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
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    wgmma_store(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
                const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                const __grid_constant__ TensorMap map_c) {
    tensor_products<LA, LB, BN, STAGES, 2>(p, s, map_a, map_b, &map_c);
}
