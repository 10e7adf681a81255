/* vec_sse.h: four floats in an xmm, SSE2 only (every x86-64 has it); multiply and add, for there is no fma. */
#include <emmintrin.h>
#include <stdint.h>

#include "../templates/kernel.h"

typedef float f32x4_elem_a, f32x4_elem_b, f32x4_elem_c;
typedef __m128 f32x4_vec, f32x4_acc;
typedef int f32x4_mask;
enum { f32x4_lanes = 4, f32x4_k_group = 1, f32x4_offset = 0 };
INLINE int f32x4_mask_of(int n) { return n; }
INLINE __m128 f32x4_zero(void) { return _mm_setzero_ps(); }
INLINE __m128 f32x4_load(const float *p) { return _mm_loadu_ps(p); }
INLINE __m128 f32x4_load_masked(const float *p, int n)
{
    float t[4] = {0}; /* SSE has no masked load: n elements are copied through the stack */
    for (int i = 0; i < n; i++) t[i] = get_f32(p + i);
    return _mm_loadu_ps(t);
}
INLINE __m128 f32x4_broadcast(const float *p) { return _mm_set1_ps(get_f32(p)); }
INLINE __m128 f32x4_fma(__m128 a, __m128 b, __m128 c) { return _mm_add_ps(c, _mm_mul_ps(a, b)); }
INLINE __m128 f32x4_add(__m128 a, __m128 b) { return _mm_add_ps(a, b); }
INLINE __m128 f32x4_load_c(const float *p) { return _mm_loadu_ps(p); }
INLINE __m128 f32x4_load_c_masked(const float *p, int n) { return f32x4_load_masked(p, n); }
INLINE void f32x4_store(float *p, __m128 v) { _mm_storeu_ps(p, v); }
INLINE void f32x4_store_masked(float *p, int n, __m128 v)
{
    float t[4];
    _mm_storeu_ps(t, v);
    for (int i = 0; i < n; i++) memcpy(p + i, t + i, sizeof *t);
}
INLINE void f32x4_stream(float *p, __m128 v) { _mm_stream_ps(p, v); }
INLINE __m128 f32x4_broadcast_c(const void *p) { return f32x4_broadcast(p); }
INLINE float f32x4_reduce(__m128 v)
{
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}
