/* avx512_f32_outer_8x8: C[8,8] += A[8,K] * B[K,8], float; two k at a time in one register.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 8: lane 2j of accumulator i sums the even p of C[i,j], lane 2j+1 the odd p
 * regs      8 accumulators + 1 interleaved pair of rows of B + 1 broadcast pair of A, of 32 zmm
 * per 2 k   8 vfmadd231ps  8 vbroadcastsd (a[i,p], a[i,p+1])  1 load and 1 vpermps of two rows of B
 * ratio     128 FMA / 32 elements loaded = 4.00 (inner product 0.50)
 * rounding  even and odd p are two chains of fma; then even + odd, then one add into C
 * needs     avx512f
 * bound     K = 8 dense: 32 fma + 4 permutes + 12 to fold the pairs = 48 operations on two ports of Intel, 24 cycles;
 *           the plain ymm tile takes 64 fma, 32 cycles
 * idea      a register of two rows, after the dot-product instructions of the narrow types (k_group = 2), in software
 * tried     one zmm = two rows of C, a[i,p] and a[i+1,p] by vpermps: one permute for each fma, 64 operations
 */

#include "vec_avx512.h"

/* Four pairs are K = 8, whose loop then disappears. */
#define UNROLL_PAIRS _Pragma("GCC unroll 4")

INLINE void put_row(float *c, __mmask8 some, __m256 row, int flags)
{
    if (!(flags & PYSIMD_ZERO)) row = _mm256_add_ps(_mm256_maskz_loadu_ps(some, c), row);
    KEEP(row); /* else gcc stores an extracted half by vextractf32x8 with a mask, which faults on masked-off bytes */
    _mm256_mask_storeu_ps(c, some, row);
}

/* Rows p and p+1 of B, interleaved column by column. */
INLINE __m512 row_pair(const float *b, int64_t rs, int n)
{
    const __m512i interleave = _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
    const __mmask8 some = (__mmask8)((1 << n) - 1);
    __m512 two;
    if (n == 8 && rs == 8)
        two = _mm512_loadu_ps(b);
    else
        two = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_maskz_loadu_ps(some, b)),
                                 _mm256_maskz_loadu_ps(some, b + rs), 1);
    return _mm512_permutexvar_ps(interleave, two);
}

/* a[i,p] and a[i,p+1], repeated in every lane pair. */
INLINE __m512 element_pair(const float *a, int64_t cs)
{
    if (cs == 1) return _mm512_castpd_ps(_mm512_set1_pd(get_f64(a)));
    const __m128 pair = _mm_unpacklo_ps(_mm_set_ss(get_f32(a)), _mm_set_ss(get_f32(a + cs)));
    return _mm512_castpd_ps(_mm512_broadcastsd_pd(_mm_castps_pd(pair)));
}

/* Pair i of the eight in a register, repeated. */
INLINE __m512 pair_of(__m512 pairs, int i)
{
    return _mm512_castpd_ps(_mm512_permutexvar_pd(_mm512_set1_epi64(i), _mm512_castps_pd(pairs)));
}

