/* narrow.cuh: operands and accumulators of narrow.cu. The long operand is the one whose rows (of A; columns of B) are
 * the long side of C, the short operand the other one.
 *
 * A vector is 16 bytes along k, V elements, and a step four of them. A lane holds V rows of the long operand, and of
 * each a vector: words[i][w] is word w of row i. Lane 4 g + t has vector t of the step, and the rows g + 8 i where the
 * operand is K-major, else V g + i. So a warp reads whole lines in both layouts, and each accumulator adds the same
 * products in the same order.
 */
#include "../ladder/store_row.cuh"
#include "../ladder/tma.cuh"
#include "../ladder/dependent_launch.cuh"
#include "mma_16x8.cuh"

constexpr int NARROW_WARPS = 8, NARROW_THREADS = 32 * NARROW_WARPS, STEP_BYTES = 64;

template <int BYTES>
struct Element;
template <>
struct Element<4> {
    typedef u32 Type;
};
template <>
struct Element<2> {
    typedef u16 Type;
};
template <>
struct Element<1> {
    typedef unsigned char Type;
};

/* 16 bytes from `from` on, element by element, of which the first `left` exist; the others are 0. */
template <int BYTES>
__device__ __forceinline__ void load_elements(u32 (&x)[4], const char* from, int left) {
    typedef typename Element<BYTES>::Type Elem;
    constexpr int EACH = 4 / BYTES;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        x[w] = 0;
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            u32 y = left > w * EACH + e ? __ldg((const Elem*)from + w * EACH + e) : (Elem)0;
            x[w] |= y << 8 * BYTES * e;
        }
    }
}

/* 16 bytes from byte `by` of `low` on, which go on in `high`. */
__device__ __forceinline__ void shift_bytes(u32 (&x)[4], const uint4& low, const uint4& high, u32 by) {
    u32 w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = by & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = by & 4 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = __funnelshift_r(w[i], w[i + 1], by % 4 * 8);
}

/* From words along the rows, x[k][word of rows], to words along k. */
template <int BYTES>
__device__ __forceinline__ void transpose_words(u32 (&y)[16 / BYTES][4], const u32 (&x)[16 / BYTES][4]) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            if constexpr (BYTES == 4) {
                y[c][w] = x[w][c];
            } else if constexpr (BYTES == 2) {
                y[2 * c][w] = __byte_perm(x[2 * w][c], x[2 * w + 1][c], 0x5410);
                y[2 * c + 1][w] = __byte_perm(x[2 * w][c], x[2 * w + 1][c], 0x7632);
            } else {
                u32 low01 = __byte_perm(x[4 * w][c], x[4 * w + 1][c], 0x5140),
                    low23 = __byte_perm(x[4 * w + 2][c], x[4 * w + 3][c], 0x5140),
                    high01 = __byte_perm(x[4 * w][c], x[4 * w + 1][c], 0x7362),
                    high23 = __byte_perm(x[4 * w + 2][c], x[4 * w + 3][c], 0x7362);
                y[4 * c][w] = __byte_perm(low01, low23, 0x5410), y[4 * c + 1][w] = __byte_perm(low01, low23, 0x7632);
                y[4 * c + 2][w] = __byte_perm(high01, high23, 0x5410);
                y[4 * c + 3][w] = __byte_perm(high01, high23, 0x7632);
            }
        }
    }
}

/* A warp's rows of the long operand: `rows` rows from `base` on, `k` elements along k. ALIGNED: all vectors start at
 * multiples of 16 bytes, and none goes beyond the operand. Else a vector is put together from the two aligned ones that
 * it lies in, and near the ends of the operand from its elements. `rows_before`, `rows_after`: whether the operand has
 * rows before the warp's first, and enough after its last for a whole vector; `dense`: whether each k of an MN-major
 * operand begins where the one before it ends. */
template <int BYTES, Layout L, bool ALIGNED>
struct LongOperand {
    static constexpr int V = 16 / BYTES, ROWS = 8 * V, STEP = STEP_BYTES / BYTES;
    const char* base;
    i64 ld;
    int rows, k, g, t;
    bool rows_before, rows_after, dense;

    __device__ __forceinline__ LongOperand(const void* operand, i64 ld, i64 rows, i64 k, i64 first)
        : ld(ld), k((int)k), g(threadIdx.x % 32 / 4), t(threadIdx.x % 4) {
        base = (const char*)operand + first * (k_major(L) ? ld : 1) * BYTES;
        rows_before = first > 0, rows_after = rows - first >= ROWS + V, dense = ld == rows && ld >= 2 * V;
        this->rows = (int)(rows - first < ROWS ? rows - first : ROWS);
    }

    __device__ __forceinline__ static int row(int g, int i) { return k_major(L) ? g + 8 * i : V * g + i; }

    /* This lane's vector i of the step from element `first` on: where it is, and how many of its elements exist. */
    __device__ __forceinline__ const char* at(int first, int i, int& left) const {
        int q = first + t * V, r = g + 8 * i;
        if constexpr (k_major(L)) {
            left = r < rows ? k - q : 0;
            return base + (r * ld + q) * BYTES;
        } else {
            left = q + i < k ? rows - g * V : 0;
            return base + ((q + i) * ld + g * V) * BYTES;
        }
    }

    /* Bytes between it and the multiple of 16 before it, in 32 bits: the addresses need not be kept. */
    __device__ __forceinline__ u32 beyond_vector(int first, int i) const {
        u32 q = first + t * V, r = g + 8 * i, pitch = (u32)ld;
        u32 at = k_major(L) ? r * pitch + q : (q + i) * pitch + g * V;
        return ((u32)(u64)base + at * BYTES) % 16;
    }

