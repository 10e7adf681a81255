/* outer.h: the outer-product microkernel, once, for every vector type.
 *
 * A kernel file sets KERNEL, VEC, MR and NR, and includes this file, which defines its two entry points.
 * VEC names a vector type of vec_<target>.h; V(op) below is that type's operation.
 *
 * One step of k is a rank-1 update of the micro-tile: one row of B is loaded into nr/lanes vectors, each of the mr
 * elements of a column of A is broadcast, and mr*nr products are added: (mr + nr) elements loaded, nothing stored. All
 * mr * nr/lanes accumulators are registers: every loop over them is unrolled by pragma, because gcc otherwise keeps the
 * array in memory and loads and stores it in each step.
 */
#include "kernel.h"

enum { LANES = V(lanes), NV_MAX = NR / LANES, K_GROUP = V(k_group) };
_Static_assert(NR % LANES == 0, "nr must be whole vectors");

#define ROW(i) ((const V(elem_a) *)ROW_ADDRESS(i))
enum { BASES = (MR + 4) / 5 };

/* With fewer than eight accumulators the latency of the fma bounds the loop, so a small tile has accumulators for even
 * and for odd k. Not for a short K: there the next product of the batch hides the latency, and adding the two up would
 * cost more. */
enum { FEW_ACCUMULATORS = MR * NV_MAX < 8, LONG_K = 8 };

/* Bytes of A and of B of a later product that one step prefetches, where A and B are square: a row. Prefetched at once,
 * before the product, they exceed the line fill buffers: 16x16 then takes 1.3 times the time of its memory traffic,
 * 1.17 times like this. */
enum { PREFETCH_PER_STEP = NR * sizeof(V(elem_b)) };

/* Steps of k in an iteration where the distance of A's columns is known. Two share their address arithmetic, which
 * competes for the ports of the fma (194 GFLOP/s against 185 for 14x32, K = 256, on a Xeon of the AMX generation; four
 * steps: 183). A kernel whose step takes every register sets 1: gcc interleaves the two steps, and then spills. */
#ifndef K_UNROLL
#define K_UNROLL 2
#endif

/* Of kernels whose file sets B_AHEAD, whole tiles from FAR_K on prefetch into L1: each step a row of a packed panel of
 * B, so many bytes ahead, for the panel comes from L2 for each tile; and the first steps, two each, the rows of C,
 * which come from L3 or memory when the last step has ended. Of 14 rows by two vectors with AVX-512, 512 x 512 x 512 to
 * 2048 x 2048 x 2048 float and double took 0.94 to 0.99 times as long with B 2048 bytes ahead (512 bytes 0.97 to 1.0,
 * 1024 0.96 to 0.98, 4096 as long as 2048 or up to 1.03 times), and with C too another 0.97 to 0.99, 1024 x 128 x 1024
 * and 4096 x 64 x 4096 float 0.88 to 0.94 (Xeon with AMX, whether or not another virtual machine used the core). */
#ifdef B_AHEAD
enum { PREFETCHES = 1 };
#else
enum { PREFETCHES = 0 };
#define B_AHEAD 0
#endif
enum { FAR_K = 64 };
_Static_assert(!PREFETCHES || 2 * MR < FAR_K, "the steps that prefetch C are steps of K");

/* How the columns of a tile end: with a whole vector; with a part of one; with a part of half a vector; or with one or
 * two, or up to four, columns more, of which a register has the rows as its lanes. A transposed A has these adjacent,
 * so that such a column costs one multiply-add for up to LANES rows, and not one for each. The bits are the same. */
enum { WHOLE, PART, PART_OF_HALF, ONE_COLUMN, TWO_COLUMNS, FOUR_COLUMNS };
enum { MOST_COLUMNS = 4, SIDES = (MR + LANES - 1) / LANES };
#define HAS_SIDE(partial) ((partial) >= ONE_COLUMN)
#define SIDE_COLUMNS(partial) ((partial) == FOUR_COLUMNS ? 4 : (partial) == TWO_COLUMNS ? 2 : 1)

/* The last vector of a row of C that does not fill it. AVX-512 masks that vector. Elsewhere it ends with the row and
 * overlaps the vector before it, of which it computes columns once more: with masked loads, and stores in pieces of
 * four, two and one element, 15x15 float took 163 ns, and takes 100 (AVX2, Zen 3). Only rows of less than one vector
 * are masked. */
