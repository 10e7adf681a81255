/* trial.h: which of several ways to read products from beyond L2 is the fastest, found by timing the first segments of
 * a call. It depends on the machine, and on where the operands come from. */
#ifndef PYSIMD_TRIAL_H
#define PYSIMD_TRIAL_H

#include <stdint.h>
#include <time.h>

#include "later.h"

/* The ways that are tried; the first is that of a call too short for a trial. */
typedef struct {
    int count;
    way ways[WAYS];
} candidates;

enum { ROUNDS = 4, FEW_STAGED = WAYS, TRIED };

/* Nanoseconds that a product, or a row of one, took in the best of the segments that were computed in a way; segments
 * so far. They are computed in each way in turn, ROUNDS times, for a segment may wait for pages, or for other programs;
 * then, if `then_few`, in the best way with few products staged at a time. */
typedef struct {
    const candidates *of;
    int segments, most_segments, then_few;
    double ns[TRIED];
} trial;

static inline trial trial_of(const candidates *of, int then_few)
{
    return (trial){.of = of, .most_segments = ROUNDS * (of->count + then_few), .then_few = then_few};
}

/* Without a trial. */
static inline void end_trial(trial *x) { x->segments = x->most_segments; }

static inline int is_timed(const trial *x) { return x->segments < x->most_segments; }

static inline way way_of(const trial *x)
{
    if (x->segments < ROUNDS * x->of->count) return x->of->ways[x->segments % x->of->count];
    way best = x->of->ways[0];
    for (int i = 1; i < x->of->count; i++)
        if (x->ns[x->of->ways[i]] < x->ns[best]) best = x->of->ways[i];
    return best;
}

static inline int stages_few(const trial *x)
{
    if (!x->then_few || x->segments < ROUNDS * x->of->count) return 0;
    return is_timed(x) || x->ns[FEW_STAGED] < x->ns[way_of(x)];
}

static inline void add_time(trial *x, double ns)
{
    double *const least_ns = &x->ns[stages_few(x) ? FEW_STAGED : (int)way_of(x)];
    if (*least_ns == 0 || ns < *least_ns) *least_ns = ns;
    x->segments++;
}

static inline double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

#endif
