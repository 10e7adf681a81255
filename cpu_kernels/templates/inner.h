/* inner.h: the inner-product microkernel, once, for every float vector type.
 *
 * A kernel file sets KERNEL, VEC, MR and NR, and includes this file, which defines its two entry points. C[i,j] is the
 * dot product of a row of A and a column of B: two elements are loaded for every multiply-add, whatever the tile. Four
 * accumulators per element hide the latency of the add, so that the loads are what bounds the loop.
 */
#include "kernel.h"

enum { LANES = V(lanes), ACCUMULATORS = 4 };

INLINE V(elem_c) dot(int64_t k, const V(elem_a) *a, const V(elem_b) *b)
{
    V(acc) acc[ACCUMULATORS];
    UNROLL for (int u = 0; u < ACCUMULATORS; u++) acc[u] = V(zero)();
    int64_t p = 0;
    for (; p + ACCUMULATORS * LANES <= k; p += ACCUMULATORS * LANES)
        UNROLL for (int u = 0; u < ACCUMULATORS; u++)
            acc[u] = V(fma)(V(load)(a + p + u * LANES), V(load)(b + p + u * LANES), acc[u]);
    for (; p + LANES <= k; p += LANES) acc[0] = V(fma)(V(load)(a + p), V(load)(b + p), acc[0]);
    if (p < k) {
        const V(mask) tail = V(mask_of)((int)(k - p));
        acc[1] = V(fma)(V(load_masked)(a + p, tail), V(load_masked)(b + p, tail), acc[1]);
    }
    return V(reduce)(V(add)(V(add)(acc[0], acc[1]), V(add)(acc[2], acc[3])));
}

INLINE void tile(int64_t m, int64_t n, int64_t k, const V(elem_a) *a, int64_t rs_a, const V(elem_b) *b, int64_t rs_b,
                 V(elem_c) *c, int64_t rs_c, int flags)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            V(elem_c) value = dot(k, a + i * rs_a, b + j * rs_b), old;
            if (!(flags & PYSIMD_ZERO)) {
                memcpy(&old, c + i * rs_c + j, sizeof old);
                value = old + value;
            }
            memcpy(c + i * rs_c + j, &value, sizeof value);
        }
}

void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    (void)cs_a; /* 1, by the contract of inner-product kernels */
    tile(MR, NR, k, a, rs_a, b, rs_b, c, rs_c, 0);
}

void PASTE(KERNEL, batch)(const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(elem_c) *c = s->c;
    for (int64_t i = 0; i < s->batch; i++) {
        tile(s->m, s->n, s->k, a, s->rs_a, b, s->rs_b, c, s->rs_c, s->flags);
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
}
