/* narrow_avx2.c: the functions of core/narrow.h by AVX2 and F16C. */
#include "../core/narrow.h"

#include <immintrin.h>

#include "../templates/kernel.h"

/* Eight values at a time; the rest by the plain functions. */
#define NARROW(NAME)                                                                                                   \
    void avx2_narrow_##NAME(int64_t n, const float *from, void *to)                                                    \
    {                                                                                                                  \
        __m128i *t = to;                                                                                               \
        for (; n >= 8; n -= 8, from += 8, t++) _mm_storeu_si128(t, NAME(_mm256_loadu_ps(from)));                       \
        if (n > 0) pysimd_narrow_##NAME(n, from, t);                                                                   \
    }

INLINE __m128i f16(__m256 v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }

INLINE __m128i bf16(__m256 v)
{
    const __m256i x = _mm256_castps_si256(v), high = _mm256_srli_epi32(x, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i half = _mm256_set1_epi32(0x7fff);
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(x, odd), half), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i found = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(found), _mm256_extracti128_si256(found, 1));
}

NARROW(bf16)
NARROW(f16)
