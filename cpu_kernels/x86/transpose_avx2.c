/* transpose_avx2.c: the functions of core/transpose.h by AVX2. */
#include "../core/transpose.h"

#include <immintrin.h>

#include "../templates/kernel.h"

/* Four floats from `low` on, and four from `high` on, in the upper lane: a load and no shuffle. */
INLINE __m256 two_lanes_ps(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

INLINE __m256d two_lanes_pd(const double *low, const double *high)
{
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(low)), _mm_loadu_pd(high), 1);
}

/* to[i*row + j] = from[i + j*step], i, j < 8: columns 4 to 7 are in the upper lanes. */
INLINE void block_f32(const float *from, int64_t step, float *to, int64_t row)
{
    UNROLL for (int i = 0; i < 8; i += 4) {
        __m256 v[4], w[4];
        UNROLL for (int j = 0; j < 4; j++) v[j] = two_lanes_ps(from + i + j * step, from + i + (j + 4) * step);
        UNROLL for (int j = 0; j < 4; j += 2) {
            w[j] = _mm256_unpacklo_ps(v[j], v[j + 1]);
            w[j + 1] = _mm256_unpackhi_ps(v[j], v[j + 1]);
        }
        _mm256_storeu_ps(to + i * row, _mm256_shuffle_ps(w[0], w[2], 0x44));
        _mm256_storeu_ps(to + (i + 1) * row, _mm256_shuffle_ps(w[0], w[2], 0xee));
        _mm256_storeu_ps(to + (i + 2) * row, _mm256_shuffle_ps(w[1], w[3], 0x44));
        _mm256_storeu_ps(to + (i + 3) * row, _mm256_shuffle_ps(w[1], w[3], 0xee));
    }
}

/* The same, i, j < 4: columns 2 and 3 are in the upper lanes. */
INLINE void block_f64(const double *from, int64_t step, double *to, int64_t row)
{
    UNROLL for (int i = 0; i < 4; i += 2) {
        const __m256d v = two_lanes_pd(from + i, from + i + 2 * step);
        const __m256d w = two_lanes_pd(from + i + step, from + i + 3 * step);
        _mm256_storeu_pd(to + i * row, _mm256_unpacklo_pd(v, w));
        _mm256_storeu_pd(to + (i + 1) * row, _mm256_unpackhi_pd(v, w));
    }
}

/* Blocks of EACH x EACH, down EACH columns of `from`; the last ones overlap those before them. */
#define TRANSPOSE(NAME, T, EACH)                                                                                       \
    INLINE void columns_##NAME(int64_t m, const T *from, int64_t step, T *to, int64_t row)                             \
    {                                                                                                                  \
        for (; m >= EACH; m -= EACH, from += EACH, to += EACH * row) block_##NAME(from, step, to, row);                \
        if (m > 0) block_##NAME(from + m - EACH, step, to + (m - EACH) * row, row);                                    \
    }                                                                                                                  \
                                                                                                                       \
    INLINE void transpose_##NAME(int64_t m, int64_t n, const T *from, int64_t cs, T *to, int64_t ld)                   \
    {                                                                                                                  \
        for (; n >= EACH; n -= EACH, from += EACH * cs, to += EACH) columns_##NAME(m, from, cs, to, ld);               \
        if (n > 0) columns_##NAME(m, from + (n - EACH) * cs, cs, to + n - EACH, ld);                                   \
    }                                                                                                                  \
                                                                                                                       \
    void avx2_transpose_##NAME(int64_t m, int64_t n, const void *from, int64_t cs, void *to, int64_t ld)               \
    {                                                                                                                  \
        transpose_##NAME(m, n, from, cs, to, ld);                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    void avx2_transpose_each_##NAME(int64_t count, int64_t m, int64_t n, const void *from, int64_t bs, int64_t cs,     \
                                    void *to)                                                                          \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        T *dense = to;                                                                                                 \
        for (int64_t q = 0; q < count; q++, x += bs, dense += m * n) transpose_##NAME(m, n, x, cs, dense, n);          \
    }
TRANSPOSE(f32, float, 8)
TRANSPOSE(f64, double, 4)
