/* warptile, S12: a tile of 32 x 64 for each warp.
 *
 * step      32 lanes as 4 x 8 instead of 2 x 16: a warp reads 32 + 64 floats per k instead of 16 + 128. Lanes are
 *           numbered so that neighbours read the same or the next piece.
 * covers    blog mysgemm_v9
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread, in warp tiles of 32 x 64
 * regs      128 at most, so that two blocks share a multiprocessor; local memory 0
 * per k     64 FFMA  16 floats from shared memory, 4 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      block tile, warp tile, register tile: one for each level of the machine
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      8.1 KiB (rows of 132 floats for an operand that is turned on its way)
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 2) warptile(const Gemm p) {
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = 256;
    constexpr int WM = 32, WN = 64, GAP_M = WM / 2, GAP_N = WN / 2;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    __shared__ __align__(16) float as[BK * PanelA::PADDED], bs[BK * PanelB::PADDED];
    const Tile& t = tile_of<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BN / WN) * WM + (lane / 16 * 2 + lane % 2) * 4;
    int column = warp % (BN / WN) * WN + lane / 2 % 8 * 4;
    float sum[TM][TN] = {};
    for (i64 left = p.k; left > 0; left -= BK) {
        a.load(left);
        b.load(left);
        a.template store_by_k<PanelA::PADDED>(as);
        b.template store_by_k<PanelB::PADDED>(bs);
        __syncthreads();
#pragma unroll
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
