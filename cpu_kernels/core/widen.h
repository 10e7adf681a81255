/* widen.h: arrays of narrow values as int16 or float32, exactly. */
#ifndef PYSIMD_WIDEN_H
#define PYSIMD_WIDEN_H

#include "pysimd.h"

/* `n` values; `to` does not overlap `from`, or `from` is the upper half of `to`. Nothing else is read or written. */
typedef void pysimd_widen_fn(int64_t n, const void *from, void *to);

pysimd_widen_fn pysimd_widen_i8, pysimd_widen_u8, pysimd_widen_bf16, pysimd_widen_f16; /* for any processor */
pysimd_widen_fn avx2_widen_i8, avx2_widen_u8, avx2_widen_bf16, avx2_widen_f16;         /* AVX2 and F16C */
pysimd_widen_fn avx512_widen_bf16, avx512_widen_f16;

/* What widens operand 0 (A) or 1 (B) of a kernel, by what its target can execute. */
pysimd_widen_fn *pysimd_widening(const pysimd_kernel *kernel, int operand);

#endif
