/* threads.c: see threads.h. Compiled for the baseline processor.
 *
 * A pool: threads are created by the first call that needs them, then wait for the next call: SPIN_NS in a loop, up to
 * AWAKE_NS in a loop that yields the processor, and after that asleep. There are as many as the largest call asked for,
 * so calls at the same time share them and do not start more. The caller wakes its threads and begins at once; it never
 * waits for a thread that has not begun.
 *
 * On a virtual machine (Zen 3), a thread in the loop begins after 0.3 microseconds. To wake one that sleeps takes the
 * caller 10 to 20, and 100 if the processor was idle: 16 microseconds of work took 53 instead of 138 on one thread
 * after 2 milliseconds of sleep. So there is more work than that for each thread that is woken; but where calls follow
 * on each other, those that wait for little work are awake, and the first call of such a series wakes them.
 *
 * Between two calls there is often other work of some hundred microseconds. On 16 cores of a Xeon, in turn with calls of
 * NumPy, ten float products of 128 x 128 x 128 took 93 microseconds with threads that yield meanwhile, 161 with threads
 * that sleep and are all woken, and 315 on one thread. Tried there without gain: threads that are awake wake others,
 * instead of the caller alone (257 microseconds after sleep, and 245).
 *
 * Where another library's idle threads spin on the same cores, a worker may lose its core in the middle of an item, and
 * the call then waits for some milliseconds. The calls after that are computed by their caller alone, for eight times as
 * long as it waited, unless they are told the number of threads. In turn with calls of NumPy on 16 cores of a Xeon, ten
 * float products of 200 x 200 x 200 took 1.09 milliseconds on average (nine of ten at most 1.33), 1.87 (4.77) without
 * this, and 1.16 (1.32) on one thread; ten of doubles 2.28 (2.67), 3.08 (5.36) and 2.39 (2.74). Pauses of 32 times, from
 * a third of the time on: 1.19 and 2.45. Without gain there (Zen 3): workers that sleep as soon as they lose their core
 * while they wait, or after 100 microseconds; that yield from the start; that take no part on the caller's core. 128 x
 * 128 x 128 in turn with NumPy took as long from 32, 50 and 80 microseconds of work for two threads.
 */
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum {
    CACHE_LINE = 64,
    SPIN_NS = 100 * 1000,
    AWAKE_NS = 2000 * 1000,
    SPINS = 1000, /* of a thread that waits for the end of a phase; then it yields the processor */
    STALL_NS = 100 * 1000, /* a call waits so long, and for half of its time: a worker has lost its processor */
    ALONE = 8,             /* times the stall: so long calls are computed by their caller alone */
    ITEM_BITS = 28,
};
_Static_assert(PYSIMD_MAX_ITEMS == 1 << ITEM_BITS, "an item's number has ITEM_BITS bits");

static void relax(void)
{
#ifdef __SSE2__
    __builtin_ia32_pause();
#endif
}

static void wait_a_little(int *spins)
{
    if (++*spins < SPINS)
        relax();
    else
        sched_yield();
}

/* --- the items of a call --- */

typedef struct {
    const pysimd_work *work;
    _Alignas(CACHE_LINE) _Atomic int64_t next; /* phase << ITEM_BITS | item; the item may be past the last one */
    _Alignas(CACHE_LINE) _Atomic int64_t ended; /* items of this phase */
    int64_t waited; /* nanoseconds, by the caller, for items that other threads had taken */
} call;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int stopped(const pysimd_work *w) { return w->stop && atomic_load(w->stop); }

static void take_items(call *c, int thread)
{
    const pysimd_work *w = c->work;
    while (!stopped(w)) {
        const int64_t next = atomic_fetch_add(&c->next, 1);
        const int64_t phase = next >> ITEM_BITS, item = next & (PYSIMD_MAX_ITEMS - 1);
        if (phase >= w->phases) return;
        const int64_t items = w->items(w->context, phase);
        if (item < items) {
            w->run(w->context, thread, phase, item);
            if (atomic_fetch_add(&c->ended, 1) + 1 == items) {
                atomic_store(&c->ended, 0);
                atomic_store(&c->next, (phase + 1) << ITEM_BITS);
            }
        } else {
            const int64_t start = thread == 0 ? now_ns() : 0;
            for (int spins = 0; atomic_load(&c->next) >> ITEM_BITS == phase && !stopped(w);) wait_a_little(&spins);
            if (thread == 0) c->waited += now_ns() - start;
        }
    }
}

static void run_alone(const pysimd_work *w)
{
    for (int64_t phase = 0; phase < w->phases && !stopped(w); phase++) {
        const int64_t items = w->items(w->context, phase);
        for (int64_t item = 0; item < items; item++) w->run(w->context, 0, phase, item);
    }
}

/* --- the pool --- */

typedef struct {
    _Alignas(CACHE_LINE) call *_Atomic call; /* NULL: none; what the caller asks for; or one of the two below */
    _Atomic int asleep;
    int taken;  /* by a caller */
    int number; /* in the call */
    pthread_t id;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} worker;

static call running, quit; /* a worker has begun; a worker has to end */

