/* gemv_chain.h: A by columns times up to PYSIMD_GEMV_COLUMNS columns of B, by one chain of multiply-adds an element of
 * C. Included by gemv.h for kernels that set ONE_CHAIN: the registers that hold accumulators.
 *
 * The accumulators of gemv.h, as many for an element as a register has lanes, make the bits independent of the order in
 * which A is stored, but they are loaded and stored eight times as often. Here an element of C has one, which adds the
 * terms with k ascending, as the outer product does. The bits are those of any number of rows but a few: a chain of K
 * multiply-adds in few registers takes longer than their loads. Of fewer rows than a register has, and with twelve
 * accumulators of up to three registers, the terms of a long K are added by lanes (few_elements), or as in gemv.h
 * (is_in_chains). So a part of a thread has sixteen rows and more, or four registers (driver.c).
 *
 *   registers   all of K by up to ONE_CHAIN registers of C: few rows, short K, or an A in L1. A row of B of exchanged
 *               operands is then some cache lines in a row, which hardware's prefetch follows.
 *   blocks      longer rows: TERMS columns of A at a time, by blocks of eight registers of C (of two of one column of
 *               B, terms_together), whose accumulators are in L1 meanwhile. Of short columns those of the next pass are
 *               prefetched, since hardware's prefetch has to begin again at each of them.
 *
 * On a Zen 3, one thread, a vector by 128 x 128 float took 664 ns in L1 by blocks of eight registers and eight terms,
 * 737 by one register after the other, 802 by blocks down all of K; from L3 990, 1050 and 1190; a vector by 4096 x 4096
 * 3.0, 3.0 and 6.3 ms, with sixteen terms 4.0. With the prefetch 190 x 112 double from beyond L3 took 4.0 microseconds
 * instead of 7.4, two vectors 5.3 instead of 11.3, four 8.5 instead of 16.8; from L2 it made no difference; columns of
 * 4 KB took 1.1 to 1.4 times as long with it. On a Xeon with AMX all of these take as long as reading A from L3 does; a
 * float16 vector by 1000 x 1000 took 0.54 times as long as by one register after the other.
 */

_Static_assert(V(depth) == 1, "a term at a time");

/* Registers; bytes of accumulators of a pass; its terms; from those of a column of B to those of the next. */
enum { PASTE(VEC, IN_CHAINS) = ONE_CHAIN, PASTE(VEC, CHAIN_BYTES) = 32 << 10 };
enum { PASTE(VEC, TERMS_OF_PASS) = 8, PASTE(VEC, TERMS_APART) = 16 };
_Static_assert((int)V(lanes) <= (int)PASTE(VEC, TERMS_APART), "whole vectors of terms");

/* REGISTERS registers of each of N columns of C, both constants, of which the last begins at element `last`: down all
 * of K. Prefetches as many bytes as it reads at `ahead`, unless that is NULL, and returns the address behind them. */
INLINE const char *PASTE(VEC, chains)(const int REGISTERS, const int N, int64_t last, int64_t k, const V(elem_a) *a,
                                      int64_t cs_a, const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c,
                                      int64_t cs_c, int flags, const char *ahead)
{
    enum { LINE = 64 };
    const int bytes = REGISTERS * V(rows) * (int)sizeof *a;
    V(acc) acc[PYSIMD_GEMV_COLUMNS][PASTE(VEC, IN_CHAINS)];
    UNROLL for (int j = 0; j < N; j++)
        UNROLL for (int r = 0; r < REGISTERS; r++) acc[j][r] = V(zero)();
    for (int64_t p = 0; p < k; p++, a += cs_a, x++) {
        V(vec) xp[PYSIMD_GEMV_COLUMNS];
        UNROLL for (int j = 0; j < N; j++) xp[j] = V(broadcast_x)(x + j * rs_x, 1);
        UNROLL for (int r = 0; r < REGISTERS; r++) {
            const V(vec) ar = V(columns)(a + (r == REGISTERS - 1 ? last : r * V(rows)), cs_a, 1);
            UNROLL for (int j = 0; j < N; j++) acc[j][r] = V(fma)(ar, xp[j], acc[j][r]);
        }
        if (ahead) {
            UNROLL for (int line = 0; line < bytes; line += LINE) __builtin_prefetch(ahead + line, 0, 2);
            ahead += bytes;
        }
    }
    if (N == 1 || cs_c != 1) {
        UNROLL for (int j = 0; j < N; j++)
            PASTE(VEC, finish_registers)(REGISTERS, last, acc[j], c + j * cs_c, rs_c, flags);
        return ahead;
    }
    /* Through memory: unrolled, these stores took the compiler half of its time, and no product less. */
    V(acc) found[PASTE(VEC, IN_CHAINS)][PYSIMD_GEMV_COLUMNS];
    UNROLL for (int r = 0; r < REGISTERS; r++)
        UNROLL for (int j = 0; j < PYSIMD_GEMV_COLUMNS; j++) found[r][j] = j < N ? acc[j][r] : V(zero)();
    for (int r = 0; r < REGISTERS; r++)
        PASTE(VEC, finish_register_of)(N, last + V(rows), r, found[r], c, rs_c, cs_c, flags);
    return ahead;
}

