/* direct.h: products of narrow values with a short K, with few rows, or with few columns and a transposed A: blocks of
 * B are widened, or interleaved, into L1, and C is written along its rows; or the operands are exchanged, and A is
 * widened in registers. Through panels of all of A and B such products took as long as the panels: they go to L2 and
 * come back. The bits are those of the row's kernel. */
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

/* Whether it has few columns and a transposed A, and is computed with the operands exchanged: C^T = B^T A^T, lanes are
 * rows of C. */
int pysimd_is_direct_exchanged(const pysimd_kernel *kernel, const pysimd_product *product);

/* Whether that is so of products of this shape and a transposed A, whatever the batch. With alpha and beta they are
 * scaled afterwards: by gemm.c 100 x 300 x 4 took 2.5 times, 180 x 1000 x 4 four times as long (Xeon with AMX). */
int pysimd_exchanges_columns(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k);

/* C = A B of one product, or without PYSIMD_ZERO C += A B: k and the strides count the arrays' own values, and element
 * (p, j) of B is at b[p*rs_b + j*cs_b]. */
void pysimd_direct(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b, int exchanged);

typedef void pysimd_direct_fn(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b);
pysimd_direct_fn avx512_direct_bf16, avx512_direct_f16, avx512vnni_direct_i8, avx512vnni_direct_u8i8;
pysimd_direct_fn avx512_columns_bf16, avx512_columns_f16;

/* 32-bit groups in the memory of staged rows of A, and in that of a block of B; columns of a row of four vectors; rows
 * of products whose columns threads divide, and, from a K on, whose B is widened in registers. */
enum { PYSIMD_DIRECT_WORDS = 4096, PYSIMD_DIRECT_COLUMNS = 64, PYSIMD_DIRECT_ROWS = 16, PYSIMD_DIRECT_SHORT_K = 32 };
enum { PYSIMD_DIRECT_LANES = 16 }; /* of a vector of C */

#endif
