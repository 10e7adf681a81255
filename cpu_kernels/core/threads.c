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
 * Another library's idle threads may spin on the same processors (those of NumPy's OpenBLAS do for 110 milliseconds).
 * There a thread that yields comes back after a slice of time, up to 4 milliseconds. So before a worker yields, it
 * sleeps for some microseconds. Processors count as shared for 100 milliseconds, or longer if they were shared just
 * before, when another thread of the process loses a processor in that time, when a worker was away while it waited,
 * or when one that was awake has not begun before the end of a call. Meanwhile nobody yields: workers sleep after a
 * short loop. (Away: another thread had the processor. That a virtual machine stood still does not count, nor that a
 * worker was on its caller's processor or was moved there, which happens beside nothing.) A thread that is woken gets a
 * processor before one that spins; it may run on any but the caller's, where the system would put nearly all of them.
 * With calls 100 microseconds apart (Zen 3), to wake a worker that stays away from that processor from then on took the
 * caller 8 microseconds, and the worker began after 14; 29 and 36 where it was sent away before each call and allowed
 * back after it; 15 and 50 on an idle processor. So work of less than 64 microseconds wakes nobody meanwhile, but where
 * calls follow on each other: with a limit of 30, one product of 128 x 128 x 128 float between two of NumPy took 49
 * microseconds instead of 48. Tried there without gain: workers that read how many threads want to run (/proc/loadavg)
 * before they yield; that no worker yields at all; sleeping early for a second.
 *
 * Few workers stay away from the caller's processor at all times. Else the system may put one there although another
 * processor is idle, where it does not run until the caller sleeps. After 150 milliseconds without a call, of those of
 * 512 x 4 x 309 bfloat16 on two threads (Zen 3) the worker took part from the eighth on, the first to take 56
 * microseconds instead of 110; now it does from the first on. Tried: waking for 30 microseconds of work instead of 100
 * (400 single products of 1 to 4096 rows, columns and K: no difference).
 *
 * A caller wakes workers one after the other, so more than three sleep early only where half of those that were awake
 * had not begun: bfloat16 products of 512 x 512 x 512, 0.14 milliseconds in turn with PyTorch's, ran at 771 GFLOP/s on
 * 16 cores of a Xeon when fifteen slept early, and at 1,879 when they did not.
 *
 * Work of a millisecond and more is slow beside as many spinning threads as there are processors, which have half of the
 * time then: on 16 cores of a Xeon, five calls between four of NumPy's, float products of 768 x 768 x 768 took 3.5
 * milliseconds each (1.0 without NumPy, whose own take 0.8), of 1024 x 1024 x 1024 9 (2.0 and 2.0), of 512 x 512 x 512
 * 0.43 (0.40 and 0.29). Tried without gain: half of the threads (3.7, 7.9 and 1.05); waking only so many workers that
 * their share of the work is worth the 8 microseconds that each takes (200 x 200 x 200 float 117 instead of 42
 * microseconds).
 *
 * Two threads on one processor are slower than one: a worker that finds itself on its caller's leaves the call, and is
 * asked once more when the caller has ended its item, to run elsewhere.
 *
 * A worker that waits for the next phase holds nothing, and a call ends without it: it may have no processor. If a
 * worker loses its processor in the middle of an item, the caller, which has nothing else to do, has it moved to its
 * own processor and lets it end the item there. Tried there: that calls are computed by their caller alone for a while
 * after such a stall (eight times as long: ten float products of 128 x 128 x 128 took 504 microseconds in the median
 * instead of 290); short loops of 5 and 50 microseconds instead of 20.
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
    .apart = 1,
};
_Static_assert(PYSIMD_MAX_ITEMS == 1 << ITEM_BITS, "an item's number has ITEM_BITS bits");

static void relax(void)
{
#ifdef __SSE2__
    __builtin_ia32_pause();
#endif
}

/* --- calls and workers --- */

typedef struct worker worker;

