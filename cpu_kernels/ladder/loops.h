/* loops.h: what the rungs around a microkernel share: panels, and the micro-tiles of packed ones. Their C is beta C
 * before the first tile, and alpha is multiplied into the panels of A. Compiled for the baseline processor. */
#ifndef PYSIMD_LOOPS_H
#define PYSIMD_LOOPS_H

#include <stdlib.h>
#include <string.h>

#include "../core/ladder.h"

#define RUNG(NAME) int pysimd_rung_##NAME(const pysimd_product *g)
#define INLINE static inline __attribute__((always_inline))

enum { LARGEST_TILE = 16 * 32, CACHE_LINE = 64 }; /* elements, bytes */

INLINE int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
INLINE int64_t multiple(int64_t x, int64_t y) { return (x + y - 1) / y * y; }

/* Memory for floats; NULL if there is none. */
INLINE float *panels(int64_t rows, int64_t columns)
{
    return aligned_alloc(CACHE_LINE, (size_t)multiple(rows * columns * (int64_t)sizeof(float) + 1, CACHE_LINE));
}

/* A panel is `lanes` rows of A (or columns of B) for all of k: the elements that a step of k needs are adjacent, and
 * behind them are those of the next step.
 *
 *     A   to[p*mr + i] = alpha * a[i*rs + p*cs]        B   to[p*nr + j] = b[p*rs + j*cs]
 *
 * The last panel is filled up with zeros, so that its tile is as large as the others. */
INLINE void pack_a(int64_t mr, int64_t m, int64_t k, float alpha, const float *a, int64_t rs, int64_t cs, float *to)
{
    for (int64_t i0 = 0; i0 < m; i0 += mr, to += mr * k)
        for (int64_t i = 0; i < mr; i++)
            for (int64_t p = 0; p < k; p++) {
                float x = 0;
                if (i0 + i < m) memcpy(&x, a + (i0 + i) * rs + p * cs, sizeof x);
                to[p * mr + i] = alpha * x;
            }
}

INLINE void pack_b(int64_t nr, int64_t k, int64_t n, const float *b, int64_t rs, int64_t cs, float *to)
{
    for (int64_t j0 = 0; j0 < n; j0 += nr)
        for (int64_t p = 0; p < k; p++, to += nr) {
            const float *row = b + p * rs + j0 * cs;
            const int64_t columns = least(nr, n - j0);
            if (cs == 1)
                memcpy(to, row, (size_t)columns * sizeof *to);
            else
                for (int64_t j = 0; j < columns; j++) memcpy(to + j, row + j * cs, sizeof *to);
            memset(to + columns, 0, (size_t)(nr - columns) * sizeof *to);
        }
}

/* The tile at an edge of C: computed whole, of which rows x columns are added to C. */
static void edge_tile(const pysimd_kernel *kernel, int64_t k, const float *a, const float *b, int64_t rows,
                      int64_t columns, float *c, int64_t rs_c)
{
    _Alignas(CACHE_LINE) float tile[LARGEST_TILE] = {0};
    kernel->run(k, a, 1, kernel->mr, b, kernel->nr, tile, kernel->nr);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float x;
            memcpy(&x, c + i * rs_c + j, sizeof x);
            x += tile[i * kernel->nr + j];
            memcpy(c + i * rs_c + j, &x, sizeof x);
        }
}

/* C += A B for packed A (m rows) and B (n columns): for each panel of B, which stays in L1, all panels of A. */
INLINE void packed_tiles(const int prefetches, const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k,
                         const float *a, const float *b, float *c, int64_t rs_c)
{
    const int64_t mr = kernel->mr, nr = kernel->nr;
    for (int64_t j = 0; j < n; j += nr)
        for (int64_t i = 0; i < m; i += mr) {
            const int64_t rows = least(mr, m - i), columns = least(nr, n - j);
            float *tile = c + i * rs_c + j;
            if (prefetches)
                for (int64_t r = 0; r < rows; r++) {
                    __builtin_prefetch(tile + r * rs_c, 1);
                    __builtin_prefetch(tile + r * rs_c + columns - 1, 1);
                }
            if (rows == mr && columns == nr)
                kernel->run(k, a + i * k, 1, mr, b + j * k, nr, tile, rs_c);
            else
                edge_tile(kernel, k, a + i * k, b + j * k, rows, columns, tile, rs_c);
        }
}

/* The five loops of cache_blocks.c. */
INLINE int in_blocks(const int prefetches, const pysimd_product *g)
{
    const pysimd_kernel *kernel = pysimd_ladder_kernel();
    const pysimd_ladder_block block = pysimd_ladder_blocks();
    const int64_t mc = least(block.mc, multiple(g->m, kernel->mr)), nc = least(block.nc, multiple(g->n, kernel->nr)),
                  kc = least(block.kc, g->k);
    float *packed_a = panels(mc, kc), *packed_b = panels(kc, nc);
    const int failed = !packed_a || !packed_b;
    if (!failed) {
        const float *a = g->a, *b = g->b;
        float *c = g->c;
        pysimd_ladder_scale_c(g);
        for (int64_t jc = 0; jc < g->n; jc += nc)
            for (int64_t pc = 0; pc < g->k; pc += kc) {
                const int64_t n = least(nc, g->n - jc), k = least(kc, g->k - pc);
                pack_b(kernel->nr, k, n, b + pc * g->rs_b + jc * g->cs_b, g->rs_b, g->cs_b, packed_b);
                for (int64_t ic = 0; ic < g->m; ic += mc) {
                    const int64_t m = least(mc, g->m - ic);
                    pack_a(kernel->mr, m, k, (float)g->alpha, a + ic * g->rs_a + pc * g->cs_a, g->rs_a, g->cs_a,
                           packed_a);
                    packed_tiles(prefetches, kernel, m, n, k, packed_a, packed_b, c + ic * g->rs_c + jc, g->rs_c);
                }
            }
    }
    free(packed_a);
    free(packed_b);
    return -failed;
}

#endif
