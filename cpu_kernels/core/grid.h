/* grid.h: a product for several threads as a grid of parts. */
#ifndef PYSIMD_GRID_H
#define PYSIMD_GRID_H

#include "driver.h"
#include "split.h"

/* Parts of a product, of whole micro-tiles, which differ by a tile at most in each direction; 0 rows: no grid. A part
 * has all of K, or one of its `blocks` blocks. */
typedef struct {
    int64_t rows, columns, blocks;
} pysimd_grid;

/* What a grid is chosen by. */
typedef struct {
    const pysimd_kernel *kernel;
    int64_t tiles, panels; /* micro-tiles in a column of C, micro-panels of B */
    int64_t batch, threads;
    int64_t packing; /* multiply-adds that take as long as packing an element of A or B */
    double shared;   /* and that as long as a row of C of which two parts share a cache line, for each k */
} pysimd_grid_problem;

static inline int64_t pysimd_grid_rounds(const pysimd_grid_problem *x, pysimd_grid grid)
{
    return quotient(grid.rows * grid.columns * grid.blocks * x->batch, x->threads);
}

/* Rows and columns of the largest part. */
static inline int64_t pysimd_grid_high(const pysimd_grid_problem *x, pysimd_grid grid)
{
    return quotient(x->tiles, grid.rows) * x->kernel->mr;
}
static inline int64_t pysimd_grid_wide(const pysimd_grid_problem *x, pysimd_grid grid)
{
    return quotient(x->panels, grid.columns) * x->kernel->nr;
}

/* Multiply-adds, for each k, that take as long as the lines of C which the largest part shares with those beside it. */
static inline double pysimd_grid_shared(const pysimd_grid_problem *x, pysimd_grid grid)
{
    return grid.columns > 1 ? (double)pysimd_grid_high(x, grid) * x->shared : 0;
}

/* Of the grids with as many parts as wanted, or twice as many, that which ends first. */
static inline pysimd_grid pysimd_grid_of_blocks(const pysimd_grid_problem *x, int64_t parts, int64_t blocks)
{
    pysimd_grid found = {0, 0, blocks};
    double shortest = 0;
    for (int twice = 1; twice <= 2; twice++) {
        const int64_t count = quotient(twice * parts, x->batch * blocks);
        for (int64_t rows = 1; rows <= least(count, x->tiles); rows++) {
            const pysimd_grid grid = {rows, least(count / rows, x->panels), blocks};
            const double high = (double)pysimd_grid_high(x, grid), wide = (double)pysimd_grid_wide(x, grid);
            const double packing = (double)x->packing;
            const double part = (high + packing) * (wide + packing) + pysimd_grid_shared(x, grid);
            const double time = (double)pysimd_grid_rounds(x, grid) * part;
            if (found.rows && time >= shortest) continue;
            found = grid, shortest = time;
        }
    }
    return found;
}

/* Parts of the rows of a product in which the sums of its blocks of K are added to C. */
static inline int64_t pysimd_grid_adding(int64_t m, int64_t n, int64_t blocks, int64_t threads)
{
    enum { WORTH = 1 << 14 }; /* elements */
    return most(least(m * n / WORTH * (blocks - 1), least(threads, m)), 1);
}

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
 * 160, 200 and 500 bfloat16 and int8 took 0.4 to 0.8 times as long on 16 threads as when parts had to be equal.
 *
 * A cache line of C in which a part's row ends and that of another thread begins is passed between them several times.
 * With tile registers it costs so much that rows are divided rather than columns, unless each row of C starts on a
 * line: int8 and bfloat16 of 256 x 256 x 256 took 0.52 to 0.6 times as long on two threads of a Xeon, 384 x 384 x 384
 * 0.66 to 0.8, 512 x 512 x 512 0.77 to 1.05 times, larger ones as long; on 16 threads 1.0 to 1.2 times (256 to 512).
 * Without tile registers it makes no difference (float and double from 160 x 160 x 160 to 512 x 512 x 512).
 *
 * Where K has several `blocks`, parts may have one of them each: a C of few rows and columns has not enough tiles for
 * all threads, or each thread packs all of A or B. The sums of a block are added to C afterwards. On two threads of a
 * Xeon 64 x 4096 x 64 float and double took 0.5 to 0.7 times as long, 128 x 4096 x 128 0.55 to 0.8, bfloat16 0.8; on 16
 * threads 0.4 to 0.6 and 0.55 to 0.95, 8 x 13374 x 24 double 0.15. Some that are `tall`, or whose C is larger than
 * below, took 1.1 to 1.4 times as long. `packs_a`: A is not read in place. */
