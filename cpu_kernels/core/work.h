/* work.h: what a thread computes of a product, for driver.c, which divides the product, beyond.c, which computes the
 * parts in the fastest way, and batch.c, which stages operands and calls the kernel. */
#ifndef PYSIMD_WORK_H
#define PYSIMD_WORK_H

#include "driver.h"
#include "pack.h"
#include "scale.h"
#include "stage.h"
#include "trial.h"

/* A part of a product: `count` products from `first` on, rows [row0, row1) of each. */
typedef struct {
    const pysimd_kernel *kernel;
    const pysimd_product *product;
    int64_t first, count, row0, row1;
    way way;
    const candidates *ways; /* or NULL: IN_ORDER */
    trial *trial;           /* of them, by this thread */
    int of_rows;            /* whether the segments that are timed are rows of a single product */
    int64_t segment;        /* so many, or products */
    int64_t together;       /* products that are computed while the next ones are prefetched */
    int stages, stages_few; /* whether operands are staged, and then few products at a time */
    int64_t shares;   /* 0, or in how many shares: before an operand is staged, and before each call of the kernel */
    later *next;      /* what is prefetched in shares, or NULL */
    int direct, exchanged; /* direct.h */
    int more; /* columns beyond nr, after whole vectors, that a tile computes by themselves */
    char *scratch, *sums; /* sums: with an epilogue, products before they are stored */
    int64_t pieces;       /* how many of them */
    pysimd_staged *kept; /* B as this thread has staged it for a part before (data NULL: not yet), or NULL */
    pysimd_shape *before; /* of which tile registers are configured, or NULL */
    int follow;           /* whether products of the same kernel follow, for which they stay so */
} work;

/* Bytes of the elements of the product's own A, B and C. */
static inline pysimd_sizes sizes_of(const pysimd_kernel *kernel, const pysimd_product *p)
{
    const pysimd_sizes *size = &pysimd_element_sizes[kernel->types];
    const int exchanged = p->flags & PYSIMD_EXCHANGED;
    return (pysimd_sizes){exchanged ? size->b : size->a, exchanged ? size->a : size->b, size->c};
}

/* The same, of C as the epilogue stores it. */
static inline pysimd_sizes sizes_in_memory(const pysimd_kernel *kernel, const pysimd_product *p)
{
    pysimd_sizes size = sizes_of(kernel, p);
    if (p->epilogue) size.c = p->epilogue->size;
    return size;
}

static inline int64_t tile_rows(const pysimd_kernel *kernel, int64_t m)
{
    const int64_t tiles = (m + kernel->mr - 1) / kernel->mr;
    return tiles ? (m + tiles - 1) / tiles : 1; /* 17 rows are 9 and 8, not 16 and 1 */
}

/* How the operands come to the kernel: bytes of scratch memory for the panels of one product (0 where the kernel reads
 * the operand in place), and how many products are staged together. They are those of whole products also where a
 * thread computes some of the rows: what is allocated is enough for every thread. */
typedef struct {
    int64_t bytes_a, bytes_b, products;
    int widens_b; /* whether the kernel widens B while it loads it from the array */
    int64_t offset_b, total; /* of B's panels in the scratch memory, and its size; -1 where it cannot be counted */
} staging;

static inline int64_t rounded(int64_t bytes)
{
    return bytes > INT64_MAX - 63 ? INT64_MAX - 63 : (bytes + 63) & ~(int64_t)63;
}

/* batch.c: of `batch` products along the innermost dimension. */
staging pysimd_staging_of(const work *w, int64_t batch);

/* batch.c: `count` products along the innermost dimension of the batch, whose first matrices are at a, b and c. */
void pysimd_multiply_some(const work *w, int64_t count, const char *a, const char *b, char *c, int64_t bs_a,
                          int64_t bs_b, int64_t bs_c);

/* beyond.c: sets the ways in which the work may be computed, by so many threads; and the trial of each of these. */
void pysimd_choose_ways(work *w, int threads);
trial pysimd_trial_of(const work *w, int threads);

/* beyond.c: all of the work. */
void pysimd_compute(const work *w);

#endif