#ifdef __AVX512F__
enum { OVERLAPS = 0 };
#else
enum { OVERLAPS = 1 };
#endif
#define MASKED(j) (partial == PART && (j) == NV - 1 && !(OVERLAPS && NV > 1))
#define COLUMN(j) (OVERLAPS && partial == PART && NV > 1 && (j) == NV - 1 ? (NV - 2) * LANES + lanes : (j) * LANES)

/* Where accumulators, row of B and one broadcast take all sixteen ymm registers, gcc would read the row as the memory
 * operand of every multiply-add: 13 loads for the 12 multiply-adds of 4x24, not 7. Arm has no such operands. */
#ifdef __x86_64__
enum { KEEPS_ROW = NV_MAX >= 3 };
#else
enum { KEEPS_ROW = 0 };
#endif

/* PART_OF_HALF, of kernels that define HALF_VECTORS: the columns after NV vectors are registers of half the width,
 * whose multiply-adds take half as long where a processor executes AVX-512 in halves. */
#ifdef HALF_VECTORS
#define LOAD_HALF                                                                                                      \
    const V(half) half_b = partial == PART_OF_HALF ? V(half_load)(b + NV * LANES, half_mask) : V(half_zero)();
#define FMA_HALF(i)                                                                                                    \
    if (partial == PART_OF_HALF) half[i] = V(half_fma)(ai, half_b, half[i]);
#else
#define LOAD_HALF
#define FMA_HALF(i)
#endif

/* One step of k: a row of B, and each element of a column of A, `further` elements past the pointers to its rows. */
#define STEP(acc, further) STEP_BY(V(fma)(ai, row[j], acc[i][j]), acc, further)
#define STEP_BY(VALUE, acc, further)                                                                                   \
    {                                                                                                                  \
        V(vec) row[NV_MAX];                                                                                            \
        UNROLL for (int j = 0; j < NV; j++) {                                                                          \
            const V(elem_b) *bj = b + COLUMN(j) * K_GROUP;                                                             \
            row[j] = MASKED(j) ? V(load_masked)(bj, mask) : V(load)(bj);                                               \
            if (KEEPS_ROW) KEEP(row[j]);                                                                               \
        }                                                                                                              \
        LOAD_HALF                                                                                                      \
        UNROLL for (int i = 0; i < M; i++) {                                                                           \
            const V(vec) ai = V(broadcast)(ROW(i) + (further));                                                        \
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = VALUE;                                                     \
            FMA_HALF(i)                                                                                                \
        }                                                                                                              \
        if (HAS_SIDE(partial))                                                                                         \
            add_columns(M, NV, columns, lanes, (const V(elem_a) *)ROW(0) + (further), b, side);                        \
        if (PREFETCHES && !ahead && partial == WHOLE && NV == NV_MAX)                                                  \
            UNROLL for (int byte = 0; byte < PREFETCH_PER_STEP; byte += 64)                                            \
                __builtin_prefetch((const char *)b + ahead_b + byte);                                                  \
        b += rs_b;                                                                                                     \
        if (prefetch_a) {                                                                                              \
            prefetch(prefetch_a, PREFETCH_PER_STEP), prefetch(prefetch_b, PREFETCH_PER_STEP);                          \
            prefetch_a += PREFETCH_PER_STEP, prefetch_b += PREFETCH_PER_STEP;                                          \
        }                                                                                                              \
        if (ahead) prefetch_ahead(ahead);                                                                              \
    }
#define ADVANCE(elements) UNROLL for (int g = 0; 5 * g < M; g++) base[g] += (elements) * (int64_t)sizeof *a

/* What is constant of A's strides: all, that of its rows (1: a transposed A, whose rows need no address arithmetic), or
 * nothing. */
enum { ANY_STRIDES, ADJACENT_ROWS, FIXED };

/* A transposed A has a loop of its own where multiply-adds and address arithmetic have ports in common: ten products
 * of 2 x 2 x 2 to 64 x 64 x 64 double took 1.05 times as long in the mean with the loop for any strides, float 1.03
 * times (Xeon with AMX). */
#ifdef __AVX512F__
enum { HAS_ADJACENT_ROWS = K_GROUP == 1 };
#else
enum { HAS_ADJACENT_ROWS = 0 };
#endif

