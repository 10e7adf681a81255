/* small_avx512.c: the functions of core/small.h for float32, bfloat16 and float16. Narrow operands are widened while
 * they are loaded, or staged. The order of the terms is that of the row's kernel.
 *
 * 4x4x4: C is one register; elements of A come to the lanes of their row, and rows of B to all lanes, by one
 * permutation each, however they are stored. float16 takes 2 conversions, 8 permutations and 4 multiply-adds, of which
 * one port does 10: no less than 10 cycles, where plain float32 has 4 permutations.
 *
 * Tried for bfloat16: pairs of k by vdpbf16ps, which took 1.2 (16x16x16) to 1.4 times as long (32x32x32) as widened
 * operands on a Xeon with AMX; A staged in the same product that loads it (8x8x8 float16 33 ns, 19 for plain float32).
 */
#include "vec_avx512.h"

#include "small_avx512.h"

#define FLOATS(NAME, ELEM)                                                                                             \
    FLOAT_SUMS(NAME)                                                                                                   \
    typedef ELEM NAME##_elem;                                                                                          \
    enum { NAME##_group = 1, NAME##_chains = 2 };                                                                      \
    INLINE __m512 NAME##_dot(__m512 acc, const void *a, __m512i b)                                                     \
    {                                                                                                                  \
        return _mm512_fmadd_ps(_mm512_set1_ps(get_f32(a)), _mm512_castsi512_ps(b), acc);                               \
    }                                                                                                                  \
    INLINE __m512i NAME##_load(int64_t left, const ELEM *p, int64_t rs, __mmask16 m)                                   \
    {                                                                                                                  \
        (void)left, (void)rs;                                                                                          \
        return NAME##_values(m, p);                                                                                    \
    }                                                                                                                  \
    INLINE __m512i NAME##_widened(const ELEM *p) { return NAME##_values(0xffff, p); }                                  \
    INLINE __m512i NAME##_part_widened(uint64_t m, const ELEM *p) { return NAME##_values((__mmask16)m, p); }

INLINE __m512i f32s_values(__mmask16 m, const float *p) { return _mm512_maskz_loadu_epi32(m, p); }
INLINE int f32s_in_place(int a_by_rows, int64_t k) { return (void)a_by_rows, (void)k, 1; }
INLINE __m512i f32s_lanes(const int full, __mmask16 m, const float *p, const float *q, const float *r, const float *s)
{
    return lanes_of_bytes(full, m, p, q, r, s);
}
FLOATS(f32s, float)
#define KIND f32s
#include "small_groups.h"

#define HALVES_OF(NAME, WIDENED)                                                                                       \
    INLINE __m512i NAME##_values(__mmask16 m, const uint16_t *p)                                                       \
    {                                                                                                                  \
        return WIDENED(m == 0xffff ? _mm256_loadu_si256((const __m256i *)p) : _mm256_maskz_loadu_epi16(m, p));         \
    }                                                                                                                  \
    INLINE int NAME##_in_place(int a_by_rows, int64_t k) { return (void)a_by_rows, (void)k, 0; }                       \
    INLINE __m512i NAME##_lanes(const int full, __mmask16 m, const uint16_t *p, const uint16_t *q, const uint16_t *r,  \
                                const uint16_t *s)                                                                     \
    {                                                                                                                  \
        return WIDENED(lanes_of_halves(full, m, p, q, r, s));                                                          \
    }                                                                                                                  \
    FLOATS(NAME, uint16_t)

INLINE __m512i bf16_widened(__m256i v) { return _mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16); }
INLINE __m512i f16_widened(__m256i v) { return _mm512_castps_si512(_mm512_cvtph_ps(v)); }
HALVES_OF(bf16s, bf16_widened)
#define KIND bf16s
#include "small_groups.h"
HALVES_OF(f16s, f16_widened)
#define KIND f16s
#include "small_groups.h"

/* Lane i of x[q] is element q of row i of A, row q of B is in each lane of y[q]. */
typedef struct {
    __m512i x[4], y[4];
} permutations;

