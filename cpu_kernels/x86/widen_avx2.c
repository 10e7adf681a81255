/* widen_avx2.c: the functions of core/widen.h by AVX2 and F16C. */
#include "../core/widen.h"

#include <immintrin.h>

#include "../templates/kernel.h"

/* Sixteen values at a time; the rest by the plain functions. Both loads precede the stores, which may overwrite
 * them. */
#define WIDEN(NAME, EACH, UNITS, CONVERT)                                                                              \
    void avx2_widen_##NAME(int64_t n, const void *from, void *to)                                                      \
    {                                                                                                                  \
        const __m128i *f = from;                                                                                       \
        __m256i *t = to;                                                                                               \
        for (; n >= (EACH) * (UNITS); n -= (EACH) * (UNITS), f += (UNITS), t += (UNITS)) {                             \
            __m256i v[UNITS];                                                                                          \
            UNROLL for (int i = 0; i < (UNITS); i++) v[i] = CONVERT(_mm_loadu_si128(f + i));                           \
            UNROLL for (int i = 0; i < (UNITS); i++) _mm256_storeu_si256(t + i, v[i]);                                 \
        }                                                                                                              \
        if (n > 0) pysimd_widen_##NAME(n, f, t);                                                                       \
    }

INLINE __m256i bf16(__m128i v) { return _mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16); }
INLINE __m256i f16(__m128i v) { return _mm256_castps_si256(_mm256_cvtph_ps(v)); }

WIDEN(i8, 16, 1, _mm256_cvtepi8_epi16)
WIDEN(u8, 16, 1, _mm256_cvtepu8_epi16)
WIDEN(bf16, 8, 2, bf16)
WIDEN(f16, 8, 2, f16)
