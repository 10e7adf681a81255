/* direct_avx512.h: the loops of core/direct.h, once for each KIND of narrow values. A file defines of its KIND
 *
 *     D(elem_a), D(elem_b), D(acc)      types; an accumulator has sixteen lanes of 32 bits
 *     D(group)                          values of K in 32 bits of a staged operand
 *     D(start)(a)                       what an accumulator starts from; `a` is behind the last group of the row of A
 *     D(fma)(a, b, acc)                 adds a group of a row of A, at `a`, times one of B's columns
 *     D(load)(narrow, mask, b)          sixteen columns of B, staged or as they are in the array if `narrow`
 *     D(store)(mask, c, acc)
 *     D(stage_a)(kernel, s, i, &rows, to)  rows of A from i on, as many as there is memory for
 *     D(stage_b)(kernel, s, cs_b, j, columns, to)
 *     D(widens)(s, cs_b)                whether B is loaded from the array itself
 */
#include "../core/pack.h"
#include "../core/split.h"

#define D(op) PASTE(KIND, op)

#ifndef PYSIMD_DIRECT_AVX512_H
#define PYSIMD_DIRECT_AVX512_H

enum { VECTOR = 16, MOST_VECTORS = 4, LONG_ROWS = 6, SOME_ROWS = 14, SHORT_ROWS = 16 };

/* Rows of C beside so many vectors, for which there are registers. */
INLINE int64_t rows_beside(int64_t vectors)
{
    return vectors > 2 ? LONG_ROWS : vectors == 2 ? SOME_ROWS : SHORT_ROWS;
}

/* Rows of A as 32-bit groups: group p of row i at data + i*rs + p*cs, in bytes. */
typedef struct {
    const char *data;
    int64_t rs, cs;
} rows_of_a;

/* Tiles of C side by side, of the same rows. Strides count bytes. */
typedef struct {
    int64_t groups, count;
    rows_of_a a;
    const char *b;
    int64_t rs_b;
    char *c;
    int64_t rs_c;
    __mmask16 mask; /* of the last vector of each tile */
} row_of_tiles;
enum { BASES = (SHORT_ROWS + 4) / 5 };
typedef void tiles_fn(const row_of_tiles *t);

#endif

#ifdef KIND

/* M rows and NV vectors, constants. */
INLINE void D(tiles)(const int M, const int NV, const int narrow, const row_of_tiles *t)
{
    const int64_t size = narrow ? (int64_t)sizeof(D(elem_b)) : 4, rs_a = t->a.rs, cs_a = t->a.cs, rs_b = t->rs_b;
    const __mmask16 mask = t->mask;
    const char *from = t->b;
    char *c = t->c;
    for (int64_t q = 0; q < t->count; q++, from += NV * VECTOR * size, c += NV * VECTOR * 4) {
        D(acc) acc[SHORT_ROWS][MOST_VECTORS];
        const int64_t rs = rs_a, rs3 = 3 * rs_a;
        const char *b = from, *base[BASES];
        UNROLL for (int i = 0; i < BASES; i++) base[i] = t->a.data + 5 * i * rs_a;
        UNROLL for (int i = 0; i < M; i++) {
            const D(acc) start = D(start)(ROW_ADDRESS(i) + t->groups * cs_a);
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = start;
        }
        for (int64_t p = t->groups; p > 0; p--, b += rs_b) {
            __m512i row[MOST_VECTORS];
            UNROLL for (int j = 0; j < NV; j++)
                row[j] = D(load)(narrow, j == NV - 1 ? mask : 0xffff, b + j * VECTOR * size);
            UNROLL for (int i = 0; i < M; i++)
                UNROLL for (int j = 0; j < NV; j++) acc[i][j] = D(fma)(ROW_ADDRESS(i), row[j], acc[i][j]);
            UNROLL for (int i = 0; i < BASES; i++) base[i] += cs_a;
        }
        char *ci = c;
        UNROLL for (int i = 0; i < M; i++, ci += t->rs_c)
            UNROLL for (int j = 0; j < NV; j++)
                D(store)(j == NV - 1 ? mask : 0xffff, ci + j * VECTOR * 4, acc[i][j]);
    }
}