/* Of a transposed A the values of a row of A^T, and one value of B, in all lanes. */
#ifdef WIDENS_B
#define ROWS_OF_A(a, mask) V(load_c_masked)(a, mask)
#define VALUE_OF_B(b) V(broadcast_b)(b)
#else
#define ROWS_OF_A(a, mask) V(load_masked)((const V(elem_b) *)(a), mask)
#define VALUE_OF_B(b) V(broadcast)((const V(elem_a) *)(b))
#endif

/* Column q of those after NV vectors, or the last of them, if there are fewer: so without a branch. */
#define AFTER(q, lanes) ((q) == 0 ? 0 : (q) < (lanes) ? (q) : (lanes) - 1)

/* A step of k of the columns after NV vectors: of A's column at a and of B's row at b. */
INLINE void add_columns(const int M, const int NV, const int columns, int lanes, const V(elem_a) *a, const V(elem_b) *b,
                        V(acc) side[MOST_COLUMNS][SIDES])
{
    UNROLL for (int u = 0; u * LANES < M; u++) {
        const int rows = M - u * LANES < LANES ? M - u * LANES : LANES;
        const V(vec) rows_of_a = ROWS_OF_A(a + u * LANES, V(mask_of)(rows));
        UNROLL for (int q = 0; q < columns; q++) {
            const V(vec) value = VALUE_OF_B(b + NV * LANES + AFTER(q, lanes));
            side[q][u] = V(fma)(value, rows_of_a, side[q][u]);
        }
    }
}

/* Those columns of C. */
INLINE void load_columns(const int M, const int NV, const int columns, int lanes, const V(elem_c) *c, int64_t rs_c,
                         V(acc) side[MOST_COLUMNS][SIDES])
{
    V(elem_c) rows[SIDES * LANES] = {0};
    UNROLL for (int q = 0; q < columns; q++) {
        for (int i = 0; i < M; i++) rows[i] = c[i * rs_c + NV * LANES + AFTER(q, lanes)];
        UNROLL for (int u = 0; u * LANES < M; u++) side[q][u] = V(load_c)(rows + u * LANES);
    }
}

INLINE void store_columns(const int M, const int NV, const int columns, int lanes, V(elem_c) *c, int64_t rs_c,
                          V(acc) side[MOST_COLUMNS][SIDES])
{
    V(elem_c) rows[SIDES * LANES];
    UNROLL for (int q = 0; q < columns; q++) {
        if (q == lanes) break;
        UNROLL for (int u = 0; u * LANES < M; u++) V(store)(rows + u * LANES, side[q][u]);
        for (int i = 0; i < M; i++) c[i * rs_c + NV * LANES + q] = rows[i];
    }
}

/* The sums of a row: with V(offset) the int32 at the end of the row of A's panel is added to each, then the row of C. */
INLINE void finish_row(const int NV, const int partial, int lanes, const V(elem_a) *end_of_a, int adds,
                       const V(elem_c) *c, V(acc) acc[NV_MAX])
{
    const V(mask) mask = V(mask_of)(lanes);
    if (V(offset)) {
        const V(acc) correction = V(broadcast_c)(end_of_a);
        UNROLL for (int j = 0; j < NV; j++) acc[j] = V(add)(acc[j], correction);
    }
    if (adds)
        UNROLL for (int j = 0; j < NV; j++) {
            const V(elem_c) *cj = c + COLUMN(j);
            acc[j] = V(add)(MASKED(j) ? V(load_c_masked)(cj, mask) : V(load_c)(cj), acc[j]);
        }
}

/* A step's share of what a later call reads: as many bytes as the step reads of B. Issued together, before a tile, they
 * exceed the line fill buffers, and took as long as without them (strips.c). */
INLINE void prefetch_ahead(pysimd_ahead *ahead)
{
    enum { BYTES = NR * K_GROUP * sizeof(V(elem_b)) };
    UNROLL for (int byte = 0; byte < BYTES; byte += 64) __builtin_prefetch(ahead->at + byte, 0, 2);
    ahead->at += BYTES;
    if (ahead->at >= ahead->end) ahead->at += ahead->jump, ahead->end += ahead->pitch, ahead->rows--;
}

/* M rows, NV vectors; then, by `partial`, the last vector adds `lanes` columns to those before it, or `lanes` columns
 * follow. The first four arguments are constants; so are strides by `fixed`. Each step prefetches at prefetch_a and
 * prefetch_b, and what is `ahead`, unless they are NULL. */
