/* pack.c: see pack.h. One function packs each kind of panel. Compiled for the baseline processor; packing costs
 * O(mk + kn) where the product costs O(mnk). */
#include "pack.h"

#include <string.h>

#include "../templates/kernel.h"
#include "every_other.h"
#include "interleave.h"
#include "transpose.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Steps are powers of two. */
static int64_t rounded_up(int64_t k, int64_t step) { return (k + step - 1) & -step; }

/* K in whole groups. */
static int64_t padded(const pysimd_kernel *kernel, int64_t k) { return rounded_up(k, kernel->k_group); }

/* The product of two sizes, INT64_MAX where it overflows, which no allocation can satisfy. */
static int64_t times(int64_t x, int64_t y)
{
    int64_t found;
    return __builtin_mul_overflow(x, y, &found) ? INT64_MAX : found;
}

pysimd_panel_shape pysimd_panel_of_a(const pysimd_kernel *kernel, int64_t m, int64_t k)
{
    const int64_t step = kernel->k_group * (kernel->k_tile ? kernel->k_tile : 1); /* a row of a tile: a cache line */
    const int64_t row = rounded_up(k, step) + (kernel->panel == OFFSET ? 4 : 0); /* an int32 */
    return (pysimd_panel_shape){
        .bytes = times(times(m, row), pysimd_sizes_in_kernel(kernel).a), .rs = row, .cs = kernel->k_group};
}

pysimd_panel_shape pysimd_panel_of_b(const pysimd_kernel *kernel, int64_t k, int64_t n)
{
    const int64_t rows = kernel->k_tile ? rounded_up(k, kernel->k_group * kernel->k_tile) : padded(kernel, k);
    return (pysimd_panel_shape){.bytes = times(times(n, rows), pysimd_sizes_in_kernel(kernel).b),
                                .rs = kernel->form != OUTER ? padded(kernel, k) : n * kernel->k_group,
                                .cs = 1};
}

int pysimd_reads_a(const pysimd_kernel *kernel, int64_t k, int64_t rs, int64_t cs)
{
    if (kernel->form == INNER) return cs == 1;
    if (kernel->form == GEMV) return cs == 1 || rs == 1;
    return kernel->panel == PLAIN && (kernel->k_group == 1 || (cs == 1 && k % kernel->k_group == 0));
}

int pysimd_reads_b(const pysimd_kernel *kernel, int64_t rs, int64_t cs)
{
    if (kernel->form != OUTER) return rs == 1;
    return kernel->panel == PLAIN && kernel->k_group == 1 && cs == 1;
}

/* --- copies --- */

#ifdef __SSE2__
INLINE __m128i load_bytes(const int bytes, const char *p)
{
    int16_t two;
    switch (bytes) {
    case 16: return _mm_loadu_si128((const __m128i *)p);
    case 8: return _mm_loadl_epi64((const __m128i *)p);
    case 4: return _mm_cvtsi32_si128(get_i32(p));
    case 2: memcpy(&two, p, 2); return _mm_cvtsi32_si128(two);
    default: return _mm_cvtsi32_si128(*p);
    }
}

INLINE void store_bytes(const int bytes, char *p, __m128i v)
{
    const int32_t low = _mm_cvtsi128_si32(v);
    switch (bytes) {
    case 16: _mm_storeu_si128((__m128i *)p, v); break;
    case 8: _mm_storel_epi64((__m128i *)p, v); break;
    default: memcpy(p, &low, 4);
    }
}

#define ROWS_OF_BLOCK(size) ((size) == 1 ? 8 : 16 / (size))

/* One block in registers: to[i*row + j*size] = from[i*size + j*step], offsets in bytes. 8x8 elements of one or two
 * bytes, 4x4 of four, 2x2 of eight. */
