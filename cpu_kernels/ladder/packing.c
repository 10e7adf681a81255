/* packing, C5: packed operands.
 *
 * step      before the product, A and B are copied into micro-panels, in the order in which the microkernel reads
 *           them. A step of k then reads the next 6 and the next 16 floats, instead of going to another row: no page
 *           is visited twice, the hardware prefetcher follows, and rows at a distance of a power of two do not fall
 *           into the same few sets of a cache. The microkernel's strides are constants, and edges are filled up with
 *           zeros.
 * contract  core/ladder.h; any m, n, k and strides; memory for a copy of A and of B
 * tile      mr x nr of the microkernel; with AVX2 6 x 16
 * regs      those of the microkernel
 * per k     those of the microkernel
 * ratio     with AVX2 6*16 / (6+16) = 4.36
 * rounding  one multiply-add per term, k ascending from 0, added to beta C; alpha is multiplied into A
 * needs     nothing
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008)
 */
#include "loops.h"

RUNG(packing)
{
    const pysimd_kernel *kernel = pysimd_ladder_kernel();
    float *a = panels(multiple(g->m, kernel->mr), g->k), *b = panels(g->k, multiple(g->n, kernel->nr));
    const int failed = !a || !b;
    if (!failed) {
        pysimd_ladder_scale_c(g);
        pack_a(kernel->mr, g->m, g->k, (float)g->alpha, g->a, g->rs_a, g->cs_a, a);
        pack_b(kernel->nr, g->k, g->n, g->b, g->rs_b, g->cs_b, b);
        packed_tiles(0, kernel, g->m, g->n, g->k, a, b, g->c, g->rs_c);
    }
    free(a);
    free(b);
    return -failed;
}
