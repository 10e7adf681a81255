/* simd, C3: a vector of columns.
 *
 * step      as scalar_tile, but a row of the tile is one vector: adjacent columns of C are its lanes. A step of k
 *           loads a vector of B, and each element of A is broadcast to all lanes.
 * contract  core/ladder.h; any m, n, k and strides; a B without adjacent columns is copied first; rows that are left
 *           over: tiles of 1 x 1 vectors; columns that are left over: masked loads and stores
 * tile      4 x 1 vectors
 * regs      4 accumulators + 1 of B + 1 of A
 * per k     4 multiply-adds, 5 loads
 * ratio     with AVX2 4*8 / (4+8) = 2.67
 * rounding  one multiply-add per term, k ascending from 0; then one for alpha and one for beta
 * needs     nothing
 * idea      SIMD along the columns of a row-major C
 */
#include "scalars.h"

enum { SIMD_ROWS = 4 };

INLINE void simd_tile(const int M, const int partial, const pysimd_product *g, int64_t i0, int64_t j0)
{
    const V(mask) mask = V(mask_of)(partial ? (int)(g->n - j0) : V(lanes));
    const float *a = (const float *)g->a + i0 * g->rs_a, *b = (const float *)g->b + j0;
    float *c = (float *)g->c + i0 * g->rs_c + j0;
    V(acc) acc[SIMD_ROWS];
    UNROLL for (int i = 0; i < M; i++) acc[i] = V(zero)();
    for (int64_t p = 0; p < g->k; p++, a += g->cs_a, b += g->rs_b) {
        const V(vec) row = partial ? V(load_masked)(b, mask) : V(load)(b);
        UNROLL for (int i = 0; i < M; i++) acc[i] = V(fma)(V(broadcast)(a + i * g->rs_a), row, acc[i]);
    }
    const float factors[] = {(float)g->alpha, (float)g->beta};
    const V(vec) alpha = V(broadcast)(factors), beta = V(broadcast)(factors + 1);
    UNROLL for (int i = 0; i < M; i++) {
        float *ci = c + i * g->rs_c;
        V(acc) old = V(zero)();
        if (g->beta != 0) old = V(fma)(beta, partial ? V(load_c_masked)(ci, mask) : V(load_c)(ci), old);
        const V(acc) row = V(fma)(alpha, acc[i], old);
        if (partial)
            V(store_masked)(ci, mask, row);
        else
            V(store)(ci, row);
    }
}

INLINE void simd_rows(const int M, const pysimd_product *g, int64_t i)
{
    int64_t j = 0;
    for (; j + V(lanes) <= g->n; j += V(lanes)) simd_tile(M, 0, g, i, j);
    if (j < g->n) simd_tile(M, 1, g, i, j);
}

RUNG(simd)
{
    int64_t i = 0;
    for (; i + SIMD_ROWS <= g->m; i += SIMD_ROWS) simd_rows(SIMD_ROWS, g, i);
    for (; i < g->m; i++) simd_rows(1, g, i);
    return 0;
}
