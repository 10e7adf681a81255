/* avx512_f32_outer_8x8: C[8,8] += A[8,K] * B[K,8], float; two k at a time in one register.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 8; even lanes of accumulator i add the terms of even p, odd lanes those of odd p
 * regs      8 accumulators + 1 pair of rows of B + 1 pair of columns of A + 1 broadcast pair + 9 indices of
 *           permutations = 20 of 32 zmm
 * per 2 k   8 vfmadd231ps  8 vpermpd  2 vpermps m512
 * ratio     8*8 / (8+8) = 4.00 multiply-adds per element loaded; inner product 0.50;
 *           8 / 2 = 4.00 multiply-add instructions per load instruction
 * rounding  one fma per term, even and odd p in accumulators of their own; then even + odd, then one add into C
 * needs     AVX-512 F BW DQ VL
 * bound     K = 8 dense: 32 fma + 4 permutes + 12 to fold the pairs = 48 operations on two ports of Intel, 24 cycles;
 *           the plain ymm tile takes 64 fma, 32 cycles
 * idea      a register of two rows, after the dot-product instructions of the narrow types (k_group = 2), in software
 * tried     one zmm = two rows of C, a[i,p] and a[i+1,p] by vpermps: one permute for each fma, 64 operations
 */
#include "vec_avx512.h"

/* Storage of A. */
typedef enum {
    ROWS,    /* cs_a = 1: two k of an element's row are one 64-bit broadcast */
    COLUMNS, /* rs_a = 1, eight rows: a packed panel, or a transposed A; two columns are interleaved like rows of B */
} a_layout;

/* What all products of a call share; constants where the batch is dense. */
typedef struct {
    int n;
    int64_t k, rs_a, cs_a, rs_b, rs_c;
    int flags;
} shape;

/* Four pairs are K = 8, whose loop then disappears. */
#define UNROLL_PAIRS _Pragma("GCC unroll 4")

INLINE void store_row(float *c, __mmask8 columns, __m256 row, int flags)
{
    if (!(flags & PYSIMD_ZERO)) row = _mm256_add_ps(_mm256_maskz_loadu_ps(columns, c), row);
    KEEP(row); /* else gcc stores an upper half by vextractf32x8 with a mask, which faults on masked-off bytes */
    _mm256_mask_storeu_ps(c, columns, row);
}

/* Rows p and p+1 of B, interleaved column by column. */
INLINE __m512 row_pair(const float *b, int64_t rs, int n)
{
    const __m512i interleave = _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
    const __mmask8 columns = (__mmask8)((1 << n) - 1);
    __m512 two;
    if (n == 8 && rs == 8)
        two = _mm512_loadu_ps(b);
    else
        two = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_maskz_loadu_ps(columns, b)),
                                 _mm256_maskz_loadu_ps(columns, b + rs), 1);
    return _mm512_permutexvar_ps(interleave, two);
}

/* a[i,p] and a[i,p+1] in every pair of lanes: from memory, or as pair i of a row_pair of columns of A. */
INLINE __m512 broadcast_pair(const float *a) { return _mm512_castpd_ps(_mm512_set1_pd(get_f64(a))); }
INLINE __m512 broadcast_pair_of(__m512 pairs, int i)
{
    return _mm512_castpd_ps(_mm512_permutexvar_pd(_mm512_set1_epi64(i), _mm512_castps_pd(pairs)));
}