static inline pysimd_grid pysimd_grid_for(const pysimd_kernel *kernel, const pysimd_product *product, int threads,
                                          int64_t batch, int64_t blocks, int packs_a)
{
    enum {
        SMALL = 1 << 23,      /* the most multiply-adds for few threads; up to which there may be any number of rows, */
        LARGE = 1 << 30,      /* and for more threads, */
        FEW_THREADS = 3,
        ROWS_A_THREAD = 64,   /* with at most so many rows for each */
        FEW_PARTS = 1 << 28,  /* up to which a thread has one part or two, with tile registers */
        PACKING = 32,
        PACKING_FOR_TILES = 128,
        MOST_SUMS = 1 << 20,  /* elements of C of all blocks but the first; */
        MOST_OF_FEW = 1 << 16, MOST_OF_MANY = 1 << 15, /* of one block, with few threads and more */
        ADDING = 64,          /* multiply-adds that take as long as adding one of them, */
        ADDING_FOR_TILES = 128,
        WAITING = 4096,       /* and elements that take as long as waiting for the last part */
        STARTING = 32,        /* elements packed, of a row and a column each, while a part starts */
        SHARED_LINE = 128,    /* elements that take as long as a line of C which two threads write (tile registers) */
        LINE = 64,
    };
    static const double LARGEST_OF_TILES = 1ll << 33, WORTH_DIVIDING = 0.85; /* the time of whole parts */
    const double k = (double)product->k, area = (double)product->m * (double)product->n * (double)batch;
    const double macs = (double)product->m * (double)product->n * k;
    const int group = (int)kernel->k_group, rate = (kernel->k_tile ? ADDING_FOR_TILES * group : ADDING) * group;
    const pysimd_grid none = {0, 0, 1};
    if (threads == 1 || batch >= (kernel->k_tile ? 2 : 4 * threads)) return none;
    const int64_t row_bytes = product->rs_c * pysimd_element_sizes[kernel->types].c;
    const int on_lines = ((uintptr_t)product->c | (uintptr_t)row_bytes) % LINE == 0;
    const int shares = kernel->k_tile && threads <= FEW_THREADS && !on_lines;
    const pysimd_grid_problem x = {.kernel = kernel, .tiles = quotient(product->m, kernel->mr),
                                   .panels = quotient(product->n, kernel->nr), .batch = batch, .threads = threads,
                                   .packing = (kernel->k_tile ? PACKING_FOR_TILES : PACKING) * group,
                                   .shared = shares ? (double)SHARED_LINE * rate / k : 0};
    const int64_t parts = kernel->k_tile && macs > FEW_PARTS ? threads * 5 / 2 : threads; /* of all products */
    const int too_high = !kernel->k_tile && macs > SMALL && product->m > ROWS_A_THREAD * threads;
    const int whole = !too_high && macs <= (kernel->k_tile ? LARGEST_OF_TILES : threads > FEW_THREADS ? LARGE : SMALL);
    const int tall = product->m >= ROWS_A_THREAD * threads && !packs_a;
    const int divides_k = blocks > 1 && batch < threads && !tall && area * (double)(blocks - 1) <= MOST_SUMS &&
                          area <= (threads > FEW_THREADS ? MOST_OF_MANY : MOST_OF_FEW);
    pysimd_grid found = none;
    double shortest = 0; /* times what it may be */
    for (int divided = !whole; divided <= divides_k; divided++) {
        const pysimd_grid grid = pysimd_grid_of_blocks(&x, parts, divided ? blocks : 1);
        const double high = (double)pysimd_grid_high(&x, grid), wide = (double)pysimd_grid_wide(&x, grid);
        const double packing = (double)x.packing, part = high * wide + packing * (wide + (packs_a ? high : 0));
        const double shared = pysimd_grid_shared(&x, grid) * k;
        const double each = part * k / (double)grid.blocks + shared + packing * packing * STARTING;
        const double sums = area * (double)(grid.blocks - 1);
        const double adding = sums / (double)pysimd_grid_adding(product->m, product->n, blocks, threads) + WAITING;
        const double time = (double)pysimd_grid_rounds(&x, grid) * each + (divided ? adding * rate : 0);
        if (!found.rows || time < shortest) found = grid, shortest = (kernel->k_tile ? 1 : WORTH_DIVIDING) * time;
    }
    return found;
}

#endif
