/* small_avx2.c: the functions of core/small.h for float32, bfloat16 and float16, 4x4x4 and 8x8x8. Operands of narrow
 * types are widened, and a B that is stored by columns is transposed, in registers while they are loaded. One fma per
 * term, k ascending from 0, as in the kernels of these tiles, so the bits are theirs.
 *
 * 4x4: a register holds two rows of C, and each row of B is loaded to both lanes: 8 shuffles and 8 fma a product, where
 * the kernel has 16 broadcasts and 16 fma (4.7 ns a product of a batch, and 6.1; Zen 3).
 * 8x8: B is in eight registers, and elements of A are broadcast from memory. A that is widened goes there while the
 * product before it is computed: the loop takes 17 ns, and 23 where the broadcasts wait for stores of the same product.
 * Tried for bfloat16: pairs of k broadcast together and separated by a shift and a mask (19 ns); elements broadcast by
 * shuffles from registers (26 ns).
 */
#include "../core/small.h"
#include "vec_avx2.h"

/* Of each type: 4 values from p and 4 from q on, in a lane each; 4 values in both lanes; 8 values. */
INLINE __m256 f32_pair(const float *p, const float *q) { return _mm256_loadu2_m128(q, p); }
INLINE __m256 f32_twice(const float *p) { return _mm256_broadcast_ps((const __m128 *)p); }
INLINE __m256 f32_row(const float *p) { return _mm256_loadu_ps(p); }

INLINE __m128i two_fours(const void *p, const void *q)
{
    return _mm_unpacklo_epi64(_mm_loadl_epi64(p), _mm_loadl_epi64(q));
}

INLINE __m256 bf16_widened(__m128i v) { return (__m256)_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16); }
INLINE __m256 bf16_pair(const uint16_t *p, const uint16_t *q) { return bf16_widened(two_fours(p, q)); }
INLINE __m256 bf16_twice(const uint16_t *p)
{
    const __m256i to_upper_halves = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7, -1, -1, 0,
                                                     1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7);
    return (__m256)_mm256_shuffle_epi8(_mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)p)), to_upper_halves);
}
INLINE __m256 bf16_row(const uint16_t *p) { return bf16_widened(_mm_loadu_si128((const __m128i *)p)); }

INLINE __m256 f16_pair(const uint16_t *p, const uint16_t *q) { return _mm256_cvtph_ps(two_fours(p, q)); }
INLINE __m256 f16_twice(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)p)));
}
INLINE __m256 f16_row(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }

INLINE void store(const int stream, float *c, __m256 v)
{
    if (stream)
        f32x8_stream(c, v);
    else
        _mm256_storeu_ps(c, v);
}

/* Four registers of four columns, in each lane, as four rows. */
INLINE void transpose_lanes(__m256 v[4])
{
    const __m256 x = _mm256_unpacklo_ps(v[0], v[1]), y = _mm256_unpackhi_ps(v[0], v[1]);
    const __m256 z = _mm256_unpacklo_ps(v[2], v[3]), w = _mm256_unpackhi_ps(v[2], v[3]);
    v[0] = _mm256_shuffle_ps(x, z, 0x44), v[1] = _mm256_shuffle_ps(x, z, 0xee);
    v[2] = _mm256_shuffle_ps(y, w, 0x44), v[3] = _mm256_shuffle_ps(y, w, 0xee);
}

/* Rows r and r + 1 of a 4x4 product. */
#define TWO_ROWS_OF_4X4(NAME, r)                                                                                       \
    {                                                                                                                  \
        __m256 x[4], acc = _mm256_setzero_ps();                                                                        \
        if (a_by_columns) {                                                                                            \
            const __m256i rows = _mm256_setr_epi32(r, r, r, r, r + 1, r + 1, r + 1, r + 1);                            \
            UNROLL for (int p = 0; p < 4; p++) x[p] = _mm256_permutevar_ps(column[p], rows);                           \
        } else {                                                                                                       \
            const __m256 pair = NAME##_pair(a + r * s->rs_a, a + (r + 1) * s->rs_a);                                   \
            x[0] = _mm256_permute_ps(pair, 0x00), x[1] = _mm256_permute_ps(pair, 0x55);                                \
            x[2] = _mm256_permute_ps(pair, 0xaa), x[3] = _mm256_permute_ps(pair, 0xff);                                \
        }                                                                                                              \
        UNROLL for (int p = 0; p < 4; p++) acc = _mm256_fmadd_ps(x[p], row[p], acc);                                   \
        store(stream, c + r * 4, acc);                                                                                 \
    }

