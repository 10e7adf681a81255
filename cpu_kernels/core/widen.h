/* widen.h: arrays of narrow values as int16 or float32, exactly. */
#ifndef PYSIMD_WIDEN_H
#define PYSIMD_WIDEN_H

#include "pysimd.h"

/* `n` values; `to` does not overlap `from`, or `from` is the upper half of `to`. Nothing else is read or written. */
typedef void pysimd_widen_fn(int64_t n, const void *from, void *to);

pysimd_widen_fn pysimd_widen_i8, pysimd_widen_u8, pysimd_widen_bf16, pysimd_widen_f16; /* for any processor */
pysimd_widen_fn avx2_widen_i8, avx2_widen_u8, avx2_widen_bf16, avx2_widen_f16;         /* AVX2 and F16C */
pysimd_widen_fn avx512_widen_bf16, avx512_widen_f16;

/* k rows of B as `panels` micro-panels of nr columns, a multiple of a vector: to[q*panel_bytes + 4*(p*nr + j)] is the
 * value at b[p*row + 2*(q*nr + j)]. */
typedef void pysimd_widen_panels_fn(int64_t k, int64_t nr, int64_t panels, const char *b, int64_t row, char *to,
                                    int64_t panel_bytes);

pysimd_widen_panels_fn avx2_widen_panels_bf16, avx2_widen_panels_f16;
pysimd_widen_panels_fn avx512_widen_panels_bf16, avx512_widen_panels_f16;

/* The function that makes the micro-panels of a kernel that widens 16-bit values; NULL if there is none. */
pysimd_widen_panels_fn *pysimd_widening_panels(const pysimd_kernel *kernel);

/* What widens operand 0 (A) or 1 (B) of a kernel, by what its target can execute. */
pysimd_widen_fn *pysimd_widening(const pysimd_kernel *kernel, int operand);

#endif
