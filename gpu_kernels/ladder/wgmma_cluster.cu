/* wgmma_cluster, T6: two blocks share what both need.
 *
 * step      tiles one below the other need the same B: each block of a cluster asks for half of it, for both: for
 *           16 + 16 KiB a panel instead of 16 + 32. On an H200 it gains 2 % at 8192 (663.7 instead of 650.9 TFLOP/s)
 *           and loses 3 % at 4096 (637.6 instead of 654.9): the GPU already merges the requests of neighbours for the
 *           same lines, and now a block waits for two.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      232 a multiplying thread, of them 128 sums; 40 in the warpgroup that brings; local memory 0
 * per k     1 wgmma m64n256k16 for 16 k, 64 + 256 elements a k
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added up by the tensor cores in their order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      multicast: PTX ISA; pranjalssh/fast.cu, matmul_8
 * lanes     128
 * launch    384 threads a block, 128 of them for one that brings; clusters of two, as many as fit the device
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
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    wgmma_cluster(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
                  const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b) {
    tensor_products<LA, LB, BN, STAGES, 2>(p, s, map_a, map_b);
}
