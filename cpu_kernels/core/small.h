/* small.h: batches straight from the arrays; kernels.inc says which row has which. First those of small products, in
 * registers. */
#ifndef PYSIMD_SMALL_H
#define PYSIMD_SMALL_H

#include "pysimd.h"

/* 4x4x4, and in the second line 8x8x8 */
pysimd_small_fn avx2_small_f32_4x4, avx2_small_bf16_4x4, avx2_small_f16_4x4;
pysimd_small_fn avx2_small_f32_8x8, avx2_small_bf16_8x8, avx2_small_f16_8x8;

/* 2 to 7 columns and K from 1 to 10, 8 to 24 columns and K from 1 to 24; with AVX-512 VNNI 9 to 64 columns and K up
 * to 64, in any layout; any number of rows */
pysimd_small_fn avx2_small_i8, avx2_small_u8i8, avx512vnni_small_i8, avx512vnni_small_u8i8;

/* in any layout but plain float32: 4x4x4; 8x8x8 and, with K up to 64, up to 8 columns of many rows whose A is
 * transposed; 9 to 12 columns and K up to 64, float32 with a transposed B alone */
pysimd_small_fn avx512_small_f32_4x4, avx512_small_bf16_4x4, avx512_small_f16_4x4;
pysimd_small_fn avx512_small_f32_8x8, avx512_small_bf16_8x8, avx512_small_f16_8x8;
pysimd_small_fn avx512_small_f32, avx512_small_bf16, avx512_small_f16;

/* up to 64 columns and K up to 64, in any layout; with an even K up to 4,096 elements of C */
pysimd_small_fn avx512bf16_small_bf16;

/* float16 B of up to nr columns, which are widened while they are loaded, and float A */
pysimd_batch_fn avx512_f16f32_outer_16x16_batch, avx512_f16f32_outer_14x32_batch;
pysimd_batch_fn avx512_f16f32_outer_8x48_batch, avx512_f16f32_outer_6x64_batch;

#endif
