/* direct.h: products of a short K, or of few rows, of narrow values: blocks of B are widened, or interleaved, into L1,
 * and C is written along its rows. Through panels of all of A and B such products took as long as the panels: they go
 * to L2 and come back. The bits are those of the row's kernel. */
#ifndef PYSIMD_DIRECT_H
#define PYSIMD_DIRECT_H

#include "driver.h"

/* Whether pysimd_direct computes the product, of 512 multiply-adds or more. */
int pysimd_takes_direct(const pysimd_kernel *kernel, const pysimd_product *product);

/* The same of any product: a small one is not looked at any further. */
static inline int pysimd_is_direct(const pysimd_kernel *kernel, const pysimd_product *p)
{
    enum { LEAST = 512, LEAST_OF_BATCH = 2048 }; /* multiply-adds */
    if (kernel->types == F32 || kernel->types == F64) return 0;
    if ((double)p->m * (double)p->n * (double)p->k < (p->ndim ? LEAST_OF_BATCH : LEAST)) return 0;
    return pysimd_takes_direct(kernel, p);
}

/* C = A B of one product: k and the strides count the arrays' own values, and element (p, j) of B is at
 * b[p*rs_b + j*cs_b]. */
void pysimd_direct(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b);

typedef void pysimd_direct_fn(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b);
pysimd_direct_fn avx512_direct_bf16, avx512_direct_f16, avx512vnni_direct_i8, avx512vnni_direct_u8i8;

/* 32-bit groups in the memory of staged rows of A, and in that of a block of B; columns of a row of four vectors; rows
 * of products whose columns threads divide, and, from a K on, whose B is widened in registers. */
enum { PYSIMD_DIRECT_WORDS = 4096, PYSIMD_DIRECT_COLUMNS = 64, PYSIMD_DIRECT_ROWS = 16, PYSIMD_DIRECT_SHORT_K = 32 };

#endif