INLINE void tile(const int M, const int NV, const int partial, const int fixed, int lanes, int64_t k,
                 const V(elem_a) *a, int64_t rs_a, int64_t cs_a, const V(elem_b) *b, int64_t rs_b, V(elem_c) *c,
                 int64_t rs_c, int flags, const char *prefetch_a, const char *prefetch_b, pysimd_ahead *ahead)
{
    const V(mask) mask = V(mask_of)(lanes);
    const int columns = SIDE_COLUMNS(partial);
    const int64_t ahead_b = rs_b == NR * K_GROUP && k >= FAR_K ? B_AHEAD : 0; /* 0: a line that is loaded in any case */
    V(acc) side[MOST_COLUMNS][SIDES];
    const int64_t rs = rs_a * (int64_t)sizeof *a;
    int64_t rs3 = 3 * rs;
    if (fixed == ANY_STRIDES && M > 3) OPAQUE(rs3);
    const char *base[BASES];
    UNROLL for (int g = 0; 5 * g < M; g++) {
        base[g] = (const char *)a + 5 * g * rs;
        if (fixed == ANY_STRIDES) OPAQUE(base[g]);
    }

    V(acc) acc[MR][NV_MAX];
    UNROLL for (int i = 0; i < M; i++)
        UNROLL for (int j = 0; j < NV; j++) acc[i][j] = V(zero)();
    if (flags & PYSIMD_CHAIN)
        UNROLL for (int i = 0; i < M; i++)
            UNROLL for (int j = 0; j < NV; j++) {
                V(elem_c) *cij = c + i * rs_c + COLUMN(j);
                acc[i][j] = MASKED(j) ? V(load_c_masked)(cij, mask) : V(load_c)(cij);
            }
#ifdef HALF_VECTORS
    const V(half_mask) half_mask = V(half_mask_of)(lanes);
    V(half) half[MR];
    if (partial == PART_OF_HALF)
        UNROLL for (int i = 0; i < M; i++)
            half[i] = flags & PYSIMD_CHAIN ? V(half_load_c)(c + i * rs_c + NV * LANES, half_mask) : V(half_zero)();
#endif
    if (HAS_SIDE(partial)) {
        UNROLL for (int q = 0; q < MOST_COLUMNS; q++)
            UNROLL for (int u = 0; u < SIDES; u++) side[q][u] = V(zero)();
        if (flags & PYSIMD_CHAIN) load_columns(M, NV, columns, lanes, c, rs_c, side);
    }
    const int adds = !(flags & (PYSIMD_ZERO | PYSIMD_CHAIN));

    int64_t p = k;
#ifdef FIRST_STEP_SETS /* integers, whose sum does not depend on zeros */
    if (k > 0 && !(flags & PYSIMD_CHAIN)) {
        STEP_BY(V(product)(ai, row[j]), acc, 0)
        ADVANCE(cs_a);
        p--;
    }
#endif
    const int64_t next = fixed ? cs_a : K_GROUP;
    if (FEW_ACCUMULATORS && k >= LONG_K) {
        V(acc) odd[MR][NV_MAX];
        UNROLL for (int i = 0; i < M; i++)
            UNROLL for (int j = 0; j < NV; j++) odd[i][j] = V(zero)();
        for (; p >= 2; p -= 2) {
            STEP(acc, 0)
            ADVANCE(cs_a);
            STEP(odd, 0)
            ADVANCE(cs_a);
        }
        UNROLL for (int i = 0; i < M; i++)
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = V(add)(acc[i][j], odd[i][j]);
    } else if (K_UNROLL == 2 && (fixed || cs_a == K_GROUP)) {
        if (PREFETCHES && !ahead && partial == WHOLE && NV == NV_MAX && 4 * M > 3 * MR && k >= FAR_K) {
            const char *ahead_c = (const char *)c;
            for (int i = 0; i < M; i++, p -= 2, ahead_c += rs_c * (int64_t)sizeof *c) {
                UNROLL for (int line = 0; line < NV; line++) __builtin_prefetch(ahead_c + line * 64, 1, 3);
                __builtin_prefetch(ahead_c + NV * 64 - 1, 1, 3);
                STEP(acc, 0)
                STEP(acc, next)
                ADVANCE(2 * next);
            }
        }
        for (; p >= 2; p -= 2) {
            STEP(acc, 0)
            STEP(acc, next)
            ADVANCE(2 * next);
        }
    }
    for (; p > 0; p--) {
        STEP(acc, 0)
        ADVANCE(cs_a);
    }

    if (HAS_SIDE(partial)) {
        if (adds) {
            V(acc) before[MOST_COLUMNS][SIDES];
            load_columns(M, NV, columns, lanes, c, rs_c, before);
            UNROLL for (int q = 0; q < columns; q++)
                UNROLL for (int u = 0; u * LANES < M; u++) side[q][u] = V(add)(before[q][u], side[q][u]);
        }
        store_columns(M, NV, columns, lanes, c, rs_c, side);
    }
    /* A load waits for a masked store to the row before, whose vector reaches it: such rows are all read before the first
     * is stored, batches of 24 x 2 x 13 float took 190 ns each, and take 46. Others are read one after the other, each
     * before its own first store, for the last vector may overlap: 24 x 2 x 64 float took 1.1 times as long with all rows
     * before (Zen 4). */
    const int reads_first = partial == PART_OF_HALF || (MASKED(NV - 1) && rs_c < NV * LANES);
#ifdef HALF_VECTORS
    if (adds && partial == PART_OF_HALF)
        UNROLL for (int i = 0; i < M; i++)
            half[i] = V(half_add)(V(half_load_c)(c + i * rs_c + NV * LANES, half_mask), half[i]);
#endif
    if (adds && reads_first)
        UNROLL for (int i = 0; i < M; i++) finish_row(NV, partial, lanes, ROW(i), 1, c + i * rs_c, acc[i]);
    UNROLL for (int i = 0; i < M; i++) {
        V(elem_c) *ci = c + i * rs_c;
        if (!(adds && reads_first)) finish_row(NV, partial, lanes, ROW(i), adds, ci, acc[i]);
        UNROLL for (int j = 0; j < NV; j++) {
            V(elem_c) *cij = ci + COLUMN(j);
            if (MASKED(j))
                V(store_masked)(cij, mask, acc[i][j]);
            else if (flags & PYSIMD_STREAM)
                V(stream)(cij, acc[i][j]);
            else
                V(store)(cij, acc[i][j]);
        }
#ifdef HALF_VECTORS
        if (partial == PART_OF_HALF) V(half_store)(ci + NV * LANES, half_mask, half[i]);
#endif
    }
}