    __device__ __forceinline__ void load(u32 (&x)[V][4], int first) const {
        if constexpr (ALIGNED) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                int left;
                const char* from = at(first, i, left);
                uint4 v = left > 0 ? __ldg((const uint4*)from) : make_uint4(0, 0, 0, 0);
                x[i][0] = v.x, x[i][1] = v.y, x[i][2] = v.z, x[i][3] = v.w;
            }
        } else if (k_major(L) ? first > 0 && first + STEP + V <= k
                              : (rows_before || (dense && first > 0)) && (rows_after || (dense && first + STEP < k))) {
            uint4 low[V], high[V];
#pragma unroll
            for (int i = 0; i < V; ++i) {
                int left;
                const char* from = at(first, i, left);
                const uint4* vector = (const uint4*)(from - (u64)from % 16);
                low[i] = left > 0 ? __ldg(vector) : make_uint4(0, 0, 0, 0);
                high[i] = left > 0 ? __ldg(vector + 1) : make_uint4(0, 0, 0, 0);
            }
#pragma unroll
            for (int i = 0; i < V; ++i) shift_bytes(x[i], low[i], high[i], beyond_vector(first, i));
        } else {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                int left;
                const char* from = at(first, i, left);
                load_elements<BYTES>(x[i], from, left);
            }
        }
    }
};

/* A lane's accumulators of V rows by N for f32. A vector of the short operand is read from shared memory, PITCH bytes
 * from one of its rows to the next. */
template <int N>
struct FmaAccumulators {
    float x[4][N] = {};

    template <int PITCH>
    __device__ __forceinline__ void multiply(const u32 (&words)[4][4], u32 from) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
            u32 y[4];
            shared_load4(y, from + j * PITCH);
#pragma unroll
            for (int w = 0; w < 4; ++w)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    x[i][j] = multiply_add(__uint_as_float(words[i][w]), __uint_as_float(y[w]), x[i][j]);
        }
    }

    /* The sum over the four lanes of a row, to `tile`, element (row, j) at j * P + row. A lane keeps row t. */
    template <class Long, class T, int P>
    __device__ __forceinline__ void write(float* tile) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            bool odd = t & 1, upper = t & 2;
            float low = T::add(odd ? x[1][j] : x[0][j], __shfl_xor_sync(0xffffffff, odd ? x[0][j] : x[1][j], 1));
            float high = T::add(odd ? x[3][j] : x[2][j], __shfl_xor_sync(0xffffffff, odd ? x[2][j] : x[3][j], 1));
            float sum = T::add(upper ? high : low, __shfl_xor_sync(0xffffffff, upper ? low : high, 2));
            tile[j * P + Long::row(g, t)] = sum;
        }
    }
};

struct NarrowF16 {
    static constexpr int BYTES = 2;
    __device__ __forceinline__ static void mma(float (&d)[4], const u32* a, u32 b0, u32 b1) { mma_f16(d, a, b0, b1); }
};

struct NarrowBf16 {
    static constexpr int BYTES = 2;
    __device__ __forceinline__ static void mma(float (&d)[4], const u32* a, u32 b0, u32 b1) { mma_bf16(d, a, b0, b1); }
};

struct NarrowI8 {
    static constexpr int BYTES = 1;
    __device__ __forceinline__ static void mma(int (&d)[4], const u32* a, u32 b0, u32 b1) { mma_s8(d, a, b0, b1); }
};

/* The same for the tensor cores: rows 2 p and 2 p + 1 of a lane are the rows g and g + 8 of a fragment, words 0 and 1,
 * then 2 and 3, its k. (The k of a fragment may be any, as long as both operands have the same.) */
template <class E, class Partial, int N>
struct MmaAccumulators {
    static constexpr int V = 16 / E::BYTES;
    Partial x[V / 2][N / 8][4] = {};

    template <int PITCH>
    __device__ __forceinline__ void multiply(const u32 (&words)[V][4], u32 from) {
        int g = threadIdx.x % 32 / 4;
#pragma unroll
        for (int j = 0; j < N / 8; ++j) {
            u32 y[4];
            shared_load4(y, from + (j * 8 + g) * PITCH);
#pragma unroll
            for (int p = 0; p < V / 2; ++p) {
#pragma unroll
                for (int w = 0; w < 4; w += 2) {
                    u32 a[4] = {words[2 * p][w], words[2 * p + 1][w], words[2 * p][w + 1], words[2 * p + 1][w + 1]};
                    E::mma(x[p][j], a, y[w], y[w + 1]);
                }
            }
        }
    }

    template <class Long, class T, int P>
    __device__ __forceinline__ void write(Partial* tile) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int p = 0; p < V / 2; ++p)
#pragma unroll
            for (int j = 0; j < N / 8; ++j)
#pragma unroll
                for (int w = 0; w < 4; ++w)
                    tile[(j * 8 + 2 * t + w % 2) * P + Long::row(g, 2 * p + w / 2)] = x[p][j][w];
    }
};

struct NarrowF32 {
    static constexpr int BYTES = 4;
};

template <class E, class Partial, int N>
struct AccumulatorsOf {
    typedef MmaAccumulators<E, Partial, N> Type;
};
template <class Partial, int N>
struct AccumulatorsOf<NarrowF32, Partial, N> {
    typedef FmaAccumulators<N> Type;
};
