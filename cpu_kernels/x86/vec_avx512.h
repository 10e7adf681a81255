/* vec_avx512.h: the vector types of the avx512 kernels (F, BW, DQ, VL). */
#include <immintrin.h>
#include <stdint.h>

#include "../templates/kernel.h"

/* NumPy aligns to 16 bytes, so a cache line is stored in four parts, which one write-combining buffer collects:
 * measured as fast as one 64-byte store. */
INLINE void stream512(void *p, __m512i v)
{
    _mm_stream_si128((__m128i *)p, _mm512_castsi512_si128(v));
    _mm_stream_si128((__m128i *)p + 1, _mm512_extracti32x4_epi32(v, 1));
    _mm_stream_si128((__m128i *)p + 2, _mm512_extracti32x4_epi32(v, 2));
    _mm_stream_si128((__m128i *)p + 3, _mm512_extracti32x4_epi32(v, 3));
}

/* Lane i of the result is the sum of the lanes of acc[i], by halves. */
INLINE __m512d sums_of_rows_pd(const __m512d *acc)
{
    __m512d h[4], q[2];
    UNROLL for (int i = 0; i < 4; i++)
        h[i] = _mm512_add_pd(_mm512_shuffle_f64x2(acc[i], acc[i + 4], 0x44),
                             _mm512_shuffle_f64x2(acc[i], acc[i + 4], 0xee));
    UNROLL for (int i = 0; i < 2; i++)
        q[i] = _mm512_add_pd(_mm512_shuffle_f64x2(h[i], h[i + 2], 0x88), _mm512_shuffle_f64x2(h[i], h[i + 2], 0xdd));
    const __m512d sums = _mm512_add_pd(_mm512_unpacklo_pd(q[0], q[1]), _mm512_unpackhi_pd(q[0], q[1]));
    return _mm512_shuffle_f64x2(sums, sums, 0xd8);
}

INLINE __m512 sums_of_rows_ps(const __m512 *acc)
{
    __m512 h[8], q[4], r[2];
    UNROLL for (int i = 0; i < 8; i++)
        h[i] = _mm512_add_ps(_mm512_shuffle_f32x4(acc[i], acc[i + 8], 0x44),
                             _mm512_shuffle_f32x4(acc[i], acc[i + 8], 0xee));
    UNROLL for (int i = 0; i < 4; i++)
        q[i] = _mm512_add_ps(_mm512_shuffle_f32x4(h[i], h[i + 4], 0x88), _mm512_shuffle_f32x4(h[i], h[i + 4], 0xdd));
    UNROLL for (int i = 0; i < 2; i++)
        r[i] = _mm512_add_ps(_mm512_shuffle_ps(q[2 * i], q[2 * i + 1], 0x44),
                             _mm512_shuffle_ps(q[2 * i], q[2 * i + 1], 0xee));
    const __m512 sums = _mm512_add_ps(_mm512_shuffle_ps(r[0], r[1], 0x88), _mm512_shuffle_ps(r[0], r[1], 0xdd));
    return _mm512_shuffle_f32x4(sums, sums, 0xd8);
}