typedef struct {
    const pysimd_work *work;
    worker **workers; /* of which not all may have begun */
    int count;
    _Alignas(CACHE_LINE) _Atomic int64_t next; /* phase << ITEM_BITS | item; the item may be past the last one */
    _Atomic int processor; /* the caller's, when it took an item */
    _Atomic int left;      /* 1: a worker has left the call before its end, to sleep; -1: they have been asked again */
    _Alignas(CACHE_LINE) _Atomic int64_t ended; /* items of this phase */
} call;

struct worker {
    _Alignas(CACHE_LINE) call *_Atomic call; /* NULL: none; what the caller asks for; or what the worker does: below */
    _Atomic int asleep;
    _Atomic int leaves;  /* it is on a caller's processor: it has to sleep when its item has ended */
    int taken;           /* by a caller */
    int number;          /* in the call */
    int was_awake;       /* when it was asked */
    int64_t switches;    /* of the process, when it went to sleep */
    int64_t ran;         /* nanoseconds on a processor, when the caller looked */
    pthread_t id;
    pysimd_processors away; /* from a caller's processor; for callers, who have taken the worker */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    call own;
};

/* A worker has an item, or is about to take one; it waits for the next phase, and its caller may end the call
 * meanwhile; it has to end. */
static call running, waiting, quit;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int stopped(const pysimd_work *w) { return w->stop && atomic_load(w->stop); }

/* --- workers without a processor --- */

static _Atomic int created; /* workers */

/* Whether processors are shared, and workers sleep early: they are few, or too many of them have not begun. */
static int is_shared(int64_t now)
{
    if (now >= atomic_load(&pysimd_waits.shared_until)) return 0;
    return atomic_load(&created) <= pysimd_waits.few || now < atomic_load(&pysimd_waits.crowded_until);
}

/* Processors are shared from now on. Where such a time has ended just before, this one is twice as long. */
static void share(int64_t now)
{
    enum { LONGEST = 16 };
    static _Atomic int64_t times = 1;
    const int64_t until = atomic_load(&pysimd_waits.shared_until), shortest = pysimd_waits.shared_ns;
    int64_t length = atomic_load(&times);
    if (now >= until) {
        length = now - until >= length * shortest ? 1 : length < LONGEST ? length * 2 : LONGEST;
        atomic_store(&times, length);
    }
    atomic_store(&pysimd_waits.shared_until, now + length * shortest);
}

/* A worker may run on any processor but the calling thread's, or on all again. It stays away from one processor: to
 * move it at each call takes the system longer than to wake it. */
static void place(worker *w, int away)
{
    if (w->away.moved && (!away || w->away.cpu != pysimd_processor())) pysimd_replace(w->id, &w->away);
    if (away && !w->away.moved) w->away = pysimd_move_away(w->id);
}

/* What a thread that waits knows of its absence: when it looked last, and how often it had lost its processor when it
 * began to wait, or after the last absence (-1: not known). */
typedef struct {
    int64_t seen, switches;
} presence;

/* The time. A worker that was away since the last look takes notice, if it has lost its processor since it began to
 * wait or was away the last time. */
static int64_t look(presence *p)
{
    const int64_t now = now_ns();
    if (now - p->seen > pysimd_waits.lost_ns) {
        const int64_t switches = pysimd_switches();
        if (p->switches < 0 || switches > p->switches) {
            atomic_fetch_add(&pysimd_waits.lost, 1);
            share(now);
        }
        p->switches = switches;
    }
    p->seen = now;
    return now;
}

/* A worker ends its item on the calling thread's processor, and then sleeps. */
static void rescue(worker *w)
{
    atomic_fetch_add(&pysimd_waits.rescued, 1);
    atomic_store(&w->leaves, 1);
    place(w, 0);
    pysimd_processors here = pysimd_move_here(w->id);
    while (here.moved && atomic_load(&w->call) == &running) sched_yield();
    pysimd_replace(w->id, &here);
}

typedef struct {
    int spins;
    presence own;
    int64_t next_look; /* of a caller, at its workers; 0: it has not seen the time yet */
} patience;

