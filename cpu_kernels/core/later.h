/* later.h: memory of later products that is prefetched in shares, while others are computed. */
#ifndef PYSIMD_LATER_H
#define PYSIMD_LATER_H

#include <stdint.h>

/* IN_ORDER: products one after the other, which the hardware's prefetch may follow. PREFETCH_L2, PREFETCH_L1: while the
 * next ones are prefetched. ROW_BY_ROW: of GEMV, each row of A by itself. */
typedef enum { IN_ORDER, PREFETCH_L2, PREFETCH_L1, ROW_BY_ROW, WAYS } way;

/* Memory that is prefetched: up to `end`, `share` bytes at a time. */
typedef struct {
    const char *at, *end;
    int64_t share;
} stretch;

/* Matrices of later products. */
typedef struct pysimd_later {
    stretch a, b, c;
    way way;
} later;

/* Inlined, for GCC 12 leaves out a function whose only effect is prefetches. */
static inline __attribute__((always_inline)) void prefetch_stretch(stretch *x, way way)
{
    enum { CACHE_LINE = 64 };
    const char *stop = x->end - x->at < x->share ? x->end : x->at + x->share;
    if (way == PREFETCH_L1) /* the level is a constant of the instruction */
        for (; x->at < stop; x->at += CACHE_LINE) __builtin_prefetch(x->at, 0, 3);
    else
        for (; x->at < stop; x->at += CACHE_LINE) __builtin_prefetch(x->at, 0, 2);
}

static inline __attribute__((always_inline)) void prefetch_share(later *x)
{
    if (x) prefetch_stretch(&x->a, x->way), prefetch_stretch(&x->b, x->way), prefetch_stretch(&x->c, x->way);
}

#endif
