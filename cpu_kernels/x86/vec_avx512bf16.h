/* vec_avx512bf16.h: pairs of bfloat16 and float accumulators in a zmm. vdpbf16ps takes denormals as zero and flushes
 * its result. */
#include "vec_avx512.h"

GROUP_LOADS(bf16x32, uint16_t, uint16_t)
typedef float bf16x32_elem_c;
typedef __m512 bf16x32_acc;
enum { bf16x32_lanes = 16, bf16x32_k_group = 2, bf16x32_offset = 0 };
INLINE __m512 bf16x32_zero(void) { return f32x16_zero(); }
INLINE __m512 bf16x32_fma(__m512i a, __m512i b, __m512 c) { return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b); }
INLINE __m512 bf16x32_add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
INLINE __m512 bf16x32_load_c(const float *p) { return f32x16_load_c(p); }
INLINE __m512 bf16x32_load_c_masked(const float *p, __mmask16 m) { return f32x16_load_c_masked(p, m); }
INLINE void bf16x32_store(float *p, __m512 v) { f32x16_store(p, v); }
INLINE void bf16x32_store_masked(float *p, __mmask16 m, __m512 v) { f32x16_store_masked(p, m, v); }
INLINE void bf16x32_stream(float *p, __m512 v) { f32x16_stream(p, v); }
INLINE __m512 bf16x32_broadcast_c(const void *p) { return f32x16_broadcast(p); }
