/* mma.cuh: fragments of 16-bit elements from shared memory (ldmatrix), and their products by the tensor cores of sm_80
 * (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
 *
 * A fragment is 16 rows of A (columns of B) by 16 k in four registers a lane, one for each of four 8 x 8 matrices. The
 * order of the matrices is column-major for A, as mma expects, and row-major for B, so that registers 0 and 1 are eight
 * columns, and 2 and 3 the next eight:
 *
 *     A   rows 0 to 7   0  2         B   columns 0 to 7   0  1
 *         rows 8 to 15  1  3             columns 8 to 15  2  3
 *                       k 0 to 7, 8 to 15                 k 0 to 7, 8 to 15
 *
 * A lane's register holds row lane / 4 of its matrix, and two k from lane % 4 * 2 on.
 */
#include "f16_panel.cuh"
#include "ldmatrix.cuh"

enum Side { SIDE_A, SIDE_B };

/* d (16 x 8) += A (16 x 16) B (16 x 8). A lane has rows lane / 4 and lane / 4 + 8, and of each the columns lane % 4 * 2
 * and the next. */
__device__ inline void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The address that this lane passes to ldmatrix for fragment i of the rows from `row` on, at the 16 k from 16 * k on,
 * of a panel (f16_panel.cuh). first() is called once; at() takes its result plus the panel's address, a multiple of
 * 128, so that the swizzle of the next fragment is one exclusive or. `row` is a multiple of 64, i less than 4. */
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
 * rows: they exchange, so that each holds four columns of one row. */
template <int TM, int TN>
__device__ inline void store_warp_tile(const Gemm& p, u32 product, i64 i, i64 j, float (&acc)[TM / 16][TN / 8][4]) {
    int lane = threadIdx.x % 32, below = lane % 2;
    i += lane / 4 + 8 * below, j += lane % 4 / 2 * 4;
    bool plain = !p.c0 && p.c_vector && j + TN - 4 <= p.n;
    float* c = p.c + product * p.c_batch + i * p.ldc + j;
#pragma unroll
    for (int r = 0; r < TM / 16; ++r, i += 16, c += 16 * p.ldc) {
#pragma unroll
        for (int x = 0; x < TN / 8; ++x) {
            float* s = acc[r][x];
#pragma unroll
            for (int w = 0; w < 2; ++w) {
                float y = __shfl_xor_sync(0xffffffff, below ? s[w] : s[2 + w], 1);
                s[w] = below ? y : s[w], s[2 + w] = below ? s[2 + w] : y;
            }
        }
        if (i >= p.m) continue;
        if (plain) {
#pragma unroll
            for (int x = 0; x < TN / 8; ++x) {
#pragma unroll
                for (int w = 0; w < 4; ++w) acc[r][x][w] = scaled(p, acc[r][x][w]);
                store4(c + 8 * x, acc[r][x]);
            }
        } else {
#pragma unroll
            for (int x = 0; x < TN / 8; ++x) store_row<4>(p, product, i, j + 8 * x, acc[r][x]);
        }
    }
}