INLINE void transpose_block(const int size, const char *from, int64_t step, char *to, int64_t row)
{
    if (size == 8) {
        const __m128d x = _mm_loadu_pd((const double *)from), y = _mm_loadu_pd((const double *)(from + step));
        _mm_storeu_pd((double *)to, _mm_unpacklo_pd(x, y));
        _mm_storeu_pd((double *)(to + row), _mm_unpackhi_pd(x, y));
    } else if (size == 4) {
        __m128 v[4];
        UNROLL for (int q = 0; q < 4; q++) v[q] = _mm_loadu_ps((const float *)(from + q * step));
        _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
        UNROLL for (int q = 0; q < 4; q++) _mm_storeu_ps((float *)(to + q * row), v[q]);
    } else if (size == 2) {
        __m128i v[8], w[8];
        UNROLL for (int q = 0; q < 8; q++) v[q] = _mm_loadu_si128((const __m128i *)(from + q * step));
        UNROLL for (int q = 0; q < 4; q++) {
            w[q] = _mm_unpacklo_epi16(v[q], v[q + 4]);
            w[q + 4] = _mm_unpackhi_epi16(v[q], v[q + 4]);
        }
        UNROLL for (int q = 0; q < 8; q += 4)
            UNROLL for (int e = 0; e < 2; e++) {
                v[q + e] = _mm_unpacklo_epi16(w[q + e], w[q + e + 2]);
                v[q + e + 2] = _mm_unpackhi_epi16(w[q + e], w[q + e + 2]);
            }
        UNROLL for (int q = 0; q < 8; q += 2) {
            _mm_storeu_si128((__m128i *)(to + q * row), _mm_unpacklo_epi16(v[q], v[q + 1]));
            _mm_storeu_si128((__m128i *)(to + (q + 1) * row), _mm_unpackhi_epi16(v[q], v[q + 1]));
        }
    } else {
        __m128i v[4], w[4];
        UNROLL for (int q = 0; q < 4; q++)
            v[q] = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(from + q * step)),
                                     _mm_loadl_epi64((const __m128i *)(from + (q + 4) * step)));
        UNROLL for (int q = 0; q < 2; q++) {
            w[q] = _mm_unpacklo_epi8(v[q], v[q + 2]);
            w[q + 2] = _mm_unpackhi_epi8(v[q], v[q + 2]);
        }
        UNROLL for (int q = 0; q < 4; q += 2) {
            const __m128i low = _mm_unpacklo_epi8(w[q], w[q + 1]), high = _mm_unpackhi_epi8(w[q], w[q + 1]);
            char *tq = to + 2 * q * row;
            _mm_storel_epi64((__m128i *)tq, low);
            _mm_storel_epi64((__m128i *)(tq + row), _mm_unpackhi_epi64(low, low));
            _mm_storel_epi64((__m128i *)(tq + 2 * row), high);
            _mm_storel_epi64((__m128i *)(tq + 3 * row), _mm_unpackhi_epi64(high, high));
        }
    }
}

/* to[i*ld + j] = from[i + j*cs] where both dimensions have a block; the last blocks overlap the ones before them. */
INLINE void transpose(int64_t m, int64_t n, const int size, const char *from, int64_t cs, char *to, int64_t ld)
{
    const int each = ROWS_OF_BLOCK(size);
    for (int64_t i = 0; i < m; i += each) {
        if (i > m - each) i = m - each;
        for (int64_t j = 0; j < n; j += each) {
            if (j > n - each) j = n - each;
            transpose_block(size, from + (i + j * cs) * size, cs * size, to + (i * ld + j) * size, ld * size);
        }
    }
}

/* The same of 4x4 elements of one or two bytes, for matrices that are too narrow for a block. */
INLINE void transpose_4x4(const int size, const char *from, int64_t step, char *to, int64_t row)
{
    __m128i v[4];
    UNROLL for (int q = 0; q < 4; q++) v[q] = load_bytes(4 * size, from + q * step);
    if (size == 2) {
        const __m128i x = _mm_unpacklo_epi16(v[0], v[1]), y = _mm_unpacklo_epi16(v[2], v[3]);
        const __m128i low = _mm_unpacklo_epi32(x, y), high = _mm_unpackhi_epi32(x, y);
        v[0] = low, v[1] = _mm_srli_si128(low, 8), v[2] = high, v[3] = _mm_srli_si128(high, 8);
    } else {
        v[0] = _mm_unpacklo_epi16(_mm_unpacklo_epi8(v[0], v[1]), _mm_unpacklo_epi8(v[2], v[3]));
        v[1] = _mm_srli_si128(v[0], 4), v[2] = _mm_srli_si128(v[0], 8), v[3] = _mm_srli_si128(v[0], 12);
    }
    UNROLL for (int q = 0; q < 4; q++) store_bytes(4 * size, to + q * row, v[q]);
}

INLINE void transpose_narrow(int64_t m, int64_t n, const int size, const char *from, int64_t cs, char *to, int64_t ld)
{
    for (int64_t i = 0; i < m; i += 4) {
        if (i > m - 4) i = m - 4;
        for (int64_t j = 0; j < n; j += 4) {
            if (j > n - 4) j = n - 4;
            transpose_4x4(size, from + (i + j * cs) * size, cs * size, to + (i * ld + j) * size, ld * size);
        }
    }
}

/* Every other value of a row, of one or two bytes: 16 bytes at a time have eight or four of them, and as many of those
 * in between, which are in the array's memory. The last 16 bytes end with the row's last value. */
