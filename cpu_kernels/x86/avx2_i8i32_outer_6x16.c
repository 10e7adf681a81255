/* avx2_i8i32_outer_6x16: C[6,16] += A[6,K] * B[K,16], int8 into int32; exact in pairs of int16.
 *
 * contract  pysimd.h; k_group 2, panel wide (int16).
 * tile      mr 6  nr 16: row i of C is 2 registers
 * regs      12 accumulators + 2 of a row of B + 1 broadcast pair + 1 product = 16 of 16 ymm
 * per 2 k   12 vpmaddwd  12 vpaddd  2 vmovdqu m256  6 vpbroadcastd m32
 * ratio     6*16 / (6+16) = 4.36 multiply-adds per element loaded; inner product 0.50;
 *           12 / 8 = 1.50 multiply-add instructions per load instruction
 * rounding  exact; int32 wraps
 * needs     AVX2
 * idea      widen while packing, multiply and add pairs (vpmaddwd)
 * tried     vpmaddubsw on the bytes themselves: twice the rate and wrong, its 16-bit additions saturate
 *           widening in the kernel (vpmovsxbw): two shuffles per broadcast bind port 5
 *           a 4x24 tile for 17 to 24 columns: no register for the third vector of a row of B
 */
#include "vec_avx2.h"

#define KERNEL avx2_i8i32_outer_6x16
#define VEC i16x16
#define MR 6
#define NR 16
#define K_UNROLL 1
#define HALVES
#define FIRST_STEP_SETS
#include "../templates/outer.h"
