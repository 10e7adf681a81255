/* gemv.h: matrix times vector, once, for every vector type of the form GEMV: C[i] += sum over p of A[i,p] * x[p].
 *
 * B has up to PYSIMD_GEMV_COLUMNS columns, which are multiplied together; the bits of each are those that it has alone.
 *
 * A kernel file sets KERNEL and VEC, and includes this file, which defines its two entry points. A file whose operands
 * have different types includes it before with VEC for exchanged operands and without KERNEL (see pysimd.h).
 *
 * Element i has V(lanes)/V(depth) accumulators. Accumulator l adds the terms p = l modulo their number, p ascending
 * (integers: V(depth) adjacent terms at a time); in the end accumulators l and l + half are added, and so on. A is read
 * in one of two orders that compute just this, so the bits do not depend on the order in which A is stored, unless the
 * kernel file sets ONE_CHAIN: then A by columns is read by gemv_chain.h, which is faster.
 *
 *   rows      cs_a = 1: a vector is loaded from each of eight rows of A and multiplied by a vector of x. The lanes of a
 *             register are the accumulators of one element; eight registers are added by transposition.
 *   columns   rs_a = 1: a vector is loaded from a column of A and multiplied by an element of x. A lane of a register
 *             is an element of C, and its accumulators are as many registers.
 */
#include "kernel.h"

#ifndef PYSIMD_GEMV_MR
#define PYSIMD_GEMV_MR
#ifndef ROWS_AT_A_TIME
#define ROWS_AT_A_TIME 8
#endif
#ifndef DOTS
#define DOTS 12 /* accumulators of several columns of B; N columns of it and one row of A take the other registers */
#endif
#ifndef SHORT_ROWS
#define SHORT_ROWS 0 /* 4 or 8: the vector type has V(short_rows), for rows of A of 2 to so many elements */
#endif
enum { MR = ROWS_AT_A_TIME }; /* of A; each is a chain of multiply-adds of its own */
#endif

/* The first m elements of REGISTERS registers of C, V(rows) in each: added to C, or stored in it. */
INLINE void PASTE(VEC, finish)(const int REGISTERS, int m, V(acc) *found, V(elem_c) *c, int64_t rs_c, int flags)
{
    if (rs_c == 1) {
        UNROLL for (int g = 0; g < REGISTERS; g++) {
            const int rest = m - g * V(rows);
            V(elem_c) *cg = c + g * V(rows);
            if (rest >= V(rows)) {
                if (!(flags & PYSIMD_ZERO)) found[g] = V(add)(V(load_c)(cg), found[g]);
                V(store)(cg, found[g]);
            } else if (rest > 0) {
                const V(mask) mask = V(mask_of)(rest);
                if (!(flags & PYSIMD_ZERO)) found[g] = V(add)(V(load_c_masked)(cg, mask), found[g]);
                V(store_masked)(cg, mask, found[g]);
            }
        }
        return;
    }
    V(sum) values[2 * V(rows)], old; /* unsigned for integers: additions wrap */
    _Static_assert(MR <= 2 * V(rows), "the rows of A that are added at a time");
    memcpy(values, found, REGISTERS * sizeof *found);
    for (int i = 0; i < m; i++, c += rs_c) {
        if (!(flags & PYSIMD_ZERO)) {
            memcpy(&old, c, sizeof old);
            values[i] = old + values[i];
        }
        memcpy(c, &values[i], sizeof *c);
    }
}

/* M rows of A, a constant, by rows. A load may reach as far as `end`.
 * Without gain from L3 and memory (Zen 3, double): to prefetch the eight rows that follow, 0.9 to 1.1 times as fast; to
 * read four rows at a time, the same. */
INLINE void PASTE(VEC, rows_of)(const int M, int64_t k, const V(elem_a) *a, int64_t rs_a, const V(elem_a) *end,
                                const V(elem_b) *x, V(elem_c) *c, int64_t rs_c, int flags)
{
    const int within = a + (M - 1) * rs_a + k / V(lanes) * V(lanes) + V(lanes) <= end;
    const int64_t rs = rs_a * (int64_t)sizeof *a;
    int64_t rs3 = 3 * rs;
    if (M > 3) OPAQUE(rs3);
    const char *base[(MR + 4) / 5];
    UNROLL for (int g = 0; 5 * g < MR; g++) {
        base[g] = (const char *)a + 5 * g * rs;
        if (g > 0 && 5 * g < M) OPAQUE(base[g]);
    }
    V(acc) acc[MR], found[MR / V(rows)];
    UNROLL for (int i = 0; i < MR; i++) acc[i] = V(zero)();
    int64_t p = k;
    for (; p >= V(lanes); p -= V(lanes)) {
        const V(vec) xp = V(load_x)(x);
        UNROLL for (int i = 0; i < M; i++) acc[i] = V(fma)(V(load)((const V(elem_a) *)ROW_ADDRESS(i)), xp, acc[i]);
        x += V(lanes);
        UNROLL for (int g = 0; 5 * g < MR; g++) base[g] += V(lanes) * sizeof *a;
    }
    if (p > 0) {
        const V(part) rest = V(part_of)((int)p);
        const V(vec) xp = V(load_x_part)(x, rest);
        if (within)
            UNROLL for (int i = 0; i < M; i++)
                acc[i] = V(fma)(V(load_first)((const V(elem_a) *)ROW_ADDRESS(i), rest), xp, acc[i]);
        else
            UNROLL for (int i = 0; i < M; i++)
                acc[i] = V(fma)(V(load_part)((const V(elem_a) *)ROW_ADDRESS(i), rest), xp, acc[i]);
    }
    UNROLL for (int g = 0; g < MR / V(rows); g++) found[g] = V(reduce_rows)(acc + g * V(rows));
    PASTE(VEC, finish)((M + V(rows) - 1) / V(rows), M, found, c, rs_c, flags);
}

INLINE void PASTE(VEC, by_rows)(int64_t m, int64_t k, const V(elem_a) *a, int64_t rs_a, const V(elem_a) *end,
                                const V(elem_b) *x, V(elem_c) *c, int64_t rs_c, int flags)
{
    for (; m >= MR; m -= MR, a += MR * rs_a, c += MR * rs_c)
        PASTE(VEC, rows_of)(MR, k, a, rs_a, end, x, c, rs_c, flags);
    switch (m) {
#define CASE(M) case M: PASTE(VEC, rows_of)(M, k, a, rs_a, end, x, c, rs_c, flags); break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
#if ROWS_AT_A_TIME == 16
        CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15)
#endif
#undef CASE
    }
}

#if SHORT_ROWS
/* Rows of K elements, a constant, that follow one another in memory: V(rows) of them at a time, whose elements are put
 * in columns. With a register for each row 48 x 3 x 1 uint8 by int8 took 3.8 times as long, 48 x 8 x 1 2.2, 56 x 4 x 1
 * float16 2.5, 48 x 3 x 1 float 1.9 times (Xeon). Rows whose loads would reach beyond `end` are copied before. */
INLINE void PASTE(VEC, by_short_rows)(const int K, int64_t m, const V(elem_a) *a, const V(elem_a) *end,
                                      const V(elem_b) *x, V(elem_c) *c, int64_t rs_c, int flags)
{
    enum { REACH = V(rows) * SHORT_ROWS };
    const V(short_x) xs = V(short_x_of)(K, x);
    for (; m > 0; m -= V(rows), a += V(rows) * K, c += V(rows) * rs_c) {
        const int rows = m < V(rows) ? (int)m : V(rows);
        const V(elem_a) *from = a;
        V(elem_a) copy[REACH];
        if (end - a < REACH) from = memcpy(copy, a, (size_t)(rows * K) * sizeof *a);
        V(acc) found = V(short_rows)(K, from, &xs);
        PASTE(VEC, finish)(1, rows, &found, c, rs_c, flags);
    }
}
#endif