/* Fewer elements of C than a register has, of one column, in one chain. */
INLINE void PASTE(VEC, short_chain)(int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a, const V(elem_b) *x,
                                    V(elem_c) *c, int64_t rs_c, int flags)
{
    const V(part) part = V(part_of)((int)m);
    V(acc) acc = V(zero)();
    for (int64_t p = 0; p < k; p++, a += cs_a, x++)
        acc = V(fma)(V(columns_part)(a, cs_a, 1, part), V(broadcast_x)(x, 1), acc);
    PASTE(VEC, finish)(1, (int)m, &acc, c, rs_c, flags);
}

/* M elements of C, a constant, fewer than a register has, of one column whose K is long, and of an A whose columns
 * follow one another in memory: V(lanes) columns of it are M whole vectors. Each has an accumulator, and is multiplied
 * by the elements of x that belong to its lanes. The lanes of an element are added at the end. In one chain, of which
 * each term waits for the one before it, 1 x 2350 by 2350 x 2 bfloat16 took 4.0 microseconds (Xeon with AMX). */
INLINE void PASTE(VEC, flat)(const int M, int64_t k, const V(elem_a) *a, const V(elem_b) *x, V(elem_c) *c, int64_t rs_c,
                             int flags)
{
    enum { LANES = V(lanes) };
    V(acc) acc[LANES];
    V(index) lanes[LANES];
    UNROLL for (int q = 0; q < M; q++) {
        uint8_t of_x[LANES];
        UNROLL for (int i = 0; i < LANES; i++) of_x[i] = (uint8_t)((q * LANES + i) / M);
        lanes[q] = V(index_of)(of_x), acc[q] = V(zero)();
    }
    for (; k >= LANES; k -= LANES, a += LANES * M, x += LANES) {
        const V(vec) xp = V(load_x)(x);
        UNROLL for (int q = 0; q < M; q++) acc[q] = V(fma)(V(load)(a + q * LANES), V(permuted)(xp, lanes[q]), acc[q]);
    }
    if (k > 0) {
        const V(vec) xp = V(load_x_part)(x, V(part_of)((int)k));
        UNROLL for (int q = 0; q < M; q++) {
            const int rest = (int)k * M - q * LANES;
            const V(part) part = V(part_of)(rest < 0 ? 0 : rest < LANES ? rest : LANES);
            acc[q] = V(fma)(V(load_part)(a + q * LANES, part), V(permuted)(xp, lanes[q]), acc[q]);
        }
    }
    V(sum) terms[LANES * LANES], sums[LANES] = {0};
    memcpy(terms, acc, M * sizeof *acc);
    UNROLL for (int j = 0; j < M; j++) sums[j] = terms[j];
    for (int i = M; i < LANES * M; i += M)
        UNROLL for (int j = 0; j < M; j++) sums[j] += terms[i + j];
    V(acc) found;
    memcpy(&found, sums, sizeof found);
    PASTE(VEC, finish)(1, M, &found, c, rs_c, flags);
}

