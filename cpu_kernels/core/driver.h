/* driver.h: products of whole arrays, as Python calls them. */
#ifndef PYSIMD_DRIVER_H
#define PYSIMD_DRIVER_H

#include "registry.h"

enum { PYSIMD_MAX_DIMS = 64 };

/* C = A B (PYSIMD_ZERO) or C += A B over a grid of batch dimensions, any m, n, k.
 * Strides count elements; the columns of C are adjacent. C overlaps neither A nor B, nor itself. */
typedef struct {
    int64_t m, n, k;
    const void *a;
    int64_t rs_a, cs_a;
    const void *b;
    int64_t rs_b, cs_b;
    void *c;
    int64_t rs_c;
    int ndim;
    int64_t shape[PYSIMD_MAX_DIMS], batch_a[PYSIMD_MAX_DIMS], batch_b[PYSIMD_MAX_DIMS], batch_c[PYSIMD_MAX_DIMS];
    int flags;
    int threads;
} pysimd_product;

/* Returns 0, or -1 if there is no memory for the panels (C is then untouched). */
int pysimd_multiply(const pysimd_kernel *kernel, const pysimd_product *product);

/* A prepared call on fixed arrays, which was checked when it was made. */
typedef struct {
    const pysimd_kernel *kernel;
    pysimd_product product;
} pysimd_bound;

/* Whether the product is exactly one tile, C += A B, whose operands the kernel reads in place, as pysimd_run_bound
 * requires. */
int pysimd_is_one_tile(const pysimd_bound *bound);
void pysimd_run_bound(const pysimd_bound *bound);

#endif