INLINE permutations permutations_of(const int a_by_columns, const int b_by_columns)
{
    int32_t of_a[4][16], of_b[4][16];
    permutations found;
    for (int q = 0; q < 4; q++)
        for (int lane = 0; lane < 16; lane++) {
            const int i = lane / 4, j = lane % 4;
            of_a[q][lane] = a_by_columns ? 4 * q + i : 4 * i + q, of_b[q][lane] = b_by_columns ? 4 * j + q : 4 * q + j;
        }
    UNROLL for (int q = 0; q < 4; q++) {
        found.x[q] = _mm512_loadu_si512(of_a[q]);
        found.y[q] = _mm512_loadu_si512(of_b[q]);
    }
    return found;
}

INLINE __m512i f32_16(const float *p) { return _mm512_loadu_si512(p); }
INLINE __m512i f16_16(const uint16_t *p) { return f16_widened(_mm256_loadu_si256((const __m256i *)p)); }
INLINE __m512i bf16_16(const uint16_t *p)
{
    return _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p));
}
INLINE __m512 f32_place(__m512i index, __m512i v) { return _mm512_castsi512_ps(_mm512_permutexvar_epi32(index, v)); }
INLINE __m512 f16_place(__m512i index, __m512i v) { return f32_place(index, v); }
/* A value of 16 bits to the upper half of its lane. */
INLINE __m512 bf16_place(__m512i index, __m512i v)
{
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_slli_epi32(index, 16), v));
}