INLINE __m128i every_other(const int size, const int last, const char *from)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)from);
    if (size == 1) {
        const __m128i low = last ? _mm_srli_epi16(v, 8) : _mm_and_si128(v, _mm_set1_epi16(0xff));
        return _mm_packus_epi16(low, low);
    }
    const __m128i low = _mm_srai_epi32(last ? v : _mm_slli_epi32(v, 16), 16);
    return _mm_packs_epi32(low, low);
}

INLINE void copy_every_other(int64_t m, int64_t n, const int size, const char *from, int64_t rs, char *to, int64_t ld)
{
    const int each = 8 / size;
    for (int64_t i = 0; i < m; i++, from += rs * size, to += ld * size) {
        for (int64_t j = 0; j < n - each; j += each)
            _mm_storel_epi64((__m128i *)(to + j * size), every_other(size, 0, from + 2 * j * size));
        const int64_t j = n - each;
        _mm_storel_epi64((__m128i *)(to + j * size), every_other(size, 1, from + (2 * j - 1) * size));
    }
}

/* The values of a register in the opposite order. */
INLINE __m128i reversed(const int size, __m128i v)
{
    if (size == 8) return _mm_shuffle_epi32(v, 0x4e);
    if (size == 4) return _mm_shuffle_epi32(v, 0x1b);
    if (size == 1) v = _mm_or_si128(_mm_slli_epi16(v, 8), _mm_srli_epi16(v, 8));
    return _mm_shuffle_epi32(_mm_shufflehi_epi16(_mm_shufflelo_epi16(v, 0x1b), 0x1b), 0x4e);
}

/* Rows that run backwards, at least 16 bytes long; the last register overlaps the one before it. 200 floats took 227 ns
 * one by one, and take 75 (Xeon). */
INLINE void copy_reversed(int64_t m, int64_t n, const int size, const char *from, int64_t rs, char *to, int64_t ld)
{
    const int64_t each = 16 / size;
    for (int64_t i = 0; i < m; i++, from += rs * size, to += ld * size)
        for (int64_t j = 0; j < n; j += each) {
            if (j > n - each) j = n - each;
            const __m128i v = _mm_loadu_si128((const __m128i *)(from - (j + each - 1) * size));
            _mm_storeu_si128((__m128i *)(to + j * size), reversed(size, v));
        }
}
#endif

/* m rows of adjacent bytes, in words of which the last two overlap: a call of memcpy takes longer than a short row. The
 * size of a word is a constant. */
INLINE void copy_words(const int word, int64_t m, int64_t bytes, const char *from, int64_t step, char *to, int64_t row)
{
    for (int64_t i = 0; i < m; i++, from += step, to += row) {
        for (int64_t at = 0; at < bytes - word; at += word) memcpy(to + at, from + at, (size_t)word);
        memcpy(to + bytes - word, from + bytes - word, (size_t)word);
    }
}

static void copy_rows(int64_t m, int64_t bytes, const char *from, int64_t step, char *to, int64_t row)
{
    enum { LONG = 1024 };
    if (step == bytes && row == bytes) m *= bytes > 0, bytes *= m, m = 1;
    if (bytes >= LONG)
        for (int64_t i = 0; i < m; i++) memcpy(to + i * row, from + i * step, (size_t)bytes);
    else if (bytes >= 16)
        copy_words(16, m, bytes, from, step, to, row);
    else if (bytes >= 8)
        copy_words(8, m, bytes, from, step, to, row);
    else if (bytes >= 4)
        copy_words(4, m, bytes, from, step, to, row);
    else if (bytes >= 2)
        copy_words(2, m, bytes, from, step, to, row);
    else if (bytes == 1)
        copy_words(1, m, bytes, from, step, to, row);
}