#define LOOP_4X4(NAME, T)                                                                                              \
    INLINE void NAME##_loop_4x4(const int a_by_columns, const int b_by_columns, const int stream,                      \
                                const pysimd_call *s, int64_t step_b)                                                  \
    {                                                                                                                  \
        const T *a = s->a, *b = s->b;                                                                                  \
        float *c = s->c;                                                                                               \
        for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c) {                             \
            __m256 row[4], column[4];                                                                                  \
            UNROLL for (int p = 0; p < 4; p++) row[p] = NAME##_twice(b + p * step_b);                                  \
            if (b_by_columns) transpose_lanes(row);                                                                    \
            if (a_by_columns)                                                                                          \
                UNROLL for (int p = 0; p < 4; p++) column[p] = NAME##_twice(a + p * s->cs_a);                          \
            TWO_ROWS_OF_4X4(NAME, 0)                                                                                   \
            TWO_ROWS_OF_4X4(NAME, 2)                                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    LOOPS(NAME, 4x4)

/* 8x8 of B in registers, rows or columns `step` apart. */
#define LOAD_8X8(NAME, T)                                                                                              \
    INLINE void NAME##_load_8x8(const int by_columns, const T *b, int64_t step, __m256 row[8])                         \
    {                                                                                                                  \
        if (!by_columns) {                                                                                             \
            UNROLL for (int p = 0; p < 8; p++) row[p] = NAME##_row(b + p * step);                                      \
            return;                                                                                                    \
        }                                                                                                              \
        UNROLL for (int h = 0; h < 8; h += 4) { /* columns 4 to 7 are in the upper lanes */                            \
            UNROLL for (int j = 0; j < 4; j++)                                                                         \
                row[h + j] = NAME##_pair(b + h + j * step, b + h + (j + 4) * step);                                    \
            transpose_lanes(row + h);                                                                                  \
        }                                                                                                              \
    }

/* Element (r, p) of A at a[r*rs + p*cs]; the strides are constants, but for rs of A in place. */
INLINE void rows_of_8x8(const int stream, const float *a, int64_t rs, int64_t cs, const __m256 row[8], float *c)
{
    UNROLL for (int r = 0; r < 8; r++) {
        __m256 acc = _mm256_setzero_ps();
        UNROLL for (int p = 0; p < 8; p++) acc = _mm256_fmadd_ps(f32x8_broadcast(a + r * rs + p * cs), row[p], acc);
        store(stream, c + r * 8, acc);
    }
}

LOAD_8X8(f32, float)
INLINE void f32_loop_8x8(const int a_by_columns, const int b_by_columns, const int stream, const pysimd_call *s,
                         int64_t step_b)
{
    const float *a = s->a, *b = s->b;
    float *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c) {
        __m256 row[8];
        f32_load_8x8(b_by_columns, b, step_b, row);
        rows_of_8x8(stream, a, s->rs_a, 1, row, c);
    }
    (void)a_by_columns;
}

/* A of one product is widened while the product before it is computed. */
#define LOOP_8X8(NAME, T)                                                                                              \
    LOAD_8X8(NAME, T)                                                                                                  \
    INLINE void NAME##_widen_8x8(const T *from, int64_t step, float *to)                                               \
    {                                                                                                                  \
        UNROLL for (int r = 0; r < 8; r++) _mm256_store_ps(to + r * 8, NAME##_row(from + r * step));                   \
    }                                                                                                                  \
    INLINE void NAME##_loop_8x8(const int a_by_columns, const int b_by_columns, const int stream,                      \
                                const pysimd_call *s, int64_t step_b)                                                  \
    {                                                                                                                  \
        const int64_t step_a = a_by_columns ? s->cs_a : s->rs_a;                                                       \
        const T *a = s->a, *b = s->b;                                                                                  \
        float *c = s->c;                                                                                               \
        _Alignas(32) float wide[2][64];                                                                                \
        NAME##_widen_8x8(a, step_a, wide[0]);                                                                          \
        for (int64_t i = 0; i < s->batch; i++, b += s->bs_b, c += s->bs_c) {                                           \
            if (i + 1 < s->batch) a += s->bs_a;                                                                        \
            NAME##_widen_8x8(a, step_a, wide[(i + 1) & 1]);                                                            \
            __m256 row[8];                                                                                             \
            NAME##_load_8x8(b_by_columns, b, step_b, row);                                                             \
            const float *w = wide[i & 1];                                                                              \
            OPAQUE(w); /* else gcc has a branch for each of the two */                                                 \
            rows_of_8x8(stream, w, a_by_columns ? 1 : 8, a_by_columns ? 8 : 1, row, c);                                \
        }                                                                                                              \
    }                                                                                                                  \
    LOOPS(NAME, 8x8)

