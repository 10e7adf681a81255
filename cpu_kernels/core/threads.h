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
    int threads;       /* for which the items are made, and no more take part; 0: any number */
} pysimd_work;

/* How workers wait for the next call, and how often they were without a processor; times in nanoseconds. Processors
 * are "shared" for a while after a worker was found without one: other threads are supposed to spin on them. For
 * measurements and tests, which change it while no call runs. */
typedef struct {
    int64_t spin_ns;        /* a worker waits for so long in a loop, */
    int64_t awake_ns;       /* up to this time in a loop that yields the processor, and after that asleep */
    int64_t lost_ns;        /* a worker that is away for longer while it waits has found that processors are shared */
    int64_t shared_ns;      /* for so long: no worker yields, and callers wake workers on processors but their own */
    int64_t shared_spin_ns; /* instead of spin_ns then; after that a worker sleeps */
    int64_t look_ns;        /* a worker with an item that does not run for so long ends it on the caller's processor */
    int64_t few;            /* so many workers sleep early while processors are shared, and stay away from their
                             * caller's at all times; more do not */
    int64_t worth_ns;       /* work of so much wakes workers while processors are shared */
    int64_t apart;          /* whether a worker that is on its caller's processor takes no part */
    _Atomic int64_t shared_until;  /* the time until which processors are shared, */
    _Atomic int64_t crowded_until; /* and until which any number of workers sleep early */
    _Atomic int64_t lost, rescued; /* times that a worker found it; that a caller moved a worker to its processor */
    _Atomic int64_t looks;         /* times that a caller looked whether its workers run */
    _Atomic int64_t absent;        /* times that a worker which was awake had not begun before the end of a call */
    _Atomic int64_t freed;         /* times that a call ended before its worker, which waited for the next phase */
    _Atomic int64_t led, taken;    /* items that callers with workers ran, and that their workers ran */
    _Atomic int64_t beside;        /* times that a worker was on its caller's processor, and took no part */
} pysimd_waiting;
extern pysimd_waiting pysimd_waits;

/* Runs all items, which take one thread about `ns` nanoseconds (0: not known), on at most `threads` threads, of which
 * the calling one is the first. Threads that sleep are woken for the first `woken` (0: for all). There are fewer where
 * other calls have taken them or the system refuses them; a thread that has not begun before the last item is taken
 * takes no part. Any thread may call this, also from `run`, and also a child after fork. */
void pysimd_run(const pysimd_work *work, int threads, int woken, double ns);

/* Whether processors are shared now. */
int pysimd_processors_are_shared(void);

/* How many threads pysimd_run would begin with now. Work that is divided for more takes longer on them: two products of
 * 128 x 128 x 128 float, divided for two threads, took one of them 50 microseconds, undivided 38 (Zen 5). */
int pysimd_threads_at_hand(int threads, int woken, double ns);

#endif
