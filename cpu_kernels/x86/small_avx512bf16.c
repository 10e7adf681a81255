/* small_avx512bf16.c: the functions of core/small.h for bfloat16 by groups of two k, with vdpbf16ps. The order of the
 * terms is that of avx512bf16_bf16f32_outer_14x32. A by rows is read from the array, where the last element of an odd K
 * has no partner: the next row's may be infinite. */
#include "vec_avx512bf16.h"

#include "small_avx512.h"

#define ROWS_OF_SHORT_K
#define PARTIAL_GROUPS

FLOAT_SUMS(bf16p)
typedef uint16_t bf16p_elem;
enum { bf16p_group = 2, bf16p_chains = 1 };
INLINE int bf16p_in_place(int a_by_rows, int64_t k) { return (void)k, a_by_rows; }

/* Two rows of up to 16 values, interleaved. */
INLINE __m512i bf16p_load(int64_t left, const uint16_t *p, int64_t rs, __mmask16 m)
{
    const __m512i pairs = _mm512_set_epi32(0x1f000f, 0x1e000e, 0x1d000d, 0x1c000c, 0x1b000b, 0x1a000a, 0x190009,
                                           0x180008, 0x170007, 0x160006, 0x150005, 0x140004, 0x130003, 0x120002,
                                           0x110001, 0x100000);
    const __m256i x = _mm256_maskz_loadu_epi16(m, p);
    const __m256i y = left > 1 ? _mm256_maskz_loadu_epi16(m, p + rs) : _mm256_setzero_si256();
    return _mm512_permutexvar_epi16(pairs, _mm512_inserti64x4(_mm512_castsi256_si512(x), y, 1));
}
INLINE __m512i bf16p_lanes(const int full, __mmask16 m, const uint16_t *p, const uint16_t *q, const uint16_t *r,
                           const uint16_t *s)
{
    return lanes_of_bytes(full, m, p, q, r, s);
}
INLINE __m512 bf16p_dot(__m512 acc, const void *a, __m512i b)
{
    return bf16x32_fma(_mm512_set1_epi32(get_i32(a)), b, acc);
}
INLINE __m512 bf16p_dot_part(__m512 acc, const void *a, __m512i b)
{
    uint16_t value;
    memcpy(&value, a, sizeof value);
    return bf16x32_fma(_mm512_set1_epi32(value), b, acc);
}
INLINE __m512i bf16p_widened(const uint16_t *p) { return _mm512_loadu_si512(p); }
INLINE __m512i bf16p_part_widened(uint64_t m, const uint16_t *p)
{
    return _mm512_maskz_loadu_epi16((__mmask32)m, p);
}
#define KIND bf16p
#include "small_groups.h"

/* Batches of 200 up to 64 x 64 x 64 in any layout, in cache, took 0.78 times as long as with panels in the mean of 87,
 * with an odd K 0.45 to 0.85 times, 48 x 48 x 48 and 64 x 64 x 64 0.95 to 1.1; from L3 and memory, where the next ones
 * are prefetched between tiles, 0.76 times in the mean of 60 (0.4 to 1.4, 128 x 32 x 32; without that prefetch 0.84 and
 * up to 1.9). More elements of C took 0.9 to 1.02 times as long in cache (Zen 4). */
int avx512bf16_small_bf16(const pysimd_call *s, int64_t cs_b)
{
    enum { MOST = 64 * 64 };
    if (s->k % 2 == 0 && s->m > MOST / (s->n > 0 ? s->n : 1)) return 0;
    return bf16p_small(s, cs_b);
}