/* A function for each storage of the operands, so that each has its own registers. */
#define LOOP(NAME, TILE, A, B, S)                                                                                      \
    NOINLINE void NAME##_##TILE##_##A##B##S(const pysimd_call *s, int64_t step_b)                                      \
    {                                                                                                                  \
        NAME##_loop_##TILE(A, B, S, s, step_b);                                                                        \
    }
#define LOOPS(NAME, TILE)                                                                                              \
    LOOP(NAME, TILE, 0, 0, 0) LOOP(NAME, TILE, 0, 0, 1) LOOP(NAME, TILE, 0, 1, 0) LOOP(NAME, TILE, 0, 1, 1)            \
    LOOP(NAME, TILE, 1, 0, 0) LOOP(NAME, TILE, 1, 0, 1) LOOP(NAME, TILE, 1, 1, 0) LOOP(NAME, TILE, 1, 1, 1)            \
    typedef void NAME##_##TILE##_loop(const pysimd_call *s, int64_t step_b);                                           \
    static NAME##_##TILE##_loop *const NAME##_##TILE##_loops[2][2][2] = {                                              \
        {{NAME##_##TILE##_000, NAME##_##TILE##_001}, {NAME##_##TILE##_010, NAME##_##TILE##_011}},                      \
        {{NAME##_##TILE##_100, NAME##_##TILE##_101}, {NAME##_##TILE##_110, NAME##_##TILE##_111}}};

LOOP_4X4(f32, float)
LOOP_4X4(bf16, uint16_t)
LOOP_4X4(f16, uint16_t)
LOOP_8X8(bf16, uint16_t)
LOOP_8X8(f16, uint16_t)
LOOP(f32, 8x8, 0, 0, 0)
LOOP(f32, 8x8, 0, 1, 0)
LOOP(f32, 8x8, 0, 1, 1)

INLINE int is_cube(const pysimd_call *s, int64_t cs_b, int64_t size)
{
    return s->m == size && s->n == size && s->k == size && s->rs_c == size && (s->rs_a == 1 || s->cs_a == 1) &&
           (s->rs_b == 1 || cs_b == 1);
}

#define SMALL_FUNCTION(NAME, TILE, SIZE)                                                                               \
    int avx2_small_##NAME##_##TILE(const pysimd_call *s, int64_t cs_b)                                                 \
    {                                                                                                                  \
        if (!is_cube(s, cs_b, SIZE)) return 0;                                                                         \
        if (s->batch == 0) return 1;                                                                                   \
        const int a = s->cs_a != 1, b = cs_b != 1, stream = (s->flags & PYSIMD_STREAM) != 0;                           \
        NAME##_##TILE##_loops[a][b][stream](s, b ? cs_b : s->rs_b);                                                    \
        return 1;                                                                                                      \
    }
SMALL_FUNCTION(bf16, 4x4, 4)
SMALL_FUNCTION(f16, 4x4, 4)
SMALL_FUNCTION(bf16, 8x8, 8)
SMALL_FUNCTION(f16, 8x8, 8)

/* Large batches of plain arrays are the kernel's, which prefetches them. */
int avx2_small_f32_4x4(const pysimd_call *s, int64_t cs_b)
{
    if (!is_cube(s, cs_b, 4) || (s->flags & PYSIMD_STREAM && s->cs_a == 1 && cs_b == 1)) return 0;
    const int a = s->cs_a != 1, b = cs_b != 1, stream = (s->flags & PYSIMD_STREAM) != 0;
    f32_4x4_loops[a][b][stream](s, b ? cs_b : s->rs_b);
    return 1;
}

/* So are A that is stored by columns. */
int avx2_small_f32_8x8(const pysimd_call *s, int64_t cs_b)
{
    if (!is_cube(s, cs_b, 8) || s->cs_a != 1) return 0;
    if (cs_b == 1 && s->flags & PYSIMD_STREAM) return 0;
    if (cs_b == 1)
        f32_8x8_000(s, s->rs_b);
    else
        (s->flags & PYSIMD_STREAM ? f32_8x8_011 : f32_8x8_010)(s, cs_b);
    return 1;
}
