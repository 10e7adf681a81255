/* cache_blocks, C6: blocks for each cache.
 *
 * step      the product is divided into pieces whose operands stay in a cache as long as they are used. kc: a
 *           micro-panel of B, kc x nr, stays in L1 for all tiles of a block of A. mc: the block of A, mc x kc, stays
 *           in L2 for all micro-panels of B. nc: the block of B, kc x nc, stays in L3 for all blocks of A. Sizes are
 *           computed from the caches of the processor (core/ladder.c). The price: C is read and written once for every
 *           kc.
 * contract  core/ladder.h; any m, n, k and strides; memory for a block of A and of B
 * tile      mr x nr of the microkernel; with AVX2 6 x 16
 * regs      those of the microkernel
 * per k     those of the microkernel
 * ratio     with AVX2 6*16 / (6+16) = 4.36
 * rounding  one multiply-add per term, k ascending; blocks of k are added to beta C in ascending order
 * needs     nothing
 * idea      Goto and van de Geijn (2008): five loops around the microkernel
 */
#include "loops.h"

RUNG(cache_blocks) { return in_blocks(0, g); }
