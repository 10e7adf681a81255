/* small_groups.h: the functions of core/small.h in zmm registers: any number of rows, up to 64 columns, K up to 64,
 * either operand stored by rows or by columns.
 *
 * A lane of 32 bits holds a group of adjacent k: one float, a pair of bfloat16, four bytes. A file defines the
 * operations of a KIND and includes this file, which defines KIND_small:
 *
 *     elem, vec        an element of the arrays; 16 accumulators
 *     group, chains    elements of a group; 2 where the row's kernel adds even and odd k apart for up to 8 columns
 *     load(left, p, rs, m)       a row of groups of B: `group` rows of m's columns, rs apart, zeros from `left` on
 *     lanes(full, m, p, q, r, s) four groups from each of four addresses on, m: a mask of their bytes
 *     dot(acc, a, b)             acc plus the products of the group at a and the row of groups b
 *     dot_part(acc, a, b)        the same of a last group of which A has one element, where PARTIAL_GROUPS is defined
 *     add_to_sum, corrected      what the rows of B add to a sum, and accumulators with it: for offsets of A
 *     in_place(by_rows, k)       whether A is read from the array; else it is staged:
 *     widened(p), part_widened(m, p), staged(v)   16 groups of a row of A; those of a mask; groups that were loaded
 *
 * Up to sixteen rows of C are accumulated at a time. B that is stored by columns is transposed to a panel on the stack,
 * four groups of sixteen columns at a time: 16 loads and 8 shuffles. B by rows comes to the panel where there are more
 * rows of C than that. A whose groups are adjacent in the array is read from there, other A is staged on the stack. Where
 * a file defines ROWS_OF_SHORT_K, products of a short K are computed with all of B in registers.
 */
#define K(op) PASTE(KIND, op)

INLINE void K(store)(void *c, __mmask16 m, K(vec) v)
{
    if (m == 0xffff)
        _mm512_storeu_si512(c, (__m512i)v);
    else
        _mm512_mask_storeu_epi32(c, m, (__m512i)v);
}

/* M rows; a group of A at rs and cs bytes, of which one is 4 (`by_rows`: cs). */
INLINE void K(tile)(const int M, const int by_rows, const int in_panel, const int chains, const block *s)
{
    enum { BASES = (MOST_ROWS + 4) / 5 };
    const __mmask16 m = first(s->n);
    const int64_t rs = by_rows ? s->rs_a : 4, cs = by_rows ? 4 : s->cs_a;
    const int64_t step_b = s->step_b, rs_b = s->rs_b, rs_c = s->rs_c;
    int32_t *const c = s->c;
    int64_t rs3 = 3 * rs;
    if (by_rows && M > 3) OPAQUE(rs3);
    const char *base[BASES], *b = s->b;
    UNROLL for (int g = 0; 5 * g < M; g++) {
        base[g] = s->a + 5 * g * rs;
        if (by_rows) OPAQUE(base[g]);
    }
    K(vec) acc[MOST_ROWS], odd[MOST_ROWS], sum = K(zero)();
    UNROLL for (int i = 0; i < M; i++) acc[i] = odd[i] = sum;
#define ROW_OF_B                                                                                                       \
    (in_panel ? _mm512_load_si512(b) : K(load)(p, (const K(elem) *)b, rs_b, m))
#define STEP(to, operation)                                                                                            \
    {                                                                                                                  \
        const __m512i row = ROW_OF_B;                                                                                  \
        UNROLL for (int i = 0; i < M; i++) to[i] = operation(to[i], ROW_ADDRESS(i), row);                              \
        sum = K(add_to_sum)(sum, row);                                                                                 \
        b += step_b;                                                                                                   \
        UNROLL for (int g = 0; 5 * g < M; g++) base[g] += cs;                                                          \
    }
    int64_t p = s->k;
    if (chains == 2) {
        for (; p > 1; p -= 2) {
            STEP(acc, K(dot))
            STEP(odd, K(dot))
        }
        if (p > 0) STEP(acc, K(dot))
        UNROLL for (int i = 0; i < M; i++) acc[i] = K(add)(acc[i], odd[i]);
    } else {
#ifdef PARTIAL_GROUPS
        for (; p >= K(group); p -= K(group)) STEP(acc, K(dot))
        if (p > 0) STEP(acc, K(dot_part))
#else
        for (; p > 0; p -= K(group)) STEP(acc, K(dot))
#endif
    }
    UNROLL for (int i = 0; i < M; i++) K(store)(c + i * rs_c, m, K(corrected)(acc[i], sum));
#undef STEP
#undef ROW_OF_B
}