/* One tile of M rows; n, k, strides and flags as in `s`. Prefetches a row of A and of B per pair of k, unless NULL. */
INLINE void tile(const int M, const a_layout layout, const shape s, const float *a, const float *b, float *c,
                 const float *prefetch_a, const float *prefetch_b)
{
    const int n = s.n;
    const __mmask8 columns = (__mmask8)((1 << n) - 1);
    __m512 acc[8];
    UNROLL for (int i = 0; i < M; i++) acc[i] = _mm512_setzero_ps();
    UNROLL_PAIRS for (int64_t p = s.k / 2; p > 0; p--) {
        const __m512 bp = row_pair(b, s.rs_b, n);
        const __m512 ap = layout == COLUMNS ? row_pair(a, s.cs_a, 8) : bp;
        UNROLL for (int i = 0; i < M; i++)
            acc[i] = _mm512_fmadd_ps(layout == COLUMNS ? broadcast_pair_of(ap, i) : broadcast_pair(a + i * s.rs_a), bp,
                                     acc[i]);
        a += 2 * s.cs_a, b += 2 * s.rs_b;
        if (prefetch_a) {
            prefetch(prefetch_a, 64), prefetch(prefetch_b, 64);
            prefetch_a += 16, prefetch_b += 16;
        }
    }
    if (s.k & 1) { /* the last of an odd K: (a, 0) * (b, 0) */
        const __m512 bp = _mm512_castsi512_ps(
            _mm512_cvtepu32_epi64(_mm256_castps_si256(_mm256_maskz_loadu_ps(columns, b))));
        UNROLL for (int i = 0; i < M; i++) {
            const __m128 single = _mm_set_ss(get_f32(a + i * s.rs_a));
            acc[i] = _mm512_fmadd_ps(_mm512_castpd_ps(_mm512_broadcastsd_pd(_mm_castps_pd(single))), bp, acc[i]);
        }
    }

    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    UNROLL for (int i = 0; i < M; i += 2, c += 2 * s.rs_c) { /* rows i and i + 1 */
        const __m512 x = acc[i], y = acc[i + 1 < M ? i + 1 : i];
        __m512 rows = _mm512_add_ps(_mm512_permutex2var_ps(x, even, y), _mm512_permutex2var_ps(x, odd, y));
        if (n == 8 && s.rs_c == 8 && i + 1 < M) {
            if (!(s.flags & PYSIMD_ZERO)) rows = _mm512_add_ps(_mm512_loadu_ps(c), rows);
            if (s.flags & PYSIMD_STREAM)
                f32x16_stream(c, rows);
            else
                _mm512_storeu_ps(c, rows);
        } else {
            store_row(c, columns, _mm512_castps512_ps256(rows), s.flags);
            if (i + 1 < M) store_row(c + s.rs_c, columns, _mm512_extractf32x8_ps(rows, 1), s.flags);
        }
    }
}

/* M rows of C at any strides of A, in ymm registers, with accumulators of even and of odd p as in tile(): the same
 * bits. */
INLINE void strided_rows(const int M, const shape s, const float *a, const float *b, float *c)
{
    const __mmask8 columns = (__mmask8)((1 << s.n) - 1);
    __m256 even[4], odd[4];
    UNROLL for (int i = 0; i < M; i++) even[i] = odd[i] = _mm256_setzero_ps();
    int64_t p = s.k;
    for (; p >= 2; p -= 2) {
        const __m256 b0 = _mm256_maskz_loadu_ps(columns, b), b1 = _mm256_maskz_loadu_ps(columns, b + s.rs_b);
        UNROLL for (int i = 0; i < M; i++) {
            even[i] = _mm256_fmadd_ps(_mm256_set1_ps(get_f32(a + i * s.rs_a)), b0, even[i]);
            odd[i] = _mm256_fmadd_ps(_mm256_set1_ps(get_f32(a + i * s.rs_a + s.cs_a)), b1, odd[i]);
        }
        a += 2 * s.cs_a, b += 2 * s.rs_b;
    }
    if (p) {
        const __m256 b0 = _mm256_maskz_loadu_ps(columns, b);
        UNROLL for (int i = 0; i < M; i++)
            even[i] = _mm256_fmadd_ps(_mm256_set1_ps(get_f32(a + i * s.rs_a)), b0, even[i]);
    }
    UNROLL for (int i = 0; i < M; i++)
        store_row(c + i * s.rs_c, columns, _mm256_add_ps(even[i], odd[i]), s.flags);
}

INLINE void strided(int64_t m, const shape s, const float *a, const float *b, float *c)
{
    for (; m >= 4; m -= 4, a += 4 * s.rs_a, c += 4 * s.rs_c) strided_rows(4, s, a, b, c);
    for (; m > 0; m--, a += s.rs_a, c += s.rs_c) strided_rows(1, s, a, b, c);
}

