/* widen_avx512.c: the 16-bit functions of core/widen.h by AVX-512. */
#include "../core/widen.h"

#include <immintrin.h>

#include "../templates/kernel.h"

INLINE __m512 bf16(__m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
INLINE __m512 f16(__m256i v) { return _mm512_cvtph_ps(v); }

/* Thirty-two values at a time; the rest in vectors of which the last is masked. All loads of an iteration precede its
 * stores, which may overwrite them. */
#define WIDEN(NAME)                                                                                                    \
    void avx512_widen_##NAME(int64_t n, const void *from, void *to)                                                    \
    {                                                                                                                  \
        const uint16_t *f = from;                                                                                      \
        float *t = to;                                                                                                 \
        for (; n >= 32; n -= 32, f += 32, t += 32) {                                                                   \
            const __m512 low = NAME(_mm256_loadu_si256((const __m256i *)f));                                           \
            const __m512 high = NAME(_mm256_loadu_si256((const __m256i *)(f + 16)));                                   \
            _mm512_storeu_ps(t, low), _mm512_storeu_ps(t + 16, high);                                                  \
        }                                                                                                              \
        for (; n > 0; n -= 16, f += 16, t += 16) {                                                                     \
            const __mmask16 some = (__mmask16)(n < 16 ? (1 << n) - 1 : 0xffff);                                        \
            _mm512_mask_storeu_ps(t, some, NAME(_mm256_maskz_loadu_epi16(some, f)));                                   \
        }                                                                                                              \
    }
WIDEN(bf16)
WIDEN(f16)

/* Some rows of a micro-panel together: they come from memory at the same time. */
#define WIDEN_PANELS(NAME)                                                                                             \
    void avx512_widen_panels_##NAME(int64_t k, int64_t nr, int64_t panels, const char *b, int64_t row, char *to,       \
                                    int64_t panel_bytes)                                                               \
    {                                                                                                                  \
        enum { ROWS = 4 };                                                                                             \
        for (int64_t p = 0; p < k; p += ROWS, b += ROWS * row, to += ROWS * nr * 4)                                    \
            for (int64_t q = 0; q < panels; q++)                                                                       \
                for (int64_t i = 0; i < ROWS && p + i < k; i++)                                                        \
                    for (int64_t j = 0; j < nr; j += 16)                                                               \
                        _mm512_storeu_ps((float *)(to + q * panel_bytes + (i * nr + j) * 4),                           \
                                         NAME(_mm256_loadu_si256((const __m256i *)(b + i * row + (q * nr + j) * 2)))); \
    }

WIDEN_PANELS(bf16)
WIDEN_PANELS(f16)
