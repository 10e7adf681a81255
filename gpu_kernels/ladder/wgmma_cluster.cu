/* wgmma_cluster, T6: 2-CTA clusters with TMA multicast.
 *
 * step      tiles one below the other need the same B: each block of a cluster loads half of it for both (multicast),
 *           16 + 16 KiB a panel instead of 16 + 32. On an H200 it gains 2 % at 8192 (663.7 instead of 650.9 TFLOP/s)
 *           and loses 3 % at 4096 (637.6 instead of 654.9): the L2 traffic does not fall, since the GPU already merges
 *           requests of neighbours for the same lines, and a block now waits for two.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes (others are copied first)
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      168 at launch, 232 a consumer and 40 a producer: 128 accumulators; local memory 0
 * per k     1/16 HGMMA.64x256x16, 320 bf16 from shared memory
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added by the tensor cores in their own order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      multicast: PTX ISA; pranjalssh/fast.cu, matmul_8
 * lanes     128
 * launch    384 threads a block, 128 of them producers; persistent grid, clusters of 2
 * smem      193 KiB dynamic and 64 bytes static
 */
#include "wgmma_panels.cuh"

template <Layout LA, Layout LB, int BN, int STAGES>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    wgmma_cluster(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
                  const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b) {
    wgmma_gemm<Panels<MmaBf16<LA, LB>, BN, STAGES, Cluster<2>>, ToF32>(p, s, map_a, map_b);
}