#if DOTS == 24
/* M elements of each of N columns of C, those of a column adjacent, whose sums follow one another in `found`. */
INLINE void PASTE(VEC, finish_adjacent)(const int M, const int N, const V(acc) *found, V(elem_c) *c, int64_t cs_c,
                                       int flags)
{
    UNROLL for (int j = 0; j < N; j++)
        UNROLL for (int g = 0; g * V(rows) < M * N; g++) {
            const int first = j * M - g * V(rows), end = first + M; /* lanes of register g */
            if (end <= 0 || first >= V(rows)) continue;
            const int from = first > 0 ? first : 0, to = end < V(rows) ? end : V(rows);
            const V(mask) lanes = V(mask_of)(to) ^ V(mask_of)(from);
            V(elem_c) *cj = c + j * cs_c - first;
            V(store_masked)(cj, lanes, flags & PYSIMD_ZERO ? found[g] : V(add)(V(load_c_masked)(cj, lanes), found[g]));
        }
}
#endif

/* `rows` rows of N columns of C, whose sums follow one another in REGISTERS registers, those of a row adjacent. */
INLINE void PASTE(VEC, finish_rows)(const int REGISTERS, const int N, int rows, V(acc) *found, V(elem_c) *c,
                                    int64_t rs_c, int64_t cs_c, int flags)
{
    enum { MOST = MR * PYSIMD_GEMV_COLUMNS };
    _Static_assert(DOTS <= MOST, "the sums that are added at a time");
    if (rs_c == N && (N == 1 || cs_c == 1)) {
        PASTE(VEC, finish)(REGISTERS, rows * N, found, c, 1, flags);
        return;
    }
    V(sum) values[MOST], old; /* unsigned for integers: additions wrap */
    memcpy(values, found, sizeof *values * (size_t)(rows * N));
    for (int i = 0; i < rows; i++, c += rs_c)
        for (int j = 0; j < N; j++) {
            if (!(flags & PYSIMD_ZERO)) {
                memcpy(&old, c + j * cs_c, sizeof old);
                values[i * N + j] = old + values[i * N + j];
            }
            memcpy(c + j * cs_c, &values[i * N + j], sizeof old);
        }
}

/* M rows of A times N columns of B, both constants, by rows: each vector of A is loaded once for all columns. `adjacent`:
 * rs_c is 1, as where operands are exchanged; then the sums of a column follow one another. Stored one by one, 3 x 40 x 54
 * double with a transposed B took 1.28 times as long, 2 x 43 x 63 1.14, 3 x 300 x 100 int8 1.15 times (Xeon with AMX). */
INLINE void PASTE(VEC, rows_by_columns)(const int M, const int N, const int adjacent, int64_t k, const V(elem_a) *a,
                                        int64_t rs_a, const V(elem_a) *end, const V(elem_b) *x, int64_t rs_x,
                                        V(elem_c) *c, int64_t rs_c, int64_t cs_c, int flags)
{
    enum { MOST = DOTS };
    const int within = a + (M - 1) * rs_a + k / V(lanes) * V(lanes) + V(lanes) <= end;
    const int64_t rs = rs_a * (int64_t)sizeof *a;
    V(acc) acc[MOST + V(rows)], found[MOST / V(rows) + 1];
    /* Of those that the trees add: a loop over all of them is longer than is unrolled, and then acc is memory. */
    UNROLL for (int e = 0; e < (M * N + V(rows) - 1) / V(rows) * V(rows); e++) acc[e] = V(zero)();
    const char *row = (const char *)a;
    int64_t p = k;
    /* The fewer vectors, of A or of B, stay in registers while the others pass. */
#define AT(i, j) (adjacent ? (j) * M + (i) : (i) * N + (j))
#define STEP(LOAD_A, LOAD_X)                                                                                           \
    {                                                                                                                  \
        V(vec) kept[PYSIMD_GEMV_COLUMNS];                                                                              \
        if (M < N) {                                                                                                   \
            UNROLL for (int i = 0; i < M; i++) {                                                                       \
                const V(elem_a) *ap = (const V(elem_a) *)(row + i * rs);                                               \
                kept[i] = LOAD_A;                                                                                      \
            }                                                                                                          \
            UNROLL for (int j = 0; j < N; j++) {                                                                       \
                const V(elem_b) *xp = x + j * rs_x;                                                                    \
                const V(vec) xj = LOAD_X;                                                                              \
                UNROLL for (int i = 0; i < M; i++) acc[AT(i, j)] = V(fma)(kept[i], xj, acc[AT(i, j)]);                 \
            }                                                                                                          \
        } else {                                                                                                       \
            UNROLL for (int j = 0; j < N; j++) {                                                                       \
                const V(elem_b) *xp = x + j * rs_x;                                                                    \
                kept[j] = LOAD_X;                                                                                      \
            }                                                                                                          \
            UNROLL for (int i = 0; i < M; i++) {                                                                       \
                const V(elem_a) *ap = (const V(elem_a) *)(row + i * rs);                                               \
                const V(vec) ai = LOAD_A;                                                                              \
                UNROLL for (int j = 0; j < N; j++) acc[AT(i, j)] = V(fma)(ai, kept[j], acc[AT(i, j)]);                 \
            }                                                                                                          \
        }                                                                                                              \
    }
    for (; p >= V(lanes); p -= V(lanes), x += V(lanes), row += V(lanes) * sizeof *a) STEP(V(load)(ap), V(load_x)(xp))
    if (p > 0) {
        const V(part) rest = V(part_of)((int)p);
        if (within)
            STEP(V(load_first)(ap, rest), V(load_x_part)(xp, rest))
        else
            STEP(V(load_part)(ap, rest), V(load_x_part)(xp, rest))
    }
#undef STEP
#undef AT
    UNROLL for (int g = 0; g * V(rows) < M * N; g++) found[g] = V(reduce_rows)(acc + g * V(rows));
#if DOTS == 24
    if (adjacent) {
        PASTE(VEC, finish_adjacent)(M, N, found, c, cs_c, flags);
        return;
    }
#endif
    PASTE(VEC, finish_rows)((M * N + V(rows) - 1) / V(rows), N, M, found, c, rs_c, cs_c, flags);
}

/* N columns of B, a constant, in parts of A's rows. */
#if DOTS == 24 /* of nearly the same size */
INLINE void PASTE(VEC, by_parts_of_rows)(const int N, const int adjacent, int64_t m, int64_t k, const V(elem_a) *a,
                                         int64_t rs_a, const V(elem_a) *end, const V(elem_b) *x, int64_t rs_x,
                                         V(elem_c) *c, int64_t rs_c, int64_t cs_c, int flags)
{
    /* Where a register has the sums of sixteen rows, more than one takes a second tree of additions, of which a half is
     * zeros: 4 x 300 x 40 float took 1.05 times as long, but 3 x 130 x 50 float16, in fifteen sums, 0.97 times, and
     * bytes, whose trees are shorter for their K, 0.93 times (Xeon with AMX). */
    enum { ONE_REGISTER = V(rows) > DOTS / 2 && V(depth) == 1 };
    const int most = (ONE_REGISTER && N != 3 ? V(rows) : DOTS) / N;
    for (int64_t parts = (m + most - 1) / most, M; m > 0; m -= M, a += M * rs_a, c += M * rs_c, parts--) {
        M = (m + parts - 1) / parts;
        switch (M) {
#define CASE(M)                                                                                                        \
    case M:                                                                                                            \
        PASTE(VEC, rows_by_columns)(M <= most ? M : 1, N, adjacent, k, a, rs_a, end, x, rs_x, c, rs_c, cs_c,           \
                                    flags);                                                                            \
        break;
            CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#undef CASE
        }
    }
}
#endif