static struct {
    pthread_mutex_t mutex; /* of what follows, and of `taken` of all workers */
    worker workers[PYSIMD_MAX_THREADS - 1];
    int count, closed;
    int64_t last; /* time when a call ended */
    _Atomic int64_t alone_until; /* time until which callers take no worker unless they are told the number of threads */
    pid_t process;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static call *next_call(worker *w)
{
    enum { CHECKS = 16 };
    call *found;
    const int64_t start = now_ns();
    for (int64_t waited = 0; waited < AWAKE_NS; waited = now_ns() - start) {
        for (int i = 0; i < CHECKS; i++, relax())
            if ((found = atomic_load(&w->call))) return found;
        if (waited > SPIN_NS) sched_yield();
    }
    pthread_mutex_lock(&w->mutex);
    atomic_store(&w->asleep, 1);
    while (!(found = atomic_load(&w->call))) pthread_cond_wait(&w->wake, &w->mutex);
    atomic_store(&w->asleep, 0);
    pthread_mutex_unlock(&w->mutex);
    return found;
}

static void *serve(void *argument)
{
    worker *w = argument;
    for (;;) {
        call *c = next_call(w);
        if (c == &quit) return NULL;
        if (!atomic_compare_exchange_strong(&w->call, &c, &running)) continue; /* the caller has not waited */
        take_items(c, w->number);
        atomic_store(&w->call, NULL);
    }
}

static void ask(worker *w, call *c)
{
    atomic_store(&w->call, c);
    if (!atomic_load(&w->asleep)) return;
    pthread_mutex_lock(&w->mutex);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
}

/* Returns when the worker has nothing to do with the call any more. */
static void release(worker *w, call *c)
{
    call *expected = c;
    if (atomic_compare_exchange_strong(&w->call, &expected, NULL)) return;
    const int64_t start = now_ns();
    for (int spins = 0; atomic_load(&w->call);) wait_a_little(&spins);
    c->waited += now_ns() - start;
}

/* Fork copies the calling thread alone: the child has no workers. */
static void before_fork(void) { pthread_mutex_lock(&pool.mutex); }
static void after_fork(void) { pthread_mutex_unlock(&pool.mutex); }
static void after_fork_in_child(void)
{
    pool.count = 0;
    pthread_mutex_unlock(&pool.mutex);
}

/* Creates the next worker. It blocks all signals but those that its own instructions raise. */
static int create(worker *w)
{
    if (pool.process == 0 && pthread_atfork(before_fork, after_fork, after_fork_in_child)) return 0;
    pool.process = getpid();
    sigset_t blocked, old;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV), sigdelset(&blocked, SIGBUS), sigdelset(&blocked, SIGILL), sigdelset(&blocked, SIGFPE);
    *w = (worker){.taken = 0};
    pthread_mutex_init(&w->mutex, NULL), pthread_cond_init(&w->wake, NULL);
    pthread_sigmask(SIG_SETMASK, &blocked, &old);
    const int created = pthread_create(&w->id, NULL, serve, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pool.count += created;
    return created;
}

/* Takes at most `most` workers that no other call has. Of these, `woken` may be asleep or new; all may, where a call
 * ended just before. */
static int take(worker **taken, int most, int woken)
{
    int count = 0;
    pthread_mutex_lock(&pool.mutex);
    if (now_ns() - pool.last < AWAKE_NS) woken = most;
    for (int i = 0; count < most && !pool.closed; i++) {
        worker *w = &pool.workers[i];
        const int new = i == pool.count;
        if (new && (i >= most || woken == 0 || !create(w))) break;
        if (w->taken || (woken == 0 && w->asleep)) continue;
        woken -= woken > 0 && (new || w->asleep);
        w->taken = 1, taken[count++] = w;
    }
    pthread_mutex_unlock(&pool.mutex);
    return count;
}

static void give_back(worker **taken, int count, int64_t now)
{
    pthread_mutex_lock(&pool.mutex);
    for (int i = 0; i < count; i++) taken[i]->taken = 0;
    pool.last = now;
    pthread_mutex_unlock(&pool.mutex);
}

/* At exit, workers that wait are ended and joined: no thread and none of its memory is left behind. */
__attribute__((destructor)) static void close_pool(void)
{
    if (pool.process != getpid()) return;
    pthread_mutex_lock(&pool.mutex);
    pool.closed = 1;
    for (int i = 0; i < pool.count; i++)
        if (!pool.workers[i].taken) ask(&pool.workers[i], &quit), pthread_join(pool.workers[i].id, NULL);
    pthread_mutex_unlock(&pool.mutex);
}

int pysimd_threads_of_call(int threads, int woken)
{
    return woken && threads > 1 && now_ns() < atomic_load(&pool.alone_until) ? 1 : threads;
}

void pysimd_run(const pysimd_work *work, int threads, int woken)
{
    worker *taken[PYSIMD_MAX_THREADS - 1];
    if (pysimd_threads_of_call(threads, woken) == 1) {
        run_alone(work);
        return;
    }
    const int64_t start = now_ns();
    const int count = take(taken, threads - 1, (woken ? woken : threads) - 1);
    call c = {.work = work};
    for (int i = 0; i < count; i++) {
        taken[i]->number = i + 1;
        ask(taken[i], &c);
    }
    take_items(&c, 0);
    for (int i = 0; i < count; i++) release(taken[i], &c);
    const int64_t end = now_ns();
    if (c.waited > STALL_NS && c.waited > (end - start) / 2) atomic_store(&pool.alone_until, end + ALONE * c.waited);
    give_back(taken, count, end);
}
