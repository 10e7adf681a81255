/* remainders.cuh: float products by exact int8 products modulo N coprime numbers (Ozaki scheme II; K. Ozaki, Y. Uchino,
 * T. Imamura, arXiv 2504.08009, 2508.03984).
 *
 * A row of A, or a column of B, is scaled by a power of two and rounded to integers. Their remainders modulo numbers up
 * to 256 are int8, whose products wgmma adds exactly. By the Chinese remainder theorem the N sums give the product of
 * the integers, which is below half of P, the product of the N numbers. A row that has a NaN or an infinity gives NaN.
 */
#include "gemm.cuh"

constexpr int MOST_MODULI = 16, NOT_FINITE = 1 << 30;

struct Moduli {
    double p[MOST_MODULI], inverse[MOST_MODULI];
    u64 low[MOST_MODULI], high[MOST_MODULI]; /* round(2^128 w / p), w the inverse of P / p modulo p */
    u64 offset_low, offset_high; /* of the sum, since 2^31 is added to each remainder */
    double scale;                /* P / 2^128 */
    double log2_norm;            /* a row is scaled to a Euclidean norm of at most 2^log2_norm */
};

/* `rows` rows (columns of B) of k elements; their exponents, and N matrices of remainders, `pitch` from row to row. */
template <class Float>
struct Rows {
    const Float* x;
    int* exponent;
    signed char* remainders;
    i64 rows, k, ld, pitch;
};

/* CuPy compiles with -ftz=true; these keep denormals. */
__device__ inline double to_double(double x) { return x; }
__device__ inline double to_double(float x) {
    double y;
    asm("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x));
    return y;
}
__device__ inline void rounded(double& to, double x) { to = x; }
__device__ inline void rounded(float& to, double x) { asm("cvt.rn.f32.f64 %0, %1;" : "=f"(to) : "d"(x)); }
__device__ inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }

__device__ inline bool is_finite(double x) { return x - x == 0; }

/* Of the threads that share a row, ROWS apart in the block; all of the block's call. */
template <int ROWS, class Join>
__device__ inline double reduced(double x, Join join) {
    __shared__ double partial[256];
    int t = threadIdx.x;
    __syncthreads();
    partial[t] = x;
    __syncthreads();
#pragma unroll 1
    for (int half = 128; half >= ROWS; half /= 2) {
        if (t < half) partial[t] = join(partial[t], partial[t + half]);
        __syncthreads();
    }
    return partial[t % ROWS];
}

/* The exponents of rows: of one a block, or of 32 where the elements of a column are adjacent. */
template <Layout L, class Float>
__global__ void __launch_bounds__(256)
    row_exponents(const __grid_constant__ Rows<Float> s, const __grid_constant__ Moduli m) {
    constexpr int ROWS = k_major(L) ? 1 : 32, LANES = 256 / ROWS;
    for (i64 first = (i64)blockIdx.x * ROWS; first < s.rows; first += (i64)gridDim.x * ROWS) {
        i64 row = first + threadIdx.x % ROWS;
        auto each = [&](auto use) {
            if (row < s.rows)
                for (i64 q = threadIdx.x / ROWS; q < s.k; q += LANES)
                    use(to_double(s.x[k_major(L) ? row * s.ld + q : row + q * s.ld]));
        };
        int shift = 0;
        if constexpr (sizeof(Float) == 8) { /* the squares of such elements may be too large or too small */
            double largest = 0;
            each([&](double x) { largest = fmax(largest, fabs(x)); });
            largest = reduced<ROWS>(largest, [](double x, double y) { return fmax(x, y); });
            if (largest > 0 && is_finite(largest)) shift = -ilogb(largest);
        }
        double sum = 0;
        each([&](double x) {
            double y = sizeof(Float) == 8 ? scalbn(x, shift) : x;
            sum = fma(y, y, sum);
        });
        sum = reduced<ROWS>(sum, [](double x, double y) { return x + y; });
        if (threadIdx.x < ROWS && row < s.rows) {
            int e = sum > 0 ? shift + (int)floor(m.log2_norm - 0.5 * log2(sum) - 2e-6) : 0;
            s.exponent[row] = is_finite(sum) ? e : NOT_FINITE;
        }
    }
}