/* Fewer elements of C than a register has, of one column. */
INLINE void PASTE(VEC, few_elements)(int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a, const V(elem_b) *x,
                                     V(elem_c) *c, int64_t rs_c, int flags)
{
    enum { LONG_K = 32 };
    if (k < LONG_K || m == 1) {
        PASTE(VEC, short_chain)(m, k, a, cs_a, x, c, rs_c, flags);
        return;
    }
    if (cs_a != m) {
        V(acc) found = PASTE(VEC, columns_of)(1, (int)m, k, 0, a, cs_a, x);
        PASTE(VEC, finish)(1, (int)m, &found, c, rs_c, flags);
        return;
    }
    switch (m) {
#define CASE(M) case M: PASTE(VEC, flat)(M < V(lanes) ? M : 2, k, a, x, c, rs_c, flags); break;
        CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
        CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15)
#undef CASE
    }
}

/* `count` terms of REGISTERS registers of each of N columns of C, both constants; the last begins at element `last`.
 * The accumulators are zero before if `first`. Prefetches what is `ahead` elements further on, unless that is 0. */
INLINE void PASTE(VEC, block)(const int REGISTERS, const int N, int first, int64_t last, int64_t count,
                              const V(elem_a) *a, int64_t cs_a, int64_t ahead, const V(wide) *x, V(acc) *sums)
{
    enum { APART = PASTE(VEC, TERMS_APART), OF_LINE = 64 / sizeof *a };
    V(acc) acc[PASTE(VEC, IN_CHAINS)];
    UNROLL for (int e = 0; e < REGISTERS * N; e++) acc[e] = first ? V(zero)() : sums[e];
    for (int64_t p = 0; p < count; p++, a += cs_a, x++) {
        V(vec) ar[8];
        if (ahead)
            UNROLL for (int e = 0; e < REGISTERS * V(rows); e += OF_LINE) __builtin_prefetch(a + ahead + e);
        UNROLL for (int r = 0; r < REGISTERS; r++)
            ar[r] = V(columns)(a + (r == REGISTERS - 1 ? last : r * V(rows)), cs_a, 1);
        UNROLL for (int j = 0; j < N; j++) {
            const V(vec) xj = V(broadcast_wide)(x + j * APART);
            UNROLL for (int r = 0; r < REGISTERS; r++) acc[r * N + j] = V(fma)(ar[r], xj, acc[r * N + j]);
        }
    }
    UNROLL for (int e = 0; e < REGISTERS * N; e++) sums[e] = acc[e];
}

/* The same of all registers of m elements, by blocks of a few sizes: one of each number of registers takes the compiler
 * minutes. */
INLINE void PASTE(VEC, blocks)(const int N, int first, int64_t m, int64_t count, const V(elem_a) *a, int64_t cs_a,
                               int64_t ahead, const V(wide) *x, V(acc) *sums)
{
    const int MOST = N == 1 ? 8 : N == 2 ? ONE_CHAIN == 16 ? 8 : 4 : ONE_CHAIN == 16 ? 4 : N == 3 ? 3 : 2;
    while (m > 0) {
        const int64_t registers = (m + V(rows) - 1) / V(rows);
#define BLOCK(R)                                                                                                       \
    if (registers >= (R)) {                                                                                            \
        PASTE(VEC, block)(R, N, first, registers > (R) ? ((R) - 1) * V(rows) : m - V(rows), count, a, cs_a, ahead, x,  \
                          sums);                                                                                       \
        m -= (R) * V(rows), a += (R) * V(rows), sums += (R) * N;                                                       \
        continue;                                                                                                      \
    }
        BLOCK(MOST)
        BLOCK(MOST > 4 ? 4 : MOST > 2 ? 2 : 1)
        BLOCK(MOST > 4 ? 2 : 1)
        BLOCK(1)
#undef BLOCK
    }
}

/* A pass of one column of B: all terms of two registers of m elements at a time. One or two cache lines of a column of A
 * are read, then of the next one, so that the columns come from memory at the same time: by blocks of eight registers a
 * vector by 8192 x 2048 float took 1.35 times as long, 2048 x 8192 1.02 to 1.3 times (Zen 3; Xeon 1.14 and 1.15), in
 * cache as long. Columns of 512 bytes took 1.1 times as long so. */
