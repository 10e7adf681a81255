/* wmma: C[16,16] += A[16,K] * B[K,16] on the tensor cores, one tile a warp.
 *
 * contract  call.cuh; any K: the last step of 16 is filled with zeros. K = 0 gives C0 or zeros. An edge tile reads and
 *           writes the elements that exist.
 * tile      cuda_bf16f32_wmma_16x16, cuda_f16f32_wmma_16x16, cuda_i8i32_wmma_16x16; k_group 16
 * regs      8 accumulators; at most 64 registers; no spills
 * per k     1/8 HMMA, 1/4 HMMA for f16f32 sm_75, 1/8 IMMA for i8i32, 1/4 IMMA for i8i32 sm_75; 1/2 loads of 4 bytes,
 *           1/8 loads of 4 bytes for i8i32; 1/2 loads of 1 byte for i8i32; DIRECT: fragments are loaded from row-major
 *           operands; else they are copied to shared memory first, element by element, whatever the strides
 * ratio     MR*NR / (MR + NR) = 8.00
 * rounding  products are exact; the tensor core adds those of 16 steps of k to the accumulator in f32 and truncates in
 *           its own way, then one add of C0. Integers are exact, int32 wraps around
 * needs     sm_75; sm_80 for bf16
 * idea      NVIDIA, PTX ISA, warp-level matrix instructions (wmma); the section that A. Atluri, Musings on GEMM (2017)
 *           left open
 * lanes     32
 * launch    128 threads a block; grid ceil(batch * ceil(m/16) * ceil(n/16) / 4)
 * smem      4 * (2*16*16*A_BYTES + 16*16*C_BYTES) bytes; operands and accumulators of each warp
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
    __shared__ __align__(32) Elem panels[WARPS][2][SIDE * SIDE];
    __shared__ __align__(32) Acc staged[WARPS][SIDE * SIDE];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Tile t = tile_of<SIDE, SIDE, true>(p, group_index<32>());
    if (!t.inside) return;
    const Elem* a = (const Elem*)p.a + t.offsets.a + t.i * p.a_rs;
    const Elem* b = (const Elem*)p.b + t.offsets.b + t.j * p.b_cs;
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
    Elem *sa = panels[warp][0], *sb = panels[warp][1];
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
    Out* c = (Out*)p.c + t.offsets.c + t.i * p.c_rs + t.j * p.c_cs;
    const Out* c0 = (const Out*)p.c0 + t.offsets.c0 + t.i * p.c0_rs + t.j * p.c0_cs;
#pragma unroll
    for (int x = 4 * lane; x < SIDE * SIDE; x += 4 * 32) {
        int row = x / SIDE, col = x % SIDE;
        Out four[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            Acc s = staged[warp][x + j];
            if (p.c0 && row < t.rows && col + j < t.cols) s = Y::add(c0[row * p.c0_rs + (col + j) * p.c0_cs], s);
            four[j] = Y::result(s);
        }
        if (p.c_vector && t.rows == SIDE && t.cols == SIDE) {
            u32 w[sizeof(Out)]; /* four elements */
#pragma unroll
            for (int i = 0; i < (int)sizeof(Out); ++i) w[i] = Y::bits(four, i);
            store_words<4 * sizeof(Out)>(c + row * p.c_rs + col, w);
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (row < t.rows && col + j < t.cols) c[row * p.c_rs + (col + j) * p.c_cs] = four[j];
        }
    }
}