/* Returns the time, or 0 in the loop without it. */
static int64_t wait_a_little(patience *p)
{
    p->spins += p->spins <= SPINS;
    if (p->spins < SPINS) {
        relax();
        return 0;
    }
    if (p->spins == SPINS) p->own = (presence){now_ns(), pysimd_switches()};
    const int64_t now = look(&p->own);
    if (is_shared(now))
        relax(); /* who yields to a thread that spins is away for a slice of time */
    else
        sched_yield();
    return now;
}

/* A caller waits, and looks after workers that have an item and do not run: that have not run between two looks, which
 * are look_ns or more apart. A look takes 0.3 to 1.4 microseconds for each worker, so short waits have none. */
static void wait_for_workers(const call *c, patience *p)
{
    const int64_t now = wait_a_little(p);
    if (!now) return;
    const int first = p->next_look == 0;
    if (!first && now < p->next_look) return;
    p->next_look = now + pysimd_waits.look_ns;
    if (first) return;
    atomic_fetch_add(&pysimd_waits.looks, 1);
    for (int i = 0; i < c->count; i++) {
        worker *w = c->workers[i];
        if (atomic_load(&w->call) != &running) continue;
        const int64_t ran = pysimd_ran_ns(w->id);
        if (ran == w->ran && ran >= 0) rescue(w);
        w->ran = ran;
    }
}

/* --- the items of a call --- */

static int64_t phase_of(int64_t next) { return next >> ITEM_BITS; }

/* Takes an item and runs it; returns its phase, and whether there was one. */
static int64_t take_item(call *c, int thread, int *found)
{
    const pysimd_work *w = c->work;
    const int64_t next = atomic_fetch_add(&c->next, 1);
    const int64_t phase = phase_of(next), item = next & (PYSIMD_MAX_ITEMS - 1);
    *found = 0;
    if (phase >= w->phases) return phase;
    const int64_t items = w->items(w->context, phase);
    if (item >= items) return phase;
    w->run(w->context, thread, phase, item);
    atomic_fetch_add(thread ? &pysimd_waits.taken : &pysimd_waits.led, 1);
    *found = 1;
    if (atomic_fetch_add(&c->ended, 1) + 1 == items) {
        atomic_store(&c->ended, 0);
        atomic_store(&c->next, (phase + 1) << ITEM_BITS);
    }
    return phase;
}

/* `away`: from the caller's processor. */
static void ask(worker *w, call *c, int away)
{
    atomic_store(&w->call, c);
    w->was_awake = !atomic_load(&w->asleep);
    if (w->was_awake) {
        if (w->away.moved) place(w, away); /* the caller may be on the worker's processor now */
        return;
    }
    pthread_mutex_lock(&w->mutex); /* it waits for the signal, or has seen the call */
    pthread_mutex_unlock(&w->mutex);
    place(w, away);
    pthread_cond_signal(&w->wake);
}

/* Workers that were on the caller's processor are asked a second time, to run on others. */
static void call_back(call *c)
{
    atomic_store(&c->left, -1);
    for (int i = 0; i < c->count; i++)
        if (!atomic_load(&c->workers[i]->call)) ask(c->workers[i], c, 1);
}

static void lead(call *c)
{
    const pysimd_work *w = c->work;
    while (!stopped(w)) {
        int found;
        atomic_store(&c->processor, pysimd_processor());
        const int64_t phase = take_item(c, 0, &found);
        if (phase >= w->phases) return;
        if (atomic_load(&c->left) > 0) call_back(c);
        patience p = {.spins = 0};
        while (!found && phase_of(atomic_load(&c->next)) == phase && !stopped(w)) wait_for_workers(c, &p);
    }
}

/* A worker without an item waits for the next phase. It holds nothing of the call, which its caller may end meanwhile.
 * Returns whether there is a next phase for it. */