#ifndef WIDENS_B
void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    if (rs_a == K_GROUP && cs_a == MR * K_GROUP && rs_b == NR * K_GROUP)
        tile(MR, NV_MAX, WHOLE, FIXED, LANES, k, a, K_GROUP, MR * K_GROUP, b, NR * K_GROUP, c, rs_c, 0, NULL, NULL,
             NULL);
    else
        tile(MR, NV_MAX, WHOLE, ANY_STRIDES, LANES, k, a, rs_a, cs_a, b, rs_b, c, rs_c, 0, NULL, NULL, NULL);
}
#endif

/* The batch: one tile a product. */
INLINE void tiles(const int M, const int NV, const int partial, const pysimd_call *s, const int flags)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(elem_c) *c = s->c;
    const int lanes = (int)(s->n - (partial == PART_OF_HALF ? NV : NV - 1) * LANES);
    if (HAS_ADJACENT_ROWS && M > 1 && s->rs_a == 1) {
        for (int64_t i = 0; i < s->batch; i++) {
            tile(M, NV, partial, ADJACENT_ROWS, lanes, s->k, a, 1, s->cs_a, b, s->rs_b, c, s->rs_c, flags, NULL, NULL,
                 NULL);
            a += s->bs_a, b += s->bs_b, c += s->bs_c;
        }
        return;
    }
    for (int64_t i = 0; i < s->batch; i++) {
        tile(M, NV, partial, ANY_STRIDES, lanes, s->k, a, s->rs_a, s->cs_a, b, s->rs_b, c, s->rs_c, flags, NULL, NULL,
             NULL);
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
}

#ifdef HALVES
#include "outer_half.h"
#endif

/* Products whose columns fill NV - 1 vectors and a part of another one, or all of it. */
INLINE void tiles_of_edge(const int M, const int NV, const pysimd_call *s)
{
#ifdef HALVES
    const int64_t rest = s->n - (NV - 1) * LANES;
    if (NV > 1 && rest <= HALF)
        tiles_with_half(M, NV - 1, s);
    else
#endif
        tiles(M, NV, PART, s, s->flags);
}

