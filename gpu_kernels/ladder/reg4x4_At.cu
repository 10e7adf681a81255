/* reg4x4_At, S9: A transposed while it is stored to shared memory.
 *
 * step      the rows of A are contiguous there, so that the four elements of A that an outer product needs are
 *           adjacent, as those of B are. Rows have 4 elements of padding, so that the transposing stores go to
 *           different banks. On an H200 it gains little (30.9 instead of 30.8 TFLOP/s at 4096, 32.4 instead of 31.9 at
 *           8192): the compiler of reg4x4 already loads A four k at a time and keeps them in registers. It prepares the
 *           8 x 8 tile, which has no registers left for that.
 * covers    slides sgemm5, version 6
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      64 x 64 x 16, 4 x 4 a thread
 * regs      64 at most: 16 accumulators; local memory 0
 * per k     16 FFMA, 8 f32 from shared memory, 2 LDS.128
 * ratio     4*4 / (4+4) = 2.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      both panels MN-major: the operands of an outer product are contiguous
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/64) * ceil(n/64)
 * smem      8.25 KiB and 12 bytes of tile coordinates; at most 8.5 KiB for other layouts
 */
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256) reg4x4_At(const Gemm p) {
    constexpr int BM = 64, BN = 64, BK = 16, TM = 4, TN = 4, GAP_M = 4, GAP_N = 4, THREADS = 256;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    __shared__ __align__(16) float as[BK * PanelA::PITCH], bs[BK * PanelB::PITCH];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / 16 * TM, column = threadIdx.x % 16 * TN;
    float acc[TM][TN] = {};
    for (i64 k_left = p.k; k_left > 0; k_left -= BK) {
        a.load(k_left);
        b.load(k_left);
        a.template store_mn_major<PanelA::PITCH>(as);
        b.template store_mn_major<PanelB::PITCH>(bs);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float fa[TM], fb[TN];
            load_fragment<TM, GAP_M>(fa, as + k * PanelA::PITCH + row);
            load_fragment<TN, GAP_N>(fb, bs + k * PanelB::PITCH + column);
            rank1_update(acc, fa, fb);
        }
        __syncthreads();
    }
    store_thread_tile<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, acc);
}