static int awaits_phase(worker *self, const call *c, int64_t phase)
{
    patience p = {.spins = 0};
    atomic_store(&self->call, &waiting);
    while (phase_of(atomic_load(&c->next)) == phase && atomic_load(&self->call) == &waiting) wait_a_little(&p);
    call *expected = &waiting;
    return atomic_compare_exchange_strong(&self->call, &expected, &running);
}

/* Two threads on one processor are slower than one. */
static int is_beside_caller(worker *self, const call *c)
{
    const int processor = pysimd_waits.apart ? pysimd_processor() : -1;
    if (processor < 0 || processor != atomic_load(&c->processor)) return 0;
    atomic_fetch_add(&pysimd_waits.beside, 1);
    atomic_store(&self->leaves, 1);
    return 1;
}

/* Returns whether the worker still belongs to the call. */
static int follow(call *c, worker *self)
{
    while (!stopped(c->work)) {
        if (atomic_load(&self->leaves) || is_beside_caller(self, c)) {
            int none = 0;
            atomic_compare_exchange_strong(&c->left, &none, 1);
            return 1;
        }
        int found;
        const int64_t phase = take_item(c, self->number, &found);
        if (phase >= c->work->phases) return 1;
        if (!found && !awaits_phase(self, c, phase)) return 0;
    }
    return 1;
}

static void run_alone(const pysimd_work *w)
{
    for (int64_t phase = 0; phase < w->phases && !stopped(w); phase++) {
        const int64_t items = w->items(w->context, phase);
        for (int64_t item = 0; item < items; item++) w->run(w->context, 0, phase, item);
    }
}

/* --- the pool --- */

