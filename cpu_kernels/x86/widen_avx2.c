/* widen_avx2.c: the functions of core/widen.h by AVX2 and F16C. */
#include "../core/widen.h"

#include <immintrin.h>

#include "../templates/kernel.h"

/* Sixteen values at a time, the last ones with some before them. All loads precede the stores that may overwrite them;
 * fewer than sixteen by the plain functions. */
#define WIDEN(NAME, EACH, UNITS, CONVERT)                                                                              \
    void avx2_widen_##NAME(int64_t n, const void *from, void *to)                                                      \
    {                                                                                                                  \
        enum { VALUES = (EACH) * (UNITS) };                                                                            \
        const __m128i *f = from;                                                                                       \
        __m256i *t = to;                                                                                               \
        if (n < VALUES) {                                                                                              \
            pysimd_widen_##NAME(n, f, t);                                                                              \
            return;                                                                                                    \
        }                                                                                                              \
        __m256i last[UNITS], *const end = (__m256i *)((char *)to + n * (int64_t)sizeof(__m256i) / (EACH)) - (UNITS);   \
        const __m128i *const rest = (const __m128i *)((const char *)from + n * (int64_t)sizeof(__m128i) / (EACH));     \
        UNROLL for (int i = 0; i < (UNITS); i++) last[i] = CONVERT(_mm_loadu_si128(rest - (UNITS) + i));               \
        for (; n > VALUES; n -= VALUES, f += (UNITS), t += (UNITS)) {                                                  \
            __m256i v[UNITS];                                                                                          \
            UNROLL for (int i = 0; i < (UNITS); i++) v[i] = CONVERT(_mm_loadu_si128(f + i));                           \
            UNROLL for (int i = 0; i < (UNITS); i++) _mm256_storeu_si256(t + i, v[i]);                                 \
        }                                                                                                              \
        UNROLL for (int i = 0; i < (UNITS); i++) _mm256_storeu_si256(end + i, last[i]);                                \
    }

INLINE __m256i bf16(__m128i v) { return _mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16); }
INLINE __m256i f16(__m128i v) { return _mm256_castps_si256(_mm256_cvtph_ps(v)); }

WIDEN(i8, 16, 1, _mm256_cvtepi8_epi16)
WIDEN(u8, 16, 1, _mm256_cvtepu8_epi16)
WIDEN(bf16, 8, 2, bf16)
WIDEN(f16, 8, 2, f16)

/* Some rows of a micro-panel together: they come from memory at the same time. */
#define WIDEN_PANELS(NAME)                                                                                             \
    INLINE void NAME##_panels(const int64_t NR, int64_t k, int64_t panels, const char *b, int64_t row, char *to,       \
                              int64_t panel_bytes)                                                                     \
    {                                                                                                                  \
        enum { ROWS = 4 };                                                                                             \
        for (int64_t p = 0; p < k; p += ROWS, b += ROWS * row, to += ROWS * NR * 4)                                    \
            for (int64_t q = 0; q < panels; q++)                                                                       \
                for (int64_t i = 0; i < ROWS && p + i < k; i++)                                                        \
                    UNROLL for (int64_t j = 0; j < NR; j += 8)                                                         \
                        _mm256_storeu_si256((__m256i *)(to + q * panel_bytes + (i * NR + j) * 4),                      \
                                            NAME(_mm_loadu_si128((const __m128i *)(b + i * row + (q * NR + j) * 2)))); \
    }                                                                                                                  \
    void avx2_widen_panels_##NAME(int64_t k, int64_t nr, int64_t panels, const char *b, int64_t row, char *to,         \
                                  int64_t panel_bytes)                                                                 \
    {                                                                                                                  \
        if (nr == 16)                                                                                                  \
            NAME##_panels(16, k, panels, b, row, to, panel_bytes);                                                     \
        else                                                                                                           \
            NAME##_panels(nr, k, panels, b, row, to, panel_bytes);                                                     \
    }

WIDEN_PANELS(bf16)
WIDEN_PANELS(f16)