#define TILE(M, A, B)                                                                                                  \
    NOINLINE void K(tile_##M##_##A##B)(const block *s)                                                                 \
    {                                                                                                                  \
        if (K(chains) == 2 && s->chains == 2)                                                                          \
            K(tile)(M <= 8 ? M : 8, A, B, 2, s);                                                                       \
        else                                                                                                           \
            K(tile)(M, A, B, 1, s);                                                                                    \
    }
#define TILES(A, B)                                                                                                    \
    TILE(1, A, B) TILE(2, A, B) TILE(3, A, B) TILE(4, A, B) TILE(5, A, B) TILE(6, A, B) TILE(7, A, B) TILE(8, A, B)    \
    TILE(9, A, B) TILE(10, A, B) TILE(11, A, B) TILE(12, A, B) TILE(13, A, B) TILE(14, A, B) TILE(15, A, B)            \
    TILE(16, A, B)
TILES(0, 0) TILES(0, 1) TILES(1, 0) TILES(1, 1)
#undef TILE
#undef TILES
#define TILES_OF(AB)                                                                                                   \
    {                                                                                                                  \
        K(tile_1_##AB), K(tile_2_##AB), K(tile_3_##AB), K(tile_4_##AB), K(tile_5_##AB), K(tile_6_##AB),                \
            K(tile_7_##AB), K(tile_8_##AB), K(tile_9_##AB), K(tile_10_##AB), K(tile_11_##AB), K(tile_12_##AB),         \
            K(tile_13_##AB), K(tile_14_##AB), K(tile_15_##AB), K(tile_16_##AB),                                        \
    }
static block_fn *const K(tiles)[2][2][MOST_ROWS] = {{TILES_OF(00), TILES_OF(01)}, {TILES_OF(10), TILES_OF(11)}};
#undef TILES_OF

/* Rows of groups of n <= 16 columns, a register each. */
NOINLINE void K(panel_of_columns)(int64_t n, int64_t k, const K(elem) *b, int64_t cs, __m512i *to)
{
    enum { VALUES = 4 * K(group) };
    const int64_t step = 4 * cs, last = n - 1;
    for (int64_t p = 0; p < k; p += VALUES, b += VALUES, to += 4) {
        const int full = k - p >= VALUES;
        const __mmask16 m = first((k - p) * (int64_t)sizeof *b);
        __m512i v[4];
        UNROLL for (int r = 0; r < 4; r++) { /* columns beyond the last are its copies */
#define COLUMN(L) (b + (r + 4 * L < last ? r + 4 * L : last) * cs)
            if (full && n == 16)
                v[r] = K(lanes)(1, m, b + r * cs, b + r * cs + step, b + r * cs + 2 * step, b + r * cs + 3 * step);
            else
                v[r] = K(lanes)(0, m, COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3));
#undef COLUMN
        }
        transpose_in_lanes(v);
        const int64_t groups = (k - p + K(group) - 1) / K(group);
        to[0] = v[0];
        if (groups > 1) to[1] = v[1];
        if (groups > 2) to[2] = v[2];
        if (groups > 3) to[3] = v[3];
    }
}

NOINLINE void K(panel_of_rows)(int64_t n, int64_t k, const K(elem) *b, int64_t rs, __m512i *to)
{
    const __mmask16 m = first(n);
    for (int64_t p = k; p > 0; p -= K(group), b += K(group) * rs) *to++ = K(load)(p, b, rs, m);
}

/* `rows` rows of A where the tile reads them: the address and the strides of groups. */
INLINE void K(stage_a)(int64_t rows, int64_t k, const K(elem) *a, int64_t rs, int64_t cs, __m512i *to, block *t)
{
    t->a = (const char *)to;
    if (cs != 1) { /* by columns */
        t->rs_a = 4, t->cs_a = 64;
        const __mmask16 m = first(rows);
        for (int64_t p = k; p > 0; p -= K(group), a += K(group) * cs) *to++ = K(staged)(K(load)(p, a, cs, m));
        return;
    }
    enum { VALUES = 16 * K(group) };
    t->cs_a = 4;
    if (rs == k) { /* rows without gaps; the last group of bytes may end in the next row, times zeros of B */
        t->rs_a = k * 4 / K(group);
        int64_t left = rows * k;
        for (; left >= VALUES; left -= VALUES, a += VALUES) *to++ = K(widened)(a);
        if (left) *to = K(part_widened)(((uint64_t)1 << left) - 1, a);
        return;
    }
    const int64_t whole = k / VALUES;
    const uint64_t rest = ((uint64_t)1 << k % VALUES) - 1;
    t->rs_a = (whole + (rest != 0)) * 64;
    for (int64_t i = 0; i < rows; i++, a += rs) {
        for (int64_t q = 0; q < whole; q++) *to++ = K(widened)(a + q * VALUES);
        if (rest) *to++ = K(part_widened)(rest, a + whole * VALUES);
    }
}

/* The blocks of rows of all products, in order. */
typedef struct {
    const pysimd_call *s;
    int64_t cs_b, each, blocks; /* rows of a block; blocks of a product */
    int a_by_rows, b_by_rows, in_place, in_panel;
    __m512i *panels, *staged; /* two of each */
} K(products);

enum { K(PANEL) = MOST_COLUMNS / 16 * MOST_K / K(group), K(STAGED) = MOST_ROWS * MOST_K / K(group) / 16 };

/* Stages A of a block, and B with the first block of a product. */
INLINE void K(prepare)(const K(products) *x, int64_t unit, block *t)
{
    const pysimd_call *s = x->s;
    const int64_t i = unit / x->blocks, r = (unit - i * x->blocks) * x->each;
    const K(elem) *a = (const K(elem) *)s->a + i * s->bs_a + r * s->rs_a, *b = (const K(elem) *)s->b + i * s->bs_b;
    t->rows = s->m - r < x->each ? s->m - r : x->each;
    t->c = (int32_t *)s->c + i * s->bs_c + r * s->rs_c;
    if (x->in_place)
        t->a = (const char *)a;
    else
        K(stage_a)(t->rows, s->k, a, s->rs_a, s->cs_a, x->staged + (unit & 1) * K(STAGED), t);
    if (!x->in_panel) {
        t->b = (const char *)b;
        return;
    }
    __m512i *panel = x->panels + (s->bs_b ? i & 1 : 0) * K(PANEL);
    t->b = (const char *)panel;
    if (r || (i && !s->bs_b)) return;
    for (int64_t j = 0; j < s->n; j += 16, panel += MOST_K / K(group)) {
        const int64_t columns = s->n - j < 16 ? s->n - j : 16;
        if (x->b_by_rows)
            K(panel_of_rows)(columns, s->k, b + j, s->rs_b, panel);
        else
            K(panel_of_columns)(columns, s->k, b + j * x->cs_b, x->cs_b, panel);
    }
}

#ifdef ROWS_OF_SHORT_K
/* Rows of C one after the other, in the order of memory, with all of B in registers: G groups of k and V vectors. Tiles
 * of one vector write C in pieces at a distance, a call for each: 8,000 batches of 24 to 64 columns and K up to 16 took
 * 0.61 (of 100 products) and 0.73 times (of 10) as long by rows, where K up to 8 had been slower than NumPy with float
 * (Xeon with AMX). */
INLINE void K(rows)(const int G, const int V, const block *s)
{
    enum { STEP = MOST_K / K(group) * 64 };
    const __mmask16 m = first(s->n - 16 * (V - 1));
    const int64_t rs_a = s->rs_a, cs_a = s->cs_a, rs_c = s->rs_c;
    __m512i b[4][8];
    K(vec) start[4];
    UNROLL for (int j = 0; j < V; j++) {
        K(vec) sum = K(zero)();
        UNROLL for (int g = 0; g < G; g++) {
            b[j][g] = _mm512_load_si512(s->b + j * STEP + g * 64);
            sum = K(add_to_sum)(sum, b[j][g]);
        }
        start[j] = K(corrected)(K(zero)(), sum);
    }
    const char *a = s->a;
    int32_t *c = s->c;
#ifdef PARTIAL_GROUPS
    const int part = s->k % K(group) != 0;
#endif
    for (int64_t r = 0; r < s->rows; r++, a += rs_a, c += rs_c) {
        K(vec) acc[4];
        UNROLL for (int j = 0; j < V; j++) acc[j] = start[j];
#ifdef PARTIAL_GROUPS
        UNROLL for (int g = 0; g < G - 1; g++)
            UNROLL for (int j = 0; j < V; j++) acc[j] = K(dot)(acc[j], a + g * cs_a, b[j][g]);
        if (part) {
            UNROLL for (int j = 0; j < V; j++) acc[j] = K(dot_part)(acc[j], a + (G - 1) * cs_a, b[j][G - 1]);
        } else {
            UNROLL for (int j = 0; j < V; j++) acc[j] = K(dot)(acc[j], a + (G - 1) * cs_a, b[j][G - 1]);
        }
#else
        UNROLL for (int g = 0; g < G; g++)
            UNROLL for (int j = 0; j < V; j++) acc[j] = K(dot)(acc[j], a + g * cs_a, b[j][g]);
#endif
        UNROLL for (int j = 0; j < V; j++) K(store)(c + 16 * j, j == V - 1 ? m : 0xffff, acc[j]);
    }
}

#define ROWS(G, V)                                                                                                     \
    NOINLINE void K(rows_##G##V)(const block *s) { K(rows)(G, V, s); }
#define ROWS_TO_5(V) ROWS(1, V) ROWS(2, V) ROWS(3, V) ROWS(4, V) ROWS(5, V)
ROWS_TO_5(2) ROWS(6, 2) ROWS(7, 2) ROWS(8, 2) ROWS_TO_5(3) ROWS(6, 3) ROWS_TO_5(4)
#undef ROWS
#undef ROWS_TO_5
#define TO_5(V) K(rows_1##V), K(rows_2##V), K(rows_3##V), K(rows_4##V), K(rows_5##V)

/* The function for n > 16 columns and a short K; or NULL. With accumulators and a row of A, 20 registers of B are the
 * most. */
static block_fn *K(rows_of)(int64_t n, int64_t k)
{
    static block_fn *const functions[3][8] = {
        {TO_5(2), K(rows_62), K(rows_72), K(rows_82)}, {TO_5(3), K(rows_63)}, {TO_5(4)}};
    return n > 16 && k <= 8 * K(group) ? functions[(n - 17) / 16][(k - 1) / K(group)] : NULL;
}
#undef TO_5
#else
INLINE block_fn *K(rows_of)(int64_t n, int64_t k) { return (void)n, (void)k, NULL; }
#endif

/* The products, of which `chains` is K(chains) or 1. What is staged is loaded a block later: loads that wait for stores
 * of the same block took up to twice as long. */
NOINLINE void K(multiply)(const pysimd_call *s, int64_t cs_b, int chains)
{
    const int64_t n = s->n, k = s->k;
    const int a_by_rows = s->cs_a == 1, most = chains == 2 ? 8 : MOST_ROWS;
    block_fn *rows = K(rows_of)(n, k);
    _Alignas(64) __m512i panels[2 * K(PANEL)], staged[2 * K(STAGED)];
    K(products) x = {.s = s, .cs_b = cs_b, .blocks = (s->m + most - 1) / most, .a_by_rows = a_by_rows,
                     .b_by_rows = cs_b == 1, .in_place = K(in_place)(a_by_rows, k), .panels = panels, .staged = staged};
    x.each = (s->m + x.blocks - 1) / x.blocks;
    x.blocks = (s->m + x.each - 1) / x.each;
    x.in_panel = cs_b != 1 || x.blocks > 1 || rows;
    const int64_t size = sizeof(K(elem)), step_of_columns = x.in_panel ? MOST_K / K(group) * 64 : 16 * size;
    const block all = {.k = k, .rs_b = s->rs_b, .step_b = x.in_panel ? 64 : s->rs_b * K(group) * size, .rs_c = s->rs_c,
                       .chains = chains, .rs_a = s->rs_a * size, .cs_a = a_by_rows ? 4 : s->cs_a * 4};
    block both[2] = {all, all};
    K(prepare)(&x, 0, both);
    for (int64_t unit = 0, units = s->batch * x.blocks; unit < units; unit++) {
        if (unit + 1 < units) K(prepare)(&x, unit + 1, both + (~unit & 1));
        block *t = both + (unit & 1);
        if (rows) {
            t->n = (int)n;
            rows(t);
            prefetch_share(s->later);
            continue;
        }
        int32_t *c = t->c;
        for (int64_t j = 0; j < n; j += 16, t->b += step_of_columns) {
            t->n = (int)(n - j < 16 ? n - j : 16);
            t->c = c + j;
            K(tiles)[a_by_rows][x.in_panel][t->rows - 1](t);
            prefetch_share(s->later);
        }
    }
}

/* The same with the operands exchanged, C^T = B^T A^T, for few columns: registers hold 16 rows of C, not one. Some
 * products at a time, and up to 64 of their rows, are computed in L1 and transposed from there. */
NOINLINE void K(multiply_exchanged)(const pysimd_call *s, int64_t cs_b, int chains)
{
    enum { TOGETHER = 4, EACH = FEW_COLUMNS * MOST_COLUMNS };
    _Alignas(64) int32_t transposed[TOGETHER * EACH];
    const int64_t parts = (s->m + MOST_COLUMNS - 1) / MOST_COLUMNS, rows = (s->m + parts - 1) / parts;
    for (int64_t r = 0; r < s->m; r += rows) {
        pysimd_call t = {.m = s->n, .n = s->m - r < rows ? s->m - r : rows, .k = s->k, .bs_a = s->bs_b, .rs_a = cs_b,
                         .cs_a = s->rs_b, .bs_b = s->bs_a, .rs_b = s->cs_a, .c = transposed, .bs_c = EACH,
                         .rs_c = MOST_COLUMNS, .flags = s->flags};
        for (int64_t i = 0; i < s->batch; i += TOGETHER) {
            t.batch = s->batch - i < TOGETHER ? s->batch - i : TOGETHER;
            t.a = (const K(elem) *)s->b + i * s->bs_b;
            t.b = (const K(elem) *)s->a + i * s->bs_a + r * s->rs_a;
            K(multiply)(&t, s->rs_a, chains);
            for (int64_t q = 0; q < t.batch; q++)
                store_transposed(t.n, (int)s->n, transposed + q * EACH,
                                 (int32_t *)s->c + (i + q) * s->bs_c + r * s->rs_c, s->rs_c);
        }
    }
}

static int K(small)(const pysimd_call *s, int64_t cs_b)
{
    if (s->n > MOST_COLUMNS || s->k < 1 || s->k > MOST_K || s->m < 1) return 0;
    if (s->flags & PYSIMD_STREAM || (s->rs_a != 1 && s->cs_a != 1) || (s->rs_b != 1 && cs_b != 1)) return 0;
    const int chains = s->n <= 8 ? K(chains) : 1;
    if (gains_exchanged(s)) {
        if (s->batch) K(multiply_exchanged)(s, cs_b, chains);
        return 1;
    }
    if (s->batch) K(multiply)(s, cs_b, chains);
    const int64_t most = chains == 2 ? MOST_ROWS / 2 : MOST_ROWS, columns = K(rows_of)(s->n, s->k) ? MOST_COLUMNS : 16;
    return (int)((s->m + most - 1) / most * ((s->n + columns - 1) / columns));
}
#undef K
#undef KIND
