/* avx512vnni_u8i8i32_gemv_16x1: C[16,1] += A[16,K] * B[K,1], uint8 by int8 into int32; matrix times vector.
 *
 * contract  pysimd.h; form gemv: A by rows or by columns, B contiguous in k; k_group 1, panel plain.
 * tile      mr 16  nr 1; a row of A at a time in each accumulator
 * regs      16 accumulators + 2 operands = 18 of 32 zmm
 * per 32 k  16 vpmovzxbw m256  1 vpmovsxbw m256  16 vpdpwssd
 * ratio     16*1 / (16+1) = 0.94 multiply-adds per element loaded; inner product 0.50;
 *           16 / 17 = 0.94 multiply-add instructions per load instruction
 * bound     widening: each element of A is used once
 * rounding  exact; int32 wraps
 * needs     AVX-512 F BW DQ VL VNNI
 * idea      the bits do not depend on the order in which A is stored: see templates/gemv.h
 */
#include "vec_avx512vnni_gemv.h"

#define VEC i8u8x32 /* a row of uint8 times a matrix of int8 */
#define DOTS 24
#define ROWS_AT_A_TIME 16
#include "../templates/gemv.h"
#undef VEC
#define EXCHANGED i8u8x32
#define KERNEL avx512vnni_u8i8i32_gemv_16x1
#define VEC u8i8x32
#include "../templates/gemv.h"
