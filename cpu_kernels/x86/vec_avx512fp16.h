/* vec_avx512fp16.h: the vector type of the avx512fp16 kernels. */
#include "vec_avx512.h"

/* f16x32: 32 halves in a zmm. Tiles have one vector of columns, so that an element of A is read by the multiply-add
 * that broadcasts it. For two the compiler would take vpbroadcastw, which occupies a port of the multiply-adds: the
 * loop of 14x64 was at 63 % of the peak on a Xeon with AMX, and at 99.7 % with the broadcast in each multiply-add. */
typedef uint16_t f16x32_elem_a, f16x32_elem_b, f16x32_elem_c;
typedef __m512h f16x32_vec, f16x32_acc;
typedef __mmask32 f16x32_mask;
enum { f16x32_lanes = 32, f16x32_k_group = 1, f16x32_offset = 0 };
INLINE __mmask32 f16x32_mask_of(int n) { return (__mmask32)((1ull << n) - 1); }
INLINE __m512h f16x32_zero(void) { return _mm512_setzero_ph(); }
INLINE __m512h f16x32_load(const uint16_t *p) { return _mm512_loadu_ph(p); }
INLINE __m512h f16x32_load_masked(const uint16_t *p, __mmask32 m)
{
    return _mm512_castsi512_ph(_mm512_maskz_loadu_epi16(m, p));
}
INLINE __m512h f16x32_broadcast(const void *p)
{
    _Float16 x;
    memcpy(&x, p, sizeof x);
    return _mm512_set1_ph(x);
}
INLINE __m512h f16x32_fma(__m512h a, __m512h b, __m512h c) { return _mm512_fmadd_ph(a, b, c); }
INLINE __m512h f16x32_add(__m512h a, __m512h b) { return _mm512_add_ph(a, b); }
INLINE __m512h f16x32_load_c(const uint16_t *p) { return f16x32_load(p); }
INLINE __m512h f16x32_load_c_masked(const uint16_t *p, __mmask32 m) { return f16x32_load_masked(p, m); }
INLINE void f16x32_store(uint16_t *p, __m512h v) { _mm512_storeu_ph(p, v); }
INLINE void f16x32_store_masked(uint16_t *p, __mmask32 m, __m512h v)
{
    _mm512_mask_storeu_epi16(p, m, _mm512_castph_si512(v));
}
INLINE void f16x32_stream(uint16_t *p, __m512h v) { stream512(p, _mm512_castph_si512(v)); }
INLINE __m512h f16x32_broadcast_c(const void *p) { return f16x32_broadcast(p); }
