/* threads, C8: threads.
 *
 * step      each thread computes its own rows of C, or its own columns where C is wider than high: whole tiles, by the
 *           loops of the rung before. Threads share nothing that is written, and wait only at the end. The price: all
 *           of them pack the operand that they have in common, each for itself.
 * contract  core/ladder.h; any m, n, k and strides; memory for a block of A and of B for each thread
 * tile      mr x nr of the microkernel; with AVX2 6 x 16
 * regs      those of the microkernel
 * per k     those of the microkernel
 * ratio     with AVX2 6*16 / (6+16) = 4.36
 * rounding  as prefetch: the bits do not depend on the number of threads
 * needs     nothing
 * idea      one part of C a thread
 */
#include <pthread.h>

#include "loops.h"

extern pysimd_rung_fn pysimd_rung_prefetch;

enum { MOST_THREADS = 256 };

/* What one thread computes: rows of tiles where C is higher than wide, else columns of tiles. */
typedef struct {
    const pysimd_product *whole;
    int number, threads, failed;
} share;

static int64_t tiles_of(const pysimd_product *g)
{
    const pysimd_kernel *kernel = pysimd_ladder_kernel();
    return g->m >= g->n ? multiple(g->m, kernel->mr) / kernel->mr : multiple(g->n, kernel->nr) / kernel->nr;
}

static void *compute(void *argument)
{
    share *s = argument;
    const pysimd_kernel *kernel = pysimd_ladder_kernel();
    const pysimd_product *g = s->whole;
    const int by_rows = g->m >= g->n;
    const int64_t tiles = tiles_of(g), unit = by_rows ? kernel->mr : kernel->nr;
    const int64_t first = tiles * s->number / s->threads * unit;
    const int64_t end = least(tiles * (s->number + 1) / s->threads * unit, by_rows ? g->m : g->n);
    pysimd_product own = *g;
    if (by_rows) {
        own.m = end - first;
        own.a = (const float *)g->a + first * g->rs_a, own.c = (float *)g->c + first * g->rs_c;
    } else {
        own.n = end - first;
        own.b = (const float *)g->b + first * g->cs_b, own.c = (float *)g->c + first;
    }
    s->failed = pysimd_rung_prefetch(&own);
    return NULL;
}

RUNG(threads)
{
    const int threads = (int)least(least(g->threads, MOST_THREADS), tiles_of(g));
    share shares[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    int started[MOST_THREADS], failed = 0;
    for (int t = threads - 1; t >= 0; t--) { /* the last part is computed by the caller's own thread */
        shares[t] = (share){g, t, threads, 0};
        started[t] = t > 0 && pthread_create(&ids[t], NULL, compute, &shares[t]) == 0;
        if (!started[t]) compute(&shares[t]);
    }
    for (int t = 0; t < threads; t++) {
        if (started[t]) pthread_join(ids[t], NULL);
        failed |= shares[t].failed;
    }
    return failed;
}
