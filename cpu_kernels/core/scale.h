/* scale.h: alpha * product + beta * C, element by element, for the factors that kernels do not apply, and for results
 * of 16 bits. */
#ifndef PYSIMD_SCALE_H
#define PYSIMD_SCALE_H

#include "driver.h"
#include "narrow.h"
#include "widen.h"

typedef struct {
    double alpha, beta;
    int adds; /* beta is not 0: C is read */
} pysimd_factors;

/* Arrays of one shape, strides in bytes; C may be NULL. The target may be the product's memory or C's. With `narrow`,
 * which has its inverse `widen`, the product is float32, and C and the target have 16 bits: rounded once, at the
 * end. */
typedef struct {
    int types;
    pysimd_narrow_fn *narrow;
    pysimd_widen_fn *widen;
    pysimd_factors factors;
    int ndim;
    int64_t shape[PYSIMD_MAX_DIMS + 2];
    const char *product, *c;
    char *target;
    int64_t product_strides[PYSIMD_MAX_DIMS + 2], c_strides[PYSIMD_MAX_DIMS + 2], target_strides[PYSIMD_MAX_DIMS + 2];
} pysimd_scaling;

/* Of which only the first ndim lengths and strides are set, those of C too; it is changed. */
void pysimd_scale(pysimd_scaling *scaling);

/* What becomes of the products of a batch that kernels do not store in C: alpha times each, plus beta times what is
 * there, in memory with any strides (in bytes), of 16 bits with `narrow`. */
struct pysimd_epilogue {
    int types;
    pysimd_narrow_fn *narrow;
    pysimd_widen_fn *widen;
    pysimd_factors factors;
    int64_t m, n, rs, cs;
    int size; /* of an element that is stored */
};

/* `count` products, one after the other by rows, which it may scale in place, to matrices at distances of `step`
 * bytes. */
void pysimd_store_products(const pysimd_epilogue *epilogue, int64_t count, char *products, char *to, int64_t step);

/* C = alpha * product + beta * C for m rows of n adjacent elements; C is not read unless factors.adds. */
void pysimd_scale_tile(int types, pysimd_factors factors, int64_t m, int64_t n, const void *product, int64_t rs_product,
                       void *c, int64_t rs_c);

#endif
