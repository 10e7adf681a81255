/* ikj, C1: the loops over j and k exchanged.
 *
 * step      the innermost loop goes along a row of B and a row of C, whose elements are adjacent, and its iterations
 *           do not depend on each other. The price: an element of C is loaded and stored for every k.
 * contract  core/ladder.h; any m, n, k and strides
 * tile      1 x 1; a row of C takes part in every k
 * regs      1 element of A
 * per k     1 multiply-add, 2 loads, 1 store
 * ratio     1 / 2 = 0.50
 * rounding  one multiply-add per term, k ascending, upon beta C; alpha is multiplied into A
 * needs     nothing
 * idea      loop interchange
 */
#include "scalars.h"

RUNG(ikj)
{
    const float *a = g->a, *b = g->b, alpha = (float)g->alpha;
    float *c = g->c;
    const int64_t n = g->n, cs_b = g->cs_b;
    pysimd_ladder_scale_c(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t p = 0; p < g->k; p++) {
            const float x = alpha * get_f32(a + i * g->rs_a + p * g->cs_a);
            const float *bj = b + p * g->rs_b;
            float *cj = c + i * g->rs_c;
            for (int64_t j = 0; j < n; j++, bj += cs_b, cj++) {
                float sum = get_f32(cj) + x * get_f32(bj);
                KEEP(sum); /* one element at a time: no vectors yet */
                put_f32(cj, sum);
            }
        }
    return 0;
}