INLINE void PASTE(VEC, by_rows_of_columns)(const int N, int64_t m, int64_t k, const V(elem_a) *a, int64_t rs_a,
                                           const V(elem_a) *end, const V(elem_b) *x, int64_t rs_x, V(elem_c) *c,
                                           int64_t rs_c, int64_t cs_c, int flags)
{
#if DOTS == 24
    if (rs_c == 1)
        PASTE(VEC, by_parts_of_rows)(N, 1, m, k, a, rs_a, end, x, rs_x, c, 1, cs_c, flags);
    else
        PASTE(VEC, by_parts_of_rows)(N, 0, m, k, a, rs_a, end, x, rs_x, c, rs_c, cs_c, flags);
#else
    const int M = N == 4 ? 3 : 4;
    for (; m >= M; m -= M, a += M * rs_a, c += M * rs_c)
        PASTE(VEC, rows_by_columns)(M, N, 0, k, a, rs_a, end, x, rs_x, c, rs_c, cs_c, flags);
    for (; m > 0; m--, a += rs_a, c += rs_c)
        PASTE(VEC, rows_by_columns)(1, N, 0, k, a, rs_a, end, x, rs_x, c, rs_c, cs_c, flags);
#endif
}

/* The accumulators of V(rows) elements of C, added. */
INLINE V(acc) PASTE(VEC, total)(V(acc) *acc)
{
    UNROLL for (int half = V(lanes) / V(depth) / 2; half > 0; half /= 2)
        UNROLL for (int l = 0; l < half; l++) acc[l] = V(add)(acc[l], acc[l + half]);
    return acc[0];
}

/* V(rows) elements of C by columns, or the first `rest` of them if `partial`, in registers: then the first `inside` of
 * the columns are loaded like others, since what is loaded past their ends is in the array. */
INLINE V(acc) PASTE(VEC, columns_of)(const int partial, int rest, int64_t k, int64_t inside, const V(elem_a) *a,
                                     int64_t cs_a, const V(elem_b) *x)
{
    enum { ACCUMULATORS = V(lanes) / V(depth) };
    const V(part) part = V(part_of)(rest);
    V(acc) acc[ACCUMULATORS];
    UNROLL for (int l = 0; l < ACCUMULATORS; l++) acc[l] = V(zero)();
#define COLUMNS_OF(VALUES, l, terms)                                                                                   \
    acc[l] = V(fma)(VALUES, V(broadcast_x)(x, terms), acc[l]), a += V(depth) * cs_a, x += V(depth)
#define COLUMNS(l, terms)                                                                                              \
    COLUMNS_OF(partial ? V(columns_part)(a, cs_a, terms, part) : V(columns)(a, cs_a, terms), l, terms)
    for (; partial && inside >= V(lanes); inside -= V(lanes), k -= V(lanes))
        UNROLL for (int l = 0; l < ACCUMULATORS; l++) { COLUMNS_OF(V(columns)(a, cs_a, V(depth)), l, V(depth)); }
    for (; k >= V(lanes); k -= V(lanes)) UNROLL for (int l = 0; l < ACCUMULATORS; l++) { COLUMNS(l, V(depth)); }
    UNROLL for (int l = 0; l < ACCUMULATORS; l++) {
        if (k >= (l + 1) * V(depth)) {
            COLUMNS(l, V(depth));
        } else if (k > l * V(depth)) {
            COLUMNS(l, 1);
        }
    }
#undef COLUMNS
#undef COLUMNS_OF
    return PASTE(VEC, total)(acc);
}

/* The last m elements of a register that ends with the last element of C. */
INLINE void PASTE(VEC, finish_end)(int m, V(acc) found, V(elem_c) *c, int64_t rs_c, int flags)
{
    V(sum) values[V(rows)], shifted[V(rows)];
    memcpy(values, &found, sizeof values);
    memset(shifted, 0, sizeof shifted);
    for (int i = 0; i < m; i++) shifted[i] = values[V(rows) - m + i];
    memcpy(&found, shifted, sizeof found);
    PASTE(VEC, finish)(1, m, &found, c, rs_c, flags);
}

/* Register j of m elements of C. */
INLINE void PASTE(VEC, finish_register)(int64_t m, int j, V(acc) found, V(elem_c) *c, int64_t rs_c, int flags)
{
    const int64_t rest = m - j * V(rows);
    c += j * V(rows) * rs_c;
    if (rest >= V(rows))
        PASTE(VEC, finish)(1, V(rows), &found, c, rs_c, flags);
    else
        PASTE(VEC, finish_end)((int)rest, found, c, rs_c, flags);
}

/* `count` elements of C from registers of V(rows) each, of which the last begins at element `last` and overlaps the one
 * before it where count is no multiple of V(rows). */
INLINE void PASTE(VEC, finish_registers)(const int REGISTERS, int64_t last, V(acc) *found, V(elem_c) *c, int64_t rs_c,
                                         int flags)
{
#define FIRST(j) ((j) == REGISTERS - 1 ? last : (j) * V(rows))
    if (rs_c == 1) {
        if (!(flags & PYSIMD_ZERO)) /* before the first store */
            UNROLL for (int j = 0; j < REGISTERS; j++) found[j] = V(add)(V(load_c)(c + FIRST(j)), found[j]);
        UNROLL for (int j = 0; j < REGISTERS; j++) V(store)(c + FIRST(j), found[j]);
        return;
    }
    for (int j = 0; j < REGISTERS; j++) {
        V(sum) values[V(rows)], old; /* unsigned for integers: additions wrap */
        memcpy(values, found + j, sizeof values);
        for (int64_t i = j * V(rows) - FIRST(j); i < V(rows); i++) {
            V(elem_c) *ci = c + (FIRST(j) + i) * rs_c;
            if (!(flags & PYSIMD_ZERO)) {
                memcpy(&old, ci, sizeof old);
                values[i] = old + values[i];
            }
            memcpy(ci, &values[i], sizeof *ci);
        }
    }
}

/* REGISTERS registers of C, a constant, of which the last begins at element `last`: down TOGETHER of the columns that
 * an element has accumulators for, so that all accumulators are registers. Prefetches as many bytes as it reads at
 * `ahead`, unless that is NULL, and returns the address behind them. */
