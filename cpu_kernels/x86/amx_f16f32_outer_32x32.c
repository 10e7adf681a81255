/* amx_f16f32_outer_32x32: C[32,32] += A[32,K] * B[K,32], float16 into float; 32 k in four instructions.
 *
 * contract  pysimd.h; k_group 2, panel split.
 * tile      mr 32  nr 32; two by two tiles
 * regs      4 accumulators + 4 operands = 8 of 8 tmm
 * per 32 k  16 tdpbf16ps  10 tileloadd; those of B have a hint in a row of tiles
 * ratio     32*32 / (32+32) = 16.00 multiply-adds per element loaded; inner product 0.50;
 *           16 / 10 = 1.60 multiply-add instructions per load instruction
 * bound     a multiply-add takes 16 cycles, a load from L1 8 and from L2 26: the multiply-adds are the bound
 * rounding  products of parts are exact; of 32 k and a pair of parts, the even and the odd are each added by fma from
 *           0, then both to the sum, which starts from 0 and is added to C at the end; the upper parts are the last
 * needs     AVX-512 F BW DQ VL, AMX TILE INT8 BF16
 * idea      a float16, 11 bits, is the sum of two bfloat16, of 8 bits: (h + l)(h' + l') are four products, of which
 *           an instruction adds one for each of 32 k. Emulation of a longer type by tensor cores: Markidis et al.,
 *           NVIDIA Tensor Core Programmability, Performance and Precision, 2018; here no term is left out
 */
#include "vec_amx.h"

#define KERNEL amx_f16f32_outer_32x32
#define TDP "tdpbf16ps"
#define SUM sum_of_f32
#define ELEM_A uint32_t
#define ELEM_B uint32_t
#define PLANES 2
#include "../templates/tdp.h"
