/* pair_avx2.c: the functions of core/interleave.h by AVX2. */
#include "../core/interleave.h"

#include <immintrin.h>

#include "../templates/kernel.h"

INLINE __m256i wider(const int is_unsigned, __m128i x)
{
    return is_unsigned ? _mm256_cvtepu8_epi16(x) : _mm256_cvtepi8_epi16(x);
}

/* Sixteen or eight columns of a pair of rows: bytes interleaved, then widened. */
INLINE void sixteen(const int is_unsigned, const char *b, const char *next, char *to)
{
    const __m128i x = _mm_loadu_si128((const __m128i *)b), y = _mm_loadu_si128((const __m128i *)next);
    _mm256_storeu_si256((__m256i *)to, wider(is_unsigned, _mm_unpacklo_epi8(x, y)));
    _mm256_storeu_si256((__m256i *)to + 1, wider(is_unsigned, _mm_unpackhi_epi8(x, y)));
}

INLINE void eight(const int is_unsigned, const char *b, const char *next, char *to)
{
    const __m128i x = _mm_loadl_epi64((const __m128i *)b), y = _mm_loadl_epi64((const __m128i *)next);
    _mm256_storeu_si256((__m256i *)to, wider(is_unsigned, _mm_unpacklo_epi8(x, y)));
}

/* Pairs of rows; the last columns overlap those before them. */
INLINE void pairs_of_rows(const int is_unsigned, int64_t pairs, int64_t n, const char *b, int64_t row, char *to)
{
    const int64_t whole = n & -16, rest = n - whole;
    for (int64_t p = 0; p < pairs; p++, b += 2 * row, to += 4 * n) {
        for (int64_t j = 0; j < whole; j += 16) sixteen(is_unsigned, b + j, b + row + j, to + 4 * j);
        if (rest > 8) eight(is_unsigned, b + whole, b + row + whole, to + 4 * whole);
        if (rest) eight(is_unsigned, b + n - 8, b + row + n - 8, to + 4 * (n - 8));
    }
}

/* The last row of an odd K, with zeros as its partner. */
INLINE void last_row(const int is_unsigned, int64_t n, const char *b, char *to)
{
    static const char zeros[8];
    for (int64_t j = 0; j < n; j += 8) {
        if (j > n - 8) j = n - 8;
        eight(is_unsigned, b + j, zeros, to + 4 * j);
    }
}

void avx2_pair_bytes(int64_t count, int64_t k, int64_t n, const char *b, int64_t bs, int64_t row, char *to)
{
    if (k % 2 == 0 && row == n && bs == k * n) { /* the rows of all products */
        pairs_of_rows(0, count * (k / 2), n, b, row, to);
        return;
    }
    for (int64_t q = 0; q < count; q++, b += bs, to += (k + 1) / 2 * 4 * n) {
        pairs_of_rows(0, k / 2, n, b, row, to);
        if (k % 2) last_row(0, n, b + (k - 1) * row, to + k / 2 * 4 * n);
    }
}

void avx2_pair_unsigned_bytes(int64_t k, int64_t n, const char *b, int64_t row, char *to)
{
    pairs_of_rows(1, k / 2, n, b, row, to);
    if (k % 2) last_row(1, n, b + (k - 1) * row, to + k / 2 * 4 * n);
}
