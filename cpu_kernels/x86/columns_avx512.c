/* columns_avx512.c: few columns of C, where A is transposed and has 16-bit values: C^T = B^T A^T. Lanes are rows of C,
 * so that A's columns are widened in registers as they lie; tiles of C^T are transposed in registers. */
#include "../core/direct.h"

#include "../core/gemm.h"
#include "../core/pack.h"
#include "../core/split.h"
#include "../core/widen.h"
#include "vec_avx512.h"

enum {
    LANES = PYSIMD_DIRECT_LANES,
    MOST_VECTORS = 4,
    MOST_COLUMNS = PYSIMD_MOST_DIRECT_COLUMNS, /* of C */
    WORDS = PYSIMD_DIRECT_WORDS, /* in the memory of widened rows of B, and in that of a block of C^T */
};

INLINE __mmask16 first(int64_t lanes) { return (__mmask16)(0xffffu >> (LANES - lanes)); }

/* A tile of C^T: as many rows as C has columns, and vectors of rows of C. */
typedef struct {
    int64_t k, n;      /* for each k n values of B, widened */
    const float *b;
    const uint16_t *a; /* cs_a values from one k to the next */
    int64_t cs_a;
    float *sums;       /* rows ld floats apart */
    int64_t ld;
    __mmask16 mask;    /* of the last vector */
    int adds;          /* to the terms that `sums` has */
} tile_of_columns;
typedef void tile_fn(const tile_of_columns *t);

