/* vec_avx512_f16.h: float A and C in a zmm, and float16 B, whose values are widened while they are loaded. */
#include "vec_avx512.h"

/* f32_f16x16: sixteen values */
FLOATS_OF_C(f32_f16x16)
typedef float f32_f16x16_elem_a;
typedef uint16_t f32_f16x16_elem_b;
typedef __m512 f32_f16x16_vec;
typedef __mmask16 f32_f16x16_mask;
enum { f32_f16x16_lanes = 16, f32_f16x16_k_group = 1, f32_f16x16_offset = 0 };
INLINE __mmask16 f32_f16x16_mask_of(int n) { return f32x16_mask_of(n); }
INLINE __m512 f32_f16x16_load(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE __m512 f32_f16x16_load_masked(const uint16_t *p, __mmask16 m)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p));
}
INLINE __m512 f32_f16x16_broadcast(const float *p) { return f32x16_broadcast(p); }
INLINE __m512 f32_f16x16_broadcast_b(const uint16_t *p)
{
    int16_t x;
    memcpy(&x, p, sizeof x);
    return _mm512_cvtph_ps(_mm256_set1_epi16(x));
}
INLINE __m512 f32_f16x16_fma(__m512 a, __m512 b, __m512 c) { return f32x16_fma(a, b, c); }
typedef __m256 f32_f16x16_half;
typedef __mmask8 f32_f16x16_half_mask;
INLINE __mmask8 f32_f16x16_half_mask_of(int n) { return f32x16_half_mask_of(n); }
INLINE __m256 f32_f16x16_half_zero(void) { return f32x16_half_zero(); }
INLINE __m256 f32_f16x16_half_load(const uint16_t *p, __mmask8 m)
{
    return _mm256_cvtph_ps(_mm_maskz_loadu_epi16(m, p));
}
INLINE __m256 f32_f16x16_half_load_c(const float *p, __mmask8 m) { return f32x16_half_load_c(p, m); }
INLINE void f32_f16x16_half_store(float *p, __mmask8 m, __m256 v) { f32x16_half_store(p, m, v); }
INLINE __m256 f32_f16x16_half_fma(__m512 a, __m256 b, __m256 c) { return f32x16_half_fma(a, b, c); }
INLINE __m256 f32_f16x16_half_add(__m256 a, __m256 b) { return f32x16_half_add(a, b); }
INLINE __m512 f32_f16x16_reduce_rows(const __m512 *acc) { return f32x16_reduce_rows(acc); }
/* The first `count` of sixteen values, `stride` values apart, and zeros. Each is the upper half of the 32 bits that
 * begin a value before it: a column after another one of the same row. */
INLINE __m512 f32_f16x16_gather(const uint16_t *p, int64_t stride, int count)
{
    const __m512i at = _mm512_mullo_epi64(_mm512_set1_epi64(stride), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i none = _mm256_setzero_si256();
    const unsigned mask = f32x16_mask_of(count);
    const __m256i low = _mm512_mask_i64gather_epi32(none, (__mmask8)mask, at, p - 1, 2);
    const __m256i high = _mm512_mask_i64gather_epi32(none, (__mmask8)(mask >> 8), at, p - 1 + 8 * stride, 2);
    const __m512i pairs = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, 16)));
}
