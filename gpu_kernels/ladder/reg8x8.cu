/* reg8x8, S10: 8 x 8 a thread, block tile 128 x 128.
 *
 * step      64 sums in registers instead of 16: a float from shared memory is used eight times, one from global memory
 *           128 times.
 * covers    blog mysgemm_v8
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread
 * regs      128 at most, so that two blocks share a multiprocessor; local memory 0
 * per k     64 FFMA  16 floats from shared memory, 4 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      the register tile as large as the registers of two blocks allow
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      8.1 KiB (rows of 132 floats for an operand that is turned on its way)
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 2) reg8x8(const Gemm p) {
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = 256;
    constexpr int GAP_M = 4, GAP_N = 4;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    __shared__ __align__(16) float as[BK * PanelA::PADDED], bs[BK * PanelB::PADDED];
    const Tile& t = tile_of<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / 16 * TM, column = threadIdx.x % 16 * TN;
    float sum[TM][TN] = {};
    for (i64 left = p.k; left > 0; left -= BK) {
        a.load(left);
        b.load(left);
        a.template store_by_k<PanelA::PADDED>(as);
        b.template store_by_k<PanelB::PADDED>(bs);
        __syncthreads();
#pragma unroll 4 /* all eight at once would want more registers than two blocks leave */
        for (int k = 0; k < BK; ++k) {
            float fa[TM], fb[TN];
            read_fragment<TM, GAP_M>(fa, as + k * PanelA::PADDED + row);
            read_fragment<TN, GAP_N>(fb, bs + k * PanelB::PADDED + column);
            update(sum, fa, fb);
        }
        __syncthreads();
    }
    store_fragment<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, sum);
}
