/* narrow_any: what narrow.cu computes, with the same bits, by one instance for all shapes and layouts.
 *
 * contract  that of narrow.cu
 * tile      16 x 8 of the long and the short side a block
 * regs      4 accumulators of mma.sync, of f32 16; local memory 0
 * per k     16 bytes along k of each row and column, element by element: 2 mma.sync (int8, 16 bits) or 16 FFMA for 64
 *           bytes (f32: 4 steps of k)
 * ratio     16 * 8 / (16 + 8) = 5.33 for the tile; elements are loaded one at a time
 * rounding  as narrow.cu rounds: a warp takes the part of k that a warp of a block of the cluster has there, in the
 *           same steps; the sums of lanes, warps and blocks are added in the same order
 * needs     sm_90
 * idea      one instance for all shapes, compiled once: a shape seen for the first time waits for no compiler. Written
 *           here
 * lanes     32
 * launch    256 threads a block; grid ceil(long side/16) * ceil(short side/8)
 * smem      the sums of every part of k: 64 tiles, static
 */
#include "narrow.cuh"

/* The operands, and how narrow.cu splits k. */
struct NarrowAny {
    i64 swapped; /* B is the long operand */
    i64 long_k_major, short_k_major;
    i64 split; /* blocks of a cluster */
    i64 along; /* warps of a block that split a panel */
    i64 panel; /* k of a panel */
};

constexpr int ANY_ROWS = 16, ANY_COLUMNS = 8, MOST_PARTS = 64;

/* Rows of an operand that are the long or the short side of C, some of which may not exist, along k. */
template <int BYTES>
struct AnyOperand {
    typedef typename Element<BYTES>::Type Elem;
    const Elem* base;
    i64 row_step, k_step;
    i64 rows;
    int k;

    __device__ __forceinline__ AnyOperand(const void* operand, i64 ld, bool along_k, i64 first, i64 rows, i64 k)
        : row_step(along_k ? ld : 1), k_step(along_k ? 1 : ld), rows(rows - first), k((int)k) {
        base = (const Elem*)operand + first * row_step;
    }

    /* The words of 4 bytes along k from element q on; beyond the operand they are 0. */
    template <int WORDS>
    __device__ __forceinline__ void load(u32 (&x)[WORDS], int row, int q) const {
        constexpr int EACH = 4 / BYTES;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            x[w] = 0;
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                int at = q + w * EACH + e;
                if (row < rows && at < k) x[w] |= (u32)__ldg(base + row * row_step + at * k_step) << 8 * BYTES * e;
            }
        }
    }
};

/* The accumulators of a warp: lane 4 g + t has (row g + 8 i, column 2 t + j) in x[2 i + j], as mma.sync has them. */
template <class E, class Partial>
struct AnyAccumulators {
    Partial x[4] = {};

    __device__ __forceinline__ void multiply(const AnyOperand<E::BYTES>& a, const AnyOperand<E::BYTES>& b, int q) {
        int g = threadIdx.x % 32 / 4;
        u32 low[4], high[4], y[4];
        a.load(low, g, q), a.load(high, g + 8, q), b.load(y, g, q);
#pragma unroll
        for (int w = 0; w < 4; w += 2) {
            u32 words[4] = {low[w], high[w], low[w + 1], high[w + 1]};
            E::mma(x, words, y[w], y[w + 1]);
        }
    }

    template <class T>
    __device__ __forceinline__ void finish(Partial (&sums)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[i] = x[i];
    }
};

template <class Partial>
struct AnyAccumulators<NarrowF32, Partial> {
    float x[2][ANY_COLUMNS] = {};

    __device__ __forceinline__ void multiply(const AnyOperand<4>& a, const AnyOperand<4>& b, int q) {
        int g = threadIdx.x % 32 / 4;
        u32 rows[2][4];
        a.load(rows[0], g, q), a.load(rows[1], g + 8, q);
#pragma unroll
        for (int j = 0; j < ANY_COLUMNS; ++j) {
            u32 y[4];
            b.load(y, j, q);
#pragma unroll
            for (int w = 0; w < 4; ++w)
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    x[i][j] = multiply_add(__uint_as_float(rows[i][w]), __uint_as_float(y[w]), x[i][j]);
        }
    }

