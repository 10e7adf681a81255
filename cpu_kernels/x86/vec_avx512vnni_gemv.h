/* vec_avx512vnni_gemv.h: what templates/gemv.h needs of bytes with AVX-512 VNNI. They are widened to int16 while
 * loading, for vpdpwssd, which adds two adjacent terms to an int32. */
#include "vec_avx512_gemv.h"

/* Unsigned, so that + wraps; not __m512i, whose 64-bit lanes make gcc store every accumulator in the loop. */
typedef uint32_t i16x32_acc __attribute__((vector_size(64)));

/* Lane i of the result is the sum of the lanes of acc[i], by halves. */
INLINE i16x32_acc sums_of_rows_epi32(const i16x32_acc *acc)
{
    i16x32_acc h[8], q[4], r[2];
    UNROLL for (int i = 0; i < 8; i++)
        h[i] = (i16x32_acc)_mm512_shuffle_i32x4((__m512i)acc[i], (__m512i)acc[i + 8], 0x44) +
               (i16x32_acc)_mm512_shuffle_i32x4((__m512i)acc[i], (__m512i)acc[i + 8], 0xee);
    UNROLL for (int i = 0; i < 4; i++)
        q[i] = (i16x32_acc)_mm512_shuffle_i32x4((__m512i)h[i], (__m512i)h[i + 4], 0x88) +
               (i16x32_acc)_mm512_shuffle_i32x4((__m512i)h[i], (__m512i)h[i + 4], 0xdd);
    UNROLL for (int i = 0; i < 2; i++)
        r[i] = (i16x32_acc)_mm512_unpacklo_epi64((__m512i)q[2 * i], (__m512i)q[2 * i + 1]) +
               (i16x32_acc)_mm512_unpackhi_epi64((__m512i)q[2 * i], (__m512i)q[2 * i + 1]);
    const __m512 first = (__m512)r[0], second = (__m512)r[1];
    const i16x32_acc sums = (i16x32_acc)_mm512_shuffle_ps(first, second, 0x88) +
                            (i16x32_acc)_mm512_shuffle_ps(first, second, 0xdd);
    return (i16x32_acc)_mm512_shuffle_i32x4((__m512i)sums, (__m512i)sums, 0xd8);
}