INLINE const char *PASTE(VEC, registers_of)(const int REGISTERS, int64_t last, int64_t k, const V(elem_a) *a,
                                            int64_t cs_a, const V(wide) *x, V(elem_c) *c, int64_t rs_c, int flags,
                                            const char *ahead)
{
    enum { ACCUMULATORS = V(lanes) / V(depth), TOGETHER = 4, MOST = 3, LINE = 64 };
    const int bytes = TOGETHER * V(depth) * REGISTERS * V(rows) * (int)sizeof *a;
    _Static_assert(ACCUMULATORS % TOGETHER == 0, "whole passes");
    V(acc) sums[MOST][ACCUMULATORS], found[MOST];
    UNROLL for (int l0 = 0; l0 < ACCUMULATORS; l0 += TOGETHER) {
        V(acc) acc[MOST][TOGETHER];
        const V(elem_a) *al = a + l0 * V(depth) * cs_a;
        const V(wide) *xl = x + l0 * V(depth);
        int64_t p = k - l0 * V(depth);
        UNROLL for (int j = 0; j < REGISTERS; j++)
            UNROLL for (int l = 0; l < TOGETHER; l++) acc[j][l] = V(zero)();
#define COLUMN(l, terms)                                                                                               \
    {                                                                                                                  \
        const V(vec) xp = V(broadcast_wide)(xl + (l) * V(depth));                                                      \
        UNROLL for (int j = 0; j < REGISTERS; j++)                                                                     \
            acc[j][l] = V(fma)(V(columns)(al + FIRST(j), cs_a, terms), xp, acc[j][l]);                                 \
        al += V(depth) * cs_a;                                                                                         \
    }
        for (; p >= TOGETHER * V(depth); p -= V(lanes), xl += V(lanes)) {
            UNROLL for (int l = 0; l < TOGETHER; l++) COLUMN(l, V(depth))
            al += (V(lanes) - TOGETHER * V(depth)) * cs_a;
            if (ahead) {
                UNROLL for (int line = 0; line < bytes; line += LINE) __builtin_prefetch(ahead + line, 0, 2);
                ahead += bytes;
            }
        }
        UNROLL for (int l = 0; l < TOGETHER; l++) {
            if (p >= (l + 1) * V(depth))
                COLUMN(l, V(depth))
            else if (p > l * V(depth))
                COLUMN(l, 1)
        }
#undef COLUMN
        UNROLL for (int j = 0; j < REGISTERS; j++)
            UNROLL for (int l = 0; l < TOGETHER; l++) sums[j][l0 + l] = acc[j][l];
    }
    UNROLL for (int j = 0; j < REGISTERS; j++) found[j] = PASTE(VEC, total)(sums[j]);
    PASTE(VEC, finish_registers)(REGISTERS, last, found, c, rs_c, flags);
    return ahead;
}
#undef FIRST

enum { PASTE(VEC, MOST_TERMS) = 512, PASTE(VEC, IN_L1) = 32 << 10 }; /* k and bytes of A of in_registers */

/* k elements of x as registers take them, each widened once; the last vector is filled with zeros. */
INLINE const V(wide) *PASTE(VEC, widened)(int64_t k, const V(elem_b) *x, V(wide) *buffer)
{
    if (!V(widens)) return (const V(wide) *)x;
    int64_t p = 0;
    for (; p + V(lanes) <= k; p += V(lanes)) V(store_wide)(buffer + p, V(load_x)(x + p));
    if (p < k) V(store_wide)(buffer + p, V(load_x_part)(x + p, V(part_of)((int)(k - p))));
    return buffer;
}

/* m elements of C, at least V(rows), of a matrix in L1, where side_by_side took 1.1 to 1.5 times as long (Zen 3). Down
 * the columns the hardware's prefetch does not follow: from L2 and L3 128 x 128 float, 64 KiB, took 1.3 and 1.5 times
 * as long as in_turn. So the next matrix is prefetched into L2, at `ahead`, where it is further away. */
NOINLINE void PASTE(VEC, in_registers)(int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a, const V(elem_b) *x,
                                       V(elem_c) *c, int64_t rs_c, int flags, const char *ahead)
{
    enum { TWO = 2 * V(rows), THREE = 3 * V(rows) };
    V(wide) buffer[V(widens) ? PASTE(VEC, MOST_TERMS) : 1];
    const V(wide) *wide = PASTE(VEC, widened)(k, x, buffer);
    for (; m > 2 * TWO || (m > TWO && m <= THREE); m -= THREE, a += THREE, c += THREE * rs_c)
        ahead = PASTE(VEC, registers_of)(3, (m < THREE ? m : THREE) - V(rows), k, a, cs_a, wide, c, rs_c, flags, ahead);
    for (; m > V(rows); m -= TWO, a += TWO, c += TWO * rs_c)
        ahead = PASTE(VEC, registers_of)(2, (m < TWO ? m : TWO) - V(rows), k, a, cs_a, wide, c, rs_c, flags, ahead);
    if (m > 0) PASTE(VEC, registers_of)(1, 0, k, a, cs_a, wide, c, rs_c, flags, ahead);
}

/* Many elements of C: as many columns as an element has accumulators are read side by side, from the first element to
 * the last, which is the order that the hardware's prefetch follows. The accumulators are in memory, in L1 or L2: the
 * longer the pieces of rows, the faster the matrix is read (1x4096 by 4096x4096 float on a Zen 3: 7 ms with 8 KiB of
 * accumulators, 3.8 with 32, 3.6 with 64; prefetching the next rows into L2 changed nothing).
 * Tried: registers alone, down four columns at a time, which reads lines that are far apart (2.1 times as long for
 * 1x128 by 128x128, with a prefetch of the next product too). */
enum { PASTE(VEC, MOST) = 65536 / sizeof(V(acc)) / (V(lanes) / V(depth)) }; /* registers of C */

/* One term (V(depth) adjacent ones) of every accumulator of `count` registers of C, of which the last begins at element
 * `last`. The accumulators are zero before if `first`. */
INLINE void PASTE(VEC, sweep)(const int first, int count, int64_t last, const V(elem_a) *a, int64_t cs_a,
                              const V(elem_b) *x, V(acc) (*acc)[V(lanes) / V(depth)])
{
    V(vec) xl[V(lanes) / V(depth)];
    UNROLL for (int l = 0; l < V(lanes) / V(depth); l++) xl[l] = V(broadcast_x)(x + l * V(depth), V(depth));
    for (int j = 0; j < count; j++) {
        const V(elem_a) *aj = a + (j < count - 1 ? j * V(rows) : last);
        UNROLL for (int l = 0; l < V(lanes) / V(depth); l++) {
            const V(acc) sum = first ? V(zero)() : acc[j][l];
            acc[j][l] = V(fma)(V(columns)(aj + l * V(depth) * cs_a, cs_a, V(depth)), xl[l], sum);
        }
    }
}

/* m elements, at least V(rows), and k at least V(lanes). The last register overlaps the one before it where m is no
 * multiple. */
NOINLINE void PASTE(VEC, side_by_side)(int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a, const V(elem_b) *x,
                                       V(elem_c) *c, int64_t rs_c, int flags)
{
    V(acc) acc[PASTE(VEC, MOST)][V(lanes) / V(depth)];
    const int count = (int)((m + V(rows) - 1) / V(rows));
    const int64_t last = m - V(rows);
    PASTE(VEC, sweep)(1, count, last, a, cs_a, x, acc);
    for (k -= V(lanes), a += V(lanes) * cs_a, x += V(lanes); k >= V(lanes);
         k -= V(lanes), a += V(lanes) * cs_a, x += V(lanes))
        PASTE(VEC, sweep)(0, count, last, a, cs_a, x, acc);
    for (int l = 0; k > 0; l++, k -= V(depth), a += V(depth) * cs_a, x += V(depth)) {
        const int depth = k < V(depth) ? 1 : V(depth);
        const V(vec) xl = V(broadcast_x)(x, depth);
        for (int j = 0; j < count; j++)
            acc[j][l] = V(fma)(V(columns)(a + (j < count - 1 ? j * V(rows) : last), cs_a, depth), xl, acc[j][l]);
    }
    for (int j = 0; j < count; j++) {
        V(acc) found = PASTE(VEC, total)(acc[j]);
        PASTE(VEC, finish_register)(m, j, found, c, rs_c, flags);
    }
}

enum { PASTE(VEC, MOST_IN_TURN) = 2 * PASTE(VEC, MOST), PASTE(VEC, TERMS) = 4 };

