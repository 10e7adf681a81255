/* vec_avx.h: eight floats in a ymm. Shared by avx (multiply and add) and avx2 (fma): FMA is known at compile time. */
#include <immintrin.h>
#include <stdint.h>

#include "../templates/kernel.h"

/* The first n of eight 32-bit lanes, n from 0 to 8; 64-bit lanes read it with step two. Only lanes with their sign bit
 * set are accessed in memory. */
static const int32_t first_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

/* The first lanes of a vector, for loads by mask, and how many. Stores are made of parts: on AMD processors a masked
 * store is microcode (3x3 float products took 15 ns with it, 9 without, on a Zen 3). */
typedef struct {
    __m256i lanes;
    int n;
} first_of;

INLINE void store_first_ps(float *p, __m128 v, int n)
{
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, v);
        v = _mm_movehl_ps(v, v), p += 2;
    }
    if (n & 1) {
        const float last = _mm_cvtss_f32(v);
        __builtin_memcpy(p, &last, sizeof last); /* p may have any alignment */
    }
}

typedef float f32x8_elem_a, f32x8_elem_b, f32x8_elem_c;
typedef __m256 f32x8_vec, f32x8_acc;
typedef first_of f32x8_mask;
enum { f32x8_lanes = 8, f32x8_k_group = 1, f32x8_offset = 0 };
INLINE first_of f32x8_mask_of(int n)
{
    return (first_of){_mm256_loadu_si256((const __m256i *)(first_lanes + 8 - n)), n};
}
INLINE __m256 f32x8_zero(void) { return _mm256_setzero_ps(); }
INLINE __m256 f32x8_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE __m256 f32x8_load_masked(const float *p, first_of m) { return _mm256_maskload_ps(p, m.lanes); }
INLINE __m256 f32x8_broadcast(const float *p) { return _mm256_set1_ps(get_f32(p)); }
INLINE __m256 f32x8_fma(__m256 a, __m256 b, __m256 c)
{
#ifdef __FMA__
    return _mm256_fmadd_ps(a, b, c);
#else
    return _mm256_add_ps(c, _mm256_mul_ps(a, b));
#endif
}
INLINE __m256 f32x8_add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
INLINE __m256 f32x8_load_c(const float *p) { return _mm256_loadu_ps(p); }
INLINE __m256 f32x8_load_c_masked(const float *p, first_of m) { return _mm256_maskload_ps(p, m.lanes); }
INLINE void f32x8_store(float *p, __m256 v) { _mm256_storeu_ps(p, v); }
INLINE void f32x8_store_masked(float *p, first_of m, __m256 v)
{
    __m128 x = _mm256_castps256_ps128(v);
    if (m.n == 8) {
        _mm256_storeu_ps(p, v);
        return;
    }
    if (m.n & 4) {
        _mm_storeu_ps(p, x);
        x = _mm256_extractf128_ps(v, 1), p += 4;
    }
    store_first_ps(p, x, m.n);
}
INLINE void f32x8_stream(float *p, __m256 v)
{
    _mm_stream_ps(p, _mm256_castps256_ps128(v));
    _mm_stream_ps(p + 4, _mm256_extractf128_ps(v, 1));
}
INLINE __m256 f32x8_broadcast_c(const void *p) { return f32x8_broadcast(p); }
INLINE float f32x8_reduce(__m256 v)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}