/* Four adjacent remainders modulo p. */
__device__ inline u32 remainders4(const double (&v)[4], double p, double inverse) {
    u32 word = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        double rest = fma(-p, rint(v[j] * inverse), v[j]);
        rest = fma(-p, rint(rest * inverse), rest); /* the first quotient may be off by one */
        word |= (u32)(unsigned char)(signed char)(int)rest << 8 * j;
    }
    return word;
}

/* The N matrices of remainders, K-major: a block takes 32 rows by 64 k at a time. */
template <Layout L, int N, class Float>
__global__ void __launch_bounds__(256)
    split_rows(const __grid_constant__ Rows<Float> s, const __grid_constant__ Moduli m) {
    constexpr int ROWS = 32, COLS = 64;
    __shared__ Float tile[ROWS][COLS + 1];
    i64 across = (s.k + COLS - 1) / COLS, tiles = (s.rows + ROWS - 1) / ROWS * across;
    for (i64 at = blockIdx.x; at < tiles; at += gridDim.x) {
        i64 row = at / across * ROWS, k = at % across * COLS;
        __syncthreads();
        for (int i = threadIdx.x; i < ROWS * COLS; i += 256) {
            int r = k_major(L) ? i / COLS : i % ROWS, q = k_major(L) ? i % COLS : i / ROWS;
            bool exists = row + r < s.rows && k + q < s.k;
            tile[r][q] = exists ? s.x[k_major(L) ? (row + r) * s.ld + k + q : row + r + (k + q) * s.ld] : Float(0);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < ROWS * COLS / 4; i += 256) {
            int r = i / (COLS / 4), q = i % (COLS / 4) * 4;
            if (row + r >= s.rows || k + q >= s.pitch) continue;
            int e = s.exponent[row + r];
            double v[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                v[j] = e == NOT_FINITE ? 0.0 : rint(scalbn(to_double(tile[r][q + j]), e));
            signed char* to = s.remainders + (row + r) * s.pitch + k + q;
#pragma unroll
            for (int l = 0; l < N; ++l)
                *(u32*)(to + l * s.rows * s.pitch) = remainders4(v, m.p[l], m.inverse[l]);
        }
    }
}

/* The sums, N matrices of m x n with rows `pitch` apart, and C = alpha A B + beta C0. */
struct Joined {
    const int *sums, *row_exponent, *column_exponent;
    const void* c0;
    void* c;
    i64 m, n, pitch, c0_rs, c0_cs, ldc;
    double alpha, beta;
};

/* A fraction of P in 128 bits, which wraps: 256 columns of a row a block. */
template <int N, class Float>
__global__ void __launch_bounds__(256)
    join_sums(const __grid_constant__ Joined p, const __grid_constant__ Moduli m) {
    i64 across = (p.n + 255) / 256;
    for (i64 at = blockIdx.x; at < p.m * across; at += gridDim.x) {
        i64 i = at / across, j = at % across * 256 + threadIdx.x;
        if (j >= p.n) continue;
        const int* sum = p.sums + i * p.pitch + j;
        u64 low = m.offset_low, high = m.offset_high;
#pragma unroll
        for (int l = 0; l < N; ++l) {
            u64 x = (u64)((i64)sum[l * p.m * p.pitch] + 0x80000000ll), part = x * m.low[l];
            low += part;
            high += x * m.high[l] + __umul64hi(x, m.low[l]) + (low < part);
        }
        double value = (double)(i64)high * 18446744073709551616.0 + (double)low;
        int row = p.row_exponent[i], column = p.column_exponent[j];
        value = row == NOT_FINITE || column == NOT_FINITE ? nan("") : scalbn(value * m.scale, -row - column);
        Float acc, alpha = (Float)p.alpha, beta = (Float)p.beta;
        rounded(acc, value);
        acc = multiply_add(alpha, acc, Float(-0.0));
        if (p.c0) acc = multiply_add(beta, ((const Float*)p.c0)[i * p.c0_rs + j * p.c0_cs], acc);
        ((Float*)p.c)[i * p.ldc + j] = acc;
    }
}
