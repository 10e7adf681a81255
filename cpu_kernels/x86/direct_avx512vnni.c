/* direct_avx512vnni.c: core/direct.h for int8 and uint8, in groups of four k: the panels of the row's kernel. */
#include "../core/direct.h"

#include "vec_avx512vnni.h"

#include "direct_avx512.h"

#define BYTES(NAME, ELEM_A, VEC_, OFFSET_)                                                                             \
    typedef ELEM_A NAME##_elem_a;                                                                                      \
    typedef int8_t NAME##_elem_b;                                                                                      \
    typedef i32x16 NAME##_acc;                                                                                         \
    enum { NAME##_group = 4 };                                                                                         \
    INLINE i32x16 NAME##_start(const char *a) { return OFFSET_ ? VEC_##_broadcast_c(a) : VEC_##_zero(); }              \
    INLINE i32x16 NAME##_fma(const char *a, __m512i b, i32x16 acc)                                                     \
    {                                                                                                                  \
        return VEC_##_fma(_mm512_set1_epi32(get_i32(a)), b, acc);                                                      \
    }                                                                                                                  \
    INLINE __m512i NAME##_load(const int narrow, __mmask16 m, const char *b)                                           \
    {                                                                                                                  \
        return (void)narrow, _mm512_maskz_loadu_epi32(m, b);                                                           \
    }                                                                                                                  \
    INLINE void NAME##_store(__mmask16 m, char *c, i32x16 v) { _mm512_mask_storeu_epi32(c, m, (__m512i)v); }           \
    INLINE int NAME##_widens(const pysimd_call *s, int64_t cs_b) { return (void)s, (void)cs_b, 0; }                    \
    INLINE rows_of_a NAME##_stage_a(const pysimd_kernel *kernel, const pysimd_call *s, int64_t i, int64_t *rows,       \
                                    char *to)                                                                          \
    {                                                                                                                  \
        const ELEM_A *a = (const ELEM_A *)s->a + i * s->rs_a;                                                          \
        const int64_t row = pysimd_panel_of_a(kernel, 1, s->k).rs;                                                     \
        *rows = least(s->m - i, PYSIMD_DIRECT_WORDS * 4 / row);                                                        \
        if (s->rs_a == 1 && s->cs_a != 1) {                                                                            \
            pysimd_pack_columns_of_a(kernel, *rows, s->k, a, s->cs_a, to);                                             \
            return (rows_of_a){to, 4, *rows * 4};                                                                      \
        }                                                                                                              \
        pysimd_pack_a(kernel, *rows, s->k, a, s->rs_a, s->cs_a, to);                                                   \
        return (rows_of_a){to, row, 4};                                                                                \
    }                                                                                                                  \
    INLINE void NAME##_stage_b(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b, int64_t j,             \
                               int64_t columns, char *to)                                                              \
    {                                                                                                                  \
        pysimd_pack_b(kernel, s->k, columns, (const int8_t *)s->b + j * cs_b, s->rs_b, cs_b, to);                      \
    }

BYTES(i8, int8_t, i8x64, 1)
BYTES(u8i8, uint8_t, u8i8x64, 0)

#define KIND i8
#include "direct_avx512.h"
#define KIND u8i8
#include "direct_avx512.h"

void avx512vnni_direct_i8(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b)
{
    i8_direct(kernel, s, cs_b);
}

void avx512vnni_direct_u8i8(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b)
{
    u8i8_direct(kernel, s, cs_b);
}
