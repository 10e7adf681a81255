/* vec_avx2.h: the vector types of the avx2 kernels (AVX2 and FMA); f32x8 comes from vec_avx.h. */
#include "vec_avx.h"

/* Registers of two halves, for outer_half.h: each half belongs to a row of its own. */
INLINE __m256 f32x8_load_twice(const float *p) { return _mm256_broadcast_ps((const __m128 *)p); }
INLINE __m256 f32x8_blend(__m256 low, __m256 high) { return _mm256_blend_ps(low, high, 0xf0); }
INLINE __m256 f32x8_load_c_halves(const float *low, const float *high) { return _mm256_loadu2_m128(high, low); }
INLINE void f32x8_store_halves(float *low, float *high, __m256 v) { _mm256_storeu2_m128(high, low, v); }

/* f32x4: four floats in an xmm */
typedef float f32x4_elem_a, f32x4_elem_b, f32x4_elem_c;
typedef __m128 f32x4_vec, f32x4_acc;
typedef struct {
    __m128i lanes;
    int n;
} f32x4_mask;
enum { f32x4_lanes = 4, f32x4_k_group = 1, f32x4_offset = 0 };
INLINE f32x4_mask f32x4_mask_of(int n)
{
    return (f32x4_mask){_mm_loadu_si128((const __m128i *)(first_lanes + 8 - n)), n};
}
INLINE __m128 f32x4_zero(void) { return _mm_setzero_ps(); }
INLINE __m128 f32x4_load(const float *p) { return _mm_loadu_ps(p); }
INLINE __m128 f32x4_load_masked(const float *p, f32x4_mask m) { return _mm_maskload_ps(p, m.lanes); }
INLINE __m128 f32x4_broadcast(const float *p) { return _mm_set1_ps(get_f32(p)); }
INLINE __m128 f32x4_fma(__m128 a, __m128 b, __m128 c) { return _mm_fmadd_ps(a, b, c); }
INLINE __m128 f32x4_add(__m128 a, __m128 b) { return _mm_add_ps(a, b); }
INLINE __m128 f32x4_load_c(const float *p) { return _mm_loadu_ps(p); }
INLINE __m128 f32x4_load_c_masked(const float *p, f32x4_mask m) { return _mm_maskload_ps(p, m.lanes); }
INLINE void f32x4_store(float *p, __m128 v) { _mm_storeu_ps(p, v); }
INLINE void f32x4_store_masked(float *p, f32x4_mask m, __m128 v)
{
    if (m.n == 4)
        _mm_storeu_ps(p, v);
    else
        store_first_ps(p, v, m.n);
}
INLINE void f32x4_stream(float *p, __m128 v) { _mm_stream_ps(p, v); }
INLINE __m128 f32x4_broadcast_c(const void *p) { return f32x4_broadcast(p); }