INLINE void tiles_of_m(const int M, const pysimd_call *s)
{
    if (s->n == NR && s->flags == PYSIMD_ZERO)
        tiles(M, NV_MAX, WHOLE, s, PYSIMD_ZERO);
    else if (s->n == NR)
        tiles(M, NV_MAX, WHOLE, s, s->flags);
    else if (NV_MAX > 5 && s->n > 5 * LANES)
        tiles_of_edge(M, NV_MAX > 5 ? 6 : 1, s);
    else if (NV_MAX > 4 && s->n > 4 * LANES)
        tiles_of_edge(M, NV_MAX > 4 ? 5 : 1, s);
    else if (NV_MAX > 3 && s->n > 3 * LANES)
        tiles_of_edge(M, NV_MAX > 3 ? 4 : 1, s);
    else if (NV_MAX > 2 && s->n > 2 * LANES)
        tiles_of_edge(M, NV_MAX > 2 ? 3 : 1, s);
    else if (NV_MAX > 1 && s->n > LANES)
        tiles_of_edge(M, 2, s);
    else
        tiles(M, 1, PART, s, s->flags);
}
_Static_assert(NV_MAX <= 6, "tiles_of_m has cases for one vector to six");

#if MR == NR
#ifdef B_IN_REGISTERS
/* One dense square product from cache, with all of B in registers and half of the rows of C at a time: all loads of B
 * are issued at the start, which hides the latency of L2 better (54 ns against 58 for 16x16). The same terms in the
 * same order as in tile(). Products from memory do not gain: there the prefetch has to be spread over the steps (1.24
 * against 1.17 times the time of the memory traffic). */
INLINE void cached_product(const V(elem_a) *a, const V(elem_b) *b, V(elem_c) *c)
{
    enum { HALF = MR / 2 };
    V(vec) row[MR];
    UNROLL for (int p = 0; p < MR; p++) row[p] = V(load)(b + p * NR);
    for (int i0 = 0; i0 < MR; i0 += HALF) {
        V(acc) acc[HALF];
        UNROLL for (int i = 0; i < HALF; i++) acc[i] = V(zero)();
        UNROLL for (int p = 0; p < MR; p++)
            UNROLL for (int i = 0; i < HALF; i++)
                acc[i] = V(fma)(V(broadcast)(a + (i0 + i) * MR + p), row[p], acc[i]);
        UNROLL for (int i = 0; i < HALF; i++) V(store)(c + (i0 + i) * NR, acc[i]);
    }
}
#else
INLINE void cached_product(const V(elem_a) *a, const V(elem_b) *b, V(elem_c) *c)
{
    tile(MR, NV_MAX, WHOLE, FIXED, LANES, MR, a, MR, 1, b, NR, c, NR, PYSIMD_ZERO, NULL, NULL, NULL);
}
#endif

/* Square products of C-contiguous matrices as large as the tile, at any distance in the batch: all strides but those of
 * the batch are constants. */
INLINE void dense(const pysimd_call *s, const int stream)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(elem_c) *c = s->c;
    enum { BYTES = MR * NR * sizeof *b, DISTANCE = (PREFETCH_DISTANCE + BYTES - 1) / BYTES };
    for (int64_t i = 0; i < s->batch; i++) {
        if (stream) {
            const int64_t ahead = i + DISTANCE < s->batch ? DISTANCE : 0;
            tile(MR, NV_MAX, WHOLE, FIXED, LANES, MR, a, MR, 1, b, NR, c, NR, PYSIMD_ZERO | PYSIMD_STREAM,
                 (const char *)(a + ahead * s->bs_a), (const char *)(b + ahead * s->bs_b), NULL);
        } else {
            cached_product(a, b, c);
        }
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
}
#endif

#define CASES                                                                                                          \
    CASE(1) CASE(2) CASE(3) CASE(4) CASES_TO_6 CASES_TO_8 CASES_TO_14 CASES_TO_16
#if MR > 4
#define CASES_TO_6 CASE(5) CASE(6)
#else
#define CASES_TO_6
#endif
#if MR > 6
#define CASES_TO_8 CASE(7) CASE(8)
#else
#define CASES_TO_8
#endif
#if MR > 8
#define CASES_TO_14 CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#else
#define CASES_TO_14
#endif
#if MR > 14
#define CASES_TO_16 CASE(15) CASE(16)
#else
#define CASES_TO_16
#endif