/* f32x16: sixteen floats in a zmm */
typedef float f32x16_elem_a, f32x16_elem_b, f32x16_elem_c;
typedef __m512 f32x16_vec, f32x16_acc;
typedef __mmask16 f32x16_mask;
enum { f32x16_lanes = 16, f32x16_k_group = 1, f32x16_offset = 0 };
INLINE __mmask16 f32x16_mask_of(int n) { return (__mmask16)((1u << n) - 1); }
INLINE __m512 f32x16_zero(void) { return _mm512_setzero_ps(); }
INLINE __m512 f32x16_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE __m512 f32x16_load_masked(const float *p, __mmask16 m) { return _mm512_maskz_loadu_ps(m, p); }
INLINE __m512 f32x16_broadcast(const float *p) { return _mm512_set1_ps(get_f32(p)); }
INLINE __m512 f32x16_fma(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
INLINE __m512 f32x16_add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
INLINE __m512 f32x16_load_c(const float *p) { return _mm512_loadu_ps(p); }
INLINE __m512 f32x16_load_c_masked(const float *p, __mmask16 m) { return _mm512_maskz_loadu_ps(m, p); }
INLINE void f32x16_store(float *p, __m512 v) { _mm512_storeu_ps(p, v); }
INLINE void f32x16_store_masked(float *p, __mmask16 m, __m512 v) { _mm512_mask_storeu_ps(p, m, v); }
INLINE void f32x16_stream(float *p, __m512 v) { stream512(p, _mm512_castps_si512(v)); }
INLINE __m512 f32x16_broadcast_c(const void *p) { return f32x16_broadcast(p); }
INLINE float f32x16_reduce(__m512 v) { return _mm512_reduce_add_ps(v); }
/* The first `count` of sixteen elements, `stride` elements apart, and zeros. */
INLINE __m512 f32x16_gather(const float *p, int64_t stride, int count)
{
    const __m512i at = _mm512_mullo_epi64(_mm512_set1_epi64(stride), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256 none = _mm256_setzero_ps();
    const unsigned mask = f32x16_mask_of(count);
    const __m256 low = _mm512_mask_i64gather_ps(none, (__mmask8)mask, at, p, 4);
    const __m256 high = _mm512_mask_i64gather_ps(none, (__mmask8)(mask >> 8), at, p + 8 * stride, 4);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
typedef __m256 f32x16_half;
typedef __mmask8 f32x16_half_mask;
INLINE __mmask8 f32x16_half_mask_of(int n) { return (__mmask8)((1u << n) - 1); }
INLINE __m256 f32x16_half_zero(void) { return _mm256_setzero_ps(); }
INLINE __m256 f32x16_half_load(const float *p, __mmask8 m) { return _mm256_maskz_loadu_ps(m, p); }
INLINE __m256 f32x16_half_load_c(const float *p, __mmask8 m) { return _mm256_maskz_loadu_ps(m, p); }
INLINE void f32x16_half_store(float *p, __mmask8 m, __m256 v) { _mm256_mask_storeu_ps(p, m, v); }
INLINE __m256 f32x16_half_fma(__m512 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(_mm512_castps512_ps256(a), b, c); }
INLINE __m256 f32x16_half_add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
INLINE __m512 f32x16_reduce_rows(const __m512 *acc) { return sums_of_rows_ps(acc); }

/* f64x8: eight doubles in a zmm */
typedef double f64x8_elem_a, f64x8_elem_b, f64x8_elem_c;
typedef __m512d f64x8_vec, f64x8_acc;
typedef __mmask8 f64x8_mask;
enum { f64x8_lanes = 8, f64x8_k_group = 1, f64x8_offset = 0 };
INLINE __mmask8 f64x8_mask_of(int n) { return (__mmask8)((1u << n) - 1); }
INLINE __m512d f64x8_zero(void) { return _mm512_setzero_pd(); }
INLINE __m512d f64x8_load(const double *p) { return _mm512_loadu_pd(p); }
INLINE __m512d f64x8_load_masked(const double *p, __mmask8 m) { return _mm512_maskz_loadu_pd(m, p); }
INLINE __m512d f64x8_broadcast(const double *p) { return _mm512_set1_pd(get_f64(p)); }
INLINE __m512d f64x8_fma(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
INLINE __m512d f64x8_add(__m512d a, __m512d b) { return _mm512_add_pd(a, b); }
INLINE __m512d f64x8_load_c(const double *p) { return _mm512_loadu_pd(p); }
INLINE __m512d f64x8_load_c_masked(const double *p, __mmask8 m) { return _mm512_maskz_loadu_pd(m, p); }
INLINE void f64x8_store(double *p, __m512d v) { _mm512_storeu_pd(p, v); }
INLINE void f64x8_store_masked(double *p, __mmask8 m, __m512d v) { _mm512_mask_storeu_pd(p, m, v); }
INLINE void f64x8_stream(double *p, __m512d v) { stream512(p, _mm512_castpd_si512(v)); }
INLINE __m512d f64x8_broadcast_c(const void *p) { return f64x8_broadcast(p); }
INLINE __m512d f64x8_gather(const double *p, int64_t stride, int count)
{
    const __m512i at = _mm512_mullo_epi64(_mm512_set1_epi64(stride), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm512_mask_i64gather_pd(_mm512_setzero_pd(), f64x8_mask_of(count), at, p, 8);
}
typedef __m256d f64x8_half;
typedef __mmask8 f64x8_half_mask;
INLINE __mmask8 f64x8_half_mask_of(int n) { return (__mmask8)((1u << n) - 1); }
INLINE __m256d f64x8_half_zero(void) { return _mm256_setzero_pd(); }
INLINE __m256d f64x8_half_load(const double *p, __mmask8 m) { return _mm256_maskz_loadu_pd(m, p); }
INLINE __m256d f64x8_half_load_c(const double *p, __mmask8 m) { return _mm256_maskz_loadu_pd(m, p); }
INLINE void f64x8_half_store(double *p, __mmask8 m, __m256d v) { _mm256_mask_storeu_pd(p, m, v); }
INLINE __m256d f64x8_half_fma(__m512d a, __m256d b, __m256d c)
{
    return _mm256_fmadd_pd(_mm512_castpd512_pd256(a), b, c);
}
INLINE __m256d f64x8_half_add(__m256d a, __m256d b) { return _mm256_add_pd(a, b); }
INLINE __m512d f64x8_reduce_rows(const __m512d *acc) { return sums_of_rows_pd(acc); }

/* f64x4: four doubles in a ymm, with the masks of AVX-512VL */
typedef double f64x4_elem_a, f64x4_elem_b, f64x4_elem_c;
typedef __m256d f64x4_vec, f64x4_acc;
typedef __mmask8 f64x4_mask;
enum { f64x4_lanes = 4, f64x4_k_group = 1, f64x4_offset = 0 };
INLINE __mmask8 f64x4_mask_of(int n) { return (__mmask8)((1u << n) - 1); }
INLINE __m256d f64x4_zero(void) { return _mm256_setzero_pd(); }
INLINE __m256d f64x4_load(const double *p) { return _mm256_loadu_pd(p); }
INLINE __m256d f64x4_load_masked(const double *p, __mmask8 m) { return _mm256_maskz_loadu_pd(m, p); }
INLINE __m256d f64x4_broadcast(const double *p) { return _mm256_set1_pd(get_f64(p)); }
INLINE __m256d f64x4_fma(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
INLINE __m256d f64x4_add(__m256d a, __m256d b) { return _mm256_add_pd(a, b); }
INLINE __m256d f64x4_load_c(const double *p) { return _mm256_loadu_pd(p); }
INLINE __m256d f64x4_load_c_masked(const double *p, __mmask8 m) { return _mm256_maskz_loadu_pd(m, p); }
INLINE void f64x4_store(double *p, __m256d v) { _mm256_storeu_pd(p, v); }
INLINE void f64x4_store_masked(double *p, __mmask8 m, __m256d v) { _mm256_mask_storeu_pd(p, m, v); }
INLINE void f64x4_stream(double *p, __m256d v)
{
    _mm_stream_pd(p, _mm256_castpd256_pd128(v));
    _mm_stream_pd(p + 2, _mm256_extractf128_pd(v, 1));
}
INLINE __m256d f64x4_broadcast_c(const void *p) { return f64x4_broadcast(p); }

/* Sixteen floats of C in a zmm, as those of f32x16: what types whose operands are narrower share. */
#define FLOATS_OF_C(VEC_)                                                                                              \
    typedef float VEC_##_elem_c;                                                                                       \
    typedef __m512 VEC_##_acc;                                                                                         \
    INLINE __m512 VEC_##_zero(void) { return f32x16_zero(); }                                                          \
    INLINE __m512 VEC_##_add(__m512 a, __m512 b) { return f32x16_add(a, b); }                                          \
    INLINE __m512 VEC_##_load_c(const float *p) { return f32x16_load_c(p); }                                           \
    INLINE __m512 VEC_##_load_c_masked(const float *p, __mmask16 m) { return f32x16_load_c_masked(p, m); }             \
    INLINE void VEC_##_store(float *p, __m512 v) { f32x16_store(p, v); }                                               \
    INLINE void VEC_##_store_masked(float *p, __mmask16 m, __m512 v) { f32x16_store_masked(p, m, v); }                 \
    INLINE void VEC_##_stream(float *p, __m512 v) { f32x16_stream(p, v); }                                             \
    INLINE __m512 VEC_##_broadcast_c(const void *p) { return f32x16_broadcast_c(p); }

/* Sixteen 32-bit lanes of a zmm that hold groups of narrow values: what the VNNI and BF16 types share. */
#define GROUP_LOADS(VEC_, type_a, type_b)                                                                              \
    typedef type_a VEC_##_elem_a;                                                                                      \
    typedef type_b VEC_##_elem_b;                                                                                      \
    typedef __m512i VEC_##_vec;                                                                                        \
    typedef __mmask16 VEC_##_mask;                                                                                     \
    INLINE __mmask16 VEC_##_mask_of(int n) { return (__mmask16)((1u << n) - 1); }                                      \
    INLINE __m512i VEC_##_load(const type_b *p) { return _mm512_loadu_si512(p); }                                      \
    INLINE __m512i VEC_##_load_masked(const type_b *p, __mmask16 m) { return _mm512_maskz_loadu_epi32(m, p); }         \
    INLINE __m512i VEC_##_broadcast(const type_a *p) { return _mm512_set1_epi32(get_i32(p)); }
