/* outer.h: the outer-product microkernel, once, for every vector type.
 *
 * A kernel file sets KERNEL, VEC, MR and NR, and includes this file, which defines its two entry points.
 * VEC names a vector type of vec_<target>.h; V(op) below is that type's operation.
 *
 * For each p the tile reads one row of B into nr/lanes vectors, broadcasts each of the mr elements of A's column p, and
 * adds mr*nr products: (mr + nr) elements loaded, nothing stored. All mr * nr/lanes accumulators are registers: every
 * loop over them is unrolled by pragma, because gcc otherwise keeps the array in memory and the ratio is gone.
 */
#include "kernel.h"

enum { LANES = V(lanes), NV_MAX = NR / LANES, K_GROUP = V(k_group) };
_Static_assert(NR % LANES == 0, "nr must be whole vectors");

/* Five rows of A share a pointer (x86 addresses 0, 1, 2, 4 times a stride, and 3 times is a register of its own), so
 * that sixteen rows at any stride need six registers. */
#define ROW(i) ((const V(elem_a) *)(group[(i) / 5] + ((i) % 5 == 3 ? rs3 : (i) % 5 * rs)))
enum { GROUPS = (MR + 4) / 5 };

/* Fewer than eight chains of additions leave the multiply-adders waiting for their own results, so a small tile sums
 * even and odd k apart. A short K does not: there the next product of the batch fills the gap, and the extra sums
 * cost. */
enum { FEW_CHAINS = MR * NV_MAX < 8, LONG_K = 8 };

/* What one step asks for of a product to come, where A and B are square: a row of B and as much of A. All at once,
 * before the product, is too much for the buffers of the cache: 16x16 then takes 1.3 times the time of its memory
 * traffic, 1.17 so. */
enum { LINE_PER_STEP = NR * sizeof(V(elem_b)) };

/* Two steps share their address arithmetic where the distance of A's columns is known: it competes for the ports of the
 * fma (194 GFLOP/s against 185 for 14x32, K = 256, on a Xeon of the AMX generation; four steps: 183). A kernel whose
 * step needs every register says ALL_REGISTERS_TAKEN: gcc mixes the two steps, and then spills. */
#ifndef ALL_REGISTERS_TAKEN
#define ALL_REGISTERS_TAKEN 0
#endif

/* One k: a row of B, and each element of a column of A, `ahead` elements past the pointers to its rows. */
#define STEP(sum, ahead)                                                                                               \
    {                                                                                                                  \
        V(vec) row[NV_MAX];                                                                                            \
        UNROLL for (int j = 0; j < NV; j++) {                                                                          \
            const V(elem_b) *bj = b + j * LANES * K_GROUP;                                                             \
            row[j] = partial && j == NV - 1 ? V(load_first)(bj, mask) : V(load)(bj);                                   \
        }                                                                                                              \
        UNROLL for (int i = 0; i < M; i++) {                                                                           \
            const V(vec) ai = V(splat)(ROW(i) + (ahead));                                                              \
            UNROLL for (int j = 0; j < NV; j++) sum[i][j] = V(fma)(ai, row[j], sum[i][j]);                             \
        }                                                                                                              \
        b += rs_b;                                                                                                     \
        if (soon_a) {                                                                                                  \
            prefetch(soon_a, LINE_PER_STEP), prefetch(soon_b, LINE_PER_STEP);                                          \
            soon_a += LINE_PER_STEP, soon_b += LINE_PER_STEP;                                                          \
        }                                                                                                              \
    }
#define ADVANCE(elements) UNROLL for (int g = 0; 5 * g < M; g++) group[g] += (elements) * (int64_t)sizeof *a

/* M rows, NV vectors; the last vector holds `lanes` columns if `partial`. The first four arguments are constants; so
 * are the strides if `fixed`. */
INLINE void tile(const int M, const int NV, const int partial, const int fixed, int lanes, int64_t k,
                 const V(elem_a) *a, int64_t rs_a, int64_t cs_a, const V(elem_b) *b, int64_t rs_b, V(sum) *c,
                 int64_t rs_c, int flags, const char *soon_a, const char *soon_b)
{
    const V(mask) mask = V(first)(lanes);
    const int64_t rs = rs_a * (int64_t)sizeof *a;
    int64_t rs3 = 3 * rs;
    if (!fixed && M > 3) OPAQUE(rs3);
    const char *group[GROUPS];
    UNROLL for (int g = 0; 5 * g < M; g++) {
        group[g] = (const char *)a + 5 * g * rs;
        if (!fixed) OPAQUE(group[g]);
    }

    V(acc) acc[MR][NV_MAX];
    UNROLL for (int i = 0; i < M; i++)
        UNROLL for (int j = 0; j < NV; j++) acc[i][j] = V(zero)();

    int64_t p = k;
    const int64_t next = fixed ? cs_a : K_GROUP;
    if (FEW_CHAINS && k >= LONG_K) {
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
    } else if (!ALL_REGISTERS_TAKEN && (fixed || cs_a == K_GROUP)) {
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

    UNROLL for (int i = 0; i < M; i++) {
        V(sum) *ci = c + i * rs_c;
        if (V(offset)) { /* the int32 that closes row i of A's panel belongs to every element of row i of C */
            const V(acc) more = V(splat_sum)(ROW(i));
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = V(add)(acc[i][j], more);
        }
        UNROLL for (int j = 0; j < NV; j++) {
            V(sum) *cij = ci + j * LANES;
            if (partial && j == NV - 1) {
                if (!(flags & PYSIMD_ZERO)) acc[i][j] = V(add)(V(load_sum_first)(cij, mask), acc[i][j]);
                V(store_first)(cij, mask, acc[i][j]);
            } else {
                if (!(flags & PYSIMD_ZERO)) acc[i][j] = V(add)(V(load_sum)(cij), acc[i][j]);
                if (flags & PYSIMD_STREAM)
                    V(stream)(cij, acc[i][j]);
                else
                    V(store)(cij, acc[i][j]);
            }
        }
    }
}

void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    if (rs_a == K_GROUP && cs_a == MR * K_GROUP && rs_b == NR * K_GROUP)
        tile(MR, NV_MAX, 0, 1, LANES, k, a, K_GROUP, MR * K_GROUP, b, NR * K_GROUP, c, rs_c, 0, NULL, NULL);
    else
        tile(MR, NV_MAX, 0, 0, LANES, k, a, rs_a, cs_a, b, rs_b, c, rs_c, 0, NULL, NULL);
}