/* Four terms of an accumulator of each of `count` registers of C: of columns of A at a distance of V(lanes). The
 * accumulators are zero before if `first`. Prefetches as many bytes as it reads at `ahead`, unless that is NULL, and
 * returns the address behind them. */
INLINE const char *PASTE(VEC, add_columns)(const int first, int count, int64_t last, const V(elem_a) *a, int64_t cs_a,
                                           const V(elem_b) *x, V(acc) *acc, const char *ahead)
{
    enum { TERMS = PASTE(VEC, TERMS), LINE = 64, BYTES = TERMS * V(depth) * V(rows) * (int)sizeof *a };
    V(vec) xp[TERMS];
    UNROLL for (int t = 0; t < TERMS; t++) xp[t] = V(broadcast_x)(x + t * V(lanes), V(depth));
    for (int j = 0; j < count; j++) {
        const V(elem_a) *aj = a + (j < count - 1 ? j * V(rows) : last);
        V(acc) sum = first ? V(zero)() : acc[j];
        UNROLL for (int t = 0; t < TERMS; t++)
            sum = V(fma)(V(columns)(aj + t * V(lanes) * cs_a, cs_a, V(depth)), xp[t], sum);
        acc[j] = sum;
        if (ahead) {
            UNROLL for (int line = 0; line < BYTES; line += LINE) __builtin_prefetch(ahead + line, 0, 2);
            ahead += BYTES;
        }
    }
    return ahead;
}

/* As side_by_side, for matrices larger than L1 and at least four columns for each accumulator: four columns at a time,
 * all of the same accumulators, which are then loaded and stored a fourth as often: 1x512 by 512x512 float took 1.4
 * times less on a Zen 3, 1x1024 by 1024x1024 1.6 times less. With 64 KiB of accumulators 4096x4096 took 1.2 times as
 * long. Without gain: to prefetch each column 512 bytes ahead; eight columns at a time (0.95 to 1.05), which need 64 of
 * them. For matrices from 8 KiB on it took 1.0 to 1.4 times as long as side_by_side on a Xeon.
 * Blocks of fewer elements, whose accumulators stay in L1, took 1.1 to 2 times as long for matrices in L2 and L3 (Zen
 * 3).
 */
NOINLINE void PASTE(VEC, in_turn)(int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a, const V(elem_b) *x,
                                  V(elem_c) *c, int64_t rs_c, int flags)
{
    enum { ACCUMULATORS = V(lanes) / V(depth), TERMS = PASTE(VEC, TERMS) };
    V(acc) acc[ACCUMULATORS][PASTE(VEC, MOST_IN_TURN)];
    const int count = (int)((m + V(rows) - 1) / V(rows));
    const int64_t last = m - V(rows);
    const char *ahead = flags & PYSIMD_AHEAD ? (const char *)(a + TERMS * V(lanes) * cs_a) : NULL;
    for (int l = 0; l < ACCUMULATORS; l++)
        ahead = PASTE(VEC, add_columns)(1, count, last, a + l * V(depth) * cs_a, cs_a, x + l * V(depth), acc[l], ahead);
    for (k -= TERMS * V(lanes), a += TERMS * V(lanes) * cs_a, x += TERMS * V(lanes); k >= TERMS * V(lanes);
         k -= TERMS * V(lanes), a += TERMS * V(lanes) * cs_a, x += TERMS * V(lanes))
        for (int l = 0; l < ACCUMULATORS; l++)
            ahead =
                PASTE(VEC, add_columns)(0, count, last, a + l * V(depth) * cs_a, cs_a, x + l * V(depth), acc[l], ahead);
    for (int l = 0; k > 0; l = (l + 1) % ACCUMULATORS, k -= V(depth), a += V(depth) * cs_a, x += V(depth)) {
        const int depth = k < V(depth) ? 1 : V(depth);
        const V(vec) xl = V(broadcast_x)(x, depth);
        for (int j = 0; j < count; j++)
            acc[l][j] = V(fma)(V(columns)(a + (j < count - 1 ? j * V(rows) : last), cs_a, depth), xl, acc[l][j]);
    }
    for (int j = 0; j < count; j++) {
        V(acc) of_j[ACCUMULATORS];
        UNROLL for (int l = 0; l < ACCUMULATORS; l++) of_j[l] = acc[l][j];
        V(acc) found = PASTE(VEC, total)(of_j);
        PASTE(VEC, finish_register)(m, j, found, c, rs_c, flags);
    }
}

INLINE void PASTE(VEC, by_columns)(int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a, const V(elem_a) *end,
                                   const V(elem_b) *x, V(elem_c) *c, int64_t rs_c, int flags, const char *ahead)
{
    V(acc) found;
    if (m < V(rows)) {
        /* What is loaded past row m is not stored. */
        const int64_t inside = end && end - a >= V(rows) ? (end - a - V(rows)) / cs_a + 1 : 0;
        found = inside >= k ? PASTE(VEC, columns_of)(0, 0, k, 0, a, cs_a, x)
                            : PASTE(VEC, columns_of)(1, (int)m, k, inside, a, cs_a, x);
        PASTE(VEC, finish)(1, (int)m, &found, c, rs_c, flags);
    } else if (m * k * (int64_t)sizeof *a <= PASTE(VEC, IN_L1) && k <= PASTE(VEC, MOST_TERMS)) {
        PASTE(VEC, in_registers)(m, k, a, cs_a, x, c, rs_c, flags, ahead);
    } else if (m <= 2 * V(rows) || k <= V(lanes)) { /* in registers; the last may overlap the one before it */
        for (; m > 0; m -= V(rows), a += V(rows), c += V(rows) * rs_c) {
            const int back = m < V(rows) ? (int)(V(rows) - m) : 0;
            found = PASTE(VEC, columns_of)(0, 0, k, 0, a - back, cs_a, x);
            if (back)
                PASTE(VEC, finish_end)((int)m, found, c, rs_c, flags);
            else
                PASTE(VEC, finish)(1, V(rows), &found, c, rs_c, flags);
        }
    } else {
        const int in_turn = k >= PASTE(VEC, TERMS) * V(lanes) && m > 4 * V(rows) &&
                            m * k * (int64_t)sizeof *a > PASTE(VEC, IN_L1);
        const int64_t most = (in_turn ? PASTE(VEC, MOST_IN_TURN) : PASTE(VEC, MOST)) * V(rows);
        while (m > 0) { /* the last block is not shorter than a register */
            const int64_t block = m <= most ? m : m < most + V(rows) ? most - V(rows) : most;
            if (in_turn)
                PASTE(VEC, in_turn)(block, k, a, cs_a, x, c, rs_c, flags);
            else
                PASTE(VEC, side_by_side)(block, k, a, cs_a, x, c, rs_c, flags);
            m -= block, a += block, c += block * rs_c;
        }
    }
}

/* --- several columns of B, A by columns ---
 *
 * Terms are added in the order of in_turn: PASS terms of an accumulator to all registers of C, then those of the next
 * accumulator. So PASS columns of A are read side by side from the first element to the last, each vector of A once for
 * all columns of B; the accumulators are in memory between the passes. Blocks of two registers down all of K, whose
 * accumulators stay in registers, took 1.3 to 1.7 times as long for an A in L2 or L3 (Zen 3): the hardware's prefetch
 * does not follow. */

enum { PASTE(VEC, PASS) = 8, PASTE(VEC, MOST_IN_PASS) = 2 * PASTE(VEC, MOST) }; /* terms; registers of all columns */

