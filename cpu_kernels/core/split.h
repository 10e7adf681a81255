/* split.h: a length divided into parts of nearly the same size. */
#ifndef PYSIMD_SPLIT_H
#define PYSIMD_SPLIT_H

#include "pysimd.h"

static inline int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t most(int64_t x, int64_t y) { return x > y ? x : y; }
static inline int64_t quotient(int64_t x, int64_t y) { return (x - 1) / y + 1; } /* rounded up; x >= 1 */
static inline int64_t multiple(int64_t x, int64_t y) { return quotient(x, y) * y; }

/* `total` in equal parts of at most `limit`, rounded up to a multiple of `unit`, which divides `limit`. */
static inline int64_t equal_parts(int64_t total, int64_t limit, int64_t unit)
{
    return multiple(quotient(total, quotient(total, limit)), unit);
}

/* A length split into the fewest parts of at most `most`, each but the last a multiple of `step`, as equal as can be:
 * 32 rows are 6, 6, 5, 5, 5 and 5, because a tile of 2 rows would wait for its multiply-adds. */
typedef struct {
    int64_t count, step, lower, higher; /* the first `higher` parts have lower + 1 steps, the others `lower` */
} split;

static inline split split_of(int64_t length, int64_t most, int64_t step)
{
    const int64_t count = (length + most - 1) / most, steps = (length + step - 1) / step;
    return (split){count, step, steps / count, steps % count};
}

/* The length of a part; `rest` is what is left of the whole from its first element on. */
static inline int64_t part_of(const split *s, int64_t index, int64_t rest)
{
    const int64_t length = (s->lower + (index < s->higher)) * s->step;
    return length < rest ? length : rest;
}

/* Rows of C in micro-tiles of at most `most`. A tile register has k_tile rows: 40 rows are 32 and 8, 3 of them, where
 * 20 and 20 are 4. */
static inline split rows_of_tiles(const pysimd_kernel *kernel, int64_t m, int64_t most)
{
    return split_of(m, most, kernel->k_tile ? kernel->k_tile : 1);
}

#endif
