/* gemv_chain.h: A by columns times up to PYSIMD_GEMV_COLUMNS columns of B, by one chain of multiply-adds an element of
 * C. Included by gemv.h for kernels that set ONE_CHAIN.
 *
 * The accumulators of gemv.h, as many for an element as a register has lanes, make the bits independent of the order in
 * which A is stored, but they are loaded and stored eight times as often. Here an element of C has one, which adds the
 * terms with k ascending, as the outer product does: so its bits are those of any number of rows from a register on. Of
 * fewer rows and a long K the terms are added by lanes (few_elements): so the parts of threads are whole registers.
 *
 *   registers   sixteen registers of C down all of K: matrices of up to 32 registers of rows, and short K. A row of
 *               B of exchanged operands is then up to sixteen cache lines in a row, which hardware's prefetch follows.
 *   passes      longer rows: TERMS columns of A at a time from the first element to the last, with the accumulators in
 *               L1. One load and one store of them for TERMS loads of A.
 *
 * On a Xeon with AMX, one thread, 1x128 by 128x128 double took 13.9 microseconds for ten products in registers and
 * 15.5 in passes, where reading B takes 15.0; 1x512 by 512x512 39 and 31 (33), 1x4096 by 4096x4096 9,530 and 5,624
 * (5,563).
 */

_Static_assert(V(depth) == 1, "a term at a time");

/* Registers; bytes of accumulators of a pass. */
enum { PASTE(VEC, IN_CHAINS) = 16, PASTE(VEC, CHAIN_BYTES) = 32 << 10 };

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
    UNROLL for (int r = 0; r < REGISTERS; r++) {
        V(acc) found[PYSIMD_GEMV_COLUMNS];
        UNROLL for (int j = 0; j < PYSIMD_GEMV_COLUMNS; j++) found[j] = j < N ? acc[j][r] : V(zero)();
        PASTE(VEC, finish_register_of)(N, last + V(rows), r, found, c, rs_c, cs_c, flags);
    }
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
        V(acc) found = PASTE(VEC, columns_of)(1, (int)m, k, a, cs_a, x);
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

/* TERMS terms, a constant, of `count` registers of each of N columns of C; the last begins at element `last`. The
 * accumulators are zero before if `first`. */
INLINE void PASTE(VEC, chain_pass)(const int N, const int TERMS, int first, int count, int64_t last, const V(elem_a) *a,
                                   int64_t cs_a, const V(elem_b) *x, int64_t rs_x, V(acc) *acc)
{
    V(vec) xp[PYSIMD_GEMV_COLUMNS][8];
    UNROLL for (int j = 0; j < N; j++)
        UNROLL for (int t = 0; t < TERMS; t++) xp[j][t] = V(broadcast_x)(x + j * rs_x + t, 1);
    for (int r = 0; r < count; r++) {
        const V(elem_a) *ar = a + (r < count - 1 ? r * V(rows) : last);
        V(acc) sum[PYSIMD_GEMV_COLUMNS];
        UNROLL for (int j = 0; j < N; j++) sum[j] = first ? V(zero)() : acc[r * N + j];
        UNROLL for (int t = 0; t < TERMS; t++) {
            const V(vec) at = V(columns)(ar + t * cs_a, cs_a, 1);
            UNROLL for (int j = 0; j < N; j++) sum[j] = V(fma)(at, xp[j][t], sum[j]);
        }
        UNROLL for (int j = 0; j < N; j++) acc[r * N + j] = sum[j];
    }
}

/* m elements, at least a register of them, of each of N columns of C, whose accumulators take CHAIN_BYTES at most. */
INLINE void PASTE(VEC, chains_in_passes)(const int N, int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a,
                                         const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c, int64_t cs_c,
                                         int flags)
{
    const int TERMS = N < 4 ? 8 : 4;
    V(acc) acc[PASTE(VEC, CHAIN_BYTES) / sizeof(V(acc))];
    const int count = (int)((m + V(rows) - 1) / V(rows));
    const int64_t last = m - V(rows);
    int64_t p = 0;
#define PASSES(TERMS)                                                                                                  \
    for (; k - p >= (TERMS); p += (TERMS))                                                                             \
        PASTE(VEC, chain_pass)(N, TERMS, p == 0, count, last, a + p * cs_a, cs_a, x + p, rs_x, acc);
    PASSES(TERMS)
    PASSES(4)
    PASSES(2)
    PASSES(1)
#undef PASSES
    for (int r = 0; r < count; r++) {
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
        CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15) CASE(16)
#undef CASE
    }
    return ahead;
}

INLINE void PASTE(VEC, by_columns_in_chains)(const int N, int64_t m, int64_t k, const V(elem_a) *a, int64_t cs_a,
                                             const V(elem_b) *x, int64_t rs_x, V(elem_c) *c, int64_t rs_c, int64_t cs_c,
                                             int flags, const char *ahead)
{
    enum { SHORT_K = 16, FEW = 32 };
    if (m < V(rows)) {
        for (int j = 0; j < N; j++)
            PASTE(VEC, few_elements)(m, k, a, cs_a, x + j * rs_x, c + j * cs_c, rs_c, flags);
        return;
    }
    const int64_t registers = (m + V(rows) - 1) / V(rows);
    const int in_registers = k <= SHORT_K || registers * N <= FEW;
    const int64_t most = in_registers ? PASTE(VEC, IN_CHAINS) / N
                                      : PASTE(VEC, CHAIN_BYTES) / (int64_t)sizeof(V(acc)) / N;
    const int64_t blocks = (registers + most - 1) / most, each = (registers + blocks - 1) / blocks * V(rows);
    for (int64_t block; m > 0; m -= block, a += block, c += block * rs_c) {
        block = m <= each ? m : m < each + V(rows) ? each - V(rows) : each; /* no block is shorter than a register */
        if (in_registers)
            ahead = PASTE(VEC, chains_of_block)(N, block, k, a, cs_a, x, rs_x, c, rs_c, cs_c, flags, ahead);
        else
            PASTE(VEC, chains_in_passes)(N, block, k, a, cs_a, x, rs_x, c, rs_c, cs_c, flags);
    }
}
