/* small.h: batches of small products straight from the arrays, in registers; kernels.inc says which row has which. */
#ifndef PYSIMD_SMALL_H
#define PYSIMD_SMALL_H

#include "pysimd.h"

/* 4x4x4, and in the second line 8x8x8 */
pysimd_small_fn avx2_small_f32_4x4, avx2_small_bf16_4x4, avx2_small_f16_4x4;
pysimd_small_fn avx2_small_f32_8x8, avx2_small_bf16_8x8, avx2_small_f16_8x8;

/* 2 to 7 columns and K from 1 to 8, 8 to 16 columns and K from 1 to 16; any number of rows */
pysimd_small_fn avx2_small_i8, avx2_small_u8i8, avx512vnni_small_i8, avx512vnni_small_u8i8;

#endif
