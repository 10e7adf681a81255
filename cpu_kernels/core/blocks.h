/* blocks.h: the blocks in which gemm.c divides K, by the kernel and the caches. */
#ifndef PYSIMD_BLOCKS_H
#define PYSIMD_BLOCKS_H

#include "caches.h"
#include "registry.h"
#include "split.h"

enum { PYSIMD_SHORTEST_BLOCK = 64, PYSIMD_LINE_OF_BLOCKS = 64 }; /* terms; bytes of a cache line */

/* Multiples of k in which K is divided. */
static inline int64_t pysimd_step_of_k(const pysimd_kernel *kernel)
{
    return kernel->k_tile ? kernel->k_tile * kernel->k_group : 8;
}

/* The longest K that is one block, with elements of so many bytes in panels: a micro-panel of B, kc rows of nr columns,
 * is three times as large as L1, or an eighth of L2. It comes from L2 for each tile, which takes no longer than the
 * multiply-adds, and each block of k reads and writes C once. Blocks that fill L1 once took 1.03 to 1.06 times as long
 * for 768 to 2048 float and double (Zen 3), and 1.08 and 1.13 times for 1024 and 2048 float (Xeon, whose blocks of 768
 * took 1.03 times as long as those of 1024); half of that took another 1.04 times. With tile registers A's micro-panel
 * stays in L1 and is two thirds of it; with four thirds 1024 and 2048 bfloat16 took 1.02 and 1.05 times as long (Xeon).
 *
 * Where a column of A's micro-panel is longer than a cache line, that of 14 doubles, the panel is at most three
 * quarters of L1: from L2 it takes as many bytes a cycle as B's. On an Ice Lake Xeon 1024 x 1024 x 1024 and 512 x 512 x
 * 1170 double took 0.89 times as long as with blocks of 1152, 147 x 3611 x 356 0.84 times; on a Sapphire Rapids they
 * took 0.98 to 1.05 times as long. */
static inline int64_t pysimd_longest_block(const pysimd_kernel *kernel, pysimd_sizes size)
{
    const int64_t row = kernel->nr * size.b, column = kernel->mr * size.a, step = pysimd_step_of_k(kernel);
    const pysimd_cache_sizes cache = pysimd_caches();
    const int64_t panel = kernel->k_tile ? cache.l1 * 2 / 3 : most(least(3 * cache.l1, cache.l2 / 8), cache.l1);
    const int64_t longest = !kernel->k_tile && column > PYSIMD_LINE_OF_BLOCKS ? cache.l1 * 3 / 4 / column : INT64_MAX;
    return most(least(panel / row, longest) / step * step, PYSIMD_SHORTEST_BLOCK);
}

/* The longest block of a K that is several. A column of 14 float is nearly as long as a cache line, so where float has
 * several blocks, A's micro-panel is at most three quarters of L1 too: 656 of 1152. While another virtual machine used
 * the same core of a Xeon with AMX, 2048 x 2048 x 2048 took 0.88 times as long, with blocks of 384 0.85; else 1.0 to
 * 1.02 and 1.0 to 1.02. A K of one block is not divided: 1024 x 1024 x 1024 took 0.9 and 1.0 times as long in two, but
 * few rows would be packed, and 10 x 900 x 40 and 12 x 1100 x 64 took 1.7 times as long. */
static inline int64_t pysimd_shorter_block(const pysimd_kernel *kernel, pysimd_sizes size)
{
    const int64_t longest = pysimd_longest_block(kernel, size), column = kernel->mr * size.a;
    if (kernel->k_tile || kernel->dispatch != ANY_N || column <= PYSIMD_LINE_OF_BLOCKS * 3 / 4) return longest;
    const int64_t step = pysimd_step_of_k(kernel);
    return most(least(longest, pysimd_caches().l1 * 3 / 4 / column / step * step), PYSIMD_SHORTEST_BLOCK);
}

/* The most rows of a micro-tile that reads rows of A so many bytes apart. Rows that are a multiple of a page apart are
 * in the same set of L1, whose ways are pages, and a line of each is read in as many steps of k as it has elements: no
 * more rows than ways. 4096 x 4096 x 12 and 4096 x 4096 x 16 float took 10.4 and 10.1 ms by tiles of 16 rows, and take
 * 5.4 and 5.5 by tiles of 8, double of 16 columns 15.9 and 12.2, 512 x 2048 x 16 float 0.61 and 0.31; fewer rows than
 * ways 0.98 to 1.1 times as long, packed A 1.0 to 2.4 times (Zen 4). */
static inline int64_t pysimd_rows_of_tile(const pysimd_kernel *kernel, int64_t bytes)
{
    enum { PAGE = 4096, LEAST = 4 };
    if (kernel->k_tile || bytes == 0 || bytes % PAGE) return kernel->mr;
    return least(kernel->mr, most(pysimd_caches().l1 / PAGE, LEAST));
}

/* K in blocks: the elements of a block but the last. */
static inline int64_t pysimd_equal_block(const pysimd_kernel *kernel, pysimd_sizes size, int64_t k)
{
    const int64_t longest = pysimd_longest_block(kernel, size);
    return equal_parts(k, k > longest ? pysimd_shorter_block(kernel, size) : longest, pysimd_step_of_k(kernel));
}

#endif