/* `packed`: the columns of A are eight adjacent floats (rs_a = 1), two of them interleaved like rows of B. */
INLINE void tile(const int M, int n, int64_t k, const float *a, int64_t rs_a, int64_t cs_a, const int packed,
                 const float *b, int64_t rs_b, float *c, int64_t rs_c, int flags, const float *soon_a,
                 const float *soon_b)
{
    const __mmask8 some = (__mmask8)((1 << n) - 1);
    __m512 acc[8];
    UNROLL for (int i = 0; i < M; i++) acc[i] = _mm512_setzero_ps();
    UNROLL_PAIRS for (int64_t p = k / 2; p > 0; p--) {
        const __m512 bp = row_pair(b, rs_b, n);
        const __m512 ap = packed ? row_pair(a, cs_a, 8) : bp;
        UNROLL for (int i = 0; i < M; i++)
            acc[i] = _mm512_fmadd_ps(packed ? pair_of(ap, i) : element_pair(a + i * rs_a, cs_a), bp, acc[i]);
        a += 2 * cs_a, b += 2 * rs_b;
        if (soon_a) {
            prefetch(soon_a, 64), prefetch(soon_b, 64);
            soon_a += 16, soon_b += 16;
        }
    }
    if (k & 1) { /* the last of an odd K: (a, 0) * (b, 0) */
        const __m512 bp = _mm512_castsi512_ps(
            _mm512_cvtepu32_epi64(_mm256_castps_si256(_mm256_maskz_loadu_ps(some, b))));
        UNROLL for (int i = 0; i < M; i++) {
            const __m128 single = _mm_set_ss(get_f32(a + i * rs_a));
            acc[i] = _mm512_fmadd_ps(_mm512_castpd_ps(_mm512_broadcastsd_pd(_mm_castps_pd(single))), bp, acc[i]);
        }
    }

    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    UNROLL for (int i = 0; i < M; i += 2, c += 2 * rs_c) { /* rows i and i + 1 */
        const __m512 x = acc[i], y = acc[i + 1 < M ? i + 1 : i];
        __m512 rows = _mm512_add_ps(_mm512_permutex2var_ps(x, even, y), _mm512_permutex2var_ps(x, odd, y));
        if (n == 8 && rs_c == 8 && i + 1 < M) {
            if (!(flags & PYSIMD_ZERO)) rows = _mm512_add_ps(_mm512_loadu_ps(c), rows);
            if (flags & PYSIMD_STREAM)
                f32x16_stream(c, rows);
            else
                _mm512_storeu_ps(c, rows);
        } else {
            put_row(c, some, _mm512_castps512_ps256(rows), flags);
            if (i + 1 < M) put_row(c + rs_c, some, _mm512_extractf32x8_ps(rows, 1), flags);
        }
    }
}

void avx512_f32_outer_8x8(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c,
                          int64_t rs_c)
{
    if (cs_a == 1)
        tile(8, 8, k, a, rs_a, 1, 0, b, rs_b, c, rs_c, 0, NULL, NULL);
    else if (rs_a == 1)
        tile(8, 8, k, a, 1, cs_a, 1, b, rs_b, c, rs_c, 0, NULL, NULL);
    else
        tile(8, 8, k, a, rs_a, cs_a, 0, b, rs_b, c, rs_c, 0, NULL, NULL);
}

INLINE void loop(const pysimd_call *s, const int M, int n, int64_t k, int64_t rs_a, int64_t cs_a, const int packed,
                 int64_t rs_b, int64_t rs_c, int flags)
{
    const float *a = s->a, *b = s->b;
    float *c = s->c;
    enum { AHEAD = AHEAD_BYTES / 256 }; /* products of 8 * 8 * 4 bytes */
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c) {
        const int64_t ahead = i + AHEAD < s->batch ? AHEAD : 0;
        const float *soon_a = flags & PYSIMD_STREAM ? a + ahead * s->bs_a : NULL;
        const float *soon_b = flags & PYSIMD_STREAM ? b + ahead * s->bs_b : NULL;
        tile(M, n, k, a, rs_a, cs_a, packed, b, rs_b, c, rs_c, flags, soon_a, soon_b);
    }
}

INLINE void loop_of_m(const pysimd_call *s, const int M)
{
    if (s->cs_a == 1)
        loop(s, M, (int)s->n, s->k, s->rs_a, 1, 0, s->rs_b, s->rs_c, s->flags & PYSIMD_ZERO);
    else if (M == 8 && s->rs_a == 1)
        loop(s, M, (int)s->n, s->k, 1, s->cs_a, 1, s->rs_b, s->rs_c, s->flags & PYSIMD_ZERO);
    else
        loop(s, M, (int)s->n, s->k, s->rs_a, s->cs_a, 0, s->rs_b, s->rs_c, s->flags & PYSIMD_ZERO);
}

void avx512_f32_outer_8x8_batch(const pysimd_call *s)
{
    if (s->m == 8 && s->n == 8 && s->k == 8 && s->cs_a == 1 && s->rs_a == 8 && s->rs_b == 8 && s->rs_c == 8) {
        if (s->flags == PYSIMD_ZERO)
            loop(s, 8, 8, 8, 8, 1, 0, 8, 8, PYSIMD_ZERO);
        else if (s->flags == (PYSIMD_ZERO | PYSIMD_STREAM))
            loop(s, 8, 8, 8, 8, 1, 0, 8, 8, PYSIMD_ZERO | PYSIMD_STREAM);
        else
            loop(s, 8, 8, 8, 8, 1, 0, 8, 8, 0);
        return;
    }
    switch (s->m) {
#define CASE(M) case M: loop_of_m(s, M); break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
#undef CASE
    }
}
