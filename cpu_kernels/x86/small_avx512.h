/* small_avx512.h: what the types of small_groups.h share: lanes of four groups, and their transposition. */
#ifndef SMALL_AVX512_H
#define SMALL_AVX512_H

#include "../core/later.h"
#include "../core/small.h"

enum { MOST_ROWS = 16, MOST_COLUMNS = 64, MOST_K = 64, FEW_COLUMNS = 8 };

/* Rows of C that are accumulated together, and up to 16 columns. */
typedef struct {
    const char *a; /* a group of A is four bytes at a + i*rs_a + p*cs_a */
    int64_t rs_a, cs_a;
    const char *b; /* a row of groups of B at b + p*bs_b, rows of the array are rs_b elements apart */
    int64_t step_b, rs_b, k;
    int n, chains;
    int64_t rows;
    void *c;
    int64_t rs_c;
} block;

INLINE __mmask16 first(int64_t n) { return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1); }
INLINE __m128i bytes(const int full, __mmask16 m, const void *p)
{
    return full ? _mm_loadu_si128(p) : _mm_maskz_loadu_epi8(m, p);
}

/* What kinds of small_groups.h with sums of float share; they have no offset of A. */
#define FLOAT_SUMS(NAME)                                                                                               \
    typedef __m512 NAME##_vec;                                                                                         \
    INLINE __m512 NAME##_zero(void) { return _mm512_setzero_ps(); }                                                    \
    INLINE __m512 NAME##_add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }                                       \
    INLINE __m512 NAME##_add_to_sum(__m512 sum, __m512i b) { return (void)b, sum; }                                    \
    INLINE __m512 NAME##_corrected(__m512 v, __m512 sum) { return (void)sum, v; }                                      \
    INLINE __m512i NAME##_staged(__m512i v) { return v; }

/* Four lanes of 128 bits. */
INLINE __m512i lanes_of_bytes(const int full, __mmask16 m, const void *p, const void *q, const void *r, const void *s)
{
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes(full, m, p)), bytes(full, m, q), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes(full, m, r)), bytes(full, m, s), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* Four lanes of four 16-bit values, in a ymm. */
INLINE __m256i lanes_of_halves(const int full, __mmask16 m, const void *p, const void *q, const void *r, const void *s)
{
    const __mmask8 h = (__mmask8)m;
#define FOUR(at) (full ? _mm_loadl_epi64(at) : _mm_maskz_loadu_epi8(h, at))
    const __m128i low = _mm_unpacklo_epi64(FOUR(p), FOUR(q)), high = _mm_unpacklo_epi64(FOUR(r), FOUR(s));
#undef FOUR
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Lane L of v[r] holds row 4L + r of a matrix of four columns; then v[q] is column q. */
INLINE void transpose_in_lanes(__m512i v[4])
{
    const __m512i x = _mm512_unpacklo_epi32(v[0], v[1]), y = _mm512_unpackhi_epi32(v[0], v[1]);
    const __m512i z = _mm512_unpacklo_epi32(v[2], v[3]), w = _mm512_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi64(x, z), v[1] = _mm512_unpackhi_epi64(x, z);
    v[2] = _mm512_unpacklo_epi64(y, w), v[3] = _mm512_unpackhi_epi64(y, w);
}

/* c[i*rs_c + j] = t[j*MOST_COLUMNS + i], i < m, j < columns: 4, or with a mask fewer. */
INLINE void store_four_transposed(const int masked, int64_t m, int columns, const int32_t *t, int32_t *c, int64_t rs_c)
{
    const __mmask8 mask = (__mmask8)((1u << columns) - 1);
    for (int64_t i = 0; i < m; i += 16, c += 16 * rs_c) {
        __m512i v[4];
        UNROLL for (int q = 0; q < 4; q++)
            v[q] = _mm512_load_si512(t + (masked && q >= columns ? 0 : q) * MOST_COLUMNS + i);
        transpose_in_lanes(v);
#define LANE(L)                                                                                                        \
    UNROLL for (int q = 0; q < 4; q++)                                                                                 \
        if (4 * L + q < m - i) {                                                                                       \
            __m128i row = _mm512_extracti32x4_epi32(v[q], L);                                                          \
            if (masked) {                                                                                              \
                KEEP(row); /* else gcc masks the extraction, which faults beyond its mask */                           \
                _mm_mask_storeu_epi32(c + (4 * L + q) * rs_c, mask, row);                                              \
            } else                                                                                                     \
                _mm_storeu_si128((__m128i *)(c + (4 * L + q) * rs_c), row);                                            \
        }
        LANE(0) LANE(1) LANE(2) LANE(3)
#undef LANE
    }
}

/* The same of n <= FEW_COLUMNS columns; the last four overlap those before them. */
NOINLINE void store_transposed(int64_t m, int n, const int32_t *t, int32_t *c, int64_t rs_c)
{
    if (n < 4) {
        store_four_transposed(1, m, n, t, c, rs_c);
        return;
    }
    store_four_transposed(0, m, 4, t, c, rs_c);
    if (n > 4) store_four_transposed(0, m, 4, t + (n - 4) * MOST_COLUMNS, c + n - 4, rs_c);
}

/* Whether exchanged operands take so much fewer multiply-adds that transposing C pays. */
INLINE int gains_exchanged(const pysimd_call *s)
{
    enum { LEAST_K = 3 };
    return s->n <= FEW_COLUMNS && s->k >= LEAST_K && 4 * ((s->m + 15) / 16) * s->n <= 3 * s->m;
}

/* Square products of matrices without gaps, by rows or by columns. */
INLINE int is_dense(const pysimd_call *s, int64_t cs_b, int64_t size)
{
    return s->m == size && s->n == size && s->k == size && s->rs_c == size && s->rs_a * s->cs_a == size &&
           s->rs_b * cs_b == size && (s->rs_a == 1 || s->cs_a == 1) && (s->rs_b == 1 || cs_b == 1);
}
typedef void block_fn(const block *s);

#endif