    /* The sum over the four lanes of a row, in pairs. */
    template <class T>
    __device__ __forceinline__ void finish(Partial (&sums)[4]) {
        int t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int j = 0; j < ANY_COLUMNS; ++j) {
                float pair = T::add(x[i][j], __shfl_xor_sync(0xffffffff, x[i][j], 1));
                float sum = T::add(pair, __shfl_xor_sync(0xffffffff, pair, 2));
                if (j / 2 == t) sums[2 * i + j % 2] = sum;
            }
        }
    }
};

template <class E, class T>
__global__ void __launch_bounds__(NARROW_THREADS, 1) narrow_any(const __grid_constant__ Gemm p,
                                                                const __grid_constant__ NarrowAny s) {
    typedef typename T::Partial Partial;
    typedef typename T::Out Out;
    constexpr int STEP = STEP_BYTES / E::BYTES, TILE = ANY_ROWS * ANY_COLUMNS;
    __shared__ Partial sums[MOST_PARTS][TILE];
    i64 rows = s.swapped ? p.n : p.m;
    int columns = (int)(s.swapped ? p.m : p.n), across = (columns + ANY_COLUMNS - 1) / ANY_COLUMNS;
    int first_column = (int)blockIdx.x % across * ANY_COLUMNS;
    i64 first_row = (i64)((int)blockIdx.x / across) * ANY_ROWS;
    typedef AnyOperand<E::BYTES> Operand;
    Operand a(s.swapped ? p.b : p.a, s.swapped ? p.ldb : p.lda, s.long_k_major, first_row, rows, p.k);
    Operand b(s.swapped ? p.a : p.b, s.swapped ? p.lda : p.ldb, s.short_k_major, first_column, columns, p.k);
    int split = (int)s.split, along = (int)s.along, panel = (int)s.panel;
    int panels = ((int)p.k + panel - 1) / panel, parts = split * along, steps = panel / along / STEP;
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int part = threadIdx.x / 32; part < parts; part += NARROW_WARPS) {
        int rank = part / along, warp = part % along;
        int first = panels * rank / split, end = panels * (rank + 1) / split;
        AnyAccumulators<E, Partial> acc;
#pragma unroll 1
        for (int n = first; n < end; ++n) {
#pragma unroll 1
            for (int u = 0; u < steps; ++u)
                acc.multiply(a, b, n * panel + (warp * steps + u) * STEP + t * (STEP / 4));
        }
        Partial x[4];
        acc.template finish<T>(x);
#pragma unroll
        for (int w = 0; w < 4; ++w) sums[part][(g + w / 2 * 8) * ANY_COLUMNS + 2 * t + w % 2] = x[w];
    }
    __syncthreads();
    int r = threadIdx.x / ANY_COLUMNS, j = threadIdx.x % ANY_COLUMNS;
    if (threadIdx.x >= TILE || first_row + r >= rows || first_column + j >= columns) return;
    Partial total = 0;
#pragma unroll 1
    for (int rank = 0; rank < split; ++rank) {
        int from = rank * along;
        Partial sum = sums[from][threadIdx.x];
#pragma unroll 1
        for (int w = 1; w < along; ++w) sum = T::add(sum, sums[from + w][threadIdx.x]);
        total = rank ? T::add(total, sum) : sum;
    }
    i64 row = s.swapped ? first_column + j : first_row + r, column = s.swapped ? first_row + r : first_column + j;
    const Out* c0 = (const Out*)p.c0 + row * p.c0_rs + column * p.c0_cs;
    ((Out*)p.c)[row * p.ldc + column] =
        T::out(p.c0 ? T::scaled(p.alpha, total, p.beta, *c0) : T::scaled(p.alpha, total));
}