void pysimd_copy_matrix(int64_t m, int64_t n, int size, const char *from, int64_t rs, int64_t cs, char *to, int64_t ld)
{
    if (n == 1 && ld == 1) n = m, cs = rs, m = n > 0; /* one row */
    if (cs == 1) {
        copy_rows(m, n * size, from, rs * size, to, ld * size);
        return;
    }
#ifdef __x86_64__
    if (rs == 1 && size >= 4 && m >= 32 / size && n >= 32 / size && pysimd_has(AVX2)) {
        (size == 4 ? avx2_transpose_f32 : avx2_transpose_f64)(m, n, from, cs, to, ld);
        return;
    }
    if (cs == 2 && rs == 2 * n && ld == n) n *= m, m = n > 0; /* one row */
    if (cs == 2 && n >= 16 / size && pysimd_has(AVX2)) {
        avx2_every_other(size, m, n, from, rs, to, ld);
        return;
    }
#endif
#ifdef __SSE2__
    if (rs == 1 && m >= ROWS_OF_BLOCK(size) && n >= ROWS_OF_BLOCK(size)) {
        switch (size) {
        case 1: transpose(m, n, 1, from, cs, to, ld); return;
        case 2: transpose(m, n, 2, from, cs, to, ld); return;
        case 4: transpose(m, n, 4, from, cs, to, ld); return;
        case 8: transpose(m, n, 8, from, cs, to, ld); return;
        }
    }
    if (rs == 1 && size <= 2 && m >= 4 && n >= 4) {
        if (size == 1)
            transpose_narrow(m, n, 1, from, cs, to, ld);
        else
            transpose_narrow(m, n, 2, from, cs, to, ld);
        return;
    }
    if (cs == -1 && n >= 16 / size) {
        switch (size) {
        case 1: copy_reversed(m, n, 1, from, rs, to, ld); return;
        case 2: copy_reversed(m, n, 2, from, rs, to, ld); return;
        case 4: copy_reversed(m, n, 4, from, rs, to, ld); return;
        case 8: copy_reversed(m, n, 8, from, rs, to, ld); return;
        }
    }
    if (cs == 2 && size <= 2 && n > 8 / size) {
        if (size == 1)
            copy_every_other(m, n, 1, from, rs, to, ld);
        else
            copy_every_other(m, n, 2, from, rs, to, ld);
        return;
    }
#endif
#define COPY(SIZE)                                                                                                     \
    for (int64_t i = 0; i < m; i++)                                                                                    \
        for (int64_t j = 0; j < n; j++) memcpy(to + (i * ld + j) * (SIZE), from + (i * rs + j * cs) * (SIZE), SIZE)
    switch (size) {
    case 1: COPY(1); break;
    case 2: COPY(2); break;
    case 4: COPY(4); break;
    case 8: COPY(8); break;
    }
#undef COPY
}

/* --- A: element (i, p) at a[i*rs + p*cs] --- */

/* Zeros in the last group of each row, where K does not fill it, before the values are copied. */
static void clear_last_groups(const pysimd_kernel *kernel, int64_t m, int64_t k, char *to)
{
    const int size = pysimd_sizes_in_kernel(kernel).a, group = kernel->k_group * size;
    const int64_t row = pysimd_panel_of_a(kernel, m, k).rs * size;
    if (padded(kernel, k) == k) return;
    to += padded(kernel, k) * size - group;
    if (group == 4)
        for (int64_t i = 0; i < m; i++, to += row) memset(to, 0, 4);
    else
        for (int64_t i = 0; i < m; i++, to += row) memset(to, 0, (size_t)group);
}

/* The sum of `count` int8, a multiple of 4. */
INLINE uint32_t sum_of_bytes(const char *from, int64_t count)
{
#ifdef __SSE2__
    /* psadbw adds unsigned bytes, so each is offset by 128; what a short load leaves zero is offset too */
    const __m128i sign = _mm_set1_epi8(-128), zero = _mm_setzero_si128();
    __m128i sum = zero;
    uint32_t offset = 0;
#define ADD(BYTES) sum = _mm_add_epi32(sum, _mm_sad_epu8(_mm_xor_si128(BYTES, sign), zero)), offset += 16 * 128
    for (; count >= 16; count -= 16, from += 16) ADD(_mm_loadu_si128((const __m128i *)from));
    if (count & 8) ADD(_mm_loadl_epi64((const __m128i *)from)), from += 8;
    if (count & 4) ADD(_mm_cvtsi32_si128(get_i32(from)));
#undef ADD
    return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum))) - offset;
#else
    uint32_t sum = 0;
    for (int64_t p = 0; p < count; p++) sum += (uint32_t)(int32_t)((const int8_t *)from)[p];
    return sum;
#endif
}

#ifdef __SSE2__
/* All ones in the first n <= 16 bytes, zeros in the others. */
INLINE __m128i first_bytes_mask(int64_t n)
{
    static const int64_t ones_and_zeros[4] = {-1, -1, 0, 0};
    return _mm_loadu_si128((const __m128i *)((const char *)ones_and_zeros + 16 - n));
}

/* Rows that lie one behind the other, 16 bytes at a time: what is loaded past the end of a row is the next ones', and
 * masked; what is stored there is overwritten by the next rows. `end`: bytes of the panel's row, without the int32 that
 * is stored there if `offset`. Returns the number of rows; the last ones are left to the caller. */
