/* wgmma_store, T7: epilogue through shared memory with TMA stores.
 *
 * step      the accumulators of a warpgroup are written to shared memory, box by box, and TMA stores whole lines while
 *           the next box is written. Before, all multiprocessors at once wrote 32 bytes at a time to the L2.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes (others are copied first)
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      168 at launch, 232 a consumer and 40 a producer: 128 accumulators; local memory 0
 * per k     1/16 HGMMA.64x256x16, 320 bf16 from shared memory
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added by the tensor cores in their own order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      stores: pranjalssh/fast.cu, matmul_10
 * lanes     128
 * launch    384 threads a block, 128 of them producers; persistent grid, clusters of 2
 * smem      225 KiB dynamic and 64 bytes static
 */
#include "wgmma_panels.cuh"

template <Layout LA, Layout LB, int BN, int STAGES>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    wgmma_store(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
                const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                const __grid_constant__ TensorMap map_c) {
    wgmma_gemm<Panels<MmaBf16<LA, LB>, BN, STAGES, Cluster<2>>, ToF32>(p, s, map_a, map_b, &map_c);
}
