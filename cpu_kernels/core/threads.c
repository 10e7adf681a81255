/* threads.c: see threads.h. Compiled for the baseline processor.
 *
 * A pool: threads are created by the first call that needs them, then wait for the next call: 100 microseconds in a
 * loop, up to 2 milliseconds in a loop that yields the processor, and after that asleep. There are as many as the
 * largest call asked for, so calls at the same time share them and do not start more. The caller wakes its threads and
 * begins at once; it never waits for a thread that has not begun.
 *
 * On a virtual machine (Zen 3), a thread in the loop begins after 0.3 microseconds. To wake one that sleeps takes the
 * caller 10 to 20, and 100 if the processor was idle: 16 microseconds of work took 53 instead of 138 on one thread
 * after 2 milliseconds of sleep. So there is more work than that for each thread that is woken; but where calls follow
 * on each other, those that wait for little work are awake, and the first call of such a series wakes them.
 *
 * Between two calls there is often other work of some hundred microseconds. On 16 cores of a Xeon, in turn with calls
 * of NumPy, ten float products of 128 x 128 x 128 took 93 microseconds with threads that yield meanwhile, 161 with
 * threads that sleep and are all woken, and 315 on one thread. Tried there without gain: threads that are awake wake
 * others, instead of the caller alone (257 microseconds after sleep, and 245).
 *
 * Where another library's idle threads spin on the same processors (those of NumPy's OpenBLAS do for 110
 * milliseconds), a worker that yields does not come back for a slice of time, some milliseconds. One that finds that
 * it was away does not yield for 100 milliseconds, and no other does: after a short loop they sleep. (Away: another
 * thread had the processor. That a virtual machine stood still does not count.) Who sleeps is woken in front of a
 * thread that spins, on any processor but the caller's, where the system would put nearly all of them. To wake one took
 * the caller 8 microseconds, and the worker began after 14, where it stays away from that processor from then on; 29
 * and 36 where it was sent away before each call and allowed back after it; 15 and 50 on an idle processor (Zen 3,
 * calls 100 microseconds apart). So work of less than 64 microseconds wakes nobody then, but where calls follow on each
 * other. In turn with NumPy, five products of 30 to 100 microseconds were slower than NumPy's in 79 of 400 samples with
 * this and grid.h, and in 162 without. Tried there without gain: workers that read how many threads want to run
 * (/proc/loadavg) before they yield; that no worker yields at all; sleeping early for a second.
 *
 * A caller wakes workers one after the other, so where there are more than three they yield all the same: when fifteen
 * slept early, bfloat16 products of 512 x 512 x 512 in turn with PyTorch's ran at 771 GFLOP/s on 16 cores of a Xeon,
 * and at 1,879 before.
 *
 * If a worker loses its processor in the middle of an item, the caller, which has nothing else to do, has it moved to
 * its own processor and lets it end the item there. In turn with NumPy on a Zen 3 with two processors, a worker had an
 * item in one of twelve calls without all this, and in nine of ten with it. Tried there: that calls are computed by
 * their caller alone for a while after such a stall (eight times as long: ten float products of 128 x 128 x 128 took
 * 504 microseconds in the median instead of 290); short loops of 5 and 50 microseconds instead of 20.
 */
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "placement.h"