INLINE int64_t pack_adjacent_rows(const int offset, int64_t m, int64_t bytes, const char *from, char *to, int64_t row,
                                  int64_t end)
{
    /* psadbw adds unsigned bytes, so int8 are offset by 128; zeros too */
    const __m128i sign = _mm_set1_epi8(-128), zero = _mm_setzero_si128(), mask = first_bytes_mask(bytes % 16);
    const int64_t reach = (bytes + 15) & -16, count = m - (reach - 1) / bytes;
    for (int64_t i = 0; i < count; i++, from += bytes, to += row) {
        __m128i sum = zero;
        int64_t at = 0;
#define COPY_16(MASKED)                                                                                                \
    const __m128i v = _mm_loadu_si128((const __m128i *)(from + at));                                                   \
    const __m128i kept = MASKED ? _mm_and_si128(v, mask) : v;                                                          \
    _mm_storeu_si128((__m128i *)(to + at), kept);                                                                      \
    if (offset) sum = _mm_add_epi32(sum, _mm_sad_epu8(_mm_xor_si128(kept, sign), zero))
        for (; at <= bytes - 16; at += 16) { COPY_16(0); }
        if (at < bytes) { COPY_16(1); }
#undef COPY_16
        if (offset) {
            const int32_t total = _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum)));
            const uint32_t correction = -128u * ((uint32_t)total - 128u * (uint32_t)reach);
            memcpy(to + end, &correction, sizeof correction);
        }
    }
    return count > 0 ? count : 0;
}
#endif

INLINE void pack_rows(const int offset, const pysimd_kernel *kernel, int64_t m, int64_t k, const char *a, int64_t rs,
                      int64_t cs, char *to)
{
    const int size = pysimd_element_sizes[kernel->types].a;
    const int64_t ld = pysimd_panel_of_a(kernel, m, k).rs, end = padded(kernel, k);
#ifdef __SSE2__
    if (cs == 1 && rs == k && k > 0 && (offset || ld != k)) { /* otherwise the rows are one piece of memory */
        const int64_t done = pack_adjacent_rows(offset, m, k * size, a, to, ld * size, end);
        m -= done, a += done * k * size, to += done * ld * size;
    }
#endif
    clear_last_groups(kernel, m, k, to);
    pysimd_copy_matrix(m, k, size, a, rs, cs, to, ld);
    if (!offset) return;
    for (int64_t i = 0; i < m; i++, to += ld) {
        const uint32_t correction = -128u * sum_of_bytes(to, end);
        memcpy(to + end, &correction, sizeof correction);
    }
}

void pysimd_pack_a(const pysimd_kernel *kernel, int64_t m, int64_t k, const void *a, int64_t rs, int64_t cs, void *to)
{
    if (kernel->panel == OFFSET)
        pack_rows(1, kernel, m, k, a, rs, cs, to);
    else
        pack_rows(0, kernel, m, k, a, rs, cs, to);
}

/* --- B: element (p, j) at b[p*rs + j*cs] --- */

/* What a panel of groups has of a K x n matrix: to[p*ld + j*group + q] is element (p*group + q, j); zeros past K. */
typedef struct {
    int size, group; /* bytes of an element of the matrix, elements of a group */
    int wide;        /* int8 become int16 */
    char flip;       /* bytes are xored with it, also the zeros: -128 makes b + 128 */
} grouping;

static const grouping FOUR_BYTES = {1, 4, 0, 0}, FOUR_OFFSET_BYTES = {1, 4, 0, -128}, TWO_WORDS = {2, 2, 0, 0},
                      TWO_WIDE_BYTES = {1, 2, 1, 0}, EIGHT_BYTES = {1, 8, 0, 0}, FOUR_WORDS = {2, 4, 0, 0};

/* One by one, for any strides and processor; ld counts bytes. */
INLINE void group_each(const grouping g, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs, char *to,
                       int64_t ld)
{
    for (int64_t p = 0; p < k; p += g.group, to += ld)
        for (int64_t j = 0; j < n; j++)
            for (int q = 0; q < g.group; q++) {
                const char *from = b + ((p + q) * rs + j * cs) * g.size;
                int16_t value = 0;
                if (p + q < k) g.size == 2 ? (void)memcpy(&value, from, 2) : (void)(value = *(const int8_t *)from);
                if (g.wide || g.size == 2)
                    memcpy(to + (j * g.group + q) * 2, &value, 2);
                else
                    to[j * g.group + q] = (char)value ^ g.flip;
            }
}

#ifdef __SSE2__
/* The groups have four bytes. */

/* int8 as int16 */
INLINE __m128i widened_low(__m128i v) { return _mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8); }
INLINE __m128i widened_high(__m128i v) { return _mm_srai_epi16(_mm_unpackhi_epi8(v, v), 8); }

/* One group of `columns` columns, a constant, whose rows have adjacent elements; `rows` of the group are in the matrix.
 */
