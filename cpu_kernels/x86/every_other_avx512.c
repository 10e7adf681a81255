/* every_other_avx512.c: the function of core/every_other.h that stores: values spread over a register, whose other
 * elements a mask leaves out. 22,000 doubles took 0.55 to 0.75 times as long as element by element; an expanding load
 * as long (Zen 4). */
#include "../core/every_other.h"

#include <immintrin.h>

#include "../templates/kernel.h"

/* `count` values, up to `most`, to as many even elements. */
INLINE void spread(const int size, const int most, int count, const char *from, char *to)
{
    const uint32_t read = count == most ? ~0u : (1u << count) - 1, stored = 0x55555555u;
    const uint32_t written = count == most ? stored : stored & ((1u << 2 * count) - 1);
    if (size == 8) {
        const __m512i places = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
        const __m512d x = _mm512_castpd256_pd512(_mm256_maskz_loadu_pd((__mmask8)read, from));
        _mm512_mask_storeu_pd(to, (__mmask8)written, _mm512_permutexvar_pd(places, x));
    } else if (size == 4) {
        const __m512i x = _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32((__mmask8)read, from));
        _mm512_mask_storeu_epi32(to, (__mmask16)written, x);
    } else {
        const __m512i x = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)read, from));
        _mm512_mask_storeu_epi16(to, written, x);
    }
}

INLINE void row(const int size, int64_t n, const char *from, char *to)
{
    const int most = 32 / size;
    for (; n >= most; n -= most, from += 32, to += 64) spread(size, most, most, from, to);
    if (n > 0) spread(size, most, (int)n, from, to);
}

void avx512_to_every_other(int size, int64_t n, const char *from, char *to)
{
    if (size == 8)
        row(8, n, from, to);
    else if (size == 4)
        row(4, n, from, to);
    else
        row(2, n, from, to);
}
