/* driver.h: products of whole arrays. */
#ifndef PYSIMD_DRIVER_H
#define PYSIMD_DRIVER_H

#include "registry.h"

enum {
    PYSIMD_MAX_DIMS = 64,
    PYSIMD_FACTORS = 8,       /* pysimd_product.flags: C = alpha A B + beta C, for products that pysimd_gemm takes */
    PYSIMD_INTERRUPTED = -2,
};

typedef struct pysimd_epilogue pysimd_epilogue; /* scale.h */

/* C = A B (PYSIMD_ZERO) or C += A B over a grid of batch dimensions, any m, n, k.
 * Strides count elements; the columns of C are adjacent. C overlaps neither A nor B, nor itself. With an epilogue rs_c
 * and cs_c are those of scratch memory, and c and batch_c those of the array to which it brings the products. */
typedef struct {
    int64_t m, n, k;
    const void *a;
    int64_t rs_a, cs_a;
    const void *b;
    int64_t rs_b, cs_b;
    void *c;
    int64_t rs_c, cs_c; /* cs_c is 1 but where operands are exchanged for a GEMV kernel */
    int ndim;
    int64_t shape[PYSIMD_MAX_DIMS], batch_a[PYSIMD_MAX_DIMS], batch_b[PYSIMD_MAX_DIMS], batch_c[PYSIMD_MAX_DIMS];
    int flags;
    int chosen; /* the kernel is dispatch's choice, which may be that of several kernels for several columns */
    int threads, woken; /* of pysimd_run; less than 1 and more than PYSIMD_MAX_THREADS are allowed */
    double ns;          /* of pysimd_run */
    double alpha, beta;
    const pysimd_epilogue *epilogue; /* NULL, or of products that pysimd_takes_epilogue */
    int (*begin)(void *context); /* NULL, or called when all memory is there, before C is read: nonzero ends it */
    int (*interrupted)(void *context); /* NULL, or asked in between by the calling thread: nonzero ends the product */
    void *context;
} pysimd_product;

static inline int64_t pysimd_batch_of(const pysimd_product *product)
{
    int64_t batch = 1;
    for (int d = 0; d < product->ndim; d++) batch *= product->shape[d];
    return batch;
}

/* Whether each thread computes products of the batch: so many that the threads are idle for at most a fifth of the
 * time, when only some of them have a product. */
static inline int pysimd_divides_batch(int64_t batch, int64_t threads)
{
    const int64_t last = batch % threads, idle = last ? threads - last : 0;
    return 4 * idle <= batch;
}

/* Threads that share the rows of a product. */
static inline int pysimd_threads_of_rows(const pysimd_product *p)
{
    return p->threads <= 1 || pysimd_divides_batch(pysimd_batch_of(p), p->threads) ? 1 : p->threads;
}

/* One product of the batch. */
typedef struct {
    const char *a, *b;
    char *c;
} pysimd_matrices;

/* The product of this index; `size` is that of the product's own A, B and C. */
static inline pysimd_matrices pysimd_matrices_at(const pysimd_product *product, pysimd_sizes size, int64_t index)
{
    int64_t a = 0, b = 0, c = 0;
    for (int d = product->ndim - 1; d >= 0; d--) {
        const int64_t at = index % product->shape[d];
        index /= product->shape[d];
        a += at * product->batch_a[d], b += at * product->batch_b[d], c += at * product->batch_c[d];
    }
    return (pysimd_matrices){(const char *)product->a + a * size.a, (const char *)product->b + b * size.b,
                             (char *)product->c + c * size.c};
}

/* Flags of one of several calls of a kernel in a row: `before` is the shape of the one before, zeros for the first. */
typedef struct {
    int64_t m, n, k;
} pysimd_shape;

/* Rows, or columns, of the tile for which the registers are configured where one has `count`: half of a tile needs no
 * other configuration than a whole one. */
static inline int64_t pysimd_configured(int64_t count, int64_t whole) { return 2 * count == whole ? whole : count; }

static inline int pysimd_flags_in_a_row(const pysimd_kernel *kernel, pysimd_shape *before, const pysimd_call *s,
                                        int last)
{
    if (!kernel->k_tile) return 0;
    const pysimd_shape x = {pysimd_configured(s->m, kernel->mr), pysimd_configured(s->n, kernel->nr), s->k};
    const int same = before->m == x.m && before->n == x.n && before->k == x.k;
    *before = x;
    return (same ? PYSIMD_CONFIGURED : 0) | (last ? 0 : PYSIMD_KEEP);
}

/* Whether the kernel's function for small products computes these. */
int pysimd_has_small(const pysimd_kernel *kernel, const pysimd_product *product);

/* Whether some products of the batch at a time fit in a part of L1, and none is divided: then each thread computes them
 * there, and brings them to where they belong by the epilogue of the product. */
int pysimd_takes_epilogue(const pysimd_kernel *kernel, const pysimd_product *product);

/* Returns 0; -1 if there is no memory for the panels (C is then untouched); or PYSIMD_INTERRUPTED, after a nonzero
 * result of product->begin (C is then untouched) or product->interrupted. */
int pysimd_multiply(const pysimd_kernel *kernel, const pysimd_product *product);

#endif