INLINE __m512 bf16(__m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
INLINE __m512 f16(__m256i v) { return _mm512_cvtph_ps(v); }

/* N columns of C and NV vectors, constants. */
#define TILE(NAME)                                                                                                     \
    INLINE void NAME##_tile(const int N, const int NV, const tile_of_columns *t)                                       \
    {                                                                                                                  \
        __m512 acc[MOST_COLUMNS][MOST_VECTORS];                                                                        \
        const __mmask16 mask = t->mask;                                                                                \
        const uint16_t *a = t->a;                                                                                      \
        const float *b = t->b;                                                                                         \
        UNROLL for (int j = 0; j < N; j++)                                                                             \
            UNROLL for (int v = 0; v < NV; v++) acc[j][v] = _mm512_setzero_ps();                                       \
        if (t->adds)                                                                                                   \
            UNROLL for (int j = 0; j < N; j++)                                                                         \
                UNROLL for (int v = 0; v < NV; v++) acc[j][v] = _mm512_load_ps(t->sums + j * t->ld + v * LANES);       \
        for (int64_t p = t->k; p > 0; p--, a += t->cs_a, b += t->n) {                                                  \
            __m512 rows[MOST_VECTORS];                                                                                 \
            UNROLL for (int v = 0; v < NV; v++)                                                                        \
                rows[v] = NAME(_mm256_maskz_loadu_epi16(v == NV - 1 ? mask : 0xffff, a + v * LANES));                  \
            UNROLL for (int j = 0; j < N; j++)                                                                         \
                UNROLL for (int v = 0; v < NV; v++)                                                                    \
                    acc[j][v] = _mm512_fmadd_ps(_mm512_set1_ps(b[j]), rows[v], acc[j][v]);                             \
        }                                                                                                              \
        UNROLL for (int j = 0; j < N; j++)                                                                             \
            UNROLL for (int v = 0; v < NV; v++) _mm512_store_ps(t->sums + j * t->ld + v * LANES, acc[j][v]);           \
    }
TILE(bf16)
TILE(f16)

/* As many vectors as there are registers for. */
#define EACH(DO)                                                                                                       \
    DO(1, 1) DO(2, 1) DO(3, 1) DO(4, 1) DO(5, 1) DO(6, 1) DO(7, 1) DO(8, 1)                                            \
    DO(9, 1) DO(10, 1) DO(11, 1) DO(12, 1) DO(13, 1) DO(14, 1) DO(15, 1) DO(16, 1)                                     \
    DO(1, 2) DO(2, 2) DO(3, 2) DO(4, 2) DO(5, 2) DO(6, 2) DO(7, 2) DO(8, 2)                                            \
    DO(9, 2) DO(10, 2) DO(11, 2) DO(12, 2) DO(13, 2) DO(14, 2)                                                         \
    DO(1, 3) DO(2, 3) DO(3, 3) DO(4, 3) DO(5, 3) DO(6, 3) DO(7, 3) DO(8, 3) DO(9, 3)                                   \
    DO(1, 4) DO(2, 4) DO(3, 4) DO(4, 4) DO(5, 4) DO(6, 4)
#define FUNCTIONS(N, NV)                                                                                               \
    NOINLINE void bf16_##N##_##NV(const tile_of_columns *t) { bf16_tile(N, NV, t); }                                   \
    NOINLINE void f16_##N##_##NV(const tile_of_columns *t) { f16_tile(N, NV, t); }
EACH(FUNCTIONS)
#define OF_BF16(N, NV) [NV - 1][N - 1] = bf16_##N##_##NV,
#define OF_F16(N, NV) [NV - 1][N - 1] = f16_##N##_##NV,
static tile_fn *const bf16_tiles[MOST_VECTORS][MOST_COLUMNS] = {EACH(OF_BF16)};
static tile_fn *const f16_tiles[MOST_VECTORS][MOST_COLUMNS] = {EACH(OF_F16)};

INLINE int64_t vectors_beside(int64_t columns) { return columns <= 6 ? 4 : columns <= 9 ? 3 : columns <= 14 ? 2 : 1; }

/* C^T of `rows` rows of C. */
INLINE void tiles_of(tile_fn *const functions[MOST_VECTORS][MOST_COLUMNS], int64_t rows, tile_of_columns t)
{
    const int64_t wide = vectors_beside(t.n);
    for (int64_t i = 0, some; i < rows; i += some) {
        some = least(rows - i, wide * LANES);
        const int64_t vectors = quotient(some, LANES);
        t.mask = first(some - (vectors - 1) * LANES);
        functions[vectors - 1][t.n - 1](&t);
        t.a += some, t.sums += some;
    }
}

/* Sixteen rows of WIDTH values, four, eight or sixteen (a constant), from as many vectors of sixteen values. */
INLINE void transpose(const int WIDTH, __m512 *v)
{
    __m512 t[16];
    UNROLL for (int i = 0; i < WIDTH; i += 4) {
        const __m512 x = _mm512_unpacklo_ps(v[i], v[i + 1]), y = _mm512_unpackhi_ps(v[i], v[i + 1]);
        const __m512 z = _mm512_unpacklo_ps(v[i + 2], v[i + 3]), w = _mm512_unpackhi_ps(v[i + 2], v[i + 3]);
        t[i] = _mm512_shuffle_ps(x, z, 0x44), t[i + 1] = _mm512_shuffle_ps(x, z, 0xee);
        t[i + 2] = _mm512_shuffle_ps(y, w, 0x44), t[i + 3] = _mm512_shuffle_ps(y, w, 0xee);
    }
    UNROLL for (int q = 0; q < 4; q++) { /* t[4*g + q]: in lane l row 4*l + q, values from 4*g on */
        if (WIDTH == 4) {
            v[q] = t[q];
            v[q + 4] = _mm512_castps128_ps512(_mm512_extractf32x4_ps(t[q], 1));
            v[q + 8] = _mm512_castps128_ps512(_mm512_extractf32x4_ps(t[q], 2));
            v[q + 12] = _mm512_castps128_ps512(_mm512_extractf32x4_ps(t[q], 3));
            continue;
        }
        const int x = WIDTH == 8 ? q : 8 + q, y = WIDTH == 8 ? 4 + q : 12 + q;
        const __m512 a = _mm512_shuffle_f32x4(t[q], t[4 + q], 0x44), b = _mm512_shuffle_f32x4(t[q], t[4 + q], 0xee);
        const __m512 c = _mm512_shuffle_f32x4(t[x], t[y], 0x44), d = _mm512_shuffle_f32x4(t[x], t[y], 0xee);
        v[q] = _mm512_shuffle_f32x4(a, c, 0x88), v[q + 4] = _mm512_shuffle_f32x4(a, c, 0xdd);
        v[q + 8] = _mm512_shuffle_f32x4(b, d, 0x88), v[q + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}

/* C = or, if `adds`, C += the transposition of n rows of m values, n <= WIDTH. */
INLINE void finish_by(const int WIDTH, int64_t n, int64_t m, const float *from, int64_t ld, float *c, int64_t rs_c,
                      int adds)
{
    const __mmask16 columns = first(n);
    for (int64_t i = 0; i < m; i += LANES, from += LANES) {
        const int64_t rows = least(m - i, LANES);
        __m512 v[LANES];
        UNROLL for (int j = 0; j < WIDTH; j++) v[j] = j < n ? _mm512_load_ps(from + j * ld) : _mm512_setzero_ps();
        transpose(WIDTH, v);
        UNROLL for (int r = 0; r < LANES; r++, c += rs_c) {
            if (r >= rows) return;
            if (adds) v[r] = _mm512_add_ps(_mm512_maskz_loadu_ps(columns, c), v[r]);
            _mm512_mask_storeu_ps(c, columns, v[r]);
        }
    }
}

NOINLINE void finish(int64_t n, int64_t m, const float *from, int64_t ld, float *c, int64_t rs_c, int adds)
{
    if (n <= 4)
        finish_by(4, n, m, from, ld, c, rs_c, adds);
    else if (n <= 8)
        finish_by(8, n, m, from, ld, c, rs_c, adds);
    else
        finish_by(16, n, m, from, ld, c, rs_c, adds);
}

/* `k` rows of B, n values each, widened one behind the other. */
INLINE void widen_rows(pysimd_widen_fn *widen, int64_t k, int64_t n, const uint16_t *b, int64_t rs, int64_t cs,
                       float *to)
{
    if (cs == 1 && rs != n) {
        for (int64_t p = 0; p < k; p++) widen(n, b + p * rs, to + p * n);
        return;
    }
    uint16_t *dense = (uint16_t *)to + k * n;
    if (cs != 1) pysimd_copy_matrix(k, n, 2, (const char *)b, rs, cs, (char *)dense, n);
    widen(k * n, cs == 1 ? b : dense, to);
}

INLINE void columns_of(tile_fn *const functions[MOST_VECTORS][MOST_COLUMNS], pysimd_widen_fn *widen,
                       const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b)
{
    _Alignas(64) float widened[WORDS], sums[WORDS];
    const int64_t n = s->n, kc = pysimd_block_of_k(kernel, s->k), deepest = WORDS / n;
    const int64_t widest = WORDS / n / LANES * LANES;
    for (int64_t i = 0, rows; i < s->m; i += rows) {
        rows = least(widest, s->m - i);
        const int64_t ld = multiple(rows, LANES);
        for (int64_t block = 0, p = 0, count; p < s->k; p += count) {
            const int64_t end = least(block + kc, s->k);
            count = least(deepest, end - p);
            widen_rows(widen, count, n, (const uint16_t *)s->b + p * s->rs_b, s->rs_b, cs_b, widened);
            tiles_of(functions, rows,
                     (tile_of_columns){.k = count, .n = n, .b = widened, .a = (const uint16_t *)s->a + i + p * s->cs_a,
                                       .cs_a = s->cs_a, .sums = sums, .ld = ld, .adds = p > block});
            if (p + count < end) continue;
            finish(n, rows, sums, ld, (float *)s->c + i * s->rs_c, s->rs_c, block > 0 || !(s->flags & PYSIMD_ZERO));
            block = end;
        }
    }
}

void avx512_columns_bf16(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b)
{
    columns_of(bf16_tiles, avx512_widen_bf16, kernel, s, cs_b);
}

void avx512_columns_f16(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b)
{
    columns_of(f16_tiles, avx512_widen_f16, kernel, s, cs_b);
}
