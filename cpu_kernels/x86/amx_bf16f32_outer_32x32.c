/* amx_bf16f32_outer_32x32: C[32,32] += A[32,K] * B[K,32], bfloat16 into float; 32 k in an instruction.
 *
 * contract  pysimd.h; k_group 2, panel plain.
 * tile      mr 32  nr 32; two by two tiles
 * regs      4 accumulators + 4 operands = 8 of 8 tmm
 * per 32 k  4 tdpbf16ps  4 tileloadd; those of B have a hint in a row of tiles
 * ratio     32*32 / (32+32) = 16.00 multiply-adds per element loaded; inner product 0.50;
 *           4 / 4 = 1.00 multiply-add instructions per load instruction
 * bound     a multiply-add takes 16 cycles, a load from L1 8 and from L2 26; L2 is the bound
 *           of a row of tiles, the stores of C that of a short one: see tdp.h
 * rounding  of 32 k, the even and the odd are each added by fma from 0, then both to the
 *           sum, which starts from 0 and is added to C at the end; denormals are zero
 * needs     AVX-512 F BW DQ VL, AMX TILE INT8 BF16
 * idea      two by two tiles, as in OpenBLAS, oneDNN and LIBXSMM; code written here
 */
#include "vec_amx.h"

#define KERNEL amx_bf16f32_outer_32x32
#define TDP "tdpbf16ps"
#define SUM sum_of_f32
#define ELEM_A uint16_t
#define ELEM_B uint16_t
#include "../templates/tdp.h"
