/* inner.h: the inner-product microkernel, once, for every float vector type.
 *
 * A kernel file sets KERNEL, VEC, MR and NR, and includes this file, which defines its two entry points.
 * C[i,j] is a row of A times a column of B: for every multiply-add it loads two elements, whatever the tile. Four
 * accumulators per element hide the latency of the sum, so that what remains to be seen is the ratio.
 */
#include "kernel.h"

enum { LANES = V(lanes), CHAINS = 4 };

INLINE V(sum) dot(int64_t k, const V(elem_a) *a, const V(elem_b) *b)
{
    V(acc) sum[CHAINS];
    UNROLL for (int u = 0; u < CHAINS; u++) sum[u] = V(zero)();
    int64_t p = 0;
    for (; p + CHAINS * LANES <= k; p += CHAINS * LANES)
        UNROLL for (int u = 0; u < CHAINS; u++)
            sum[u] = V(fma)(V(load)(a + p + u * LANES), V(load)(b + p + u * LANES), sum[u]);
    for (; p + LANES <= k; p += LANES) sum[0] = V(fma)(V(load)(a + p), V(load)(b + p), sum[0]);
    if (p < k) {
        const V(mask) tail = V(first)((int)(k - p));
        sum[1] = V(fma)(V(load_first)(a + p, tail), V(load_first)(b + p, tail), sum[1]);
    }
    return V(reduce)(V(add)(V(add)(sum[0], sum[1]), V(add)(sum[2], sum[3])));
}

INLINE void tile(int64_t m, int64_t n, int64_t k, const V(elem_a) *a, int64_t rs_a, const V(elem_b) *b, int64_t rs_b,
                 V(sum) *c, int64_t rs_c, int flags)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            V(sum) sum = dot(k, a + i * rs_a, b + j * rs_b), old;
            if (!(flags & PYSIMD_ZERO)) {
                memcpy(&old, c + i * rs_c + j, sizeof old);
                sum = old + sum;
            }
            memcpy(c + i * rs_c + j, &sum, sizeof sum);
        }
}

void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    (void)cs_a; /* 1, by the contract of the inner form */
    tile(MR, NR, k, a, rs_a, b, rs_b, c, rs_c, 0);
}

void PASTE(KERNEL, batch)(const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(sum) *c = s->c;
    for (int64_t i = 0; i < s->batch; i++) {
        tile(s->m, s->n, s->k, a, s->rs_a, b, s->rs_b, c, s->rs_c, s->flags);
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
}
