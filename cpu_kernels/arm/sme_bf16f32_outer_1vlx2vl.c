/* sme_bf16f32_outer_1vlx2vl: C[1vl,2vl] += A[1vl,K] * B[K,2vl], bfloat16 into float; vl elements of C in a vector.
 *
 * contract  pysimd.h; k_group 2, panel plain.
 * tile      mr 1vl  nr 2vl; an accumulator is a tile of ZA
 * regs      2 accumulators + 3 operands = 5 of 36 registers; tiles of ZA and vectors
 * per 2 k   2 bfmopa  3 ld1w
 * ratio     vl*2*vl / (vl+2*vl) = 2.67 multiply-adds per element loaded; inner product 0.50;
 *           2 / 3 = 0.67 multiply-add instructions per load instruction; in vectors of the least length
 * rounding  a sum of two products in an instruction, rounded to odd, then one add into C
 * needs     SME
 * idea      the instruction is the outer product; tiles of LIBXSMM and KleidiAI for SME; code written here
 */
#include "vec_sme.h"

#define KERNEL sme_bf16f32_outer_1vlx2vl
#define MOPA "bfmopa"
#define SUFFIX "h"
#define ELEM_A uint16_t
#define ELEM_B uint16_t
#define ELEM_C float
#include "../templates/mopa.h"
