/* planes_avx512.c: the functions of core/planes.h by AVX-512. */
#include "../core/planes.h"

#include <immintrin.h>
#include <string.h>

#include "../templates/kernel.h"

enum {
    LINE = 64, VALUES = LINE / 2,
    SIGN = 0x8000, INFINITY_BITS = 0x7c00, LEAST_NORMAL = 0x400, /* of float16 */
    SELECT = 0xca,                                               /* vpternlog: a ? b : c */
};

typedef struct {
    __m512i upper, lower;
} planes;

/* The upper halves of 32 floats. */
INLINE __m512i upper_halves(__m512 low, __m512 high)
{
    const __m512i x = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
    const __m512i y = _mm512_srli_epi32(_mm512_castps_si512(high), 16);
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(x)), _mm512_cvtepi32_epi16(y), 1);
}

typedef struct {
    __m512 upper, lower;
} parts;

/* What is not zero and has a lower part of zero is halved, and so is infinity, whose lower part would be NaN. */
INLINE parts parts_of(__m256i v)
{
    const __m512 x = _mm512_cvtph_ps(v), zero = _mm512_setzero_ps();
    const __m512i cut = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(-1 << 16));
    const __m512 upper = _mm512_castsi512_ps(cut), lower = _mm512_sub_ps(x, upper);
    const __mmask16 whole = _mm512_cmp_ps_mask(lower, zero, _CMP_EQ_UQ);
    const __m512 half = _mm512_mul_ps(x, _mm512_set1_ps(0.5f));
    return (parts){_mm512_mask_mov_ps(upper, whole, half), _mm512_mask_mov_ps(lower, whole, half)};
}

/* A normal x = 2^e 1.t m, of which t are seven bits and m three: h = 2^e 1.t and l = 2^e 2^-10 m, whose leading bit is
 * found in a table; or both x / 2. `special` gets the values for which that is wrong: denormals, infinity and NaN. */
INLINE planes planes_of_normal(__m512i v, __mmask32 *special)
{
    enum { BIAS = (127 - 15) << 7, ONE = 1 << 7, EXPONENT = 0x1f << 7, LAST_BITS = 7 };
    /* m 2^-10 as bfloat16, of which the exponent is that for e = 0, by the last bits of an index */
#define EIGHT_BY_LAST_BITS                                                                                             \
    0, BIAS - 10 * ONE, BIAS - 9 * ONE, BIAS - 9 * ONE + 0x40, BIAS - 8 * ONE, BIAS - 8 * ONE + 0x20,                  \
        BIAS - 8 * ONE + 0x40, BIAS - 8 * ONE + 0x60
    static const _Alignas(64) int16_t by_last_bits[VALUES] = {EIGHT_BY_LAST_BITS, EIGHT_BY_LAST_BITS,
                                                              EIGHT_BY_LAST_BITS, EIGHT_BY_LAST_BITS};
#undef EIGHT_BY_LAST_BITS
    const __m512i sign = _mm512_set1_epi16((short)SIGN), positive = _mm512_andnot_si512(sign, v);
    const __mmask32 there = _mm512_test_epi16_mask(positive, positive);
    const __mmask32 whole = _mm512_testn_epi16_mask(v, _mm512_set1_epi16(LAST_BITS));
    const __m512i shifted = _mm512_srli_epi16(positive, 3);
    const __m512i bias = _mm512_mask_mov_epi16(_mm512_set1_epi16(BIAS), whole, _mm512_set1_epi16(BIAS - ONE));
    const __m512i upper = _mm512_maskz_add_epi16(there, shifted, bias);
    const __m512i last = _mm512_add_epi16(_mm512_and_si512(shifted, _mm512_set1_epi16(EXPONENT)),
                                          _mm512_permutexvar_epi16(v, _mm512_load_si512(by_last_bits)));
    const __m512i lower = _mm512_mask_mov_epi16(last, whole, upper);
    *special |= _mm512_mask_cmpge_epu16_mask(there, _mm512_sub_epi16(positive, _mm512_set1_epi16(LEAST_NORMAL)),
                                             _mm512_set1_epi16(INFINITY_BITS - LEAST_NORMAL));
    return (planes){_mm512_ternarylogic_epi32(sign, v, upper, SELECT),
                    _mm512_ternarylogic_epi32(sign, v, lower, SELECT)};
}

