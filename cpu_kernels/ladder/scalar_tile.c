/* scalar_tile, C2: a tile of C in registers.
 *
 * step      3 x 3 elements of C are accumulated in registers along all of k and stored once. A step of k is an outer
 *           product: each of the 6 elements loaded is used three times, and the 9 multiply-adds do not depend on each
 *           other.
 * contract  core/ladder.h; any m, n, k and strides; rows and columns that are left over: tiles of 1 x 3, 3 x 1, 1 x 1
 * tile      3 x 3
 * regs      9 accumulators + 3 of B + 1 of A
 * per k     9 multiply-adds, 6 loads
 * ratio     3*3 / (3+3) = 1.50
 * rounding  one multiply-add per term, k ascending from 0; then one for alpha and one for beta
 * needs     nothing
 * idea      register blocking: outer product instead of inner
 */
#include "scalars.h"

enum { SCALAR_ROWS = 3, SCALAR_COLUMNS = 3 };

INLINE void scalar_tile(const int M, const int N, const pysimd_product *g, int64_t i0, int64_t j0)
{
    const float *a = (const float *)g->a + i0 * g->rs_a, *b = (const float *)g->b + j0 * g->cs_b;
    float *c = (float *)g->c + i0 * g->rs_c + j0;
    float acc[SCALAR_ROWS][SCALAR_COLUMNS] = {0};
    for (int64_t p = 0; p < g->k; p++, a += g->cs_a, b += g->rs_b) {
        float row[SCALAR_COLUMNS];
        UNROLL for (int j = 0; j < N; j++) {
            row[j] = get_f32(b + j * g->cs_b);
            KEEP(row[j]); /* loaded once: gcc would load it again for each row of the tile */
        }
        UNROLL for (int i = 0; i < M; i++) {
            const float x = get_f32(a + i * g->rs_a);
            UNROLL for (int j = 0; j < N; j++) {
                acc[i][j] += x * row[j];
                KEEP(acc[i][j]); /* one element at a time: no vectors yet */
            }
        }
    }
    UNROLL for (int i = 0; i < M; i++)
        UNROLL for (int j = 0; j < N; j++) put_c(g, c + i * g->rs_c + j, acc[i][j]);
}

INLINE void scalar_rows(const int M, const pysimd_product *g, int64_t i)
{
    int64_t j = 0;
    for (; j + SCALAR_COLUMNS <= g->n; j += SCALAR_COLUMNS) scalar_tile(M, SCALAR_COLUMNS, g, i, j);
    for (; j < g->n; j++) scalar_tile(M, 1, g, i, j);
}

RUNG(scalar_tile)
{
    int64_t i = 0;
    for (; i + SCALAR_ROWS <= g->m; i += SCALAR_ROWS) scalar_rows(SCALAR_ROWS, g, i);
    for (; i < g->m; i++) scalar_rows(1, g, i);
    return 0;
}
