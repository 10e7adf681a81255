/* every_other_avx2.c: the function of core/every_other.h by AVX2: two loads and a shuffle, or two masks and a pack, for
 * each register that is stored. */
#include "../core/every_other.h"

#include <immintrin.h>

#include "../templates/kernel.h"

/* Every other value of 64 bytes from `from` on. `last`: the last load ends with the last of these values. */
INLINE __m256i from_64(const int size, const int last, const char *from)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)from);
    const __m256i y = _mm256_loadu_si256((const __m256i *)(from + 32 - (last ? size : 0)));
    __m256i v;
    if (size == 8) {
        const __m256d p = _mm256_castsi256_pd(x), q = _mm256_castsi256_pd(y);
        v = _mm256_castpd_si256(last ? _mm256_shuffle_pd(p, q, 0xa) : _mm256_unpacklo_pd(p, q));
    } else if (size == 4) {
        const __m256 p = _mm256_castsi256_ps(x), q = _mm256_castsi256_ps(y);
        v = _mm256_castps_si256(last ? _mm256_shuffle_ps(p, q, 0xd8) : _mm256_shuffle_ps(p, q, 0x88));
    } else if (size == 2) {
        const __m256i mask = _mm256_set1_epi32(0xffff);
        v = _mm256_packus_epi32(_mm256_and_si256(x, mask), last ? _mm256_srli_epi32(y, 16) : _mm256_and_si256(y, mask));
    } else {
        const __m256i mask = _mm256_set1_epi16(0xff);
        v = _mm256_packus_epi16(_mm256_and_si256(x, mask), last ? _mm256_srli_epi16(y, 8) : _mm256_and_si256(y, mask));
    }
    return _mm256_permute4x64_epi64(v, 0xd8); /* the lanes have the halves of x and of y */
}

/* The same of 32 bytes. */
INLINE __m128i from_32(const int size, const int last, const char *from)
{
    const __m128i x = _mm_loadu_si128((const __m128i *)from);
    const __m128i y = _mm_loadu_si128((const __m128i *)(from + 16 - (last ? size : 0)));
    if (size == 8) {
        const __m128d p = _mm_castsi128_pd(x), q = _mm_castsi128_pd(y);
        return _mm_castpd_si128(last ? _mm_shuffle_pd(p, q, 2) : _mm_unpacklo_pd(p, q));
    }
    if (size == 4) {
        const __m128 p = _mm_castsi128_ps(x), q = _mm_castsi128_ps(y);
        return _mm_castps_si128(last ? _mm_shuffle_ps(p, q, 0xd8) : _mm_shuffle_ps(p, q, 0x88));
    }
    if (size == 2) {
        const __m128i mask = _mm_set1_epi32(0xffff);
        return _mm_packus_epi32(_mm_and_si128(x, mask), last ? _mm_srli_epi32(y, 16) : _mm_and_si128(y, mask));
    }
    const __m128i mask = _mm_set1_epi16(0xff);
    return _mm_packus_epi16(_mm_and_si128(x, mask), last ? _mm_srli_epi16(y, 8) : _mm_and_si128(y, mask));
}

/* Registers of 32 or of 16 bytes; the last one of a row overlaps the one before it. */
INLINE void rows(const int size, const int bytes, int64_t m, int64_t n, const char *from, int64_t rs, char *to,
                 int64_t ld)
{
    const int64_t last = n * size - bytes;
    for (int64_t i = 0; i < m; i++, from += rs * size, to += ld * size) {
        if (bytes == 32) {
            for (int64_t at = 0; at < last; at += bytes)
                _mm256_storeu_si256((__m256i *)(to + at), from_64(size, 0, from + 2 * at));
            _mm256_storeu_si256((__m256i *)(to + last), from_64(size, 1, from + 2 * last));
        } else {
            for (int64_t at = 0; at < last; at += bytes)
                _mm_storeu_si128((__m128i *)(to + at), from_32(size, 0, from + 2 * at));
            _mm_storeu_si128((__m128i *)(to + last), from_32(size, 1, from + 2 * last));
        }
    }
}

void avx2_every_other(int size, int64_t m, int64_t n, const char *from, int64_t rs, char *to, int64_t ld)
{
#define CASE(SIZE)                                                                                                     \
    case SIZE:                                                                                                         \
        if (n >= 32 / SIZE)                                                                                            \
            rows(SIZE, 32, m, n, from, rs, to, ld);                                                                    \
        else                                                                                                           \
            rows(SIZE, 16, m, n, from, rs, to, ld);                                                                    \
        break;
    switch (size) {
        CASE(1)
        CASE(2)
        CASE(4)
        CASE(8)
    }
#undef CASE
}