#define LOOP_4X4(NAME, ELEM)                                                                                           \
    INLINE void NAME##_loop_4x4(const int a_by_columns, const int b_by_columns, const pysimd_call *s)                  \
    {                                                                                                                  \
        const permutations to = permutations_of(a_by_columns, b_by_columns);                                           \
        const ELEM *a = s->a, *b = s->b;                                                                               \
        float *c = s->c;                                                                                               \
        const int stream = s->flags & PYSIMD_STREAM;                                                                   \
        for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c) {                             \
            const __m512i x = NAME##_16(a), y = NAME##_16(b);                                                          \
            __m512 v = _mm512_setzero_ps();                                                                            \
            UNROLL for (int q = 0; q < 4; q++) {                                                                       \
                const __m512 of_a = NAME##_place(to.x[q], x);                                                          \
                const __m512 of_b = sizeof(ELEM) == 4 && !b_by_columns                                                 \
                                        ? _mm512_broadcast_f32x4(_mm_loadu_ps((const float *)(const void *)b + 4 * q)) \
                                        : NAME##_place(to.y[q], y);                                                    \
                v = q ? _mm512_fmadd_ps(of_a, of_b, v) : _mm512_mul_ps(of_a, of_b);                                    \
            }                                                                                                          \
            if (stream)                                                                                                \
                f32x16_stream(c, v);                                                                                   \
            else                                                                                                       \
                _mm512_storeu_ps(c, v);                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    int avx512_small_##NAME##_4x4(const pysimd_call *s, int64_t cs_b)                                                  \
    {                                                                                                                  \
        if (!is_dense(s, cs_b, 4) || !NAME##_gains(s, cs_b)) return 0;                                                 \
        if (cs_b == 1)                                                                                                 \
            NAME##_loop_4x4(s->cs_a != 1, 0, s);                                                                       \
        else                                                                                                           \
            NAME##_loop_4x4(s->cs_a != 1, 1, s);                                                                       \
        return 1;                                                                                                      \
    }

/* 8x8x8 of matrices without gaps: pairs of k in 64-bit lanes, as in avx512_f32_outer_8x8. v[r] is rows 2r and 2r + 1
 * before; then v[p] is rows 2p and 2p + 1, interleaved, or of a matrix by columns elements 2p and 2p + 1 of each. */
INLINE void interleave_rows(__m512 v[4])
{
    const __m512i interleave = _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
    UNROLL for (int p = 0; p < 4; p++) v[p] = _mm512_permutexvar_ps(interleave, v[p]);
}

INLINE void transpose_pairs(__m512 v[4])
{
    const __m512i low = _mm512_set_epi64(13, 9, 5, 1, 12, 8, 4, 0), high = _mm512_set_epi64(15, 11, 7, 3, 14, 10, 6, 2);
    const __m512d w = _mm512_castps_pd(v[0]), x = _mm512_castps_pd(v[1]), y = _mm512_castps_pd(v[2]),
                  z = _mm512_castps_pd(v[3]);
    const __m512d w01 = _mm512_permutex2var_pd(w, low, x), w23 = _mm512_permutex2var_pd(w, high, x);
    const __m512d y01 = _mm512_permutex2var_pd(y, low, z), y23 = _mm512_permutex2var_pd(y, high, z);
    v[0] = _mm512_castpd_ps(_mm512_shuffle_f64x2(w01, y01, 0x44));
    v[1] = _mm512_castpd_ps(_mm512_shuffle_f64x2(w01, y01, 0xee));
    v[2] = _mm512_castpd_ps(_mm512_shuffle_f64x2(w23, y23, 0x44));
    v[3] = _mm512_castpd_ps(_mm512_shuffle_f64x2(w23, y23, 0xee));
}

/* Pair p of row i of A at a + i*rs + p*cs floats. */
INLINE void rows_of_8x8(const float *a, int64_t rs, int64_t cs, const __m512 b[4], float *c, int stream)
{
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    __m512 acc[8];
    UNROLL for (int i = 0; i < 8; i++) {
        acc[i] = _mm512_setzero_ps();
        UNROLL for (int p = 0; p < 4; p++)
            acc[i] = _mm512_fmadd_ps(_mm512_castpd_ps(_mm512_set1_pd(get_f64(a + i * rs + p * cs))), b[p], acc[i]);
    }
    UNROLL for (int i = 0; i < 8; i += 2, c += 16) {
        const __m512 rows = _mm512_add_ps(_mm512_permutex2var_ps(acc[i], even, acc[i + 1]),
                                          _mm512_permutex2var_ps(acc[i], odd, acc[i + 1]));
        if (stream)
            f32x16_stream(c, rows);
        else
            _mm512_storeu_ps(c, rows);
    }
}

/* A that is staged is loaded a product later. */
#define LOOP_8X8(NAME, ELEM, IN_PLACE)                                                                                 \
    INLINE void NAME##_stage_8x8(const int a_by_columns, const ELEM *a, float *to)                                     \
    {                                                                                                                  \
        __m512 x[4];                                                                                                   \
        UNROLL for (int p = 0; p < 4; p++) x[p] = _mm512_castsi512_ps(NAME##_values(0xffff, a + 16 * p));              \
        if (a_by_columns) interleave_rows(x);                                                                          \
        UNROLL for (int p = 0; p < 4; p++) _mm512_store_ps(to + 16 * p, x[p]);                                         \
    }                                                                                                                  \
    INLINE void NAME##_loop_8x8(const int a_by_columns, const int b_by_columns, const pysimd_call *s)                  \
    {                                                                                                                  \
        const int stages = a_by_columns || !IN_PLACE, stream = s->flags & PYSIMD_STREAM;                               \
        const ELEM *a = s->a, *b = s->b;                                                                               \
        float *c = s->c;                                                                                               \
        _Alignas(64) float staged[2][64];                                                                              \
        if (stages) NAME##_stage_8x8(a_by_columns, a, staged[0]);                                                      \
        for (int64_t i = 0; i < s->batch; i++, b += s->bs_b, c += s->bs_c) {                                           \
            const float *from = (const float *)(const void *)a;                                                        \
            a += i + 1 < s->batch ? s->bs_a : 0;                                                                       \
            if (stages) {                                                                                              \
                NAME##_stage_8x8(a_by_columns, a, staged[(i + 1) & 1]);                                                \
                from = staged[i & 1];                                                                                  \
                OPAQUE(from); /* else gcc has a branch for each of the two */                                          \
            }                                                                                                          \
            __m512 v[4];                                                                                               \
            UNROLL for (int p = 0; p < 4; p++) v[p] = _mm512_castsi512_ps(NAME##_values(0xffff, b + 16 * p));          \
            if (b_by_columns)                                                                                          \
                transpose_pairs(v);                                                                                    \
            else                                                                                                       \
                interleave_rows(v);                                                                                    \
            rows_of_8x8(from, a_by_columns ? 2 : 8, a_by_columns ? 16 : 2, v, c, stream);                              \
        }                                                                                                              \
    }                                                                                                                  \
    NOINLINE void NAME##_8x8_00(const pysimd_call *s) { NAME##_loop_8x8(0, 0, s); }                                    \
    NOINLINE void NAME##_8x8_01(const pysimd_call *s) { NAME##_loop_8x8(0, 1, s); }                                    \
    NOINLINE void NAME##_8x8_10(const pysimd_call *s) { NAME##_loop_8x8(1, 0, s); }                                    \
    NOINLINE void NAME##_8x8_11(const pysimd_call *s) { NAME##_loop_8x8(1, 1, s); }                                    \
    static pysimd_batch_fn *const NAME##_8x8[2][2] = {{NAME##_8x8_00, NAME##_8x8_01}, {NAME##_8x8_10, NAME##_8x8_11}};
LOOP_8X8(f32s, float, 1)
LOOP_8X8(bf16s, uint16_t, 0)
LOOP_8X8(f16s, uint16_t, 0)

/* Plain arrays are the kernel's. */
INLINE int f32_gains(const pysimd_call *s, int64_t cs_b) { return s->cs_a != 1 || cs_b != 1; }
INLINE int f16_gains(const pysimd_call *s, int64_t cs_b) { return (void)s, (void)cs_b, 1; }
INLINE int bf16_gains(const pysimd_call *s, int64_t cs_b) { return (void)s, (void)cs_b, 1; }
LOOP_4X4(f32, float)
LOOP_4X4(bf16, uint16_t)
LOOP_4X4(f16, uint16_t)

/* Of more columns, panels of many products at a time are as fast: 16x16 B.mT took 123 ns like this, 110 with panels.
 * So are floats whose B the kernel reads in place: 9 to 12 columns took 0.74 to 1.03 times as long with a transposed A
 * (Ice Lake). More columns of float16, 23 sizes up to 64 x 64 x 64, took 1.0 to 1.07 times as long in the means of four
 * layouts (Zen 4). */
enum { MOST_OF_FLOATS = 12 };
INLINE int f32_stages_b(int64_t cs_b) { return cs_b != 1; }
INLINE int f16_stages_b(int64_t cs_b) { return (void)cs_b, 1; }
INLINE int bf16_stages_b(int64_t cs_b) { return (void)cs_b, 1; }

/* The kernels of up to 8 columns add even and odd k apart, those of more do not. Up to 8 columns the kernel's panels
 * have pairs of k in a register, where K(tile) has one k of few columns: 5x5x5 to 57x59x7 took 0.34 to 1.0 times as
 * long with them. With a transposed A of so many rows that operands are exchanged, panels took 0.9 to 2.7 times as
 * long. */
#define OF_COLUMNS(NAME, KIND_)                                                                                        \
    int avx512_small_##NAME##_8x8(const pysimd_call *s, int64_t cs_b)                                                  \
    {                                                                                                                  \
        if (s->n > 8 || !NAME##_gains(s, cs_b)) return 0;                                                              \
        if (!is_dense(s, cs_b, 8)) return s->cs_a != 1 && gains_exchanged(s) ? KIND_##_small(s, cs_b) : 0;             \
        if (s->batch) KIND_##_8x8[s->cs_a != 1][cs_b != 1](s);                                                         \
        return 1;                                                                                                      \
    }                                                                                                                  \
    int avx512_small_##NAME(const pysimd_call *s, int64_t cs_b)                                                        \
    {                                                                                                                  \
        return s->n > 8 && s->n <= MOST_OF_FLOATS && NAME##_stages_b(cs_b) ? KIND_##_small(s, cs_b) : 0;               \
    }
OF_COLUMNS(f32, f32s)
OF_COLUMNS(bf16, bf16s)
OF_COLUMNS(f16, f16s)