/* The products of a batch, one tile each. */
INLINE void loop(const pysimd_call *call, const int M, const a_layout layout, const shape s)
{
    const float *a = call->a, *b = call->b;
    float *c = call->c;
    enum { DISTANCE = PREFETCH_DISTANCE / 256 }; /* products of 8 * 8 * 4 bytes */
    for (int64_t i = 0; i < call->batch; i++, a += call->bs_a, b += call->bs_b, c += call->bs_c) {
        const int64_t ahead = i + DISTANCE < call->batch ? DISTANCE : 0;
        const float *prefetch_a = s.flags & PYSIMD_STREAM ? a + ahead * call->bs_a : NULL;
        const float *prefetch_b = s.flags & PYSIMD_STREAM ? b + ahead * call->bs_b : NULL;
        tile(M, layout, s, a, b, c, prefetch_a, prefetch_b);
    }
}

/* --- the loops of a batch: functions of their own, so that the registers of one are not spilled for another --- */

#define DENSE(name, flags)                                                                                             \
    NOINLINE void name(const pysimd_call *s) { loop(s, 8, ROWS, (shape){8, 8, 8, 1, 8, 8, flags}); }
DENSE(loop_dense, PYSIMD_ZERO)
DENSE(loop_dense_stream, PYSIMD_ZERO | PYSIMD_STREAM)
DENSE(loop_dense_add, 0)

#define ROWS_OF_A(M)                                                                                                   \
    NOINLINE void loop_rows_##M(const pysimd_call *s)                                                                  \
    {                                                                                                                  \
        loop(s, M, ROWS, (shape){(int)s->n, s->k, s->rs_a, 1, s->rs_b, s->rs_c, s->flags & PYSIMD_ZERO});              \
    }
ROWS_OF_A(1) ROWS_OF_A(2) ROWS_OF_A(3) ROWS_OF_A(4) ROWS_OF_A(5) ROWS_OF_A(6) ROWS_OF_A(7) ROWS_OF_A(8)
static pysimd_batch_fn *const loop_rows[] = {NULL,        loop_rows_1, loop_rows_2, loop_rows_3, loop_rows_4,
                                             loop_rows_5, loop_rows_6, loop_rows_7, loop_rows_8};

NOINLINE void loop_columns(const pysimd_call *s)
{
    loop(s, 8, COLUMNS, (shape){(int)s->n, s->k, 1, s->cs_a, s->rs_b, s->rs_c, s->flags & PYSIMD_ZERO});
}

NOINLINE void loop_strided(const pysimd_call *s)
{
    const shape any = {(int)s->n, s->k, s->rs_a, s->cs_a, s->rs_b, s->rs_c, s->flags & PYSIMD_ZERO};
    const float *a = s->a, *b = s->b;
    float *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c) strided(s->m, any, a, b, c);
}

void avx512_f32_outer_8x8_batch(const pysimd_call *s)
{
    const int dense =
        s->m == 8 && s->n == 8 && s->k == 8 && s->cs_a == 1 && s->rs_a == 8 && s->rs_b == 8 && s->rs_c == 8;
    if (dense && s->flags == PYSIMD_ZERO)
        loop_dense(s);
    else if (dense && s->flags == (PYSIMD_ZERO | PYSIMD_STREAM))
        loop_dense_stream(s);
    else if (dense)
        loop_dense_add(s);
    else if (s->cs_a == 1)
        loop_rows[s->m](s);
    else if (s->m == 8 && s->rs_a == 1)
        loop_columns(s);
    else
        loop_strided(s);
}

void avx512_f32_outer_8x8(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c,
                          int64_t rs_c)
{
    if (rs_a == 1 && cs_a == 8 && rs_b == 8) {
        tile(8, COLUMNS, (shape){8, k, 1, 8, 8, rs_c, 0}, a, b, c, NULL, NULL);
    } else {
        const pysimd_call s = one_tile(8, 8, k, a, rs_a, cs_a, b, rs_b, c, rs_c);
        avx512_f32_outer_8x8_batch(&s);
    }
}
