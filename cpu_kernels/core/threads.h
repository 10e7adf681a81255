/* threads.h: the threads of this process, and work that is divided among them. */
#ifndef PYSIMD_THREADS_H
#define PYSIMD_THREADS_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    PYSIMD_MAX_THREADS = 256, /* of a call */
    PYSIMD_MAX_ITEMS = 1 << 28, /* of a phase */
};

/* Items that threads take one after the other, in phases: an item of a phase begins after all items of the phase before
 * it have ended. Which thread takes an item is not defined. */
typedef struct {
    void *context;
    int64_t phases;
    int64_t (*items)(void *context, int64_t phase); /* in a phase: 1 or more */
    void (*run)(void *context, int thread, int64_t phase, int64_t item); /* thread: 0, the caller's, to threads - 1 */
    _Atomic int *stop; /* NULL, or what `run` makes nonzero: items that have not begun are left out */
} pysimd_work;

/* How workers wait for the next call, in nanoseconds, and how often they were without a processor: for measurements and
 * tests, which change it while no call runs. */
typedef struct {
    int64_t spin_ns;        /* in a loop, and then */
    int64_t awake_ns;       /* in a loop that yields the processor, up to this time; then asleep */
    int64_t lost_ns;        /* who is away for so long while it waits shares its processor with a thread that spins; */
    int64_t shared_ns;      /* for so long after that no worker yields, and callers wake them on other processors */
    int64_t shared_spin_ns; /* than their own, and a worker is in the loop for so long */
    int64_t look_ns;        /* who has an item and does not run for so long ends it on the caller's processor */
    int64_t few;            /* more workers than these do not sleep early */
    int64_t worth_ns;       /* of work, for which threads that sleep early are woken */
    _Atomic int64_t shared_until;  /* the time when that ends */
    _Atomic int64_t lost, rescued; /* times that it came to that */
} pysimd_waiting;
extern pysimd_waiting pysimd_waits;

/* Runs all items, which take one thread about `ns` nanoseconds (0: not known), on at most `threads` threads, of which
 * the calling one is the first. Threads that sleep are woken for the first `woken` (0: for all). There are fewer where
 * other calls have taken them or the system refuses them; a thread that has not begun before the last item is taken
 * takes no part. Any thread may call this, also from `run`, and also a child after fork. */
void pysimd_run(const pysimd_work *work, int threads, int woken, double ns);

#endif