INLINE void group_columns(const grouping g, const int columns, const char *b, int64_t row, int64_t rows, char *to)
{
    const int bytes = columns * g.size, each = columns < 4 ? 4 * columns : 16;
    const __m128i zero = _mm_setzero_si128(), flips = _mm_set1_epi8(g.flip);
    __m128i r[4], v[4];
    UNROLL for (int q = 0; q < g.group; q++) r[q] = q < rows ? load_bytes(bytes, b + q * row) : zero;
    if (g.size == 2) {
        v[0] = _mm_unpacklo_epi16(r[0], r[1]), v[1] = _mm_unpackhi_epi16(r[0], r[1]);
    } else if (g.wide) {
        const __m128i low = _mm_unpacklo_epi8(r[0], r[1]), high = _mm_unpackhi_epi8(r[0], r[1]);
        v[0] = widened_low(low), v[1] = widened_high(low), v[2] = widened_low(high), v[3] = widened_high(high);
    } else {
        const __m128i low01 = _mm_unpacklo_epi8(r[0], r[1]), low23 = _mm_unpacklo_epi8(r[2], r[3]),
                      high01 = _mm_unpackhi_epi8(r[0], r[1]), high23 = _mm_unpackhi_epi8(r[2], r[3]);
        v[0] = _mm_unpacklo_epi16(low01, low23), v[1] = _mm_unpackhi_epi16(low01, low23);
        v[2] = _mm_unpacklo_epi16(high01, high23), v[3] = _mm_unpackhi_epi16(high01, high23);
    }
    UNROLL for (int i = 0; 4 * i < columns; i++)
        store_bytes(each, to + 16 * i, g.flip ? _mm_xor_si128(v[i], flips) : v[i]);
}

/* Rows of adjacent elements, `columns` of them at a time; the last ones overlap those before. */
INLINE void group_rows_by(const grouping g, const int columns, int64_t k, int64_t n, const char *b, int64_t row,
                          char *to, int64_t ld)
{
    for (; k > 0; k -= g.group, b += g.group * row, to += ld)
        for (int64_t j = 0; j < n; j += columns) {
            if (j > n - columns) j = n - columns;
            if (k >= g.group)
                group_columns(g, columns, b + j * g.size, row, g.group, to + 4 * j);
            else
                group_columns(g, columns, b + j * g.size, row, k, to + 4 * j);
        }
}

INLINE void group_rows(const grouping g, int64_t k, int64_t n, const char *b, int64_t row, char *to, int64_t ld)
{
    if (n >= 16 && g.size == 1)
        group_rows_by(g, g.size == 1 ? 16 : 8, k, n, b, row, to, ld);
    else if (n >= 8)
        group_rows_by(g, 8, k, n, b, row, to, ld);
    else if (n >= 4)
        group_rows_by(g, 4, k, n, b, row, to, ld);
    else if (n >= 2)
        group_rows_by(g, 2, k, n, b, row, to, ld);
    else
        group_rows_by(g, 1, k, n, b, row, to, ld);
}

/* Columns of adjacent elements: a column's groups are adjacent too, so the panel is their transposition, four groups of
 * four columns at a time. A load may reach into the next columns where they are adjacent; what does not fill a block
 * at the end of the matrix is copied into one. */
INLINE void group_columns_of(const grouping g, int64_t k, int64_t n, const char *b, int64_t column, char *to,
                             int64_t ld)
{
    const int depth = 4 * g.group, bytes = depth * g.size; /* of a block, down a column */
    const __m128i flips = _mm_set1_epi8(g.flip);
    const char *end = column == k * g.size ? b + n * column : NULL;
    for (int64_t p = 0; p < k; p += depth, to += 4 * ld) {
        const int64_t rest = k - p < depth ? k - p : depth;
        const __m128i mask = first_bytes_mask(rest * g.size);
        for (int64_t j = 0; j < n; j += 4) {
            char copy[4][16];
            const int64_t columns = n < 4 ? n : 4;
            if (j > n - columns) j = n - columns;
            const char *from = b + p * g.size + j * column;
            int64_t step = column;
            const int whole = rest == depth;
            if (columns < 4 || (!whole && from + 3 * step + bytes > end)) {
                memset(copy, 0, sizeof copy);
                copy_rows(columns, rest * g.size, from, step, copy[0], sizeof *copy);
                from = copy[0], step = sizeof *copy;
            }
            __m128 v[4];
            UNROLL for (int q = 0; q < 4; q++) {
                __m128i x = load_bytes(bytes, from + q * step);
                if (!whole) x = _mm_and_si128(x, mask);
                if (g.wide) x = widened_low(x);
                v[q] = _mm_castsi128_ps(g.flip ? _mm_xor_si128(x, flips) : x);
            }
            _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
            UNROLL for (int q = 0; q < 4; q++) {
                if (q * g.group >= rest) break;
                char *t = to + q * ld + 4 * j;
                if (columns == 4)
                    _mm_storeu_ps((float *)t, v[q]);
                else
                    memcpy(t, &v[q], (size_t)columns * 4);
            }
        }
    }
}