static struct {
    pthread_mutex_t mutex; /* of what follows, and of `taken` of all workers */
    worker workers[PYSIMD_MAX_THREADS - 1];
    int count, closed;
    int64_t last; /* time when a call ended */
    pid_t process;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Whether another thread of the process runs when the calling one does not: it loses the processor afterwards. */
static int takes_processor(void)
{
    const int64_t before = pysimd_all_switches();
    pysimd_nap();
    return pysimd_all_switches() > before;
}

/* The next call, or NULL when the worker has to sleep. It sleeps early where it would not get its processor back. */
static call *watch(const worker *w)
{
    enum { CHECKS = 16 };
    call *found;
    const int64_t start = now_ns(), spin_ns = is_shared(start) ? pysimd_waits.shared_spin_ns : pysimd_waits.spin_ns;
    presence p = {.seen = start, .switches = -1};
    int naps = 0;
    for (int64_t now = start, looks = 0; now - start < pysimd_waits.awake_ns; now = look(&p), looks++) {
        for (int i = 0; i < CHECKS; i++, relax())
            if ((found = atomic_load(&w->call))) return found;
        if (looks == 0) p.switches = pysimd_switches();
        if (now - start > spin_ns) {
            if (is_shared(now)) return NULL;
            if (naps++ == 0 && takes_processor()) {
                atomic_fetch_add(&pysimd_waits.lost, 1);
                share(now);
                continue;
            }
            sched_yield();
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
    w->switches = pysimd_all_switches();
    atomic_store(&w->asleep, 1);
    while (!(found = atomic_load(&w->call))) pthread_cond_wait(&w->wake, &w->mutex);
    atomic_store(&w->asleep, 0);
    pthread_mutex_unlock(&w->mutex);
    const int64_t now = now_ns();
    if (is_shared(now) && pysimd_all_switches() > w->switches) share(now);
    return found;
}

static void *serve(void *argument)
{
    worker *w = argument;
    for (;;) {
        call *c = next_call(w);
        if (c == &quit) return NULL;
        if (!atomic_compare_exchange_strong(&w->call, &c, &running)) continue; /* the caller has not waited */
        if (follow(c, w)) atomic_store(&w->call, NULL);
    }
}

/* Returns when the worker has nothing to do with the call any more; whether it was awake and has not begun. */
static int release(worker *w, call *c)
{
    for (patience p = {.spins = 0};; wait_for_workers(c, &p)) {
        call *expected = c;
        if (atomic_compare_exchange_strong(&w->call, &expected, NULL)) return w->was_awake;
        expected = &waiting;
        if (atomic_compare_exchange_strong(&w->call, &expected, NULL)) {
            atomic_fetch_add(&pysimd_waits.freed, 1);
            return 0;
        }
        if (!expected) return 0;
    }
}

/* Workers that were awake and have not begun have no processor. If they are half of all, they sleep early, however
 * many they are. */
static void notice_absent(int absent, int count, double ns)
{
    if (!absent || 2 * ns < (double)pysimd_waits.worth_ns) return;
    const int64_t now = now_ns();
    atomic_fetch_add(&pysimd_waits.absent, absent);
    share(now);
    if (2 * absent >= count && ns >= 2 * (double)pysimd_waits.worth_ns)
        atomic_store(&pysimd_waits.crowded_until, atomic_load(&pysimd_waits.shared_until));
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

/* How many workers that are asleep, or new, a call may have. It may have as many as it wants where a call ended just
 * before, or where workers sleep early and the work is worth it. */
static int may_wake(int most, int woken, double ns)
{
    const int64_t now = now_ns();
    const int shared = is_shared(now);
    if (now - pool.last < (shared ? pysimd_waits.shared_spin_ns : pysimd_waits.awake_ns)) return most;
    return shared && ns >= (double)pysimd_waits.worth_ns ? most : woken;
}

/* Workers that no other call has, at most `most`, of which `woken` may be asleep or new. They are taken, or only
 * counted if `taken` is NULL. */
static int find_workers(worker **taken, int most, int woken, double ns)
{
    int count = 0;
    pthread_mutex_lock(&pool.mutex);
    woken = may_wake(most, woken, ns);
    for (int i = 0; count < most && !pool.closed; i++) {
        worker *w = &pool.workers[i];
        const int new = i >= pool.count;
        if (new && (i >= most || woken == 0 || (taken && !create(w)))) break;
        if (!new && (w->taken || (woken == 0 && w->asleep))) continue;
        woken -= woken > 0 && (new || w->asleep);
        if (taken) w->taken = 1, taken[count] = w;
        count++;
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
        if (!pool.workers[i].taken) ask(&pool.workers[i], &quit, 0), pthread_join(pool.workers[i].id, NULL);
    pthread_mutex_unlock(&pool.mutex);
}

/* The call is kept in its first worker, so that another one that waits may look at it after its end. */
static void run_with(worker **taken, int count, const pysimd_work *work, double ns)
{
    call *c = &taken[0]->own;
    c->work = work, c->workers = taken, c->count = count;
    atomic_store(&c->next, 0), atomic_store(&c->ended, 0), atomic_store(&c->left, 0);
    atomic_store(&c->processor, pysimd_processor());
    const int away = count <= pysimd_waits.few || is_shared(now_ns());
    for (int i = 0; i < count; i++) {
        taken[i]->number = i + 1;
        ask(taken[i], c, away);
    }
    lead(c);
    int absent = 0;
    for (int i = 0; i < count; i++) absent += release(taken[i], c);
    notice_absent(absent, count, ns);
}

int pysimd_processors_are_shared(void) { return is_shared(now_ns()); }

int pysimd_threads_at_hand(int threads, int woken, double ns)
{
    return threads == 1 ? 1 : 1 + find_workers(NULL, threads - 1, (woken ? woken : threads) - 1, ns);
}

void pysimd_run(const pysimd_work *work, int threads, int woken, double ns)
{
    worker *taken[PYSIMD_MAX_THREADS - 1];
    if (threads == 1) {
        run_alone(work);
        return;
    }
    const int divided = work->threads ? work->threads : threads, most = divided < threads ? divided : threads;
    const int count = find_workers(taken, most - 1, (woken ? woken : threads) - 1, ns);
    if (count)
        run_with(taken, count, work, ns);
    else
        run_alone(work);
    give_back(taken, count, now_ns());
}