enum {
    CACHE_LINE = 64,
    SPINS = 1000, /* of a thread that waits for the end of a phase; then it yields the processor */
    ITEM_BITS = 28,
};
pysimd_waiting pysimd_waits = {
    .spin_ns = 100 * 1000,
    .awake_ns = 2000 * 1000,
    .lost_ns = 500 * 1000,
    .shared_ns = 100 * 1000 * 1000,
    .shared_spin_ns = 20 * 1000,
    .look_ns = 30 * 1000,
    .few = 3,
    .worth_ns = 64 * 1000,
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

typedef struct worker worker;

typedef struct {
    const pysimd_work *work;
    worker **workers; /* of which not all may have begun */
    int count;
    _Alignas(CACHE_LINE) _Atomic int64_t next; /* phase << ITEM_BITS | item; the item may be past the last one */
    _Alignas(CACHE_LINE) _Atomic int64_t ended; /* items of this phase */
} call;

struct worker {
    _Alignas(CACHE_LINE) call *_Atomic call; /* NULL: none; what the caller asks for; or `running` or `quit` */
    _Atomic int asleep;
    _Atomic int busy;    /* with an item */
    _Atomic int leaves;  /* was moved to a caller's processor: it has to sleep when the item has ended */
    int taken;           /* by a caller */
    int number;          /* in the call */
    int64_t ran;         /* nanoseconds on a processor, when the caller looked */
    pthread_t id;
    pysimd_processors away; /* from a caller's processor; for callers, who have taken the worker */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int stopped(const pysimd_work *w) { return w->stop && atomic_load(w->stop); }

/* --- workers without a processor --- */

static _Atomic int created; /* workers */

/* Whether other threads are supposed to spin on the processors, and workers are so few that they sleep early. */
static int is_shared(int64_t now)
{
    return now < atomic_load(&pysimd_waits.shared_until) && atomic_load(&created) <= pysimd_waits.few;
}

static void share(int64_t now) { atomic_store(&pysimd_waits.shared_until, now + pysimd_waits.shared_ns); }

/* A worker may run on any processor but the calling thread's, or on all again. It stays away from one processor: to
 * move it at each call takes the system longer than to wake it. */
static void place(worker *w, int away)
{
    if (w->away.moved && (!away || w->away.cpu != pysimd_processor())) pysimd_replace(w->id, &w->away);
    if (away && !w->away.moved) w->away = pysimd_move_away(w->id);
}

/* A worker ends its item on the calling thread's processor, and then sleeps. */
static void rescue(worker *w)
{
    atomic_fetch_add(&pysimd_waits.rescued, 1);
    share(now_ns());
    atomic_store(&w->leaves, 1);
    place(w, 0);
    pysimd_processors here = pysimd_move_here(w->id);
    while (here.moved && atomic_load(&w->busy)) sched_yield();
    pysimd_replace(w->id, &here);
}

/* A thread waits; if it is the caller's, it looks after workers that have an item and do not run. */
static void wait_for_others(const call *c, const worker *self, int *spins, int64_t *next_look)
{
    wait_a_little(spins);
    if (self || *spins < SPINS) return;
    const int64_t now = now_ns();
    if (now < *next_look) return;
    *next_look = now + pysimd_waits.look_ns;
    for (int i = 0; i < c->count; i++) {
        worker *w = c->workers[i];
        if (!atomic_load(&w->busy)) continue;
        const int64_t ran = pysimd_ran_ns(w->id);
        if (ran == w->ran && ran >= 0) rescue(w);
        w->ran = ran;
    }
}

/* `self`: NULL for the caller. */
static void take_items(call *c, worker *self)
{
    const pysimd_work *w = c->work;
    while (!stopped(w)) {
        if (self) {
            atomic_store(&self->busy, 1);
            if (atomic_load(&self->leaves)) return;
        }
        const int64_t next = atomic_fetch_add(&c->next, 1);
        const int64_t phase = next >> ITEM_BITS, item = next & (PYSIMD_MAX_ITEMS - 1);
        if (phase >= w->phases) return;
        const int64_t items = w->items(w->context, phase);
        if (item < items) {
            w->run(w->context, self ? self->number : 0, phase, item);
            if (atomic_fetch_add(&c->ended, 1) + 1 == items) {
                atomic_store(&c->ended, 0);
                atomic_store(&c->next, (phase + 1) << ITEM_BITS);
            }
        } else {
            int64_t next_look = 0;
            if (self) atomic_store(&self->busy, 0);
            for (int spins = 0; atomic_load(&c->next) >> ITEM_BITS == phase && !stopped(w);)
                wait_for_others(c, self, &spins, &next_look);
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

static call running, quit; /* a worker has begun; a worker has to end */

static struct {
    pthread_mutex_t mutex; /* of what follows, and of `taken` of all workers */
    worker workers[PYSIMD_MAX_THREADS - 1];
    int count, closed;
    int64_t last; /* time when a call ended */
    pid_t process;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The next call, or NULL when the worker has to sleep. It sleeps early where it would not get its processor back. */
static call *watch(const worker *w)
{
    enum { CHECKS = 16 };
    call *found;
    int64_t switches = -1;
    const int64_t start = now_ns(), spin_ns = is_shared(start) ? pysimd_waits.shared_spin_ns : pysimd_waits.spin_ns;
    for (int64_t now = start, before; now - start < pysimd_waits.awake_ns;) {
        for (int i = 0; i < CHECKS; i++, relax())
            if ((found = atomic_load(&w->call))) return found;
        if (switches < 0) switches = pysimd_switches();
        if (now - start > spin_ns) {
            if (is_shared(now)) return NULL;
            sched_yield();
        }
        before = now, now = now_ns();
        if (now - before > pysimd_waits.lost_ns && (switches < 0 || pysimd_switches() > switches)) {
            atomic_fetch_add(&pysimd_waits.lost, 1);
            share(now);
        }
    }
    return NULL;
}

static call *next_call(worker *w)
{
    call *found = atomic_load(&w->leaves) ? NULL : watch(w);
    if (found) return found;
    pthread_mutex_lock(&w->mutex);
    atomic_store(&w->leaves, 0);
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
        take_items(c, w);
        atomic_store(&w->busy, 0);
        atomic_store(&w->call, NULL);
    }
}

static void ask(worker *w, call *c)
{
    atomic_store(&w->call, c);
    if (!atomic_load(&w->asleep)) {
        if (w->away.moved) place(w, is_shared(now_ns())); /* the caller may be on the worker's processor now */
        return;
    }
    pthread_mutex_lock(&w->mutex); /* it waits for the signal, or has seen the call */
    pthread_mutex_unlock(&w->mutex);
    place(w, is_shared(now_ns()));
    pthread_cond_signal(&w->wake);
}

/* Returns when the worker has nothing to do with the call any more. */
static void release(worker *w, call *c)
{
    call *expected = c;
    if (atomic_compare_exchange_strong(&w->call, &expected, NULL)) return;
    int64_t next_look = 0;
    for (int spins = 0; atomic_load(&w->call);) wait_for_others(c, NULL, &spins, &next_look);
}

/* Fork copies the calling thread alone: the child has no workers. */
static void before_fork(void) { pthread_mutex_lock(&pool.mutex); }
static void after_fork(void) { pthread_mutex_unlock(&pool.mutex); }
static void after_fork_in_child(void)
{
    pool.count = 0;
    atomic_store(&created, 0);
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
    const int made = pthread_create(&w->id, NULL, serve, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pool.count += made;
    atomic_store(&created, pool.count);
    return made;
}

/* Takes at most `most` workers that no other call has. Of these, `woken` may be asleep or new; all may, where a call
 * ended just before, or where they sleep early and the work is worth it. */
static int take(worker **taken, int most, int woken, double ns)
{
    int count = 0;
    const int64_t now = now_ns();
    const int shared = is_shared(now);
    pthread_mutex_lock(&pool.mutex);
    if (now - pool.last < (shared ? pysimd_waits.shared_spin_ns : pysimd_waits.awake_ns)) woken = most;
    if (shared && ns >= (double)pysimd_waits.worth_ns) woken = most;
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

void pysimd_run(const pysimd_work *work, int threads, int woken, double ns)
{
    worker *taken[PYSIMD_MAX_THREADS - 1];
    if (threads == 1) {
        run_alone(work);
        return;
    }
    const int count = take(taken, threads - 1, (woken ? woken : threads) - 1, ns);
    call c = {.work = work, .workers = taken, .count = count};
    for (int i = 0; i < count; i++) {
        taken[i]->number = i + 1;
        ask(taken[i], &c);
    }
    take_items(&c, NULL);
    for (int i = 0; i < count; i++) release(taken[i], &c);
    give_back(taken, count, now_ns());
}
