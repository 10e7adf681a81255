/* reg4x4, S8: 4 x 4 a thread, shared and global memory in pieces of 16 bytes.
 *
 * step      four adjacent floats of B come from shared memory with one instruction, and rows of C go out 16 bytes at a
 *           time. A lies row by row, as it came.
 * covers    blog mysgemm_v7; slides sgemm5
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      64 x 64 x 16, 4 x 4 a thread
 * regs      64 at most; local memory 0
 * per k     16 FFMA  8 floats from shared memory, 2 LDS.128
 * ratio     4*4 / (4+4) = 2.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      vector access on both sides of shared memory
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/64) * ceil(n/64)
 * smem      8 KiB (rows of 68 floats for a B that is turned on its way)
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256) reg4x4(const Gemm p) {
    constexpr int BM = 64, BN = 64, BK = 16, TM = 4, TN = 4, GAP_M = 4, GAP_N = 4, THREADS = 256;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    __shared__ __align__(16) float as[BM * BK], bs[BK * PanelB::PADDED];
    const Tile& t = tile_of<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / 16 * TM, column = threadIdx.x % 16 * TN;
    float sum[TM][TN] = {};
    for (i64 left = p.k; left > 0; left -= BK) {
        a.load(left);
        b.load(left);
        a.template store_by_r<BK>(as);
        b.template store_by_k<PanelB::PADDED>(bs);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < BK; ++k) {
            float fa[TM], fb[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) fa[i] = as[(row + i) * BK + k];
            read_fragment<TN, GAP_N>(fb, bs + k * PanelB::PADDED + column);
            update(sum, fa, fb);
        }
        __syncthreads();
    }
    store_fragment<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, sum);
}
