/* smem_dbuf, S14: double-buffered shared memory, one barrier a panel.
 *
 * step      the next panel is stored to a second buffer, so that no barrier is needed before the stores; and the
 *           fragments of its first k are loaded before the last k of this panel is multiplied.
 * covers    blog mysgemm_v11; slides sgemv7; readme sgemm_v3
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread, warp tile 32 x 64
 * regs      128 at most: 64 accumulators, 2 x 16 for fragments, two blocks a multiprocessor; local memory 0
 * per k     64 FFMA, 16 f32 from shared memory, 4 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      double buffering
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      16.25 KiB and 12 bytes of tile coordinates; at most 16.5 KiB for other layouts
 */
#include "double_buffer.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 2) smem_dbuf(const Gemm p) {
    constexpr int WM = 32, WN = 64;
    typedef DoubleBuffered<LA, LB, WM, WN> Loop;
    __shared__ __align__(16) float shared[2 * Loop::STAGE];
    const TileCoordinates& t = tile_coordinates<Loop::BM, Loop::BN>(p);
    typename Loop::PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    typename Loop::PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    float acc[Loop::TM][Loop::TN] = {};
    Loop::multiply(acc, a, b, p.k, shared);
    store_thread_tile<Loop::GAP_M, Loop::GAP_N>(p, t.product, (i64)t.row * Loop::BM + Loop::row(),
                                                (i64)t.column * Loop::BN + Loop::column(), acc);
}