/* f64x4: four doubles in a ymm */
typedef double f64x4_elem_a, f64x4_elem_b, f64x4_elem_c;
typedef __m256d f64x4_vec, f64x4_acc;
typedef first_of f64x4_mask;
enum { f64x4_lanes = 4, f64x4_k_group = 1, f64x4_offset = 0 };
INLINE first_of f64x4_mask_of(int n)
{
    return (first_of){_mm256_loadu_si256((const __m256i *)(first_lanes + 8 - 2 * n)), n};
}
INLINE __m256d f64x4_zero(void) { return _mm256_setzero_pd(); }
INLINE __m256d f64x4_load(const double *p) { return _mm256_loadu_pd(p); }
INLINE __m256d f64x4_load_masked(const double *p, first_of m) { return _mm256_maskload_pd(p, m.lanes); }
INLINE __m256d f64x4_broadcast(const double *p) { return _mm256_set1_pd(get_f64(p)); }
INLINE __m256d f64x4_fma(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
INLINE __m256d f64x4_add(__m256d a, __m256d b) { return _mm256_add_pd(a, b); }
INLINE __m256d f64x4_load_c(const double *p) { return _mm256_loadu_pd(p); }
INLINE __m256d f64x4_load_c_masked(const double *p, first_of m) { return _mm256_maskload_pd(p, m.lanes); }
INLINE void f64x4_store(double *p, __m256d v) { _mm256_storeu_pd(p, v); }
INLINE void f64x4_store_masked(double *p, first_of m, __m256d v)
{
    __m128d x = _mm256_castpd256_pd128(v);
    if (m.n == 4) {
        _mm256_storeu_pd(p, v);
        return;
    }
    if (m.n & 2) {
        _mm_storeu_pd(p, x);
        x = _mm256_extractf128_pd(v, 1), p += 2;
    }
    if (m.n & 1) {
        const double last = _mm_cvtsd_f64(x);
        __builtin_memcpy(p, &last, sizeof last);
    }
}
INLINE void f64x4_stream(double *p, __m256d v)
{
    _mm_stream_pd(p, _mm256_castpd256_pd128(v));
    _mm_stream_pd(p + 2, _mm256_extractf128_pd(v, 1));
}
INLINE __m256d f64x4_broadcast_c(const void *p) { return f64x4_broadcast(p); }

INLINE __m256d f64x4_load_twice(const double *p) { return _mm256_broadcast_pd((const __m128d *)p); }
INLINE __m256d f64x4_blend(__m256d low, __m256d high) { return _mm256_blend_pd(low, high, 0xc); }
INLINE __m256d f64x4_load_c_halves(const double *low, const double *high) { return _mm256_loadu2_m128d(high, low); }
INLINE void f64x4_store_halves(double *low, double *high, __m256d v) { _mm256_storeu2_m128d(high, low, v); }

/* i16x16: sixteen int16 in a ymm, in pairs of k; eight int32 accumulators. vpmaddwd is exact (|sum| <= 2 * 2^14 for
 * int8, 2 * 255 * 128 for uint8 * int8), where vpmaddubsw, the byte form, saturates at 16 bits. */
typedef int16_t i16x16_elem_a, i16x16_elem_b;
typedef int32_t i16x16_elem_c;
typedef __m256i i16x16_vec;
typedef first_of i16x16_mask;
/* Unsigned, so that + wraps; not __m256i, whose 64-bit lanes make gcc store every accumulator in the loop. */
typedef uint32_t i16x16_acc __attribute__((vector_size(32)));
enum { i16x16_lanes = 8, i16x16_k_group = 2, i16x16_offset = 0 };
INLINE first_of i16x16_mask_of(int n) { return f32x8_mask_of(n); }
INLINE i16x16_acc i16x16_zero(void) { return (i16x16_acc)_mm256_setzero_si256(); }
INLINE __m256i i16x16_load(const int16_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINE __m256i i16x16_load_masked(const int16_t *p, first_of m)
{
    return _mm256_maskload_epi32((const int *)p, m.lanes);
}
INLINE __m256i i16x16_broadcast(const int16_t *p) { return _mm256_set1_epi32(get_i32(p)); }
INLINE i16x16_acc i16x16_add(i16x16_acc a, i16x16_acc b) { return a + b; }
INLINE i16x16_acc i16x16_product(__m256i a, __m256i b) { return (i16x16_acc)_mm256_madd_epi16(a, b); }
INLINE i16x16_acc i16x16_fma(__m256i a, __m256i b, i16x16_acc c)
{
    return i16x16_add(c, (i16x16_acc)_mm256_madd_epi16(a, b));
}
INLINE i16x16_acc i16x16_load_c(const int32_t *p) { return (i16x16_acc)_mm256_loadu_si256((const __m256i *)p); }
INLINE i16x16_acc i16x16_load_c_masked(const int32_t *p, first_of m)
{
    return (i16x16_acc)_mm256_maskload_epi32(p, m.lanes);
}
INLINE void i16x16_store(int32_t *p, i16x16_acc v) { _mm256_storeu_si256((__m256i *)p, (__m256i)v); }
INLINE void i16x16_store_masked(int32_t *p, first_of m, i16x16_acc v)
{
    f32x8_store_masked((float *)p, m, (__m256)v);
}
INLINE void i16x16_stream(int32_t *p, i16x16_acc v)
{
    _mm_stream_si128((__m128i *)p, _mm256_castsi256_si128((__m256i)v));
    _mm_stream_si128((__m128i *)p + 1, _mm256_extracti128_si256((__m256i)v, 1));
}
INLINE i16x16_acc i16x16_broadcast_c(const void *p) { return (i16x16_acc)i16x16_broadcast(p); }

INLINE __m256i i16x16_load_twice(const int16_t *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}
INLINE __m256i i16x16_blend(__m256i low, __m256i high) { return _mm256_blend_epi32(low, high, 0xf0); }
INLINE i16x16_acc i16x16_load_c_halves(const int32_t *low, const int32_t *high)
{
    return (i16x16_acc)_mm256_loadu2_m128i((const __m128i *)high, (const __m128i *)low);
}
INLINE void i16x16_store_halves(int32_t *low, int32_t *high, i16x16_acc v)
{
    _mm256_storeu2_m128i((__m128i *)high, (__m128i *)low, (__m256i)v);
}
