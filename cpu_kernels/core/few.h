/* few.h: the table of few.inc. */
#ifndef PYSIMD_FEW_H
#define PYSIMD_FEW_H

#include "registry.h"

/* Finds the kernels of the rows that count on this processor; called by pysimd_start, like which it is atomic. */
void pysimd_start_few(int halves);

/* The kernel of the row for a product; NULL: none. */
const pysimd_kernel *pysimd_of_few(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b);

#endif
