/* direct_avx512.c: core/direct.h for bfloat16 and float16, which are widened to float. */
#include "../core/direct.h"

#include "../core/widen.h"
#include "vec_avx512.h"

#include "direct_avx512.h"

enum { MOST_STAGED_ROWS = 16 };

#define HALVES(NAME, WIDENED, ONE)                                                                                     \
    typedef uint16_t NAME##_elem_a, NAME##_elem_b;                                                                     \
    typedef __m512 NAME##_acc;                                                                                         \
    enum { NAME##_group = 1 };                                                                                         \
    INLINE __m512 NAME##_start(const char *a) { return (void)a, _mm512_setzero_ps(); }                                 \
    INLINE __m512 NAME##_fma(const char *a, __m512i b, __m512 acc)                                                     \
    {                                                                                                                  \
        return _mm512_fmadd_ps(_mm512_set1_ps(get_f32(a)), _mm512_castsi512_ps(b), acc);                               \
    }                                                                                                                  \
    INLINE __m512i NAME##_load(const int narrow, __mmask16 m, const char *b)                                           \
    {                                                                                                                  \
        if (narrow) return WIDENED(_mm256_maskz_loadu_epi16(m, b));                                                    \
        return _mm512_maskz_loadu_epi32(m, b);                                                                         \
    }                                                                                                                  \
    INLINE void NAME##_store(__mmask16 m, char *c, __m512 v) { _mm512_mask_storeu_ps(c, m, v); }                       \
    INLINE int NAME##_widens(const pysimd_call *s, int64_t cs_b)                                                       \
    {                                                                                                                  \
        const int64_t rows = s->k > PYSIMD_DIRECT_SHORT_K ? PYSIMD_DIRECT_ROWS : LONG_ROWS;                            \
        return cs_b == 1 && s->m <= rows;                                                                              \
    }                                                                                                                  \
    /* Rows, or up to sixteen rows of a transposed A side by side. */                                                  \
    INLINE rows_of_a NAME##_stage_a(const pysimd_kernel *kernel, const pysimd_call *s, int64_t i, int64_t *rows,       \
                                    char *to)                                                                          \
    {                                                                                                                  \
        const uint16_t *a = (const uint16_t *)s->a + i * s->rs_a;                                                      \
        const int64_t row = (s->k + VECTOR - 1) / VECTOR * VECTOR, left = s->m - i;                                    \
        (void)kernel;                                                                                                  \
        if (s->rs_a == 1 && s->cs_a != 1 && s->k * VECTOR <= PYSIMD_DIRECT_WORDS) {                                    \
            *rows = least(left, s->n > VECTOR && s->n <= 2 * VECTOR ? SOME_ROWS : VECTOR);                             \
            const __mmask16 m = (__mmask16)(0xffffu >> (VECTOR - *rows));                                              \
            for (int64_t p = 0; p < s->k; p++, a += s->cs_a)                                                           \
                _mm512_store_si512(to + p * 64, WIDENED(_mm256_maskz_loadu_epi16(m, a)));                              \
            return (rows_of_a){to, 4, 64};                                                                             \
        }                                                                                                              \
        if (s->cs_a == 1 && s->rs_a == s->k && s->n <= 2 * VECTOR && s->k < 2 * VECTOR) {                              \
            *rows = least(left, PYSIMD_DIRECT_WORDS / s->k);                                                           \
            avx512_widen_##NAME(*rows * s->k, a, to);                                                                  \
            return (rows_of_a){to, s->k * 4, 4};                                                                       \
        }                                                                                                              \
        *rows = least(least(left, s->n <= 2 * VECTOR ? left : MOST_STAGED_ROWS), PYSIMD_DIRECT_WORDS / row);           \
        for (int64_t r = 0; r < *rows; r++, a += s->rs_a) {                                                            \
            char *t = to + r * row * 4;                                                                                \
            if (s->cs_a == 1)                                                                                          \
                for (int64_t p = 0; p < s->k; p += VECTOR) {                                                           \
                    const int64_t some = least(s->k - p, VECTOR);                                                      \
                    const __mmask16 m = (__mmask16)(0xffffu >> (VECTOR - some));                                       \
                    _mm512_store_si512(t + p * 4, WIDENED(_mm256_maskz_loadu_epi16(m, a + p)));                        \
                }                                                                                                      \
            else                                                                                                       \
                for (int64_t p = 0; p < s->k; p++) {                                                                   \
                    const float x = ONE(a + p * s->cs_a);                                                              \
                    memcpy(t + p * 4, &x, sizeof x);                                                                   \
                }                                                                                                      \
        }                                                                                                              \
        return (rows_of_a){to, row * 4, 4};                                                                            \
    }                                                                                                                  \
    INLINE void NAME##_stage_b(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b, int64_t j,             \
                               int64_t columns, char *to)                                                              \
    {                                                                                                                  \
        const char *b = (const char *)s->b + j * cs_b * 2;                                                             \
        (void)kernel;                                                                                                  \
        if (cs_b == 1) {                                                                                               \
            for (int64_t p = 0; p < s->k; p++) avx512_widen_##NAME(columns, b + p * s->rs_b * 2, to + p * columns * 4); \
            return;                                                                                                    \
        }                                                                                                              \
        char *dense = to + s->k * columns * 2;                                                                         \
        pysimd_copy_matrix(s->k, columns, 2, b, s->rs_b, cs_b, dense, columns);                                        \
        avx512_widen_##NAME(s->k * columns, dense, to);                                                                \
    }

INLINE __m512i bf16_widened(__m256i v) { return _mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16); }
INLINE __m512i f16_widened(__m256i v) { return _mm512_castps_si512(_mm512_cvtph_ps(v)); }
INLINE uint16_t get_u16(const void *p) { uint16_t x; memcpy(&x, p, sizeof x); return x; }
INLINE float bf16_one(const void *p) { const uint32_t x = (uint32_t)get_u16(p) << 16; return get_f32(&x); }
INLINE float f16_one(const void *p) { return _cvtsh_ss(get_u16(p)); }

HALVES(bf16, bf16_widened, bf16_one)
HALVES(f16, f16_widened, f16_one)

#define KIND bf16
#include "direct_avx512.h"
#define KIND f16
#include "direct_avx512.h"

void avx512_direct_bf16(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b)
{
    bf16_direct(kernel, s, cs_b);
}

void avx512_direct_f16(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b) { f16_direct(kernel, s, cs_b); }
