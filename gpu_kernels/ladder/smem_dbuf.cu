/* smem_dbuf, S14: two tiles in shared memory, one barrier a tile.
 *
 * step      the next tile is stored beside the one that is read, so that no barrier is needed before storing; and the
 *           fragments of its first k are read before the last k of this one is multiplied.
 * covers    blog mysgemm_v11; slides sgemv7; readme sgemm_v3
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread, in warp tiles of 32 x 64
 * regs      128 at most, so that two blocks share a multiprocessor: 64 sums, 2 x 16 of fragments, 8 on their way; local
 *           memory 0
 * per k     64 FFMA  16 floats from shared memory, 4 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      double buffering
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      16.25 KiB (rows of 132 floats for an operand that is turned on its way)
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 2) smem_dbuf(const Gemm p) {
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = 256;
    constexpr int WM = 32, WN = 64, GAP_M = WM / 2, GAP_N = WN / 2;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    constexpr int SIZE_A = BK * PanelA::PADDED, STAGE = SIZE_A + BK * PanelB::PADDED;
    __shared__ __align__(16) float shared[2 * STAGE];
    const Tile& t = tile_of<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BN / WN) * WM + (lane / 16 * 2 + lane % 2) * 4;
    int column = warp % (BN / WN) * WN + lane / 2 % 8 * 4;
    float sum[TM][TN] = {}, fa[2][TM], fb[2][TN];
    int stage = 0;
    auto store = [&](int to) {
        a.template store_by_k<PanelA::PADDED>(shared + to);
        b.template store_by_k<PanelB::PADDED>(shared + to + SIZE_A);
    };
    auto read = [&](int k) {
        read_fragment<TM, GAP_M>(fa[k % 2], shared + stage + k * PanelA::PADDED + row);
        read_fragment<TN, GAP_N>(fb[k % 2], shared + stage + SIZE_A + k * PanelB::PADDED + column);
    };
    if (p.k > 0) {
        a.load(p.k);
        b.load(p.k);
        store(0);
        __syncthreads();
        read(0);
#pragma unroll 2 /* in each of two tiles the stage is a constant: no address is worked out */
        for (i64 left = p.k - BK; left > 0; left -= BK) {
            a.load(left);
            b.load(left);
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                /* The other stage is free: all passed the last barrier after their last read of it. Stored one k
                 * before the barrier, the next tile is there when the barrier is. */
                if (k + 2 == BK) store(stage ^ STAGE);
                if (k + 1 == BK) {
                    __syncthreads();
                    stage ^= STAGE;
                }
                read((k + 1) % BK);
                update(sum, fa[k % 2], fb[k % 2]);
            }
        }
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) read(k + 1);
            update(sum, fa[k % 2], fb[k % 2]);
        }
    }
    store_fragment<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, sum);
}
