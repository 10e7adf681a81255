/* register_tile, C4: the microkernel.
 *
 * step      the tile grows to what the registers hold: with AVX2 6 rows of 2 vectors, 12 accumulators. A multiply-add
 *           takes 4 cycles and two start in a cycle, so at least 8 must be under way: simd has 4. And the loads are
 *           fewer than the multiply-adds, 8 for 12, where simd has 5 for 4. The tile is computed by the microkernel of
 *           kernels.inc, which reads A and B in place; its sum is stored to a tile of its own and then scaled into C.
 * contract  core/ladder.h; any m, n, k and strides; a B without adjacent columns is copied first
 * tile      mr x nr of the microkernel; with AVX2 6 x 16
 * regs      those of the microkernel
 * per k     those of the microkernel
 * ratio     with AVX2 6*16 / (6+16) = 4.36
 * rounding  one multiply-add per term, k ascending from 0; then one for alpha and one for beta
 * needs     nothing
 * idea      the microkernel of GotoBLAS and BLIS
 */
#include "loops.h"
#include "../core/scale.h"

RUNG(register_tile)
{
    const pysimd_kernel *kernel = pysimd_ladder_kernel();
    const pysimd_factors factors = {g->alpha, g->beta, g->beta != 0};
    _Alignas(CACHE_LINE) float tile[LARGEST_TILE];
    for (int64_t j = 0; j < g->n; j += kernel->nr)
        for (int64_t i = 0; i < g->m; i += kernel->mr) {
            const pysimd_call s = {.batch = 1, .m = least(kernel->mr, g->m - i), .n = least(kernel->nr, g->n - j),
                                   .k = g->k, .a = (const float *)g->a + i * g->rs_a, .rs_a = g->rs_a, .cs_a = g->cs_a,
                                   .b = (const float *)g->b + j, .rs_b = g->rs_b, .c = tile, .rs_c = kernel->nr,
                                   .flags = PYSIMD_ZERO};
            kernel->batch(&s);
            pysimd_scale_tile(F32, factors, s.m, s.n, tile, kernel->nr, (float *)g->c + i * g->rs_c + j, g->rs_c);
        }
    return 0;
}