#define GEMV_BYTES(VEC_, type_a, widen_a, type_x, widen_x)                                                             \
    typedef type_a VEC_##_elem_a;                                                                                      \
    typedef type_x VEC_##_elem_b;                                                                                      \
    typedef int32_t VEC_##_elem_c;                                                                                     \
    typedef uint32_t VEC_##_sum;                                                                                       \
    typedef __mmask16 VEC_##_mask;                                                                                     \
    typedef __m512i VEC_##_vec;                                                                                        \
    typedef i16x32_acc VEC_##_acc;                                                                                     \
    typedef __mmask32 VEC_##_part;                                                                                     \
    typedef int16_t VEC_##_wide;                                                                                       \
    enum { VEC_##_lanes = 32, VEC_##_rows = 16, VEC_##_depth = 2, VEC_##_widens = 1 };                                 \
    INLINE void VEC_##_store_wide(int16_t *p, __m512i v) { _mm512_storeu_si512(p, v); }                                \
    INLINE __m512i VEC_##_broadcast_wide(const int16_t *p) { return _mm512_set1_epi32(get_i32(p)); }                   \
    INLINE __mmask16 VEC_##_mask_of(int n) { return (__mmask16)((1u << n) - 1); }                                      \
    INLINE __mmask32 VEC_##_part_of(int n) { return ((__mmask32)1 << n) - 1; }                                         \
    INLINE i16x32_acc VEC_##_zero(void) { return (i16x32_acc)_mm512_setzero_si512(); }                                 \
    INLINE i16x32_acc VEC_##_fma(__m512i a, __m512i b, i16x32_acc c)                                                   \
    {                                                                                                                  \
        __asm__("vpdpwssd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b)); /* by the intrinsic gcc 12 copies accumulators */   \
        return c;                                                                                                      \
    }                                                                                                                  \
    INLINE i16x32_acc VEC_##_add(i16x32_acc a, i16x32_acc b) { return a + b; }                                         \
    INLINE i16x32_acc VEC_##_load_c(const int32_t *p) { return (i16x32_acc)_mm512_loadu_si512(p); }                    \
    INLINE i16x32_acc VEC_##_load_c_masked(const int32_t *p, __mmask16 m)                                              \
    {                                                                                                                  \
        return (i16x32_acc)_mm512_maskz_loadu_epi32(m, p);                                                             \
    }                                                                                                                  \
    INLINE void VEC_##_store(int32_t *p, i16x32_acc v) { _mm512_storeu_si512(p, (__m512i)v); }                         \
    INLINE void VEC_##_store_masked(int32_t *p, __mmask16 m, i16x32_acc v)                                             \
    {                                                                                                                  \
        _mm512_mask_storeu_epi32(p, m, (__m512i)v);                                                                    \
    }                                                                                                                  \
    INLINE i16x32_acc VEC_##_reduce_rows(const i16x32_acc *acc) { return sums_of_rows_epi32(acc); }                    \
    INLINE void VEC_##_interleave(const i16x32_acc *v, uint32_t *to)                                                   \
    {                                                                                                                  \
        interleave_ps((const __m512 *)v, (float *)to);                                                                 \
    }                                                                                                                  \
    INLINE void VEC_##_interleave_dense(const int N, const i16x32_acc *v, uint32_t *to)                                \
    {                                                                                                                  \
        interleave_dense_ps(N, (const __m512 *)v, (float *)to);                                                        \
    }                                                                                                                  \
    INLINE __m512i VEC_##_load(const type_a *p) { return widen_a(_mm256_loadu_si256((const __m256i *)p)); }            \
    INLINE __m512i VEC_##_load_part(const type_a *p, __mmask32 part)                                                   \
    {                                                                                                                  \
        return widen_a(_mm256_maskz_loadu_epi8(part, p));                                                              \
    }                                                                                                                  \
    INLINE __m512i VEC_##_load_first(const type_a *p, __mmask32 part) { return VEC_##_load_part(p, part); }            \
    INLINE __m512i VEC_##_load_one(const type_a *p) { return VEC_##_load_part(p, 1); }                                 \
    INLINE __m512i VEC_##_load_x_part(const type_x *p, __mmask32 part)                                                 \
    {                                                                                                                  \
        return widen_x(_mm256_maskz_loadu_epi8(part, p));                                                              \
    }                                                                                                                  \
    INLINE __m512i VEC_##_load_x_one(const type_x *p) { return VEC_##_load_x_part(p, 1); }                             \
    INLINE __m512i VEC_##_load_x(const type_x *p) { return widen_x(_mm256_loadu_si256((const __m256i *)p)); }          \
    INLINE __m512i VEC_##_columns_part(const type_a *p, int64_t cs, int depth, __mmask32 part)                         \
    {                                                                                                                  \
        const __mmask16 rows = (__mmask16)part;                                                                        \
        const __m128i x = _mm_maskz_loadu_epi8(rows, p);                                                               \
        const __m128i y = depth == 2 ? _mm_maskz_loadu_epi8(rows, p + cs) : _mm_setzero_si128();                       \
        return widen_a(_mm256_set_m128i(_mm_unpackhi_epi8(x, y), _mm_unpacklo_epi8(x, y)));                            \
    }                                                                                                                  \
    INLINE __m512i VEC_##_columns(const type_a *p, int64_t cs, int depth)                                              \
    {                                                                                                                  \
        return VEC_##_columns_part(p, cs, depth, 0xffff);                                                              \
    }                                                                                                                  \
    INLINE __m512i VEC_##_broadcast_x(const type_x *p, int depth)                                                      \
    {                                                                                                                  \
        const int32_t second = depth == 2 ? p[1] : 0;                                                                  \
        return _mm512_set1_epi32((int32_t)((uint32_t)second << 16 | (uint16_t)p[0]));                                  \
    }

GEMV_BYTES(i8x32, int8_t, _mm512_cvtepi8_epi16, int8_t, _mm512_cvtepi8_epi16)
GEMV_BYTES(u8i8x32, uint8_t, _mm512_cvtepu8_epi16, int8_t, _mm512_cvtepi8_epi16)
GEMV_BYTES(i8u8x32, int8_t, _mm512_cvtepi8_epi16, uint8_t, _mm512_cvtepu8_epi16)