#define TILES(M, NV)                                                                                                   \
    NOINLINE void D(tiles_##M##_##NV)(const row_of_tiles *t) { D(tiles)(M, NV, 0, t); }                                \
    NOINLINE void D(narrow_##M##_##NV)(const row_of_tiles *t) { D(tiles)(M, NV, D(group) == 1, t); }
#define ROWS(NV) TILES(1, NV) TILES(2, NV) TILES(3, NV) TILES(4, NV) TILES(5, NV) TILES(6, NV)
#define MORE(NV)                                                                                                       \
    TILES(7, NV) TILES(8, NV) TILES(9, NV) TILES(10, NV) TILES(11, NV) TILES(12, NV) TILES(13, NV) TILES(14, NV)
ROWS(1) MORE(1) TILES(15, 1) TILES(16, 1) ROWS(2) MORE(2) ROWS(3) ROWS(4)
#undef ROWS
#undef MORE
#undef TILES
#define ROWS(KIND_, NV)                                                                                                \
    D(KIND_##_1_##NV), D(KIND_##_2_##NV), D(KIND_##_3_##NV), D(KIND_##_4_##NV), D(KIND_##_5_##NV), D(KIND_##_6_##NV)
#define MORE(KIND_, NV)                                                                                                \
    D(KIND_##_7_##NV), D(KIND_##_8_##NV), D(KIND_##_9_##NV), D(KIND_##_10_##NV), D(KIND_##_11_##NV),                   \
        D(KIND_##_12_##NV), D(KIND_##_13_##NV), D(KIND_##_14_##NV)
#define OF(KIND_)                                                                                                      \
    {                                                                                                                  \
        {ROWS(KIND_, 1), MORE(KIND_, 1), D(KIND_##_15_1), D(KIND_##_16_1)}, {ROWS(KIND_, 2), MORE(KIND_, 2)},          \
            {ROWS(KIND_, 3)}, {ROWS(KIND_, 4)}                                                                         \
    }
static tiles_fn *const D(functions)[2][MOST_VECTORS][SHORT_ROWS] = {OF(tiles), OF(narrow)};
#undef OF
#undef ROWS
#undef MORE

/* `rows` rows of C, from c on, and `columns` columns. */
INLINE void D(rows)(const int narrow, int64_t rows, int64_t columns, row_of_tiles t)
{
    enum { WIDE = MOST_VECTORS * VECTOR };
    const int64_t size = narrow ? (int64_t)sizeof(D(elem_b)) : 4;
    const int64_t whole = columns / WIDE, rest = columns - whole * WIDE;
    const int vectors = (int)((rest + VECTOR - 1) / VECTOR);
    const split parts = split_of(rows, rows_beside(whole ? MOST_VECTORS : vectors), 1);
    for (int64_t r = 0, i = 0, m; r < parts.count; r++, i += m) {
        m = part_of(&parts, r, rows - i);
        row_of_tiles u = t;
        u.a.data += i * t.a.rs, u.c += i * t.rs_c;
        u.count = whole, u.mask = 0xffff;
        if (whole) D(functions)[narrow][MOST_VECTORS - 1][m - 1](&u);
        if (rest == 0) continue;
        u.b += whole * WIDE * size, u.c += whole * WIDE * 4, u.count = 1;
        u.mask = (__mmask16)(0xffffu >> (vectors * VECTOR - rest));
        D(functions)[narrow][vectors - 1][m - 1](&u);
    }
}

INLINE void D(direct)(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b)
{
    enum { WORDS = PYSIMD_DIRECT_WORDS, COLUMNS = PYSIMD_DIRECT_COLUMNS };
    _Alignas(64) char of_a[WORDS * 4], of_b[WORDS * 4];
    const int64_t groups = (s->k + D(group) - 1) / D(group);
    const int narrow = D(widens)(s, cs_b);
    const int64_t fit = WORDS / groups, unit = fit < COLUMNS ? VECTOR : COLUMNS;
    const int64_t most = narrow ? s->n : fit / unit * unit;
    for (int64_t j = 0, columns; j < s->n; j += columns) {
        columns = least(most, s->n - j);
        row_of_tiles t = {.groups = groups, .rs_c = s->rs_c * 4};
        if (narrow) {
            t.b = s->b, t.rs_b = s->rs_b * (int64_t)sizeof(D(elem_b));
        } else {
            D(stage_b)(kernel, s, cs_b, j, columns, of_b);
            t.b = of_b, t.rs_b = columns * 4;
        }
        for (int64_t i = 0, rows; i < s->m; i += rows) {
            t.a = D(stage_a)(kernel, s, i, &rows, of_a);
            t.c = (char *)s->c + (i * s->rs_c + j) * 4;
            if (narrow)
                D(rows)(D(group) == 1, rows, columns, t);
            else
                D(rows)(0, rows, columns, t);
        }
    }
}
#undef KIND
#endif
