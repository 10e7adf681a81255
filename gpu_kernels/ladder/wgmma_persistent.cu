/* wgmma_persistent, T5: warp specialisation, persistent blocks.
 *
 * step      one producer warpgroup keeps up to four panels in flight, two consumer warpgroups multiply and wait for
 *           nothing else. The accumulators of 64 x 256 take half of the register file, so the producer warpgroup
 *           releases registers to the consumers (setmaxnreg). Blocks are persistent: the panels of the next tile are
 *           loaded while one is stored, and tiles are taken in grouped raster order, so that the L2 holds what they
 *           share. On an H200 the persistent grid alone gains 4 % at 4096 (654.9 instead of 627.3 TFLOP/s with a block
 *           for each tile) and nothing at 8192 (650.9 and 653.0), where the power limit bounds both.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes (others are copied first)
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      168 at launch, 232 a consumer and 40 a producer: 128 accumulators; local memory 0
 * per k     1/16 HGMMA.64x256x16, 320 bf16 from shared memory
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added by the tensor cores in their own order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      warp specialisation and persistent grid: CUTLASS; pranjalssh/fast.cu, matmul_4 to 7
 * lanes     128
 * launch    384 threads a block, 128 of them producers; persistent grid, one block a multiprocessor
 * smem      193 KiB dynamic and 64 bytes static
 */
#include "wgmma_panels.cuh"

template <Layout LA, Layout LB, int BN, int STAGES>
__global__ void __launch_bounds__(384, 1)
    wgmma_persistent(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
                     const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b) {
    wgmma_gemm<Panels<MmaBf16<LA, LB>, BN, STAGES, Cluster<1>>, ToF32>(p, s, map_a, map_b);
}
