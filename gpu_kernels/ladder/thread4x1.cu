/* thread4x1, S5: a column of four elements of C a thread, the first register tile.
 *
 * step      an element of B in a register is used for four rows: five loads from shared memory for four multiply-adds
 *           instead of eight. 256 threads compute the block tile that took 1024. Global memory is read 16 bytes at a
 *           time (LDG.E.128) where rows are aligned, which alone gains 5 % on an H200 at 8192 (18.5 instead of 17.6
 *           TFLOP/s). A warp writes whole 128-byte lines of C already; 16-byte stores come with the 4 x 4 tile.
 * covers    blog mysgemm_v5, mysgemm_v6; slides sgemm3
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      32 x 32 x 32, 4 x 1 a thread
 * regs      60 at most: 4 accumulators; local memory 0
 * per k     4 FFMA, 5 f32 from shared memory
 * ratio     4*1 / (4+1) = 0.80
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      register tile; vectorised loads
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/32) * ceil(n/32)
 * smem      8 KiB and 12 bytes of tile coordinates
 */
#include "panel.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256) thread4x1(const Gemm p) {
    constexpr int BM = 32, BN = 32, BK = 32, TM = 4, THREADS = 256;
    __shared__ __align__(16) float as[BM * BK], bs[BK * BN];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    Panel<BM, BK, THREADS, LA> a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    Panel<BN, BK, THREADS, LB> b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / 32 * TM, column = threadIdx.x % 32;
    float acc[TM] = {};
    for (i64 k_left = p.k; k_left > 0; k_left -= BK) {
        a.load(k_left);
        b.load(k_left);
        a.template store_k_major<BK>(as);
        b.template store_mn_major<BN>(bs);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < BK; ++k) {
            float fb = bs[k * BN + column];
#pragma unroll
            for (int i = 0; i < TM; ++i) acc[i] = multiply_add(as[(row + i) * BK + k], fb, acc[i]);
        }
        __syncthreads();
    }
    i64 i = (i64)t.row * BM + row, j = (i64)t.column * BN + column;
#pragma unroll
    for (int r = 0; r < TM; ++r) store_row<1>(p, t.product, i + r, j, &acc[r]);
}
