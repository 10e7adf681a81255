/* pack.c: see pack.h. One function packs each kind of panel. Compiled for the baseline processor; packing costs
 * O(mk + kn) where the product costs O(mnk). */
#include "pack.h"

#include <string.h>

#include "../templates/kernel.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

pysimd_sizes pysimd_sizes_in_kernel(const pysimd_kernel *kernel)
{
    const pysimd_sizes size = pysimd_element_sizes[kernel->types];
    return kernel->panel == WIDE ? (pysimd_sizes){2 * size.a, 2 * size.b, size.c} : size;
}

static int64_t rounded_up(int64_t k, int64_t step) { return (k + step - 1) / step * step; }

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
    return (pysimd_panel_shape){.bytes = times(times(n, padded(kernel, k)), pysimd_sizes_in_kernel(kernel).b),
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
#define ROWS_OF_BLOCK(size) ((size) == 1 ? 8 : 16 / (size))

/* One block in registers: to[i*row + j*size] = from[i*size + j*step], offsets in bytes. 8x8 elements of one or two bytes,
 * 4x4 of four, 2x2 of eight. */
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
#endif

void pysimd_copy_matrix(int64_t m, int64_t n, int size, const char *from, int64_t rs, int64_t cs, char *to, int64_t ld)
{
    if (cs == 1) {
        for (int64_t i = 0; i < m; i++) memcpy(to + i * ld * size, from + i * rs * size, (size_t)(n * size));
        return;
    }
#ifdef __SSE2__
    if (rs == 1 && m >= ROWS_OF_BLOCK(size) && n >= ROWS_OF_BLOCK(size)) {
        switch (size) {
        case 1: transpose(m, n, 1, from, cs, to, ld); return;
        case 2: transpose(m, n, 2, from, cs, to, ld); return;
        case 4: transpose(m, n, 4, from, cs, to, ld); return;
        case 8: transpose(m, n, 8, from, cs, to, ld); return;
        }
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

/* Zeros in what the last group of each row of A's panel has past K. */
static void pad_rows(const pysimd_kernel *kernel, int64_t m, int64_t k, char *to)
{
    const int size = pysimd_sizes_in_kernel(kernel).a;
    const int64_t row = pysimd_panel_of_a(kernel, m, k).rs * size;
    for (int64_t i = 0; i < m; i++)
        memset(to + i * row + k * size, 0, (size_t)((padded(kernel, k) - k) * size));
}

/* --- A: element (i, p) at a[i*rs + p*cs] --- */

typedef void pack_fn(const pysimd_kernel *kernel, int64_t rows, int64_t columns, const char *from, int64_t rs,
                     int64_t cs, char *to);

static void pack_a_plain(const pysimd_kernel *kernel, int64_t m, int64_t k, const char *a, int64_t rs, int64_t cs,
                         char *to)
{
    const int size = pysimd_element_sizes[kernel->types].a;
    pysimd_copy_matrix(m, k, size, a, rs, cs, to, pysimd_panel_of_a(kernel, m, k).rs);
    pad_rows(kernel, m, k, to);
}

static void pack_a_wide(const pysimd_kernel *kernel, int64_t m, int64_t k, const char *a, int64_t rs, int64_t cs,
                        char *to)
{
    const int64_t ld = pysimd_panel_of_a(kernel, m, k).rs;
    for (int64_t i = 0; i < m; i++) {
        const char *from = a + i * rs;
        int16_t *row = (int16_t *)to + i * ld;
        if (kernel->types == U8I8I32)
            for (int64_t p = 0; p < k; p++) row[p] = *(const uint8_t *)(from + p * cs);
        else
            for (int64_t p = 0; p < k; p++) row[p] = *(const int8_t *)(from + p * cs);
    }
    pad_rows(kernel, m, k, to);
}

static void pack_a_offset(const pysimd_kernel *kernel, int64_t m, int64_t k, const char *a, int64_t rs, int64_t cs,
                          char *to)
{
    pack_a_plain(kernel, m, k, a, rs, cs, to);
    const int64_t ld = pysimd_panel_of_a(kernel, m, k).rs;
    for (int64_t i = 0; i < m; i++) {
        const int8_t *row = (const int8_t *)to + i * ld;
        uint32_t sum = 0;
        for (int64_t p = 0; p < k; p++) sum += (uint32_t)(int32_t)row[p];
        sum *= -128u;
        memcpy(to + i * ld + padded(kernel, k), &sum, sizeof sum);
    }
}

/* --- B: element (p, j) at b[p*rs + j*cs] --- */

/* One row of a panel of groups: to[j*k_group + q] is element (q, j) of B, q < k_group; rows past `rows` are zeros. */
typedef void interleave_fn(const char *b, int64_t rs, int64_t cs, int64_t rows, int64_t n, char *to);

INLINE void pack_groups(const pysimd_kernel *kernel, interleave_fn *interleave, int64_t k, int64_t n, const char *b,
                        int64_t rs, int64_t cs, char *to)
{
    const int group = kernel->k_group;
    const int64_t step = group * rs * pysimd_element_sizes[kernel->types].b;
    const int64_t row = pysimd_panel_of_b(kernel, k, n).rs * pysimd_sizes_in_kernel(kernel).b;
    for (; k > 0; k -= group, b += step, to += row) interleave(b, rs, cs, k < group ? k : group, n, to);
}

/* Groups of four bytes, each xored with `flip`. */
INLINE void interleave_4_bytes(const char *b, int64_t rs, int64_t cs, int64_t rows, int64_t n, char *to, char flip)
{
    int64_t j = 0;
#ifdef __SSE2__
    const __m128i flips = _mm_set1_epi8(flip);
    if (cs == 1 && rows == 4) {
        for (; j + 16 <= n; j += 16) {
            const char *f = b + j;
            const __m128i r0 = _mm_loadu_si128((const __m128i *)f), r1 = _mm_loadu_si128((const __m128i *)(f + rs)),
                          r2 = _mm_loadu_si128((const __m128i *)(f + 2 * rs)),
                          r3 = _mm_loadu_si128((const __m128i *)(f + 3 * rs));
            const __m128i lo01 = _mm_unpacklo_epi8(r0, r1), hi01 = _mm_unpackhi_epi8(r0, r1),
                          lo23 = _mm_unpacklo_epi8(r2, r3), hi23 = _mm_unpackhi_epi8(r2, r3);
            __m128i *t = (__m128i *)(to + 4 * j);
            _mm_storeu_si128(t, _mm_xor_si128(flips, _mm_unpacklo_epi16(lo01, lo23)));
            _mm_storeu_si128(t + 1, _mm_xor_si128(flips, _mm_unpackhi_epi16(lo01, lo23)));
            _mm_storeu_si128(t + 2, _mm_xor_si128(flips, _mm_unpacklo_epi16(hi01, hi23)));
            _mm_storeu_si128(t + 3, _mm_xor_si128(flips, _mm_unpackhi_epi16(hi01, hi23)));
        }
        for (; j + 4 <= n; j += 4) {
            const char *f = b + j;
            const __m128i r0 = _mm_cvtsi32_si128(get_i32(f)), r1 = _mm_cvtsi32_si128(get_i32(f + rs)),
                          r2 = _mm_cvtsi32_si128(get_i32(f + 2 * rs)), r3 = _mm_cvtsi32_si128(get_i32(f + 3 * rs));
            const __m128i four = _mm_unpacklo_epi16(_mm_unpacklo_epi8(r0, r1), _mm_unpacklo_epi8(r2, r3));
            _mm_storeu_si128((__m128i *)(to + 4 * j), _mm_xor_si128(flips, four));
        }
    }
#endif
    for (; j < n; j++)
        for (int q = 0; q < 4; q++) to[4 * j + q] = (q < rows ? b[q * rs + j * cs] : 0) ^ flip;
}

static void interleave_bytes(const char *b, int64_t rs, int64_t cs, int64_t rows, int64_t n, char *to)
{
    interleave_4_bytes(b, rs, cs, rows, n, to, 0);
}

static void interleave_offset_bytes(const char *b, int64_t rs, int64_t cs, int64_t rows, int64_t n, char *to)
{
    interleave_4_bytes(b, rs, cs, rows, n, to, -128); /* b + 128 as uint8 */
}

/* Groups of two 16-bit values. */
static void interleave_words(const char *b, int64_t rs, int64_t cs, int64_t rows, int64_t n, char *to)
{
    int64_t j = 0;
#ifdef __SSE2__
    if (cs == 1 && rows == 2) {
        for (; j + 8 <= n; j += 8) {
            const char *f = b + 2 * j;
            const __m128i r0 = _mm_loadu_si128((const __m128i *)f), r1 = _mm_loadu_si128((const __m128i *)(f + 2 * rs));
            __m128i *t = (__m128i *)(to + 4 * j);
            _mm_storeu_si128(t, _mm_unpacklo_epi16(r0, r1));
            _mm_storeu_si128(t + 1, _mm_unpackhi_epi16(r0, r1));
        }
        for (; j + 4 <= n; j += 4) {
            const char *f = b + 2 * j;
            const __m128i r0 = _mm_loadl_epi64((const __m128i *)f), r1 = _mm_loadl_epi64((const __m128i *)(f + 2 * rs));
            _mm_storeu_si128((__m128i *)(to + 4 * j), _mm_unpacklo_epi16(r0, r1));
        }
    }
#endif
    for (; j < n; j++)
        for (int q = 0; q < 2; q++) {
            uint16_t value = 0;
            if (q < rows) memcpy(&value, b + 2 * (q * rs + j * cs), sizeof value);
            memcpy(to + 4 * j + 2 * q, &value, sizeof value);
        }
}

/* Groups of eight bytes. */
static void interleave_8_bytes(const char *b, int64_t rs, int64_t cs, int64_t rows, int64_t n, char *to)
{
    for (int64_t j = 0; j < n; j++)
        for (int q = 0; q < 8; q++) to[8 * j + q] = q < rows ? b[q * rs + j * cs] : 0;
}

/* Groups of four 16-bit values. */
static void interleave_4_words(const char *b, int64_t rs, int64_t cs, int64_t rows, int64_t n, char *to)
{
    for (int64_t j = 0; j < n; j++)
        for (int q = 0; q < 4; q++) {
            uint16_t value = 0;
            if (q < rows) memcpy(&value, b + 2 * (q * rs + j * cs), sizeof value);
            memcpy(to + 8 * j + 2 * q, &value, sizeof value);
        }
}

/* Groups of two int8, widened to int16. */
static void interleave_widened_bytes(const char *b, int64_t rs, int64_t cs, int64_t rows, int64_t n, char *to)
{
    int64_t j = 0;
#ifdef __SSE2__
    if (cs == 1 && rows == 2) {
        const __m128i zero = _mm_setzero_si128();
        for (; j + 8 <= n; j += 8) {
            const char *f = b + j;
            const __m128i r0 = _mm_loadl_epi64((const __m128i *)f), r1 = _mm_loadl_epi64((const __m128i *)(f + rs));
            const __m128i w0 = _mm_srai_epi16(_mm_unpacklo_epi8(zero, r0), 8);
            const __m128i w1 = _mm_srai_epi16(_mm_unpacklo_epi8(zero, r1), 8);
            __m128i *t = (__m128i *)(to + 4 * j);
            _mm_storeu_si128(t, _mm_unpacklo_epi16(w0, w1));
            _mm_storeu_si128(t + 1, _mm_unpackhi_epi16(w0, w1));
        }
    }
#endif
    for (; j < n; j++)
        for (int q = 0; q < 2; q++) ((int16_t *)to)[2 * j + q] = q < rows ? (int8_t)b[q * rs + j * cs] : 0;
}

static interleave_fn *interleave_of_plain(const pysimd_kernel *kernel)
{
    const int size = pysimd_element_sizes[kernel->types].b;
    if (kernel->k_group * size == 8) return size == 1 ? interleave_8_bytes : interleave_4_words;
    return size == 1 ? interleave_bytes : interleave_words;
}

static void pack_b_plain(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                         char *to)
{
    const int size = pysimd_element_sizes[kernel->types].b;
    if (kernel->k_group == 1)
        pysimd_copy_matrix(k, n, size, b, rs, cs, to, pysimd_panel_of_b(kernel, k, n).rs);
    else
        pack_groups(kernel, interleave_of_plain(kernel), k, n, b, rs, cs, to);
}

static void pack_b_wide(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                        char *to)
{
    pack_groups(kernel, interleave_widened_bytes, k, n, b, rs, cs, to);
}

static void pack_b_offset(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                          char *to)
{
    pack_groups(kernel, interleave_offset_bytes, k, n, b, rs, cs, to);
}

/* The columns that an inner-product kernel or a kernel for a vector reads. */
static void pack_b_columns(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                           char *to)
{
    pysimd_copy_matrix(n, k, pysimd_element_sizes[kernel->types].b, b, cs, rs, to, pysimd_panel_of_b(kernel, k, n).rs);
}

/* --- which function packs for a kernel --- */

static pack_fn *const pack_a[] = {[PLAIN] = pack_a_plain, [WIDE] = pack_a_wide, [OFFSET] = pack_a_offset};
static pack_fn *const pack_b[] = {[PLAIN] = pack_b_plain, [WIDE] = pack_b_wide, [OFFSET] = pack_b_offset};

void pysimd_pack_a(const pysimd_kernel *kernel, int64_t m, int64_t k, const void *a, int64_t rs, int64_t cs, void *to)
{
    pack_a[kernel->panel](kernel, m, k, a, rs, cs, to);
}

void pysimd_pack_b(const pysimd_kernel *kernel, int64_t k, int64_t n, const void *b, int64_t rs, int64_t cs, void *to)
{
    pack_fn *const pack = kernel->form != OUTER ? pack_b_columns : pack_b[kernel->panel];
    pack(kernel, k, n, b, rs, cs, to);
}

/* --- micro-panels of B --- */

/* k rows of `bytes` adjacent bytes into each of `panels` panels, row by row: the rows are then read in long pieces. */
INLINE void copy_panels(const int64_t bytes, int64_t k, int64_t panels, const char *b, int64_t row, char *to,
                        int64_t panel_bytes)
{
    for (int64_t p = 0; p < k; p++, b += row, to += bytes)
        for (int64_t j = 0; j < panels; j++) memcpy(to + j * panel_bytes, b + j * bytes, (size_t)bytes);
}

/* The same of groups of rows. */
static void interleave_panels(const pysimd_kernel *kernel, interleave_fn *interleave, int64_t k, int64_t panels,
                              const char *b, int64_t rs, char *to, int64_t panel_bytes)
{
    const int64_t bytes = kernel->nr * pysimd_element_sizes[kernel->types].b, group = kernel->k_group;
    const int64_t step = group * rs * pysimd_element_sizes[kernel->types].b;
    for (; k > 0; k -= group, b += step, to += group * bytes)
        for (int64_t j = 0; j < panels; j++)
            interleave(b + j * bytes, rs, 1, k < group ? k : group, kernel->nr, to + j * panel_bytes);
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
    } else if (kernel->form == OUTER && kernel->panel != WIDE && kernel->k_group > 1 && cs == 1) {
        interleave_fn *const interleave = kernel->panel == OFFSET ? interleave_offset_bytes : interleave_of_plain(kernel);
        interleave_panels(kernel, interleave, k, n / nr, from, rs, panel, panel_bytes);
        j = n / nr * nr;
    }
    for (; j < n; j += nr)
        pysimd_pack_b(kernel, k, n - j < nr ? n - j : nr, from + j * cs * size, rs, cs, panel + j / nr * panel_bytes);
}