/* The terms of one accumulator of REGISTERS registers of each of N columns of C, both constants: of `count` columns of
 * A, V(lanes) apart. The last register begins at element `last`. Begins with zeros if `first`. */
INLINE void PASTE(VEC, pass)(const int REGISTERS, const int N, int first, int64_t last, int64_t count,
                             const V(elem_a) *a, int64_t cs_a, const V(wide) *x, int64_t rs_x, V(acc) *sums)
{
    V(acc) acc[12];
    UNROLL for (int e = 0; e < REGISTERS * N; e++) acc[e] = first ? V(zero)() : sums[e];
#define COLUMN(terms)                                                                                                  \
    {                                                                                                                  \
        V(vec) ar[4];                                                                                                  \
        UNROLL for (int r = 0; r < REGISTERS; r++)                                                                     \
            ar[r] = V(columns)(a + (r == REGISTERS - 1 ? last : r * V(rows)), cs_a, terms);                            \
        UNROLL for (int j = 0; j < N; j++) {                                                                           \
            const V(vec) xj = V(broadcast_wide)(x + j * rs_x);                                                         \
            UNROLL for (int r = 0; r < REGISTERS; r++) acc[r * N + j] = V(fma)(ar[r], xj, acc[r * N + j]);             \
        }                                                                                                              \
    }
    for (; count >= V(depth); count -= V(lanes), a += V(lanes) * cs_a, x += V(lanes)) COLUMN(V(depth))
    if (V(depth) > 1 && count > 0) COLUMN(1)
#undef COLUMN
    UNROLL for (int e = 0; e < REGISTERS * N; e++) sums[e] = acc[e];
}

/* The same of all registers of m elements. */
INLINE void PASTE(VEC, pass_of_all)(const int N, int first, int64_t m, int64_t count, const V(elem_a) *a, int64_t cs_a,
                                    const V(wide) *x, int64_t rs_x, V(acc) *sums)
{
    const int MOST = N == 2 ? 4 : N == 3 ? 3 : 2;
    for (; m > MOST * V(rows); m -= MOST * V(rows), a += MOST * V(rows), sums += MOST * N)
        PASTE(VEC, pass)(MOST, N, first, (MOST - 1) * V(rows), count, a, cs_a, x, rs_x, sums);
    const int64_t last = m - V(rows);
    if (N == 2 && m > 3 * V(rows))
        PASTE(VEC, pass)(4, 2, first, last, count, a, cs_a, x, rs_x, sums);
    else if (N < 4 && m > 2 * V(rows))
        PASTE(VEC, pass)(3, N < 4 ? N : 3, first, last, count, a, cs_a, x, rs_x, sums);
    else if (m > V(rows))
        PASTE(VEC, pass)(2, N, first, last, count, a, cs_a, x, rs_x, sums);
    else
        PASTE(VEC, pass)(1, N, first, last, count, a, cs_a, x, rs_x, sums);
}

/* Of `count` terms of each of N columns of B, as registers take them; the last vector is filled with zeros. */
INLINE void PASTE(VEC, widen_terms)(const int N, int64_t count, const V(elem_b) *x, int64_t rs_x, V(wide) *to,
                                    int64_t rs_to)
{
    for (int j = 0; j < N; j++, x += rs_x, to += rs_to) {
        int64_t p = 0;
        for (; p + V(lanes) <= count; p += V(lanes)) V(store_wide)(to + p, V(load_x)(x + p));
        if (p < count) V(store_wide)(to + p, V(load_x_part)(x + p, V(part_of)((int)(count - p))));
    }
}

/* A register of each of N columns of C, a constant: all terms in registers, those of one accumulator after those of
 * another, in the order in which total() adds them. `wide` is B as registers take it. */
INLINE void PASTE(VEC, short_columns)(const int N, int64_t k, const V(elem_a) *a, int64_t cs_a, const V(wide) *wide,
                                      int64_t rs_wide, V(acc) *found)
{
    enum { ACCUMULATORS = V(lanes) / V(depth), COLUMNS = PYSIMD_GEMV_COLUMNS };
    _Static_assert(ACCUMULATORS == 16 || ACCUMULATORS == 8 || ACCUMULATORS == 4, "a tree of four, three or two levels");
    V(acc) level[5][COLUMNS];
    UNROLL for (int i = 0; i < ACCUMULATORS; i++) {
        const int l = ACCUMULATORS == 16  ? (i & 1) << 3 | (i & 2) << 1 | (i & 4) >> 1 | i >> 3
                      : ACCUMULATORS == 8 ? (i & 1) << 2 | (i & 2) | i >> 2
                                          : (i & 1) << 1 | i >> 1;
        const int up = (i & 15) == 15 ? 4 : (i & 7) == 7 ? 3 : (i & 3) == 3 ? 2 : i & 1;
        V(acc) sum[COLUMNS];
        PASTE(VEC, pass)(1, N, 1, 0, k - l * V(depth), a + l * V(depth) * cs_a, cs_a, wide + l * V(depth), rs_wide,
                         sum);
        UNROLL for (int b = 0; b < up; b++)
            UNROLL for (int j = 0; j < N; j++) sum[j] = V(add)(level[b][j], sum[j]);
        UNROLL for (int j = 0; j < N; j++) level[up][j] = sum[j];
    }
    UNROLL for (int j = 0; j < N; j++) found[j] = level[ACCUMULATORS == 16 ? 4 : ACCUMULATORS == 8 ? 3 : 2][j];
}

/* V(rows) elements of each of N adjacent columns of C. */
INLINE void PASTE(VEC, finish_columns)(const int N, const V(acc) *found, V(elem_c) *c, int64_t rs_c, int flags)
{
    V(sum) values[V(rows)][PYSIMD_GEMV_COLUMNS], old; /* unsigned for integers: additions wrap */
    if (rs_c == N && flags & PYSIMD_ZERO) {
        V(interleave_dense)(N, found, (V(sum) *)c);
        return;
    }
    V(interleave)(found, values[0]);
    for (int i = 0; i < V(rows); i++, c += rs_c) {
        if (!(flags & PYSIMD_ZERO))
            UNROLL for (int j = 0; j < N; j++) {
                memcpy(&old, c + j, sizeof old);
                values[i][j] = old + values[i][j];
            }
        memcpy(c, values[i], N * sizeof old);
    }
}

/* Register r of m elements of each of N columns of C, of which the last overlaps the one before it: where C is
 * overwritten, those elements are stored twice. */
INLINE void PASTE(VEC, finish_register_of)(const int N, int64_t m, int r, const V(acc) *found, V(elem_c) *c,
                                           int64_t rs_c, int64_t cs_c, int flags)
{
    const int whole = (r + 1) * V(rows) <= m;
    if (N > 1 && cs_c == 1 && (whole || flags & PYSIMD_ZERO))
        PASTE(VEC, finish_columns)(N, found, c + (whole ? r * V(rows) : m - V(rows)) * rs_c, rs_c, flags);
    else
        UNROLL for (int j = 0; j < N; j++) PASTE(VEC, finish_register)(m, r, found[j], c + j * cs_c, rs_c, flags);
}

