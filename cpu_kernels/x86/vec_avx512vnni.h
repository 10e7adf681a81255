/* vec_avx512vnni.h: groups of four bytes and int32 accumulators in a zmm. vpdpbusd multiplies unsigned by signed
 * bytes. */
#include "vec_avx512.h"

/* Accumulators have 32-bit lanes by type: as __m512i (64-bit lanes) gcc stores every accumulator in the loop. */
typedef int32_t i32x16 __attribute__((vector_size(64)));

#define VNNI_ACCUMULATORS(VEC_)                                                                                        \
    typedef int32_t VEC_##_elem_c;                                                                                     \
    typedef i32x16 VEC_##_acc;                                                                                         \
    INLINE i32x16 VEC_##_zero(void) { return (i32x16)_mm512_setzero_si512(); }                                         \
    INLINE i32x16 VEC_##_add(i32x16 a, i32x16 b) { return (i32x16)_mm512_add_epi32((__m512i)a, (__m512i)b); }          \
    INLINE i32x16 VEC_##_load_c(const int32_t *p) { return (i32x16)_mm512_loadu_si512(p); }                            \
    INLINE i32x16 VEC_##_load_c_masked(const int32_t *p, __mmask16 m)                                                  \
    {                                                                                                                  \
        return (i32x16)_mm512_maskz_loadu_epi32(m, p);                                                                 \
    }                                                                                                                  \
    INLINE void VEC_##_store(int32_t *p, i32x16 v) { _mm512_storeu_si512(p, (__m512i)v); }                             \
    INLINE void VEC_##_store_masked(int32_t *p, __mmask16 m, i32x16 v) { _mm512_mask_storeu_epi32(p, m, (__m512i)v); } \
    INLINE void VEC_##_stream(int32_t *p, i32x16 v) { stream512(p, (__m512i)v); }                                      \
    INLINE i32x16 VEC_##_broadcast_c(const void *p) { return (i32x16)_mm512_set1_epi32(get_i32(p)); }

/* u8i8x64: A uint8, B int8 */
GROUP_LOADS(u8i8x64, uint8_t, int8_t)
VNNI_ACCUMULATORS(u8i8x64)
enum { u8i8x64_lanes = 16, u8i8x64_k_group = 4, u8i8x64_offset = 0 };
INLINE i32x16 u8i8x64_fma(__m512i a, __m512i b, i32x16 c) { return (i32x16)_mm512_dpbusd_epi32((__m512i)c, a, b); }

/* i8x64: A int8, B int8 as b + 128 in uint8: sum a (b + 128) - 128 sum a, the second term at the end of a row of A */
GROUP_LOADS(i8x64, int8_t, uint8_t)
VNNI_ACCUMULATORS(i8x64)
enum { i8x64_lanes = 16, i8x64_k_group = 4, i8x64_offset = 1 };
INLINE i32x16 i8x64_fma(__m512i a, __m512i b, i32x16 c) { return (i32x16)_mm512_dpbusd_epi32((__m512i)c, b, a); }
