/* wmma: C[16,16] += A[16,K] * B[K,16] on the tensor cores, one tile to a warp.
 *
 * contract  call.cuh; any K: the last k step is filled with zeros. K = 0 gives C0 or zeros. Tiles that stick out of C
 *           read and write what exists.
 * tile      cuda_f16f32_wmma_16x16, cuda_bf16f32_wmma_16x16, cuda_i8i32_wmma_16x16; k_group 16
 * regs      8 sums a lane; local memory 0
 * per k     1/16 wmma of 16x16x16 (HMMA, IMMA). With DIRECT the tensor cores' fragments are loaded from the arrays;
 *           else through shared memory, element by element, whatever the strides
 * ratio     256 / (16 + 16) = 8.00
 * rounding  products exact; the tensor core adds those of a k step and the sum in float with its own truncation, then
 *           one add of C0. Integers are exact, int32 wraps around
 * needs     sm_75; sm_80 for bf16
 * idea      NVIDIA, CUDA C++ Programming Guide, warp matrix functions; the section that A. Atluri, Musings on GEMM
 *           (2017) left open
 * lanes     32
 * launch    128 threads a block, 4 tiles; grid ceil(batch * ceil(m/16) * ceil(n/16) / 4)
 * smem      4 * (2 * 16 * 16 elements + 16 * 16 sums)
 */
#include "warp_matrix.cuh"
#include "call.cuh"
#include "types.cuh"
#include "memory.cuh"

constexpr int SIDE = 16, WARPS = 4;

/* Y is the type family (types.cuh), Type its operands on the tensor cores. */
template <class Y, class Type, bool DIRECT>
__global__ void __launch_bounds__(32 * WARPS) wmma_tile(const __grid_constant__ Call p) {
    typedef typename Y::Elem Elem;
    typedef typename Y::Acc Acc;
    __shared__ __align__(32) Elem parts[WARPS][2][SIDE * SIDE];
    __shared__ __align__(32) Acc staged[WARPS][SIDE * SIDE];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Tile t = tile_of<SIDE, SIDE, true>(p, group_index<32>());
    if (!t.inside) return;
    const Elem* a = (const Elem*)p.a + t.at.a + t.i * p.a_rs;
    const Elem* b = (const Elem*)p.b + t.at.b + t.j * p.b_cs;
    warp_matrix::Fragment<Type, warp_matrix::A, warp_matrix::RowMajor> fa;
    warp_matrix::Fragment<Type, warp_matrix::B, warp_matrix::RowMajor> fb;
    warp_matrix::Accumulator<Type> acc;
    i64 k = 0;
    if constexpr (DIRECT) {
#pragma unroll 2
        for (; k + SIDE <= p.k; k += SIDE) {
            warp_matrix::load<warp_matrix::Global>(fa, a + k, (unsigned)p.a_rs);
            warp_matrix::load<warp_matrix::Global>(fb, b + k * p.b_rs, (unsigned)p.b_rs);
            warp_matrix::multiply(acc, fa, fb);
        }
    }
    Elem *sa = parts[warp][0], *sb = parts[warp][1];
#pragma unroll 1
    for (; k < p.k; k += SIDE) {
        __syncwarp();
#pragma unroll
        for (int x = lane; x < SIDE * SIDE; x += 32) {
            int row = x / SIDE, col = x % SIDE;
            sa[x] = row < t.rows && k + col < p.k ? __ldg(a + row * p.a_rs + (k + col) * p.a_cs) : Elem(0);
            sb[x] = col < t.cols && k + row < p.k ? __ldg(b + (k + row) * p.b_rs + col * p.b_cs) : Elem(0);
        }
        __syncwarp();
        warp_matrix::load<warp_matrix::Shared>(fa, sa, SIDE);
        warp_matrix::load<warp_matrix::Shared>(fb, sb, SIDE);
        warp_matrix::multiply(acc, fa, fb);
    }
    warp_matrix::store(staged[warp], acc, SIDE);
    __syncwarp();
    typedef typename Y::Out Out;
    Out* c = (Out*)p.c + t.at.c + t.i * p.c_rs + t.j * p.c_cs;
    const Out* c0 = (const Out*)p.c0 + t.at.c0 + t.i * p.c0_rs + t.j * p.c0_cs;
#pragma unroll
    for (int x = 4 * lane; x < SIDE * SIDE; x += 4 * 32) {
        int row = x / SIDE, col = x % SIDE;
        Out four[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            Acc s = staged[warp][x + j];
            if (p.c0 && row < t.rows && col + j < t.cols) s = Y::sum(c0[row * p.c0_rs + (col + j) * p.c0_cs], s);
            four[j] = Y::result(s);
        }
        if (p.c_vector && t.rows == SIDE && t.cols == SIDE) {
            u32 w[4] = {Y::bits(four, 0), Y::bits(four, 1), Y::bits(four, 2), Y::bits(four, 3)};
            store_words<16>(c + row * p.c_rs + col, w);
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (row < t.rows && col + j < t.cols) c[row * p.c_rs + (col + j) * p.c_cs] = four[j];
        }
    }
}
