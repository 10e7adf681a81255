/* strips.h: products with few rows, or few columns, whose large operand is read once, straight, and never packed as a
 * whole. */
#ifndef PYSIMD_STRIPS_H
#define PYSIMD_STRIPS_H

#include "driver.h"

/* Whether pysimd_strips computes the product, on so many threads: one that pysimd_gemm_takes, since the bits are those of
 * its loops, or whose K is one block. */
int pysimd_strips_take(const pysimd_kernel *kernel, const pysimd_product *product, int threads);

/* Whether it does so whatever the size: a product of few rows, or of few columns of a transposed A, and a kernel for
 * them. */
int pysimd_strips_take_few(const pysimd_kernel *kernel, const pysimd_product *product);

/* As pysimd_gemm, with at most `threads` threads. */
int pysimd_strips(const pysimd_kernel *kernel, const pysimd_product *product, int threads);

#endif