INLINE void PASTE(VEC, terms_together)(int first, int64_t m, const V(elem_a) *a, int64_t cs_a, int64_t ahead,
                                      const V(wide) *x, V(acc) *sums)
{
    enum { TERMS = PASTE(VEC, TERMS_OF_PASS), OF_PAIR = 2 * V(rows), OF_LINE = 64 / sizeof *a };
    const int64_t rs = cs_a * (int64_t)sizeof *a;
    int64_t rs3 = 3 * rs;
    OPAQUE(rs3);
    const char *base[(TERMS + 4) / 5];
    UNROLL for (int g = 0; 5 * g < TERMS; g++) {
        base[g] = (const char *)a + 5 * g * rs;
        if (g > 0) OPAQUE(base[g]);
    }
    V(vec) xp[TERMS];
    UNROLL for (int t = 0; t < TERMS; t++) xp[t] = V(broadcast_wide)(x + t);
#define PAIR(REGISTERS, last)                                                                                          \
    {                                                                                                                  \
        V(acc) acc[REGISTERS];                                                                                         \
        UNROLL for (int r = 0; r < REGISTERS; r++) acc[r] = first ? V(zero)() : sums[r];                               \
        UNROLL for (int t = 0; t < TERMS; t++) {                                                                       \
            const V(elem_a) *at = (const V(elem_a) *)ROW_ADDRESS(t);                                                   \
            if (ahead)                                                                                                 \
                UNROLL for (int e = 0; e < REGISTERS * V(rows); e += OF_LINE) __builtin_prefetch(at + ahead + e);      \
            UNROLL for (int r = 0; r < REGISTERS; r++)                                                                 \
                acc[r] = V(fma)(V(columns)(at + (r == REGISTERS - 1 ? (last) : r * V(rows)), cs_a, 1), xp[t], acc[r]); \
        }                                                                                                              \
        UNROLL for (int r = 0; r < REGISTERS; r++) sums[r] = acc[r];                                                   \
    }
    for (; m >= OF_PAIR; m -= OF_PAIR, sums += 2) {
        PAIR(2, V(rows))
        UNROLL for (int g = 0; 5 * g < TERMS; g++) base[g] += OF_PAIR * sizeof *a;
    }
    if (m > V(rows)) {
        PAIR(2, m - V(rows))
    } else if (m > 0) {
        PAIR(1, m - V(rows))
    }
#undef PAIR
}

/* m elements, at least a register of them, of each of N columns of C, whose accumulators take CHAIN_BYTES at most. */
INLINE void PASTE(VEC, chains_in_blocks)(const int N, int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a,
                                         const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c, int64_t cs_c,
                                         int flags)
{
    enum { TERMS = PASTE(VEC, TERMS_OF_PASS), APART = PASTE(VEC, TERMS_APART), SHORT = 2048, LONG = 1024 };
    const int64_t ahead = cs_a * (int64_t)sizeof *a <= SHORT ? (N == 1 ? TERMS : 2 * TERMS) * cs_a : 0;
    V(acc) acc[PASTE(VEC, CHAIN_BYTES) / sizeof(V(acc))];
    V(wide) terms[PYSIMD_GEMV_COLUMNS * APART]; /* at a distance that is known here: that of B would take registers */
    for (int64_t p = 0; p < k; p += TERMS) {
        const int64_t count = k - p < TERMS ? k - p : TERMS;
        PASTE(VEC, widen_terms)(N, count, x + p, rs_x, terms, APART);
        if (N == 1 && count == TERMS && cs_a * (int64_t)sizeof *a >= LONG)
            PASTE(VEC, terms_together)(p == 0, m, a + p * cs_a, cs_a, ahead, terms, acc);
        else
            PASTE(VEC, blocks)(N, p == 0, m, count, a + p * cs_a, cs_a, ahead, terms, acc);
    }
    const int registers = (int)((m + V(rows) - 1) / V(rows));
    for (int r = 0; r < registers; r++) {
        V(acc) found[PYSIMD_GEMV_COLUMNS];
        UNROLL for (int j = 0; j < PYSIMD_GEMV_COLUMNS; j++) found[j] = j < N ? acc[r * N + j] : V(zero)();
        PASTE(VEC, finish_register_of)(N, m, r, found, c, rs_c, cs_c, flags);
    }
}

