/* remainders: float products by int8 products modulo several numbers (Ozaki, Uchino, Imamura, arXiv 2504.08009).
 *
 * A row of A and a column of B are scaled by powers of two and rounded to integers. Of these, remainders modulo N numbers
 * up to 256, which are coprime, are int8. The N int8 products are exact, and so the Chinese remainder theorem gives the
 * product of the integers, which is smaller than half of the product P of the N numbers.
 */
typedef long long i64;
typedef unsigned long long u64;

struct Moduli {
    int count;
    int unused;
    double p[20], inverse[20];
    u64 low[20], high[20]; /* round(2^128 w / p), w the inverse of P / p modulo p */
    u64 offset_low, offset_high; /* of the sum, which is of C + 2^31 */
    double scale;                /* P / 2^128 */
    double log2_norm;            /* a row is scaled to a Euclidean norm of at most 2^log2_norm */
};

/* The exponents of the scale of each row of x (rows, k): one block a row. */
template <class Float>
__global__ void exponents(const Float* x, int* exponent, i64 k, const Moduli m) {
    __shared__ double partial[32];
    const Float* row = x + blockIdx.x * k;
    double largest = 0, sum = 0;
    for (i64 i = threadIdx.x; i < k; i += blockDim.x) {
        double value = row[i];
        largest = fmax(largest, fabs(value));
        sum = fma(value, value, sum);
    }
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / 32; ++warp) sum += partial[warp];
        exponent[blockIdx.x] = sum > 0 ? (int)floor(m.log2_norm - 0.5 * log2(sum) - 1e-6) : 0;
    }
}

/* out[l][row][i] = round(x[row][i] 2^exponent[row]) modulo p[l], four i a thread. */
template <class Float, int N>
__global__ void split(const Float* x, const int* exponent, char4* out, i64 rows, i64 k, const Moduli m) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x, pieces = rows * k / 4;
    if (i >= pieces) return;
    int e = exponent[i * 4 / k];
    double v[4];
    for (int j = 0; j < 4; ++j) v[j] = rint(scalbn((double)x[4 * i + j], e));
#pragma unroll
    for (int l = 0; l < N; ++l) {
        signed char r[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            double rest = fma(-m.p[l], rint(v[j] * m.inverse[l]), v[j]);
            rest = fma(-m.p[l], rint(rest * m.inverse[l]), rest); /* the first quotient may be off by one */
            r[j] = (signed char)(int)rest;
        }
        out[l * pieces + i] = make_char4(r[0], r[1], r[2], r[3]);
    }
}

/* c = the product of which s[l] are the remainders, unscaled: a fraction of P in 128 bits, which wraps. */
template <class Float, int N>
__global__ void join(const int* s, const int* row_exponent, const int* column_exponent, Float* c, i64 rows, i64 columns,
                     const Moduli m) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x, size = rows * columns;
    if (i >= size) return;
    u64 low = m.offset_low, high = m.offset_high;
#pragma unroll
    for (int l = 0; l < N; ++l) {
        u64 x = (u64)((i64)s[l * size + i] + 0x80000000ll), part = x * m.low[l];
        low += part;
        high += x * m.high[l] + __umul64hi(x, m.low[l]) + (low < part);
    }
    double value = (double)(i64)high * 18446744073709551616.0 + (double)low;
    c[i] = (Float)scalbn(value * m.scale, -row_exponent[i / columns] - column_exponent[i % columns]);
}
