/* prefetch, C7: software prefetch.
 *
 * step      before the microkernel starts, the rows of its tile of C are prefetched into L1. The accumulators are
 *           added to C at the very end of a tile, where nothing else is left to do while a load takes its time; and
 *           the hardware prefetcher, which follows sequences, cannot guess the next tile of C.
 * contract  core/ladder.h; any m, n, k and strides; memory for a block of A and of B
 * tile      mr x nr of the microkernel; with AVX2 6 x 16
 * regs      those of the microkernel
 * per k     those of the microkernel; 2 prefetches for each row of a tile
 * ratio     with AVX2 6*16 / (6+16) = 4.36
 * rounding  one multiply-add per term, k ascending; blocks of k are added to beta C in ascending order
 * needs     nothing
 * idea      prefetch of C, as in the microkernels of BLIS
 */
#include "loops.h"

RUNG(prefetch) { return in_blocks(1, g); }