/* m elements, at least V(rows), of each of N columns of C, with m * N in MOST_IN_PASS registers. */
INLINE void PASTE(VEC, in_passes)(const int N, int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a,
                                  const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c, int64_t cs_c, int flags)
{
    enum { ACCUMULATORS = V(lanes) / V(depth), TERMS = PASTE(VEC, PASS) * V(lanes), SHORT = 4 * V(lanes) };
    V(acc) sums[ACCUMULATORS][PASTE(VEC, MOST_IN_PASS)], found[PYSIMD_GEMV_COLUMNS];
    V(wide) buffer[PYSIMD_GEMV_COLUMNS * TERMS];
    UNROLL for (int j = 0; j < PYSIMD_GEMV_COLUMNS; j++) found[j] = V(zero)();
    int64_t p = 0;
    do {
        const int64_t count = k - p < TERMS ? k - p : TERMS, rs = V(widens) ? TERMS : rs_x;
        if (V(widens)) PASTE(VEC, widen_terms)(N, count, x + p, rs_x, buffer, TERMS);
        const V(wide) *terms = V(widens) ? buffer : (const V(wide) *)x + p;
        if (k <= SHORT) {
            for (int r = 0; r * V(rows) < m; r++) {
                const int64_t at = (r + 1) * V(rows) <= m ? r * V(rows) : m - V(rows);
                PASTE(VEC, short_columns)(N, k, a + at, cs_a, terms, rs, found);
                PASTE(VEC, finish_register_of)(N, m, r, found, c, rs_c, cs_c, flags);
            }
            return;
        }
        for (int l = 0; l < ACCUMULATORS; l++)
            PASTE(VEC, pass_of_all)(N, p == 0, m, count - l * V(depth), a + (p + l * V(depth)) * cs_a, cs_a,
                                    terms + l * V(depth), rs, sums[l]);
        p += count;
    } while (p < k);
    for (int r = 0; r * V(rows) < m; r++) {
        UNROLL for (int j = 0; j < N; j++) {
            V(acc) of_element[ACCUMULATORS];
            UNROLL for (int l = 0; l < ACCUMULATORS; l++) of_element[l] = sums[l][r * N + j];
            found[j] = PASTE(VEC, total)(of_element);
        }
        PASTE(VEC, finish_register_of)(N, m, r, found, c, rs_c, cs_c, flags);
    }
}

INLINE void PASTE(VEC, by_columns_of_columns)(const int N, int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a,
                                              const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c,
                                              int64_t cs_c, int flags)
{
    const int64_t most = PASTE(VEC, MOST_IN_PASS) / N * V(rows);
    while (m > 0) { /* the last block is not shorter than a register */
        const int64_t block = m <= most ? m : m < most + V(rows) ? most - V(rows) : most;
        PASTE(VEC, in_passes)(N, block, k, a, cs_a, x, rs_x, c, rs_c, cs_c, flags);
        m -= block, a += block, c += block * rs_c;
    }
}

#ifdef ONE_CHAIN
#include "gemv_chain.h"
#endif

/* How far a load of product i may reach: to the end of the array where its elements are adjacent, so that the first
 * elements of a vector are loaded without a look at their number; else NULL. */
INLINE const V(elem_a) *PASTE(VEC, end_of)(const pysimd_call *s, const V(elem_a) *a, int64_t i)
{
    const int64_t each = s->m * s->k;
    const int dense = s->cs_a == 1 ? s->rs_a == s->k || s->m == 1 : s->cs_a == s->m;
    if (!dense) return NULL;
    return a + (s->bs_a == each ? s->batch - i : 1) * each;
}

/* Product i, of N columns of B, a constant, and of at least V(rows) rows of A if they are several. */
INLINE void PASTE(VEC, product_by_columns)(const int N, const pysimd_call *s, int64_t i, const V(elem_a) *a,
                                           const V(elem_b) *x, V(elem_c) *c, const char *ahead)
{
#ifdef ONE_CHAIN
    if (PASTE(VEC, is_in_chains)(s->m, s->k, s->cs_a)) {
#define CHAINS(N) PASTE(VEC, in_chains_of_##N)(s->m, s->k, a, s->cs_a, x, s->rs_b, c, s->rs_c, s->cs_c, s->flags)
        if (N == 1)
            PASTE(VEC, by_columns_in_chains)(1, s->m, s->k, a, s->cs_a, x, 0, c, s->rs_c, 1, s->flags, ahead);
        else if (N == 2)
            CHAINS(2);
        else if (N == 3)
            CHAINS(3);
        else
            CHAINS(4);
#undef CHAINS
        return;
    }
#endif
    if (N == 1)
        PASTE(VEC, by_columns)(s->m, s->k, a, s->cs_a, PASTE(VEC, end_of)(s, a, i), x, c, s->rs_c, s->flags, ahead);
    else
        PASTE(VEC, by_columns_of_columns)(N, s->m, s->k, a, s->cs_a, x, s->rs_b, c, s->rs_c, s->cs_c, s->flags);
}

#if SHORT_ROWS == 4
/* At least V(rows) rows of K elements times N columns of B, both constants. The last register overlaps the one before
 * it. Rows that are apart in memory, or whose loads would reach beyond `end`, are copied before. 64 x 3 x 2 float took
 * 313 ns by tiles and takes 128, float16 369 and 129 (Zen 3; by vectors along K 1.1 and 1.7 times as long as by
 * tiles). */
INLINE void PASTE(VEC, short_rows_by_columns)(const int K, const int N, const pysimd_call *s, const V(elem_a) *a,
                                              const V(elem_a) *end, const V(elem_b) *x, V(elem_c) *c)
{
    enum { REACH = V(rows) * SHORT_ROWS };
    V(short_x) xs[PYSIMD_GEMV_COLUMNS];
    UNROLL for (int j = 0; j < N; j++) xs[j] = V(short_x_of)(K, x + j * s->rs_b);
    for (int r = 0; r * V(rows) < s->m; r++) {
        const int64_t at = (r + 1) * V(rows) <= s->m ? r * V(rows) : s->m - V(rows);
        const V(elem_a) *from = a + at * s->rs_a;
        V(elem_a) copy[REACH];
        V(acc) found[PYSIMD_GEMV_COLUMNS];
        if (s->rs_a != K || end - from < REACH) {
            UNROLL for (int i = 0; i < V(rows); i++) memcpy(copy + i * K, from + i * s->rs_a, K * sizeof *a);
            from = copy;
        }
        UNROLL for (int j = 0; j < PYSIMD_GEMV_COLUMNS; j++)
            found[j] = j < N ? V(short_rows)(K, from, &xs[j]) : V(zero)();
        PASTE(VEC, finish_register_of)(N, s->m, r, found, c, s->rs_c, s->cs_c, s->flags);
    }
}

INLINE void PASTE(VEC, products_of_short_rows_by_columns)(const int K, const int N, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *x = s->b;
    V(elem_c) *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, x += s->bs_b, c += s->bs_c)
        PASTE(VEC, short_rows_by_columns)(K, N, s, a, PASTE(VEC, end_of)(s, a, i), x, c);
}
#endif

#if SHORT_ROWS
INLINE void PASTE(VEC, products_of_short_rows)(const int K, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *x = s->b;
    V(elem_c) *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, x += s->bs_b, c += s->bs_c)
        PASTE(VEC, by_short_rows)(K, s->m, a, PASTE(VEC, end_of)(s, a, i), x, c, s->rs_c, s->flags);
}
#endif

