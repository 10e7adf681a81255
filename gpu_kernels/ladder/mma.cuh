/* mma.cuh: fragments of 16-bit elements from shared memory (ldmatrix), and their products by the tensor cores of sm_80
 * (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
 *
 * A fragment is 16 rows of A (columns of B) by 16 k in four registers a lane, one for each of four 8 x 8 matrices. Two
 * int8 along k are one such element, and a fragment has 32 k. The order of the matrices is column-major for A, as mma
 * expects, and row-major for B, so that registers 0 and 1 are eight columns, and 2 and 3 the next eight:
 *
 *     A   rows 0 to 7   0  2         B   columns 0 to 7   0  1
 *         rows 8 to 15  1  3             columns 8 to 15  2  3
 *                       k 0 to 7, 8 to 15                 k 0 to 7, 8 to 15
 *
 * A lane's register holds row lane / 4 of its matrix, and two k from lane % 4 * 2 on.
 */
#include "f16_panel.cuh"
#include "ldmatrix.cuh"
#include "mma_16x8.cuh"
#include "store_row.cuh"

enum Side { SIDE_A, SIDE_B };

/* d (16 x 8) += A (16 x 16) B (16 x 8). Result is the type of C (result.cuh). */
struct MmaF16 {
    typedef ToF32 Result;
    __device__ static void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) { mma_f16(d, a, b0, b1); }
};

/* The same with 32 k of int8. */
struct MmaS8 {
    typedef ToI32 Result;
    __device__ static void multiply(int (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) { mma_s8(d, a, b0, b1); }
};

/* The address that this lane passes to ldmatrix for fragment i of the rows from `row` on, at the 16 k from 16 * k on
 * (of int8 the 32 from 32 * k on), of a panel (f16_panel.cuh). first() is called once; at() takes its result plus the
 * panel's address, a multiple of 128, so that the swizzle of the next fragment is one exclusive or. `row` is a multiple
 * of 64, i less than 4. */
template <Side S, Layout L, class Place>
struct FragmentAddress {
    __device__ static u32 first(int row) {
        int line = threadIdx.x % 8, matrix = threadIdx.x % 32 / 8;
        int r = S == SIDE_A ? matrix % 2 : matrix / 2, k = S == SIDE_A ? matrix / 2 : matrix % 2;
        return k_major(L) ? Place::at(row + 8 * r + line, k) : Place::at(8 * k + line, row / 8 + r);
    }
    __device__ static u32 at(u32 first, int i, int k) {
        return k_major(L) ? (first ^ 32 * k) + i * 16 * Place::PITCH : (first ^ 32 * i) + k * 16 * Place::PITCH;
    }
};

/* Epilogue: a warp's accumulators to C, from row i and column j on. Two adjacent lanes hold two columns each of two
 * rows: they exchange, so that each holds four columns of one row. T is the type of C (result.cuh). */
template <class T, int TM, int TN>
__device__ inline void store_warp_tile(const Gemm& p, u32 product, i64 i, i64 j,
                                       typename T::Partial (&acc)[TM / 16][TN / 8][4]) {
    typedef typename T::Out Out;
    int lane = threadIdx.x % 32, below = lane % 2;
    i += lane / 4 + 8 * below, j += lane % 4 / 2 * 4;
    Out* c = (Out*)p.c + product * p.c_batch + i * p.ldc + j;
    const Out* c0 = (const Out*)p.c0 + product * p.c0_batch + i * p.c0_rs + j * p.c0_cs;
#pragma unroll
    for (int r = 0; r < TM / 16; ++r, i += 16, c += 16 * p.ldc, c0 += 16 * p.c0_rs) {
#pragma unroll
        for (int x = 0; x < TN / 8; ++x) {
            auto& s = acc[r][x];
#pragma unroll
            for (int w = 0; w < 2; ++w) {
                auto y = __shfl_xor_sync(0xffffffff, below ? s[w] : s[2 + w], 1);
                s[w] = below ? y : s[w], s[2 + w] = below ? s[2 + w] : y;
            }
        }
        if (i >= p.m) continue;
#pragma unroll
        for (int x = 0; x < TN / 8; ++x)
            store_row4<T>(p, c + 8 * x, p.c0 ? c0 + 8 * x * p.c0_cs : nullptr, p.n - j - 8 * x, acc[r][x]);
    }
}