/* Any strides: pieces are copied. */
INLINE void group_pieces(const grouping g, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs, char *to,
                         int64_t ld)
{
    enum { ROWS = 32, COLUMNS = 64 };
    char rows[ROWS][COLUMNS * 2];
    for (int64_t p = 0; p < k; p += ROWS, to += ROWS / g.group * ld)
        for (int64_t j = 0; j < n; j += COLUMNS) {
            const int64_t count = k - p < ROWS ? k - p : ROWS, columns = n - j < COLUMNS ? n - j : COLUMNS;
            pysimd_copy_matrix(count, columns, g.size, b + (p * rs + j * cs) * g.size, rs, cs, rows[0], COLUMNS);
            group_rows(g, count, columns, rows[0], COLUMNS * g.size, to + 4 * j, ld);
        }
}
#endif

INLINE void group_matrix(const grouping g, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs, char *to)
{
    const int64_t ld = n * g.group * (g.size << g.wide);
#ifdef __SSE2__
    if (g.group * (g.size << g.wide) == 4) {
        if (cs == 1)
            group_rows(g, k, n, b, rs * g.size, to, ld);
        else if (rs == 1)
            group_columns_of(g, k, n, b, cs * g.size, to, ld);
        else
            group_pieces(g, k, n, b, rs, cs, to, ld);
        return;
    }
#endif
    group_each(g, k, n, b, rs, cs, to, ld);
}

/* The values of a matrix in groups of the kernel's, for A^T and B. */
static void pack_groups(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                        char *to)
{
    const int size = pysimd_element_sizes[kernel->types].b;
#ifdef __x86_64__
    const int pairs = kernel->target >= AVX512 && size == 2 && kernel->k_group == 2 && cs == 1;
    if (pairs) {
        avx512_pair_words(k, n, b, rs * size, to);
        return;
    }
#endif
    if (kernel->k_group * size == 8 && size == 1)
        group_matrix(EIGHT_BYTES, k, n, b, rs, cs, to);
    else if (kernel->k_group * size == 8)
        group_matrix(FOUR_WORDS, k, n, b, rs, cs, to);
    else if (size == 1)
        group_matrix(FOUR_BYTES, k, n, b, rs, cs, to);
    else
        group_matrix(TWO_WORDS, k, n, b, rs, cs, to);
}

static void pack_b_plain(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                         char *to)
{
    if (kernel->k_group == 1)
        pysimd_copy_matrix(k, n, pysimd_element_sizes[kernel->types].b, b, rs, cs, to,
                           pysimd_panel_of_b(kernel, k, n).rs);
    else
        pack_groups(kernel, k, n, b, rs, cs, to);
}

static void pack_b_wide(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                        char *to)
{
    (void)kernel;
    group_matrix(TWO_WIDE_BYTES, k, n, b, rs, cs, to);
}

static void pack_b_offset(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                          char *to)
{
    (void)kernel;
    group_matrix(FOUR_OFFSET_BYTES, k, n, b, rs, cs, to);
}

/* The columns that an inner-product kernel or a kernel for a vector reads. */
static void pack_b_columns(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                           char *to)
{
    pysimd_copy_matrix(n, k, pysimd_element_sizes[kernel->types].b, b, cs, rs, to, pysimd_panel_of_b(kernel, k, n).rs);
}

/* --- A stored by columns --- */

/* The sums of each column of a panel of groups of four int8, K groups long, in the row of the panel behind them. */
static void add_corrections(int64_t groups, int64_t m, char *panel)
{
    const int64_t ld = 4 * m;
    int64_t i = 0;
#ifdef __SSE2__
    for (; i < m && m >= 4; i += 4) {
        if (i > m - 4) i = m - 4;
        __m128i sum = _mm_setzero_si128();
        for (int64_t p = 0; p < groups; p++) {
            const __m128i v = _mm_loadu_si128((const __m128i *)(panel + p * ld + 4 * i));
            const __m128i pairs = _mm_add_epi16(_mm_srai_epi16(v, 8), _mm_srai_epi16(_mm_slli_epi16(v, 8), 8));
            sum = _mm_add_epi32(sum, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
        }
        const __m128i corrections = _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sum, 7));
        _mm_storeu_si128((__m128i *)(panel + groups * ld + 4 * i), corrections);
    }
#endif
    for (; i < m; i++) {
        uint32_t sum = 0;
        for (int64_t p = 0; p < groups; p++)
            for (int q = 0; q < 4; q++) sum += (uint32_t)(int32_t)(int8_t)panel[p * ld + 4 * i + q];
        sum *= -128u;
        memcpy(panel + groups * ld + 4 * i, &sum, sizeof sum);
    }
}