/* Any value: the special ones through float. */
INLINE planes planes_of_any(__m512i v)
{
    __mmask32 special = 0;
    const planes x = planes_of_normal(v, &special);
    const parts low = parts_of(_mm512_castsi512_si256(v)), high = parts_of(_mm512_extracti64x4_epi64(v, 1));
    return (planes){_mm512_mask_mov_epi16(x.upper, special, upper_halves(low.upper, high.upper)),
                    _mm512_mask_mov_epi16(x.lower, special, upper_halves(low.lower, high.lower))};
}

INLINE planes planes_of(const int any, __m512i v, __mmask32 *special)
{
    return any ? planes_of_any(v) : planes_of_normal(v, special);
}

INLINE __mmask32 first_values(int64_t n) { return n < VALUES ? (1u << n) - 1 : -1u; }

/* Returns whether a value is special, which is wrong then unless `any`, a constant. */
INLINE __mmask32 row_of_a(const int any, int64_t k, const char *from, char *to)
{
    __mmask32 special = 0;
    for (; k > 0; k -= VALUES, from += 2 * VALUES, to += 2 * LINE) {
        const planes x = planes_of(any, _mm512_maskz_loadu_epi16(first_values(k), from), &special);
        _mm512_storeu_si512(to, x.upper), _mm512_storeu_si512(to + LINE, x.lower);
    }
    return special;
}

void avx512_planes_of_a(int64_t m, int64_t k, const char *from, int64_t row, char *to, int64_t to_row)
{
    for (int64_t i = 0; i < m; i++)
        if (row_of_a(0, k, from + i * row, to + i * to_row)) row_of_a(1, k, from + i * row, to + i * to_row);
}

/* Two rows, interleaved; unpacking works within 128 bits, so rows are permuted before. */
INLINE void store_pairs(char *to, __mmask32 some, __m512i x, __m512i y)
{
    _mm512_mask_storeu_epi32(to, (__mmask16)some, _mm512_unpacklo_epi16(x, y));
    _mm512_mask_storeu_epi32(to + LINE, (__mmask16)(some >> 16), _mm512_unpackhi_epi16(x, y));
}

INLINE __mmask32 rows_of_b(const int any, int64_t rows, int64_t n, int64_t panels, const char *from, int64_t row,
                           char *to, int64_t plane, int64_t panel_bytes)
{
    const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    __mmask32 special = 0;
    for (int64_t q = 0; q < panels; q++, to += panel_bytes)
        for (int64_t j = 0; j < n; j += VALUES, from += 2 * VALUES) {
            const __mmask32 some = first_values(n - j), second = rows > 1 ? some : 0;
            const __m512i v = _mm512_maskz_loadu_epi16(some, from), w = _mm512_maskz_loadu_epi16(second, from + row);
            const planes x = planes_of(any, _mm512_permutexvar_epi64(order, v), &special),
                         y = planes_of(any, _mm512_permutexvar_epi64(order, w), &special);
            store_pairs(to + 4 * j, some, x.upper, y.upper), store_pairs(to + 4 * j + plane, some, x.lower, y.lower);
        }
    return special;
}

void avx512_planes_of_b(int64_t k, int64_t n, int64_t panels, const char *from, int64_t row, char *to, int64_t plane,
                        int64_t panel_bytes)
{
    int64_t p = 0;
    for (; p < k; p += 2, from += 2 * row, to += 2 * plane)
        if (rows_of_b(0, k - p, n, panels, from, row, to, plane, panel_bytes))
            rows_of_b(1, k - p, n, panels, from, row, to, plane, panel_bytes);
    for (; p % PYSIMD_PLANE_K; p += 2, to += 2 * plane)
        for (int64_t q = 0; q < panels; q++)
            for (int plane0 = 0; plane0 < 2; plane0++)
                memset(to + q * panel_bytes + plane0 * plane, 0, (size_t)(4 * n));
}
