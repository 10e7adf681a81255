/* reg4x4, S8: 4 x 4 a thread, 16-byte accesses to shared and global memory.
 *
 * step      four adjacent elements of B are loaded from shared memory with one instruction, and rows of C are stored 16
 *           bytes at a time. A is stored row by row, as in global memory.
 * covers    blog mysgemm_v7; slides sgemm5
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      64 x 64 x 16, 4 x 4 a thread
 * regs      64 at most: 16 accumulators; local memory 0
 * per k     16 FFMA, 8 f32 from shared memory, 2 LDS.128
 * ratio     4*4 / (4+4) = 2.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      vectorised access to shared and global memory
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/64) * ceil(n/64)
 * smem      8 KiB and 12 bytes of tile coordinates; at most 8.25 KiB for other layouts
 */
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256) reg4x4(const Gemm p) {
    constexpr int BM = 64, BN = 64, BK = 16, TM = 4, TN = 4, GAP_M = 4, GAP_N = 4, THREADS = 256;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    __shared__ __align__(16) float as[BM * BK], bs[BK * PanelB::PITCH];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / 16 * TM, column = threadIdx.x % 16 * TN;
    float acc[TM][TN] = {};
    for (i64 k_left = p.k; k_left > 0; k_left -= BK) {
        a.load(k_left);
        b.load(k_left);
        a.template store_k_major<BK>(as);
        b.template store_mn_major<PanelB::PITCH>(bs);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < BK; ++k) {
            float fa[TM], fb[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) fa[i] = as[(row + i) * BK + k];
            load_fragment<TN, GAP_N>(fb, bs + k * PanelB::PITCH + column);
            rank1_update(acc, fa, fb);
        }
        __syncthreads();
    }
    store_thread_tile<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, acc);
}
