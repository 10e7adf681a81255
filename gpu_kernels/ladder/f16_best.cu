/* f16_best, T11: T8 for f16.
 *
 * step      the same block tiles and the same split along k; a wgmma takes f16 in the time of bf16. C is f16, with one
 *           rounding, or f32: unlike h2_gemm, which adds in f16.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout; C of f32 or f16
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      168 at launch, 232 a consumer and 40 a producer: 128 accumulators; local memory 0
 * per k     1/16 HGMMA.64x256x16, 320 f16 from shared memory
 * ratio     64*256 / (64+256) = 51.20
 * rounding  products exact, added by the tensor cores in their own order and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      selection by shape, as in every BLAS
 * lanes     128
 * launch    384 threads a block, 128 of them producers; persistent grid, clusters of 8, 4, 2 or single blocks
 * smem      225 KiB dynamic and 64 bytes static
 */
#include "skinny_gemm.cuh"
#include "pad_rows.cuh"

template <Layout LA, Layout LB, int BN, int STAGES, int M, int K, class T>
__global__ void __cluster_dims__(M * K, 1, 1) __launch_bounds__(384, 1)
    f16_best(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
             const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
             const __grid_constant__ TensorMap map_c) {
    wgmma_gemm<Panels<MmaF16<LA, LB>, BN, STAGES, Cluster<M, K>>, T>(p, s, map_a, map_b, &map_c);
}

template <Layout LA, Layout LB, int BN, int STAGES, int K, int RESIDENT, bool SWAPPED, class T>
__global__ void __cluster_dims__(K, 1, 1) __launch_bounds__(SKINNY_THREADS, RESIDENT)
    f16_best_skinny(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
                    const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                    const __grid_constant__ TensorMap) {
    typedef Panels<MmaF16<SWAPPED ? LB : LA, SWAPPED ? LA : LB>, BN, STAGES, Cluster<1, K>> C;
    skinny_gemm<C, T, SWAPPED>(p, s, SWAPPED ? map_b : map_a, SWAPPED ? map_a : map_b);
}

template <Layout L>
__global__ void __launch_bounds__(256) f16_best_pack(const __grid_constant__ Pad s) {
    pad_rows<L>(s);
}
