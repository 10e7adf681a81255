/* outer_vla.h: the outer-product microkernel for vectors whose length is the processor's (SVE, RVV).
 *
 * A kernel file sets KERNEL, VEC, MR (at most 8) and VECTORS, the vectors in a row of C (1 or 2), and includes this
 * file, which defines its two entry points. V(op) is an operation of VEC, from vec_<target>.h, as for outer.h, but:
 *
 *   lanes(), mr x VECTORS*lanes()   elements of a vector, at most PYSIMD_MOST_VECTOR_BYTES; the tile
 *   part, part_of(n)                the first n elements: a predicate (SVE), a vector length (RVV)
 *   scalar, broadcast(p)            an element of A as the multiply-add takes it
 *
 * Edge tiles are the same code: loads and stores of a row are those of its first n elements. Vectors have no size that
 * the compiler knows, so there can be no array of them: the accumulators are variables, x0 to x7 and y0 to y7.
 */
#include "kernel.h"

#define ROW(i) ((const V(elem_a) *)ROW_ADDRESS(i))
#define ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
enum { BASES = 2 };

#define DECLARE(i) V(acc) x##i = V(zero)(), y##i = V(zero)(); (void)y##i;
#define LOAD(i)                                                                                                        \
    if (i < M) {                                                                                                       \
        x##i = V(load_c)(part0, c + i * rs_c);                                                                         \
        if (NV == 2) y##i = V(load_c)(part1, c + i * rs_c + lanes);                                                    \
    }
#define MULTIPLY(i)                                                                                                    \
    if (i < M) {                                                                                                       \
        const V(scalar) ai = V(broadcast)(ROW(i));                                                                     \
        x##i = V(fma)(part0, x##i, ai, row0);                                                                          \
        if (NV == 2) y##i = V(fma)(part1, y##i, ai, row1);                                                             \
    }
#define STORE(i)                                                                                                       \
    if (i < M) {                                                                                                       \
        V(elem_c) *ci = c + i * rs_c;                                                                                  \
        if (adds) x##i = V(add)(part0, V(load_c)(part0, ci), x##i);                                                    \
        V(store)(part0, ci, x##i);                                                                                     \
        if (NV == 2) {                                                                                                 \
            if (adds) y##i = V(add)(part1, V(load_c)(part1, ci + lanes), y##i);                                        \
            V(store)(part1, ci + lanes, y##i);                                                                         \
        }                                                                                                              \
    }

/* M rows and n columns in NV vectors. M and NV are constants; so are the strides of A if `fixed`. */
INLINE void tile(const int M, const int NV, const int fixed, int64_t n, int64_t k, const V(elem_a) *a, int64_t rs_a,
                 int64_t cs_a, const V(elem_b) *b, int64_t rs_b, V(elem_c) *c, int64_t rs_c, int flags)
{
    const int64_t lanes = V(lanes)();
    const V(part) part0 = V(part_of)(NV == 2 ? lanes : n), part1 = V(part_of)(NV == 2 ? n - lanes : 0);
    const int64_t rs = rs_a * (int64_t)sizeof *a;
    int64_t rs3 = 3 * rs;
    if (!fixed && M > 3) OPAQUE(rs3);
    const char *base[BASES] = {(const char *)a, (const char *)a + 5 * rs};
    if (!fixed && M > 5) OPAQUE(base[1]);

    ROWS(DECLARE)
    if (flags & PYSIMD_CHAIN) { ROWS(LOAD) }
    const int adds = !(flags & (PYSIMD_ZERO | PYSIMD_CHAIN));
    for (; k > 0; k--) {
        const V(vec) row0 = V(load)(part0, b), row1 = V(load)(part1, NV == 2 ? b + lanes : b);
        (void)row1;
        ROWS(MULTIPLY)
        b += rs_b;
        base[0] += cs_a * (int64_t)sizeof *a;
        base[1] += cs_a * (int64_t)sizeof *a;
    }
    ROWS(STORE)
    (void)part1, (void)lanes;
}

void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    if (rs_a == 1 && cs_a == MR)
        tile(MR, VECTORS, 1, VECTORS * V(lanes)(), k, a, 1, MR, b, rs_b, c, rs_c, 0);
    else
        tile(MR, VECTORS, 0, VECTORS * V(lanes)(), k, a, rs_a, cs_a, b, rs_b, c, rs_c, 0);
}

INLINE void tiles(const int M, const int NV, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(elem_c) *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c)
        tile(M, NV, 0, s->n, s->k, a, s->rs_a, s->cs_a, b, s->rs_b, c, s->rs_c, s->flags);
}

/* m is a constant in each case, so that an edge tile computes no rows that it does not have. */
void PASTE(KERNEL, batch)(const pysimd_call *s)
{
    switch (s->m) {
#define CASE(M)                                                                                                        \
    case M:                                                                                                            \
        if (VECTORS == 2 && s->n > V(lanes)())                                                                         \
            tiles(M <= MR ? M : MR, VECTORS, s);                                                                       \
        else                                                                                                           \
            tiles(M <= MR ? M : MR, 1, s);                                                                             \
        break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
#undef CASE
    }
}
