/* small_avx512vnni.c: the functions of core/small.h for int8 and uint8: from 9 columns on by groups of four k, fewer in
 * ymm registers (small_bytes.h). vpdpbusd multiplies unsigned by signed bytes, so a signed A is staged as a + 128, and
 * accumulators end less 128 times the sums of B's columns. */
#include "vec_avx512vnni.h"

#include "small_avx512.h"

#define ROWS_OF_SHORT_K

/* Four rows of up to 16 bytes, interleaved. */
INLINE __m512i groups_of_bytes(int64_t left, const void *from, int64_t rs, __mmask16 m)
{
    const __m512i transpose = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
    const __m512i gather = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const char *p = from;
    __m512i v;
    if (rs == 16 && m == 0xffff && left > 3)
        v = _mm512_loadu_si512(p);
    else if (left > 3)
        v = lanes_of_bytes(0, m, p, p + rs, p + 2 * rs, p + 3 * rs);
    else { /* rows beyond the last are its copies, with an empty mask */
        const __mmask16 m1 = left > 1 ? m : 0, m2 = left > 2 ? m : 0;
        const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes(0, m, p)), bytes(0, m1, p + rs), 1);
        const __m256i high = _mm256_inserti128_si256(_mm256_setzero_si256(), bytes(0, m2, p + 2 * rs), 0);
        v = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(gather, v), transpose);
}

#define BYTES(NAME, ELEM)                                                                                              \
    typedef ELEM NAME##_elem;                                                                                          \
    typedef i32x16 NAME##_vec;                                                                                         \
    enum { NAME##_group = 4, NAME##_chains = 1 };                                                                      \
    INLINE i32x16 NAME##_zero(void) { return (i32x16)_mm512_setzero_si512(); }                                         \
    INLINE i32x16 NAME##_add(i32x16 a, i32x16 b) { return a + b; }                                                     \
    INLINE __m512i NAME##_load(int64_t left, const ELEM *p, int64_t rs, __mmask16 m)                                   \
    {                                                                                                                  \
        return groups_of_bytes(left, p, rs, m);                                                                        \
    }                                                                                                                  \
    INLINE __m512i NAME##_lanes(const int full, __mmask16 m, const ELEM *p, const ELEM *q, const ELEM *r,              \
                                const ELEM *s)                                                                         \
    {                                                                                                                  \
        return lanes_of_bytes(full, m, p, q, r, s);                                                                    \
    }                                                                                                                  \
    INLINE i32x16 NAME##_dot(i32x16 acc, const void *a, __m512i b)                                                     \
    {                                                                                                                  \
        return (i32x16)_mm512_dpbusd_epi32((__m512i)acc, _mm512_set1_epi32(get_i32(a)), b);                            \
    }                                                                                                                  \
    INLINE __m512i NAME##_widened(const ELEM *p) { return NAME##_staged(_mm512_loadu_si512(p)); }                      \
    INLINE __m512i NAME##_part_widened(__mmask64 m, const ELEM *p)                                                     \
    {                                                                                                                  \
        return NAME##_staged(_mm512_maskz_loadu_epi8(m, p));                                                           \
    }

INLINE __m512i i8q_staged(__m512i v) { return _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80)); }
BYTES(i8q, int8_t)
INLINE int i8q_in_place(int a_by_rows, int64_t k) { return (void)a_by_rows, (void)k, 0; }
INLINE i32x16 i8q_add_to_sum(i32x16 sum, __m512i b)
{
    return (i32x16)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi8((char)0x80), b);
}
INLINE i32x16 i8q_corrected(i32x16 v, i32x16 sum) { return v - sum; }
#define KIND i8q
#include "small_groups.h"

INLINE __m512i u8i8q_staged(__m512i v) { return v; }
BYTES(u8i8q, uint8_t)
INLINE int u8i8q_in_place(int a_by_rows, int64_t k) { return a_by_rows && k % 4 == 0; }
INLINE i32x16 u8i8q_add_to_sum(i32x16 sum, __m512i b) { return (void)b, sum; }
INLINE i32x16 u8i8q_corrected(i32x16 v, i32x16 sum) { return (void)sum, v; }
#define KIND u8i8q
#include "small_groups.h"

pysimd_small_fn avx512vnni_few_i8, avx512vnni_few_u8i8; /* of small_bytes_avx512vnni.c */

int avx512vnni_small_i8(const pysimd_call *s, int64_t cs_b)
{
    if (s->n > FEW_COLUMNS) return i8q_small(s, cs_b);
    return avx512vnni_few_i8(s, cs_b) || (gains_exchanged(s) && i8q_small(s, cs_b));
}

int avx512vnni_small_u8i8(const pysimd_call *s, int64_t cs_b)
{
    return s->n <= 8 ? avx512vnni_few_u8i8(s, cs_b) : u8i8q_small(s, cs_b);
}
