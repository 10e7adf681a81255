/* wmma_naive, T1: tensor cores with WMMA, one 16 x 16 tile of C a warp.
 *
 * step      a warp multiplies 16 x 16 by 16 x 16 with one instruction of PTX; the fragments are distributed over its
 *           lanes. They are loaded from global memory, where addresses allow that and the tile is whole; otherwise
 *           through shared memory, element by element.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      32 x 32, 16 x 16 a warp
 * regs      85 at most: 8 accumulators; local memory 0
 * per k     1/8 HMMA.16816, 32 f16 from global memory, 1/2 LDG
 * ratio     16*16 / (16+16) = 8.00
 * rounding  products exact, sums of 16 k in the tensor core's own order and rounding; one for alpha, one for beta
 * needs     sm_75
 * idea      warp-level matrix instructions (wmma): NVIDIA, PTX ISA
 * lanes     32
 * launch    128 threads a block; grid batch * ceil(m/32) * ceil(n/32)
 * smem      8 KiB and 12 bytes of tile coordinates
 */
#include "wmma.cuh"

/* Whether wmma.load may read there: the first element at a multiple of 32 bytes, lines at multiples of 16. */
__device__ inline bool loadable(const u16* from, i64 ld) {
    return (u64)from % 32 == 0 && ld % 8 == 0 && ld >= 0 && ld < 1 << 30;
}

/* Copies 16 rows (columns) by 16 k of an operand, of which some exist, to shared memory in the same order. */
template <Layout L>
__device__ inline void stage(u16* to, const u16* from, i64 ld, i64 rows, i64 k_left) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int x = lane; x < 256; x += 32) {
        int line = x / 16, along = x % 16;
        bool exists = k_major(L) ? line < rows && along < k_left : along < rows && line < k_left;
        to[x] = exists ? __ldg(from + line * ld + along) : (u16)0;
    }
}

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(128) wmma_naive(const Gemm p) {
    __shared__ __align__(32) u16 staged[4][2][256];
    __shared__ __align__(32) float tiles[4][256];
    const TileCoordinates& t = tile_coordinates<32, 32>(p);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    i64 i = (i64)t.row * 32 + warp / 2 * 16, j = (i64)t.column * 32 + warp % 2 * 16;
    const u16* a = (const u16*)p.a + t.product * p.a_batch + i * (k_major(LA) ? p.lda : 1);
    const u16* b = (const u16*)p.b + t.product * p.b_batch + j * (k_major(LB) ? p.ldb : 1);
    i64 a_step = k_major(LA) ? 1 : p.lda, b_step = k_major(LB) ? 1 : p.ldb, k = 0;
    u16 *sa = staged[warp][0], *sb = staged[warp][1];
    FragmentA<LA> fa;
    FragmentB<LB> fb;
    Accumulator acc;
    if (i + 16 <= p.m && j + 16 <= p.n && loadable(a, p.lda) && loadable(b, p.ldb)) {
#pragma unroll 2
        for (; k + 16 <= p.k; k += 16) {
            warp_matrix::load<warp_matrix::Global>(fa, a + k * a_step, (unsigned)p.lda);
            warp_matrix::load<warp_matrix::Global>(fb, b + k * b_step, (unsigned)p.ldb);
            warp_matrix::multiply(acc, fa, fb);
        }
    }
#pragma unroll 1
    for (; k < p.k; k += 16) {
        __syncwarp();
        stage<LA>(sa, a + k * a_step, p.lda, p.m - i, p.k - k);
        stage<LB>(sb, b + k * b_step, p.ldb, p.n - j, p.k - k);
        __syncwarp();
        warp_matrix::load<warp_matrix::Shared>(fa, sa, 16);
        warp_matrix::load<warp_matrix::Shared>(fb, sb, 16);
        warp_matrix::multiply(acc, fa, fb);
    }
    warp_matrix::store(tiles[warp], acc, 16);
    __syncwarp();
#pragma unroll
    for (int x = 4 * lane; x < 256; x += 128) store_row<4>(p, t.product, i + x / 16, j + x % 16, tiles[warp] + x);
}
