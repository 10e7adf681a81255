/* pack.c: see pack.h. Compiled for the baseline processor; packing is O(mk + kn) beside the O(mnk) of the product. */
#include "pack.h"

#include <string.h>

#include "driver.h"
#include "../templates/kernel.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

const pysimd_sizes pysimd_element_sizes[TYPES] = {
    [F32] = {4, 4, 4}, [F64] = {8, 8, 8}, [BF16F32] = {2, 2, 4}, [I8I32] = {1, 1, 4}, [U8I8I32] = {1, 1, 4}};

static int64_t groups(const pysimd_kernel *kernel, int64_t k) { return (k + kernel->k_group - 1) / kernel->k_group; }
static int wide(const pysimd_kernel *kernel) { return kernel->panel == WIDE; }

static int size_a(const pysimd_kernel *kernel) { return wide(kernel) ? 2 : pysimd_element_sizes[kernel->types].a; }
static int size_b(const pysimd_kernel *kernel) { return wide(kernel) ? 2 : pysimd_element_sizes[kernel->types].b; }

pysimd_panel_shape pysimd_panel_of_a(const pysimd_kernel *kernel, int64_t m, int64_t k)
{
    const int64_t row = groups(kernel, k) * kernel->k_group + (kernel->panel == OFFSET ? 4 : 0);
    return (pysimd_panel_shape){.bytes = m * row * size_a(kernel), .rs = row, .cs = kernel->k_group};
}

pysimd_panel_shape pysimd_panel_of_b(const pysimd_kernel *kernel, int64_t k, int64_t n)
{
    const int64_t padded = groups(kernel, k) * kernel->k_group;
    return (pysimd_panel_shape){
        .bytes = n * padded * size_b(kernel), .rs = kernel->form == INNER ? padded : n * kernel->k_group, .cs = 1};
}

int pysimd_reads_a(const pysimd_kernel *kernel, int64_t k, int64_t cs)
{
    if (kernel->form == INNER) return cs == 1;
    return kernel->panel == PLAIN && (kernel->k_group == 1 || (cs == 1 && k % kernel->k_group == 0));
}

int pysimd_reads_b(const pysimd_kernel *kernel, int64_t rs, int64_t cs)
{
    if (kernel->form == INNER) return rs == 1;
    return kernel->panel == PLAIN && kernel->k_group == 1 && cs == 1;
}

/* to[i*ld + j] = from[i*rs + j*cs], elements of `size` bytes: transposition included. */
static void copy_matrix(int64_t m, int64_t n, int size, const char *from, int64_t rs, int64_t cs, char *to, int64_t ld)
{
    if (cs == 1) {
        for (int64_t i = 0; i < m; i++) memcpy(to + i * ld * size, from + i * rs * size, (size_t)(n * size));
        return;
    }
    int64_t i0 = 0;
#ifdef __SSE2__
    if (size == 4 && rs == 1) /* 4x4 blocks in registers */
        for (; i0 + 4 <= m; i0 += 4) {
            int64_t j = 0;
            for (; j + 4 <= n; j += 4) {
                const float *f = (const float *)from + i0 + j * cs;
                __m128 x = _mm_loadu_ps(f), y = _mm_loadu_ps(f + cs), z = _mm_loadu_ps(f + 2 * cs),
                       w = _mm_loadu_ps(f + 3 * cs);
                _MM_TRANSPOSE4_PS(x, y, z, w);
                float *t = (float *)to + i0 * ld + j;
                _mm_storeu_ps(t, x), _mm_storeu_ps(t + ld, y), _mm_storeu_ps(t + 2 * ld, z),
                    _mm_storeu_ps(t + 3 * ld, w);
            }
            for (; j < n; j++)
                for (int64_t i = i0; i < i0 + 4; i++) memcpy(to + (i * ld + j) * 4, from + (i + j * cs) * 4, 4);
        }
#endif
#define COPY(SIZE)                                                                                                     \
    for (int64_t i = i0; i < m; i++)                                                                                   \
        for (int64_t j = 0; j < n; j++) memcpy(to + (i * ld + j) * (SIZE), from + (i * rs + j * cs) * (SIZE), SIZE)
    switch (size) {
    case 1: COPY(1); break;
    case 2: COPY(2); break;
    case 4: COPY(4); break;
    case 8: COPY(8); break;
    }
#undef COPY
}

static int16_t widened(int is_unsigned, const void *p)
{
    return is_unsigned ? (int16_t)*(const uint8_t *)p : (int16_t)*(const int8_t *)p;
}

void pysimd_pack_a(const pysimd_kernel *kernel, int64_t m, int64_t k, const void *a, int64_t rs, int64_t cs, void *to)
{
    const int size = pysimd_element_sizes[kernel->types].a;
    const pysimd_panel_shape shape = pysimd_panel_of_a(kernel, m, k);
    const int64_t padded = groups(kernel, k) * kernel->k_group;
    if (!wide(kernel)) copy_matrix(m, k, size, a, rs, cs, to, shape.rs);
    for (int64_t i = 0; i < m; i++) {
        char *row = (char *)to + i * shape.rs * size_a(kernel);
        if (wide(kernel))
            for (int64_t p = 0; p < k; p++)
                ((int16_t *)row)[p] = widened(kernel->types == U8I8I32, (const char *)a + i * rs + p * cs);
        memset(row + k * size_a(kernel), 0, (size_t)((padded - k) * size_a(kernel)));
        if (kernel->panel == OFFSET) {
            uint32_t sum = 0;
            for (int64_t p = 0; p < k; p++) sum += (uint32_t)(int32_t)((const int8_t *)row)[p];
            sum *= -128u;
            memcpy(row + padded, &sum, 4);
        }
    }
}

