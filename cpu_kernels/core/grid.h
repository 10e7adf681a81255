/* grid.h: a product for several threads as a grid of smaller products. */
#ifndef PYSIMD_GRID_H
#define PYSIMD_GRID_H

#include "driver.h"
#include "split.h"

/* Rows and columns of a grid of parts of a product, some for each thread; 0 where it has no equal parts. With tile
 * registers they are whole tiles. Other parts have all rows or all columns: all columns for groups of k, since A, which
 * every part with all rows packs for itself, takes long to pack then. On two threads of a Xeon 128 x 128 x 128 int8
 * took half as long as by columns, 192 x 192 x 192 0.67 times. */
static inline int64_t pysimd_grid_rows(const pysimd_kernel *kernel, const pysimd_product *product, int64_t count,
                                       int64_t *columns)
{
    const int64_t m = product->m, n = product->n, mr = kernel->mr, nr = kernel->nr;
    *columns = 1;
    if (kernel->k_tile) {
        const int64_t rows = grid_rows(m, mr, n, nr, count);
        if (rows) *columns = count / rows;
        return rows;
    }
    if (kernel->k_group == 1 && n % (count * nr) == 0) return *columns = count, 1;
    return m % count == 0 && m / count >= 4 * mr ? count : 0;
}

/* A product for several threads becomes a grid of products, of which each is packed and multiplied by one thread, the
 * same in every call (claims.h): panels that all threads share come from another processor's cache, and threads wait
 * for each other before they read them. With tile registers a thread has one part or two, so that little is packed
 * twice, and of large products more, so that all threads end at the same time: on 12 threads bfloat16 and int8 took
 * 0.53 to 0.65 times as long as with shared panels for 512 x 512 x 512, 0.77 and 0.67 times for 1024 x 1024 x 1024,
 * 0.95 to 0.99 times for 2048 x 2048 x 2048; on 8 threads 0.79 and 0.94 times for 1024 (Xeon).
 *
 * Others have two parts for each thread. On two threads of a Zen 3 128 x 128 x 128 float took 0.88 times as long, 160 x
 * 160 x 160 0.9 times; from 256 x 256 x 256 on there was no gain, and more threads were not measured. Returns whether
 * there is such a grid. */
static inline int pysimd_grid(const pysimd_kernel *kernel, const pysimd_product *product, int threads, int64_t batch,
                              pysimd_product *parts)
{
    enum {
        FEW_PARTS = 1 << 28,  /* multiply-adds up to which a thread has one part or two, with tile registers */
        SMALL_GRID = 1 << 23, /* the most without, for few threads */
        FEW_THREADS = 4,
    };
    static const double LARGEST_GRID = 1ll << 33; /* multiply-adds, with tile registers */
    const double macs = (double)product->m * (double)product->n * (double)product->k;
    if (threads == 1 || macs > LARGEST_GRID || product->ndim > PYSIMD_MAX_DIMS - 2) return 0;
    if (!kernel->k_tile && (threads > FEW_THREADS || macs > SMALL_GRID)) return 0;
    if (batch >= (kernel->k_tile ? 2 : 4 * threads)) return 0;
    int64_t columns = 1, rows = 0;
    if (kernel->k_tile) {
        const int64_t fewest = macs > FEW_PARTS ? threads * 5 / 2 : threads;
        for (int64_t count = fewest; !rows && count <= 2 * fewest; count++)
            rows = pysimd_grid_rows(kernel, product, count, &columns);
    } else if (!(rows = pysimd_grid_rows(kernel, product, 2 * threads, &columns))) {
        rows = pysimd_grid_rows(kernel, product, threads, &columns);
    }
    if (!rows) return 0;
    *parts = *product;
    parts->m = product->m / rows, parts->n = product->n / columns;
    const int d = parts->ndim;
    parts->ndim += 2;
    parts->shape[d] = rows, parts->shape[d + 1] = columns;
    parts->batch_a[d] = parts->m * product->rs_a, parts->batch_a[d + 1] = 0;
    parts->batch_b[d] = 0, parts->batch_b[d + 1] = parts->n * product->cs_b;
    parts->batch_c[d] = parts->m * product->rs_c, parts->batch_c[d + 1] = parts->n;
    return 1;
}

#endif