INLINE void tiles(const int M, const int NV, const int partial, const pysimd_call *s, const int flags)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(sum) *c = s->c;
    const int lanes = (int)(s->n - (NV - 1) * LANES);
    for (int64_t i = 0; i < s->batch; i++) {
        tile(M, NV, partial, 0, lanes, s->k, a, s->rs_a, s->cs_a, b, s->rs_b, c, s->rs_c, flags, NULL, NULL);
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
}

INLINE void tiles_of_m(const int M, const pysimd_call *s)
{
    if (s->n == NR && s->flags == PYSIMD_ZERO)
        tiles(M, NV_MAX, 0, s, PYSIMD_ZERO);
    else if (s->n == NR)
        tiles(M, NV_MAX, 0, s, s->flags);
    else if (s->n > LANES)
        tiles(M, NV_MAX, 1, s, s->flags);
    else
        tiles(M, 1, 1, s, s->flags);
}
_Static_assert(NV_MAX <= 2, "tiles_of_m knows one vector and two");

#if MR == NR
#ifdef B_IN_REGISTERS
/* One dense square product in cache with all of B in registers, half of the rows of C at a time: B comes in one go at
 * the start, which hides the second cache better (54 ns against 58 for 16x16). The same sums in the same order as in
 * tile(). Streams from memory do not gain: there the prefetch has to be spread over the steps (1.24 against 1.17 times
 * the traffic). */
INLINE void in_cache(const V(elem_a) *a, const V(elem_b) *b, V(sum) *c)
{
    enum { HALF = MR / 2 };
    V(vec) row[MR];
    UNROLL for (int p = 0; p < MR; p++) row[p] = V(load)(b + p * NR);
    for (int i0 = 0; i0 < MR; i0 += HALF) {
        V(acc) acc[HALF];
        UNROLL for (int i = 0; i < HALF; i++) acc[i] = V(zero)();
        UNROLL for (int p = 0; p < MR; p++)
            UNROLL for (int i = 0; i < HALF; i++)
                acc[i] = V(fma)(V(splat)(a + (i0 + i) * MR + p), row[p], acc[i]);
        UNROLL for (int i = 0; i < HALF; i++) V(store)(c + (i0 + i) * NR, acc[i]);
    }
}
#else
INLINE void in_cache(const V(elem_a) *a, const V(elem_b) *b, V(sum) *c)
{
    tile(MR, NV_MAX, 0, 1, LANES, MR, a, MR, 1, b, NR, c, NR, PYSIMD_ZERO, NULL, NULL);
}
#endif

/* Square products in C order, A and B as large as the tile, one behind the other or not: all strides are known. */
INLINE void dense(const pysimd_call *s, const int stream)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(sum) *c = s->c;
    enum { BYTES = MR * NR * sizeof *b, AHEAD = (PREFETCH_DISTANCE + BYTES - 1) / BYTES };
    for (int64_t i = 0; i < s->batch; i++) {
        if (stream) {
            const int64_t ahead = i + AHEAD < s->batch ? AHEAD : 0;
            tile(MR, NV_MAX, 0, 1, LANES, MR, a, MR, 1, b, NR, c, NR, PYSIMD_ZERO | PYSIMD_STREAM,
                 (const char *)(a + ahead * s->bs_a), (const char *)(b + ahead * s->bs_b));
        } else {
            in_cache(a, b, c);
        }
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
}
#endif

/* m is a constant in each case, so that the accumulators of a partial tile are registers too. */
void PASTE(KERNEL, batch)(const pysimd_call *s)
{
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
        CASE(1) CASE(2) CASE(3) CASE(4)
#if MR > 4
        CASE(5) CASE(6)
#endif
#if MR > 6
        CASE(7) CASE(8)
#endif
#if MR > 8
        CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#endif
#if MR > 14
        CASE(15) CASE(16)
#endif
#undef CASE
    }
}