/* Up to IN_CHAINS / N registers of each of N columns. */
INLINE const char *PASTE(VEC, chains_of_block)(const int N, int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a,
                                               const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c,
                                               int64_t cs_c, int flags, const char *ahead)
{
    switch ((m + V(rows) - 1) / V(rows)) {
#define CASE(R)                                                                                                        \
    case R:                                                                                                            \
        if (N * R <= PASTE(VEC, IN_CHAINS))                                                                            \
            return PASTE(VEC, chains)(N * R <= PASTE(VEC, IN_CHAINS) ? R : 1, N, m - V(rows), k, a, cs_a, x, rs_x, c,  \
                                      rs_c, cs_c, flags, ahead);                                                       \
        break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
        CASE(9) CASE(10) CASE(11) CASE(12)
#if ONE_CHAIN == 16
        CASE(13) CASE(14) CASE(15) CASE(16)
#endif
#undef CASE
    }
    return ahead;
}

/* Whether the terms of an element are added in one chain. */
INLINE int PASTE(VEC, is_in_chains)(int64_t m, int64_t k, int64_t cs_a)
{
    enum { OF_ONE = 16, OF_TWO = 24, OF_THREE = 64, LONG_K = 32 };
    if (ONE_CHAIN == 16) return 1;
    if (m > 3 * V(rows)) return 1;
    if (m >= V(rows)) return k <= (m > 2 * V(rows) ? OF_THREE : m > V(rows) ? OF_TWO : OF_ONE);
    return cs_a == m && k >= LONG_K;
}

INLINE void PASTE(VEC, by_columns_in_chains)(const int N, int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a,
                                             const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c, int64_t cs_c,
                                             int flags, const char *ahead)
{
    enum { SHORT_K = 16, IN_L1 = 32 << 10, LATER = 16 };
    if (N == 1 && m < V(rows)) { /* gemv.h computes several columns of so few elements one after the other */
        PASTE(VEC, few_elements)(m, k, a, cs_a, x, c, rs_c, flags);
        return;
    }
    const int MOST = ONE_CHAIN < 16 && N == 4 ? 2 : PASTE(VEC, IN_CHAINS) / N; /* registers */
    const int64_t registers = (m + V(rows) - 1) / V(rows);
    const int in_registers = k <= SHORT_K || registers * N <= ONE_CHAIN || m * k * (int64_t)sizeof *a <= IN_L1;
    const int64_t most = in_registers ? MOST : PASTE(VEC, CHAIN_BYTES) / (int64_t)sizeof(V(acc)) / N;
    const int64_t blocks = (registers + most - 1) / most, each = (registers + blocks - 1) / blocks * V(rows);
    if (ahead) ahead = (const char *)(a + LATER * cs_a);
    for (int64_t block; m > 0; m -= block, a += block, c += block * rs_c) {
        block = m <= each ? m : m < each + V(rows) ? each - V(rows) : each; /* no block is shorter than a register */
        if (in_registers)
            ahead = PASTE(VEC, chains_of_block)(N, block, k, a, cs_a, x, rs_x, c, rs_c, cs_c, flags, ahead);
        else
            PASTE(VEC, chains_in_blocks)(N, block, k, a, cs_a, x, rs_x, c, rs_c, cs_c, flags);
    }
}

/* Several columns have functions of their own: inlined, they leave the other loops too few registers for strides. */
#define IN_CHAINS_OF(N)                                                                                                \
    NOINLINE void PASTE(VEC, in_chains_of_##N)(int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a,                 \
                                               const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c,           \
                                               int64_t cs_c, int flags)                                                \
    {                                                                                                                  \
        PASTE(VEC, by_columns_in_chains)(N, m, k, a, cs_a, x, rs_x, c, rs_c, cs_c, flags, NULL);                       \
    }
IN_CHAINS_OF(2)
IN_CHAINS_OF(3)
IN_CHAINS_OF(4)
#undef IN_CHAINS_OF
