/* ozaki2_f32, T13: f32 products by 7 int8 products and the Chinese remainder theorem.
 *
 * step      the rows of A and the columns of B scaled to integers, of these the remainders modulo 7 coprime numbers, 7
 *           exact int8 products, and the Chinese remainder theorem. A row has one scale: its small elements lose bits
 *           where it has large ones, so the error is bounded by norms and not by |A||B|. Opt-in.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout. Error of 65,536 k at most
 *           (sqrt(k) 2^-25.35 + k 2^-54.7) |a_i| |b_j| + 2^-24 |C|,
 *           with the norms of row i and column j. A NaN or an infinity in a row or a column gives NaN.
 * tile      128 x 256 x 128, 64 x 256 a warpgroup
 * regs      168 at launch, 232 a consumer and 40 a producer: 128 accumulators; local memory 0
 * per k     1/32 IGMMA.64x256x32, 320 i8 from shared memory
 * ratio     64*256 / (64+256) = 51.20 for each of 7 products
 * rounding  operands to integers; products exact; one for the result, one for alpha, one for beta; each 65,536 k are
 *           a product that is added to C
 * needs     sm_90a
 * idea      K. Ozaki, Y. Uchino, T. Imamura, Ozaki scheme II (arXiv 2504.08009, 2508.03984)
 * lanes     128
 * launch    384 threads a block, 128 of them producers; persistent grid, clusters of 2 or single blocks
 * smem      225 KiB dynamic and 64 bytes static
 */
#include "remainders.cuh"
#include "wgmma_panels.cuh"

template <int BN, int STAGES, int M, int K>
__global__ void __cluster_dims__(M * K, 1, 1) __launch_bounds__(384, 1)
    ozaki2_f32(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
               const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
               const __grid_constant__ TensorMap map_c) {
    wgmma_gemm<Panels<MmaS8, BN, STAGES, Cluster<M, K>>, ToI32>(p, s, map_a, map_b, &map_c);
}
