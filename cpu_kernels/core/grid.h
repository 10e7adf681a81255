/* grid.h: a product for several threads as a grid of parts. */
#ifndef PYSIMD_GRID_H
#define PYSIMD_GRID_H

#include "driver.h"
#include "split.h"

/* Parts of a product, of whole micro-tiles, which differ by a tile at most in each direction; 0 rows: no grid. */
typedef struct {
    int64_t rows, columns;
} pysimd_grid;

/* A product for several threads becomes a grid of products, of which each is packed and multiplied by one thread, the
 * same in every call (claims.h): panels that all threads share come from another processor's cache, and threads wait
 * for each other before they read them. Of the grids with as many parts as threads, or twice as many, that is taken
 * which ends first, when packing a column of B takes as long as the multiply-adds of PACKING rows, and a row of A as
 * those of so many columns. With tile registers large products have more parts, so that all threads end together.
 *
 * On 8 and 16 threads of a Xeon float and double products of 128 to 640 rows and columns took 0.4 to 0.9 times as long
 * as with shared panels, 100 x 300 x 500 and 100 x 1000 x 2000 0.4 to 0.6, 1000 x 1000 x 1000 0.8 to 1.1; on four
 * threads those of 160 to 320 0.6 to 0.9; on two of a Zen 3 those of 100 to 200 0.8 to 1.0, larger ones 0.99 to 1.08.
 * With more than 64 rows for each thread shared panels are read for long: grids took 1.1 to 1.3 times as long for
 * 2000 x 1000 x 100 and 2000 x 2000 x 300, 1.05 to 1.2 times for 4096 x 64 x 4096 (16 threads). With tile registers,
 * 160, 200 and 500 bfloat16 and int8 took 0.4 to 0.8 times as long on 16 threads as when parts had to be equal. */
static inline pysimd_grid pysimd_grid_for(const pysimd_kernel *kernel, const pysimd_product *product, int threads,
                                          int64_t batch)
{
    enum {
        SMALL = 1 << 23,      /* the most multiply-adds for few threads; up to which there may be any number of rows, */
        LARGE = 1 << 30,      /* and for more threads, */
        FEW_THREADS = 3,
        ROWS_A_THREAD = 64,   /* with at most so many rows for each */
        FEW_PARTS = 1 << 28,  /* up to which a thread has one part or two, with tile registers */
        PACKING = 32,
        PACKING_FOR_TILES = 128,
    };
    static const double LARGEST_OF_TILES = 1ll << 33;
    const double macs = (double)product->m * (double)product->n * (double)product->k;
    pysimd_grid found = {0, 0};
    if (threads == 1 || batch >= (kernel->k_tile ? 2 : 4 * threads)) return found;
    if (macs > (kernel->k_tile ? LARGEST_OF_TILES : threads > FEW_THREADS ? LARGE : SMALL)) return found;
    if (!kernel->k_tile && macs > SMALL && product->m > ROWS_A_THREAD * threads) return found;
    const int64_t tiles = quotient(product->m, kernel->mr), panels = quotient(product->n, kernel->nr);
    const int64_t packing = (kernel->k_tile ? PACKING_FOR_TILES : PACKING) * kernel->k_group;
    const int64_t parts = kernel->k_tile && macs > FEW_PARTS ? threads * 5 / 2 : threads; /* of all products */
    double shortest = 0;
    for (int twice = 1; twice <= 2; twice++) {
        const int64_t count = quotient(twice * parts, batch);
        for (int64_t rows = 1; rows <= least(count, tiles); rows++) {
            const int64_t columns = least(count / rows, panels), rounds = quotient(rows * columns * batch, threads);
            const int64_t high = quotient(tiles, rows) * kernel->mr, wide = quotient(panels, columns) * kernel->nr;
            const double time = (double)rounds * (double)(high + packing) * (double)(wide + packing);
            if (found.rows && time >= shortest) continue;
            found = (pysimd_grid){rows, columns}, shortest = time;
        }
    }
    return found;
}

#endif
