/* i8_wgmma, T10: int8 on tensor cores, int32 accumulators.
 *
 * step      T8 for int8: a wgmma takes 32 k instead of 16 in the same bytes and the same time. It transposes 16-bit
 *           operands only, so a first kernel packs an operand that is not K-major, or whose rows TMA cannot read.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 128, 64 x 256 a warpgroup
 * regs      168 at launch, 232 a consumer and 40 a producer: 128 accumulators; local memory 0
 * per k     1/32 IGMMA.64x256x32, 320 i8 from shared memory
 * ratio     64*256 / (64+256) = 51.20
 * rounding  exact; int32 wraps around
 * needs     sm_90a
 * idea      wgmma of integers: NVIDIA, PTX ISA; transposition of 4 x 4 bytes by byte permutes
 * lanes     128
 * launch    384 threads a block, 128 of them producers; persistent grid, clusters of 8, 4, 2 or single blocks
 * smem      225 KiB dynamic and 64 bytes static
 */
#include "pack_rows.cuh"
#include "wgmma_panels.cuh"

template <Layout L>
__global__ void __launch_bounds__(256) i8_wgmma_pack(const __grid_constant__ Pack s) {
    pack_rows<L>(s);
}

template <int BN, int STAGES, int M, int K>
__global__ void __cluster_dims__(M * K, 1, 1) __launch_bounds__(384, 1)
    i8_wgmma(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
             const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
             const __grid_constant__ TensorMap map_c) {
    wgmma_gemm<Panels<MmaS8, BN, STAGES, Cluster<M, K>>, ToI32>(p, s, map_a, map_b, &map_c);
}
