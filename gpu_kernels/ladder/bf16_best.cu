/* bf16_best, T8: block tile and split along k chosen from the shape.
 *
 * step      products with few tiles get smaller ones, 128 x 128 or 128 x 64, split along k where there are fewer tiles
 *           than multiprocessors: the blocks of a cluster add their partial tiles in the same launch. The tile below is
 *           that of large products. C may be bf16: one rounding, half of the bytes.
 *           A C with a short side has tiles of its own (skinny_gemm.cuh).
 *           An operand whose rows TMA cannot read is copied by a first kernel, which pads its rows.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout; C of f32 or bf16
 * tile      128 x 256 x 64, 64 x 256 a warpgroup
 * regs      168 at launch, 232 a consumer and 40 a producer: 128 accumulators; local memory 0
 * per k     1/16 HGMMA.64x256x16, 320 bf16 from shared memory
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
    bf16_best(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
              const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
              const __grid_constant__ TensorMap map_c) {
    wgmma_gemm<Panels<MmaBf16<LA, LB>, BN, STAGES, Cluster<M, K>>, T>(p, s, map_a, map_b, &map_c);
}

template <Layout LA, Layout LB, int BN, int STAGES, int K, int RESIDENT, bool SWAPPED, class T>
__global__ void __cluster_dims__(K, 1, 1) __launch_bounds__(SKINNY_THREADS, RESIDENT)
    bf16_best_skinny(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
                     const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                     const __grid_constant__ TensorMap) {
    typedef Panels<MmaBf16<SWAPPED ? LB : LA, SWAPPED ? LA : LB>, BN, STAGES, Cluster<1, K>> C;
    skinny_gemm<C, T, SWAPPED>(p, s, SWAPPED ? map_b : map_a, SWAPPED ? map_a : map_b);
}

template <Layout L>
__global__ void __launch_bounds__(256) bf16_best_pack(const __grid_constant__ Pad s) {
    pad_rows<L>(s);
}