NOINLINE void PASTE(VEC, products)(const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *x = s->b;
    V(elem_c) *c = s->c;
#if SHORT_ROWS
    if (s->cs_a == 1 && s->rs_a == s->k && s->m > 1) {
        switch (s->k) {
        case 2: PASTE(VEC, products_of_short_rows)(2, s); return;
        case 3: PASTE(VEC, products_of_short_rows)(3, s); return;
        case 4: PASTE(VEC, products_of_short_rows)(4, s); return;
#if SHORT_ROWS == 8
        case 5: PASTE(VEC, products_of_short_rows)(5, s); return;
        case 6: PASTE(VEC, products_of_short_rows)(6, s); return;
        case 7: PASTE(VEC, products_of_short_rows)(7, s); return;
        case 8: PASTE(VEC, products_of_short_rows)(8, s); return;
#endif
        }
    }
#endif
    if (s->m == 1 && s->k == 1) {
        for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, x += s->bs_b, c += s->bs_c) {
            V(acc) found = V(fma)(V(load_one)(a), V(load_x_one)(x), V(zero)());
            PASTE(VEC, finish)(1, 1, &found, c, 1, s->flags);
        }
        return;
    }
    const int by_columns = s->cs_a != 1 || (s->k == 1 && s->rs_a == 1), prefetches = s->flags & PYSIMD_AHEAD;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, x += s->bs_b, c += s->bs_c)
        if (by_columns) {
            const char *ahead = prefetches && i + 1 < s->batch ? (const char *)(a + s->bs_a) : NULL;
            PASTE(VEC, product_by_columns)(1, s, i, a, x, c, ahead);
        }
        else
            PASTE(VEC, by_rows)(s->m, s->k, a, s->rs_a, PASTE(VEC, end_of)(s, a, i), x, c, s->rs_c, s->flags);
}

/* The same of N columns of B, a constant. */
INLINE void PASTE(VEC, products_of_columns)(const int N, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *x = s->b;
    V(elem_c) *c = s->c;
    const int by_columns = s->cs_a != 1 || (s->k == 1 && s->rs_a == 1);
#if SHORT_ROWS == 4
    if (!by_columns && s->m >= V(rows)) {
        switch (s->k) {
        case 2: PASTE(VEC, products_of_short_rows_by_columns)(2, N, s); return;
        case 3: PASTE(VEC, products_of_short_rows_by_columns)(3, N, s); return;
        case 4: PASTE(VEC, products_of_short_rows_by_columns)(4, N, s); return;
        }
    }
#endif
    if (by_columns && s->m < V(rows)) { /* one column of B after the other */
        pysimd_call column = *s;
        for (int j = 0; j < N; j++, x += s->rs_b, c += s->cs_c) {
            column.n = 1, column.b = x, column.c = c;
            PASTE(VEC, products)(&column);
        }
        return;
    }
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, x += s->bs_b, c += s->bs_c)
        if (by_columns)
            PASTE(VEC, product_by_columns)(N, s, i, a, x, c, NULL);
        else
            PASTE(VEC, by_rows_of_columns)(N, s->m, s->k, a, s->rs_a, PASTE(VEC, end_of)(s, a, i), x, s->rs_b, c,
                                           s->rs_c, s->cs_c, s->flags);
}

NOINLINE void PASTE(VEC, two_columns)(const pysimd_call *s) { PASTE(VEC, products_of_columns)(2, s); }
NOINLINE void PASTE(VEC, three_columns)(const pysimd_call *s) { PASTE(VEC, products_of_columns)(3, s); }
NOINLINE void PASTE(VEC, four_columns)(const pysimd_call *s) { PASTE(VEC, products_of_columns)(4, s); }
_Static_assert(PYSIMD_GEMV_COLUMNS == 4, "a function for each number of columns");

/* m rows of A times N columns of B, a constant, one row after the other; the sums of MR rows wait in L1. */
INLINE void PASTE(VEC, row_by_row)(const int N, const pysimd_call *s, const V(elem_a) *a, const V(elem_a) *end,
                                   const V(elem_b) *x, V(elem_c) *c)
{
    const int64_t k = s->k, rs_x = s->rs_b, whole = k / V(lanes) * V(lanes);
    const V(part) rest = V(part_of)((int)(k - whole));
    enum { MOST = MR * PYSIMD_GEMV_COLUMNS };
    V(vec) last_of_x[PYSIMD_GEMV_COLUMNS];
    V(acc) acc[MOST], found[MOST / V(rows)];
    UNROLL for (int j = 0; j < N; j++)
        last_of_x[j] = k > whole ? V(load_x_part)(x + j * rs_x + whole, rest) : V(load_x)(x + j * rs_x);
    for (int e = 0; e < MR * N; e++) acc[e] = V(zero)();
    for (int64_t i0 = 0; i0 < s->m; i0 += MR, c += MR * s->rs_c) {
        const int rows = s->m - i0 < MR ? (int)(s->m - i0) : MR;
        for (int i = 0; i < rows; i++, a += s->rs_a) {
            V(acc) sum[PYSIMD_GEMV_COLUMNS];
            UNROLL for (int j = 0; j < N; j++) sum[j] = V(zero)();
            for (int64_t p = 0; p < whole; p += V(lanes)) {
                const V(vec) ap = V(load)(a + p);
                UNROLL for (int j = 0; j < N; j++) sum[j] = V(fma)(ap, V(load_x)(x + j * rs_x + p), sum[j]);
            }
            if (k > whole) {
                const int within = a + whole + V(lanes) <= end;
                const V(vec) ap = within ? V(load_first)(a + whole, rest) : V(load_part)(a + whole, rest);
                UNROLL for (int j = 0; j < N; j++) sum[j] = V(fma)(ap, last_of_x[j], sum[j]);
            }
            UNROLL for (int j = 0; j < N; j++) acc[i * N + j] = sum[j];
        }
        UNROLL for (int g = 0; g < MR * N / V(rows); g++) found[g] = V(reduce_rows)(acc + g * V(rows));
        PASTE(VEC, finish_rows)(MR * N / V(rows), N, rows, found, c, s->rs_c, s->cs_c, s->flags);
    }
}

INLINE void PASTE(VEC, products_row_by_row)(const int N, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *x = s->b;
    V(elem_c) *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, x += s->bs_b, c += s->bs_c)
        PASTE(VEC, row_by_row)(N, s, a, PASTE(VEC, end_of)(s, a, i), x, c);
}

/* A function of its own: as a part of others it had their accumulators spilled by GCC 12, and 40 x 64 float16 took 1.3
 * times as long. */
NOINLINE void PASTE(VEC, any_row_by_row)(const pysimd_call *s)
{
    switch (s->n) {
    case 2: PASTE(VEC, products_row_by_row)(2, s); break;
    case 3: PASTE(VEC, products_row_by_row)(3, s); break;
    case 4: PASTE(VEC, products_row_by_row)(4, s); break;
    default: PASTE(VEC, products_row_by_row)(1, s);
    }
}

INLINE void PASTE(VEC, products_of_any)(const pysimd_call *s)
{
    if (s->flags & PYSIMD_ROW_BY_ROW) {
        PASTE(VEC, any_row_by_row)(s);
        return;
    }
    switch (s->n) {
    case 2: PASTE(VEC, two_columns)(s); break;
    case 3: PASTE(VEC, three_columns)(s); break;
    case 4: PASTE(VEC, four_columns)(s); break;
    default: PASTE(VEC, products)(s);
    }
}

#ifdef KERNEL
void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    if (cs_a == 1) {
        PASTE(VEC, rows_of)(MR, k, a, rs_a, NULL, b, c, rs_c, 0);
    } else {
        const pysimd_call s = one_tile(MR, 1, k, a, rs_a, cs_a, b, rs_b, c, rs_c);
        PASTE(VEC, products)(&s);
    }
}

void PASTE(KERNEL, batch)(const pysimd_call *s)
{
#ifdef EXCHANGED
    if (s->flags & PYSIMD_EXCHANGED) {
        PASTE(EXCHANGED, products_of_any)(s);
        return;
    }
#endif
    PASTE(VEC, products_of_any)(s);
}
#endif