/* M rows, NV vectors, and the columns after them. */
INLINE void tiles_and_columns(const int M, const int NV, const int partial, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(elem_c) *c = s->c;
    const int lanes = (int)(s->n - NV * LANES);
    for (int64_t i = 0; i < s->batch; i++) {
        tile(M, NV, partial, ADJACENT_ROWS, lanes, s->k, a, 1, s->cs_a, b, s->rs_b, c, s->rs_c, s->flags, NULL, NULL,
             NULL);
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
}

/* The least rows, and K, of which one or two columns after the vectors are computed by themselves: 64 x 4 x 17 double
 * took 1.5 times as long like that, 48 x 14 x 33 1.1 times (Xeon with AMX). Three and four columns, where so many rows
 * fill most of a register: 800 batches of 8 rows and more by 19 and 20 columns took 0.84 to 0.95 times as long; with 8
 * x 48, 6 x 64 and the tiles of double 1.0 to 1.06 times. Tried: 14 x 32 for 35, 36, 51 and 52 columns too, of which
 * the last four are a tile of their own, 0.96 times with K from 48 on, 1.02 with less. */
enum { SOME_ROWS = PYSIMD_AFTER_ROWS, SOME_K = PYSIMD_AFTER_K };
enum { HAS_FOUR_COLUMNS = MR >= 12 && LANES == 16, MORE_ROWS = 8, MORE_K = 24 };

INLINE void columns_of_m(const int M, const int partial, const pysimd_call *s)
{
    const int64_t vectors = s->n / LANES;
    if (NV_MAX > 4 && vectors == 5) tiles_and_columns(M, NV_MAX > 4 ? 5 : 1, partial, s);
    if (NV_MAX > 3 && vectors == 4) tiles_and_columns(M, NV_MAX > 3 ? 4 : 1, partial, s);
    if (NV_MAX > 2 && vectors == 3) tiles_and_columns(M, NV_MAX > 2 ? 3 : 1, partial, s);
    if (NV_MAX > 1 && vectors == 2) tiles_and_columns(M, NV_MAX > 1 ? 2 : 1, partial, s);
    if (vectors == 1) tiles_and_columns(M, 1, partial, s);
}

/* Functions of their own: as a part of the batch function, which then has more loops than GCC 12 allocates registers
 * for one by one, they had the accumulators of other tiles spilled, and 96 x 96 x 96 float took 1.25 times as long. */
NOINLINE void batch_of_one_column(const pysimd_call *s)
{
    switch (s->m) {
#define CASE(M) case M: if (M >= SOME_ROWS) columns_of_m(M <= MR ? M : MR, ONE_COLUMN, s); break;
        CASES
#undef CASE
    }
}

NOINLINE void batch_of_two_columns(const pysimd_call *s)
{
    switch (s->m) {
#define CASE(M) case M: if (M >= SOME_ROWS) columns_of_m(M <= MR ? M : MR, TWO_COLUMNS, s); break;
        CASES
#undef CASE
    }
}

NOINLINE void batch_of_four_columns(const pysimd_call *s)
{
    switch (s->m) {
#define CASE(M) case M: if (M >= MORE_ROWS) columns_of_m(M <= MR ? M : MR, FOUR_COLUMNS, s); break;
        CASES
#undef CASE
    }
}

/* Whether columns after the vectors were computed by themselves, and all the others with them; `after`: PYSIMD_AFTER. */
INLINE int computes_columns(const pysimd_call *s, const int after)
{
    const int64_t more = s->n % LANES;
    if (!HAS_ADJACENT_ROWS || s->rs_a != 1 || s->n <= LANES || more == 0) return 0;
    const int some = s->m >= SOME_ROWS && (after || s->k >= SOME_K);
    if (more == 1 && some)
        batch_of_one_column(s);
    else if (more == 2 && some)
        batch_of_two_columns(s);
    else if (HAS_FOUR_COLUMNS && more > 2 && more <= MOST_COLUMNS && s->m >= MORE_ROWS && s->k >= MORE_K)
        batch_of_four_columns(s);
    else
        return 0;
    return 1;
}

/* Whole tiles that prefetch what a later call reads. */
INLINE void tiles_ahead(const int M, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(elem_c) *c = s->c;
    pysimd_ahead ahead = *s->ahead;
    for (int64_t i = 0; i < s->batch; i++) {
        tile(M, NV_MAX, WHOLE, ANY_STRIDES, LANES, s->k, a, s->rs_a, s->cs_a, b, s->rs_b, c, s->rs_c, s->flags, NULL,
             NULL, &ahead);
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
    s->ahead->at = ahead.at, s->ahead->end = ahead.end, s->ahead->rows = ahead.rows;
}

INLINE void batch_ahead(const pysimd_call *s)
{
    switch (s->m) {
#define CASE(M) case M: tiles_ahead(M <= MR ? M : MR, s); break;
        CASES
#undef CASE
    }
}

#ifdef HALF_VECTORS
/* M rows, whole vectors, and a part of half a vector. */
INLINE void half_of_m(const int M, const pysimd_call *s)
{
    const int64_t vectors = s->n / LANES;
    if (NV_MAX > 3 && vectors == 3) tiles(M, NV_MAX > 3 ? 3 : 1, PART_OF_HALF, s, s->flags);
    if (NV_MAX > 2 && vectors == 2) tiles(M, NV_MAX > 2 ? 2 : 1, PART_OF_HALF, s, s->flags);
    if (NV_MAX > 1 && vectors == 1) tiles(M, 1, PART_OF_HALF, s, s->flags);
}
_Static_assert(NV_MAX <= 4, "half_of_m has cases for one vector to three");

/* A function of its own, for the registers of the other tiles (batch_of_one_column). */
NOINLINE void batch_of_half(const pysimd_call *s)
{
    switch (s->m) {
#define CASE(M) case M: half_of_m(M <= MR ? M : MR, s); break;
        CASES
#undef CASE
    }
}
enum { HAS_HALF = 1 };
#else
enum { HAS_HALF = 0 };
INLINE void batch_of_half(const pysimd_call *s) { (void)s; }
#endif

void PASTE(KERNEL, batch)(const pysimd_call *s);

#ifdef DOTS
enum { HAS_DOTS = 1 };
#include "outer_dots.h"
#else
enum { HAS_DOTS = 0 };
INLINE void batch_with_dots(const pysimd_call *s) { (void)s; }
#endif

/* By functions of their own, behind one test: with a second one GCC 12 has accumulators of 14x16 double spilled, whose
 * large products took 1.04 times as long, and 1.3 times with another term in computes_columns (Xeon with AMX). */
enum {
    APART = PYSIMD_NEXT | (HAS_DOTS ? PYSIMD_DOTS : 0) | (HAS_HALF ? PYSIMD_HALF : 0) |
            (HAS_ADJACENT_ROWS ? PYSIMD_AFTER : 0)
};
NOINLINE void batch_apart(const pysimd_call *s)
{
    if (s->flags & PYSIMD_NEXT)
        batch_ahead(s);
    else if (HAS_DOTS && s->flags & PYSIMD_DOTS)
        batch_with_dots(s);
    else if (computes_columns(s, s->flags & PYSIMD_AFTER))
        return;
    else if (HAS_HALF && s->flags & PYSIMD_HALF)
        batch_of_half(s);
    else { /* PYSIMD_AFTER without such columns */
        pysimd_call other = *s;
        other.flags &= ~PYSIMD_AFTER;
        PASTE(KERNEL, batch)(&other);
    }
}

/* m is a constant in each case, so that the accumulators of an edge tile are registers too. */
void PASTE(KERNEL, batch)(const pysimd_call *s)
{
    if (s->flags & APART) {
        batch_apart(s);
        return;
    }
    if (computes_columns(s, 0)) return;
#if MR == NR
    if (s->flags & PYSIMD_ZERO && s->m == MR && s->n == NR && s->k == MR && s->rs_a == MR && s->cs_a == 1 &&
        s->rs_b == NR && s->rs_c == NR && K_GROUP == 1) {
        if (s->flags & PYSIMD_STREAM)
            dense(s, 1);
        else
            dense(s, 0);
        return;
    }
#endif
    switch (s->m) {
#define CASE(M) case M: tiles_of_m(M <= MR ? M : MR, s); break;
        CASES
#undef CASE
    }
}
_Static_assert(MR <= 16, "the batch function has cases for 1 to 16 rows");