/* One row of groups: to[j*g + q] = value of row p + q, column j; rows at or past k are zero. */
static void interleave(const pysimd_kernel *kernel, int64_t p, int64_t k, int64_t n, const char *b, int64_t rs,
                       int64_t cs, char *to)
{
    const int group = kernel->k_group;
    const int64_t rows = k - p < group ? k - p : group;
    int64_t j = 0;
#ifdef __SSE2__
    if (cs == 1 && rows == group && group == 4 && !wide(kernel)) { /* bytes, sixteen columns at a time */
        const __m128i offset = _mm_set1_epi8(kernel->panel == OFFSET ? -128 : 0);
        for (; j + 16 <= n; j += 16) {
            const char *f = b + p * rs + j;
            const __m128i r0 = _mm_loadu_si128((const __m128i *)f), r1 = _mm_loadu_si128((const __m128i *)(f + rs)),
                          r2 = _mm_loadu_si128((const __m128i *)(f + 2 * rs)),
                          r3 = _mm_loadu_si128((const __m128i *)(f + 3 * rs));
            const __m128i lo01 = _mm_unpacklo_epi8(r0, r1), hi01 = _mm_unpackhi_epi8(r0, r1),
                          lo23 = _mm_unpacklo_epi8(r2, r3), hi23 = _mm_unpackhi_epi8(r2, r3);
            __m128i *t = (__m128i *)(to + 4 * j);
            _mm_storeu_si128(t, _mm_xor_si128(offset, _mm_unpacklo_epi16(lo01, lo23)));
            _mm_storeu_si128(t + 1, _mm_xor_si128(offset, _mm_unpackhi_epi16(lo01, lo23)));
            _mm_storeu_si128(t + 2, _mm_xor_si128(offset, _mm_unpacklo_epi16(hi01, hi23)));
            _mm_storeu_si128(t + 3, _mm_xor_si128(offset, _mm_unpackhi_epi16(hi01, hi23)));
        }
        for (; j + 4 <= n; j += 4) {
            const char *f = b + p * rs + j;
            const __m128i r0 = _mm_cvtsi32_si128(get_i32(f)), r1 = _mm_cvtsi32_si128(get_i32(f + rs)),
                          r2 = _mm_cvtsi32_si128(get_i32(f + 2 * rs)), r3 = _mm_cvtsi32_si128(get_i32(f + 3 * rs));
            const __m128i four = _mm_unpacklo_epi16(_mm_unpacklo_epi8(r0, r1), _mm_unpacklo_epi8(r2, r3));
            _mm_storeu_si128((__m128i *)(to + 4 * j), _mm_xor_si128(offset, four));
        }
    }
    if (cs == 1 && rows == group && group == 2 && size_b(kernel) == 2 && !wide(kernel)) { /* 16-bit values */
        for (; j + 8 <= n; j += 8) {
            const char *f = b + 2 * (p * rs + j);
            const __m128i r0 = _mm_loadu_si128((const __m128i *)f), r1 = _mm_loadu_si128((const __m128i *)(f + 2 * rs));
            __m128i *t = (__m128i *)(to + 4 * j);
            _mm_storeu_si128(t, _mm_unpacklo_epi16(r0, r1));
            _mm_storeu_si128(t + 1, _mm_unpackhi_epi16(r0, r1));
        }
        for (; j + 4 <= n; j += 4) {
            const char *f = b + 2 * (p * rs + j);
            const __m128i r0 = _mm_loadl_epi64((const __m128i *)f), r1 = _mm_loadl_epi64((const __m128i *)(f + 2 * rs));
            _mm_storeu_si128((__m128i *)(to + 4 * j), _mm_unpacklo_epi16(r0, r1));
        }
    }
    if (wide(kernel) && cs == 1 && rows == group) { /* bytes widened to pairs of int16, eight columns at a time */
        const __m128i zero = _mm_setzero_si128();
        for (; j + 8 <= n; j += 8) {
            const char *f = b + p * rs + j;
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
        for (int q = 0; q < group; q++) {
            const int64_t from = (p + q) * rs + j * cs, at = j * group + q;
            if (wide(kernel)) {
                const int16_t value = q < rows ? widened(0, b + from) : 0;
                memcpy(to + 2 * at, &value, 2);
            } else if (size_b(kernel) == 2) {
                if (q < rows) memcpy(to + 2 * at, b + 2 * from, 2);
                else memset(to + 2 * at, 0, 2);
            } else {
                const uint8_t value = q < rows ? (uint8_t)b[from] : 0;
                to[at] = (char)(kernel->panel == OFFSET ? value ^ 0x80 : value);
            }
        }
}

void pysimd_pack_b(const pysimd_kernel *kernel, int64_t k, int64_t n, const void *b, int64_t rs, int64_t cs, void *to)
{
    const int size = pysimd_element_sizes[kernel->types].b;
    const pysimd_panel_shape shape = pysimd_panel_of_b(kernel, k, n);
    if (kernel->form == INNER)
        copy_matrix(n, k, size, b, cs, rs, to, shape.rs);
    else if (kernel->k_group == 1)
        copy_matrix(k, n, size, b, rs, cs, to, shape.rs);
    else
        for (int64_t p = 0, row = 0; p < k; p += kernel->k_group, row++)
            interleave(kernel, p, k, n, b, rs, cs, (char *)to + row * shape.rs * size_b(kernel));
}
