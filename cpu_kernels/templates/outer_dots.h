/* outer_dots.h: one or two columns of C after whole vectors of columns, as dot products of the rows of A.
 *
 * In a micro-tile such a column takes as long as a whole vector. As a dot product, lanes are steps of k: LANES of them
 * are one multiply-add, and the sums of LANES rows are added up together at the end. The rows of A are in L1, since the
 * tile before has read them. outer.h includes this file for kernels that set DOTS.
 */
enum { MOST_DOTS = 2, MOST_K_OF_DOTS = 512, SUMS = (MR + LANES - 1) / LANES * LANES };

/* The columns of B, adjacent, with zeros to whole vectors behind them. */
typedef struct {
    _Alignas(64) V(elem_c) column[MOST_DOTS][MOST_K_OF_DOTS];
} columns_of_b;

INLINE void gather_columns(columns_of_b *to, const int columns, int64_t k, const V(elem_b) *b, int64_t rs_b)
{
    for (int64_t p = 0; p < k; p += LANES)
        UNROLL for (int q = 0; q < columns; q++)
            V(store)(to->column[q] + p, V(gather)(b + p * rs_b + q, rs_b, k - p < LANES ? (int)(k - p) : LANES));
}

/* M rows, of which the terms of each are added in the same order for any M. */
INLINE void dots(const int M, const int columns, const columns_of_b *b, int64_t k, const V(elem_a) *a, int64_t rs_a,
                 V(elem_c) *c, int64_t rs_c)
{
    const int64_t rs = rs_a * (int64_t)sizeof *a;
    int64_t rs3 = 3 * rs;
    if (M > 3) OPAQUE(rs3);
    const char *base[BASES];
    UNROLL for (int g = 0; 5 * g < M; g++) {
        base[g] = (const char *)a + 5 * g * rs;
        OPAQUE(base[g]);
    }
    V(acc) sum[MOST_DOTS][SUMS];
    UNROLL for (int q = 0; q < columns; q++)
        UNROLL for (int i = 0; i < SUMS; i++) sum[q][i] = V(zero)();
    for (int64_t p = 0; p < k; p += LANES) {
        const V(mask) mask = V(mask_of)(k - p < LANES ? (int)(k - p) : LANES);
        V(vec) value[MOST_DOTS];
        UNROLL for (int q = 0; q < columns; q++) value[q] = V(load_c)(b->column[q] + p);
        UNROLL for (int i = 0; i < M; i++) {
            const V(vec) ai = V(load_c_masked)(ROW(i), mask);
            UNROLL for (int q = 0; q < columns; q++) sum[q][i] = V(fma)(value[q], ai, sum[q][i]);
        }
        ADVANCE(LANES);
    }
    V(elem_c) rows[SUMS];
    UNROLL for (int q = 0; q < columns; q++) {
        UNROLL for (int u = 0; u < M; u += LANES) V(store)(rows + u, V(reduce_rows)(sum[q] + u));
        UNROLL for (int i = 0; i < M; i++) memcpy(c + i * rs_c + q, &rows[i], sizeof *c);
    }
}

NOINLINE void one_column(int64_t m, const columns_of_b *b, int64_t k, const V(elem_a) *a, int64_t rs_a, V(elem_c) *c,
                         int64_t rs_c)
{
    switch (m) {
#define CASE(M) case M: dots(M <= MR ? M : MR, 1, b, k, a, rs_a, c, rs_c); break;
        CASES
#undef CASE
    }
}

NOINLINE void two_columns(int64_t m, const columns_of_b *b, int64_t k, const V(elem_a) *a, int64_t rs_a, V(elem_c) *c,
                          int64_t rs_c)
{
    switch (m) {
#define CASE(M) case M: dots(M <= MR ? M : MR, 2, b, k, a, rs_a, c, rs_c); break;
        CASES
#undef CASE
    }
}

/* The products of a call with PYSIMD_DOTS, the columns that fill vectors first. The others are gathered from B before:
 * with copies of single elements after the tile, which are loaded as vectors behind the stores of C, two columns took
 * 1.7 times as long as a vector of which two lanes are used (Xeon with AMX). */
NOINLINE void batch_with_dots(const pysimd_call *s)
{
    const int columns = (int)(s->n % LANES);
    pysimd_call one;
    pysimd_copy_call(&one, s);
    one.flags &= ~PYSIMD_DOTS, one.n -= columns;
    if (columns == 0) {
        PASTE(KERNEL, batch)(&one);
        return;
    }
    one.batch = 1;
    columns_of_b b;
    for (int64_t i = 0; i < s->batch; i++) {
        const V(elem_b) *after = (const V(elem_b) *)one.b + one.n;
        if (i > 0 && !s->bs_b)
            ;
        else if (columns == 1)
            gather_columns(&b, 1, s->k, after, s->rs_b);
        else
            gather_columns(&b, 2, s->k, after, s->rs_b);
        PASTE(KERNEL, batch)(&one);
        V(elem_c) *c = one.c;
        if (columns == 1)
            one_column(s->m, &b, s->k, one.a, s->rs_a, c + one.n, s->rs_c);
        else
            two_columns(s->m, &b, s->k, one.a, s->rs_a, c + one.n, s->rs_c);
        one.a = (const V(elem_a) *)one.a + s->bs_a, one.b = (const V(elem_b) *)one.b + s->bs_b, one.c = c + s->bs_c;
    }
}
