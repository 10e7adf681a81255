/* gemm.h: products that are larger than one micro-tile, in the loops of GotoBLAS. */
#ifndef PYSIMD_GEMM_H
#define PYSIMD_GEMM_H

#include "driver.h"

/* Whether pysimd_gemm computes products of this size. All products whose K is longer than a block of k are among them
 * (but those of inner-product kernels, which take no part), so that a kernel adds the terms of an element in the same
 * order wherever it is called. */
int pysimd_gemm_takes(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k);

/* Whether it divides so many multiply-adds between threads. */
int pysimd_gemm_divides(double macs);

/* As pysimd_multiply, and with the flag PYSIMD_FACTORS C = alpha A B + beta C. After a nonzero result of
 * product->interrupted C is incomplete. */
int pysimd_gemm(const pysimd_kernel *kernel, const pysimd_product *product);

/* Terms of a block of k, as all routes of large products divide K: by the kernel and K alone. */
int64_t pysimd_block_of_k(const pysimd_kernel *kernel, int64_t k);

/* Memory of a call, in huge pages where there are any; NULL if there is none. */
typedef struct {
    int64_t bytes;
    _Alignas(64) char data[];
} pysimd_buffer;

pysimd_buffer *pysimd_take_buffer(int64_t bytes);
void pysimd_give_back_buffer(pysimd_buffer *used);

#endif
