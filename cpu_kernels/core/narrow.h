/* narrow.h: float32 as float16 or bfloat16, rounded to nearest, ties to even. */
#ifndef PYSIMD_NARROW_H
#define PYSIMD_NARROW_H

#include "pysimd.h"

/* `n` values, at any addresses that do not overlap. Too large values become infinity, NaN a quiet NaN. */
typedef void pysimd_narrow_fn(int64_t n, const float *from, void *to);

pysimd_narrow_fn pysimd_narrow_bf16, pysimd_narrow_f16; /* for any processor */
pysimd_narrow_fn avx2_narrow_bf16, avx2_narrow_f16;     /* AVX2 and F16C */

/* To the type of the operands of BF16F32 and F16F32 kernels, by what the kernel's target can execute. */
pysimd_narrow_fn *pysimd_narrowing(const pysimd_kernel *kernel);

#endif
