/* ijk, C0: the definition, three loops.
 *
 * step      the first rung: an element of C is the inner product of a row of A and a column of B
 * contract  core/ladder.h; any m, n, k and strides
 * tile      1 x 1
 * regs      1 accumulator
 * per k     1 multiply-add, 2 loads
 * ratio     1 / 2 = 0.50
 * rounding  one multiply-add per term, k ascending from 0; then one for alpha and one for beta
 * needs     nothing
 * idea      the definition
 */
#include "scalars.h"

RUNG(ijk)
{
    const float *a = g->a, *b = g->b;
    float *c = g->c;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += get_f32(a + i * g->rs_a + p * g->cs_a) * get_f32(b + p * g->rs_b + j * g->cs_b);
            put_c(g, c + i * g->rs_c + j, sum);
        }
    return 0;
}
