/* sme_f32_outer_1vlx2vl: C[1vl,2vl] += A[1vl,K] * B[K,2vl], float; vl elements of C in a vector.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 1vl  nr 2vl; an accumulator is a tile of ZA
 * regs      2 accumulators + 3 operands = 5 of 36 registers; tiles of ZA and vectors
 * per k     2 fmopa  3 ld1w
 * ratio     vl*2*vl / (vl+2*vl) = 2.67 multiply-adds per element loaded; inner product 0.50;
 *           2 / 3 = 0.67 multiply-add instructions per load instruction; in vectors of the least length
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     SME
 * idea      the instruction is the outer product; tiles of LIBXSMM and KleidiAI for SME; code written here
 */
#include "vec_sme.h"

#define KERNEL sme_f32_outer_1vlx2vl
#define MOPA "fmopa"
#define SUFFIX "s"
#define ELEM_A float
#define ELEM_B float
#define ELEM_C float
#include "../templates/mopa.h"