void pysimd_pack_columns_of_a(const pysimd_kernel *kernel, int64_t m, int64_t k, const void *a, int64_t cs, void *to)
{
    pack_groups(kernel, k, m, a, cs, 1, to);
    if (kernel->panel == OFFSET) add_corrections(padded(kernel, k) / kernel->k_group, m, to);
}

/* --- which function packs for a kernel --- */

typedef void pack_fn(const pysimd_kernel *kernel, int64_t rows, int64_t columns, const char *from, int64_t rs,
                     int64_t cs, char *to);

static pack_fn *const pack_b[] = {[PLAIN] = pack_b_plain, [WIDE] = pack_b_wide, [OFFSET] = pack_b_offset};

void pysimd_pack_b(const pysimd_kernel *kernel, int64_t k, int64_t n, const void *b, int64_t rs, int64_t cs, void *to)
{
    pack_fn *const pack = kernel->form != OUTER ? pack_b_columns : pack_b[kernel->panel];
    pack(kernel, k, n, b, rs, cs, to);
}

/* --- micro-panels of B --- */

/* k rows of `bytes` adjacent bytes into each of `panels` panels, four rows at a time: the rows are read in long pieces,
 * and four streams come from memory in less time than one (Zen 3: 20 and 15 GB/s). */
INLINE void copy_panels(const int64_t bytes, int64_t k, int64_t panels, const char *b, int64_t row, char *to,
                        int64_t panel_bytes)
{
    enum { ROWS = 4 };
    int64_t p = 0;
    for (; p + ROWS <= k; p += ROWS, b += ROWS * row, to += ROWS * bytes)
        for (int64_t j = 0; j < panels; j++)
            UNROLL for (int i = 0; i < ROWS; i++)
                memcpy(to + j * panel_bytes + i * bytes, b + j * bytes + i * row, (size_t)bytes);
    for (; p < k; p++, b += row, to += bytes)
        for (int64_t j = 0; j < panels; j++) memcpy(to + j * panel_bytes, b + j * bytes, (size_t)bytes);
}

/* What does that by vectors of AVX-512: for all its kernels with groups of k; NULL for others. */
static pysimd_interleave_fn *interleaving(const pysimd_kernel *kernel)
{
#ifdef __x86_64__
    if (kernel->target < AVX512 || kernel->nr != 32) return NULL;
    if (kernel->k_group == 2) return avx512_interleave_words;
    if (kernel->k_group == 4) return kernel->panel == OFFSET ? avx512_interleave_offset_bytes : avx512_interleave_bytes;
#endif
    (void)kernel;
    return NULL;
}

/* The same of groups of k: some rows at a time, which are still in L1 for the next panel. */
static void pack_panels_by_rows(const pysimd_kernel *kernel, int64_t k, int64_t panels, const char *b, int64_t rs,
                                char *to, int64_t panel_bytes)
{
    enum { GROUPS = 8 };
    const int size = pysimd_element_sizes[kernel->types].b;
    const int64_t rows = GROUPS * kernel->k_group, bytes = kernel->nr * size;
    const int64_t packed = rows * kernel->nr * pysimd_sizes_in_kernel(kernel).b;
    pysimd_interleave_fn *const interleave = interleaving(kernel);
    for (; k > 0; k -= rows, b += rows * rs * size, to += packed) {
        int64_t j = 0;
        if (interleave && k >= rows) j = interleave(GROUPS, panels, b, rs * size, to, panel_bytes);
        for (; j < panels; j++)
            pysimd_pack_b(kernel, k < rows ? k : rows, kernel->nr, b + j * bytes, rs, 1, to + j * panel_bytes);
    }
}

void pysimd_pack_panels(const pysimd_kernel *kernel, int64_t k, int64_t n, const void *b, int64_t rs, int64_t cs,
                        void *to, int64_t panel_bytes)
{
    const int size = pysimd_element_sizes[kernel->types].b, nr = kernel->nr;
    const char *from = b;
    char *panel = to;
    int64_t j = 0;
    if (pysimd_reads_b(kernel, rs, cs) && kernel->form == OUTER) {
        const int64_t whole = n / nr, row = rs * size;
        switch (nr * size) { /* a constant each, so that the copies are registers */
#define CASE(BYTES) case BYTES: copy_panels(BYTES, k, whole, from, row, panel, panel_bytes); j = whole * nr; break;
            CASE(16) CASE(32) CASE(64) CASE(128)
#undef CASE
        }
    } else if (kernel->form == OUTER && kernel->k_group > 1 && cs == 1) {
        pack_panels_by_rows(kernel, k, n / nr, from, rs, panel, panel_bytes);
        j = n / nr * nr;
    }
    for (; j < n; j += nr)
        pysimd_pack_b(kernel, k, n - j < nr ? n - j : nr, from + j * cs * size, rs, cs, panel + j / nr * panel_bytes);
}
