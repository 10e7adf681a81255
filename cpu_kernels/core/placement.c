/* placement.c: see placement.h. Compiled for the baseline processor. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu, pthread_setaffinity_np, RUSAGE_THREAD */
#endif
#include "placement.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/resource.h>
#endif

#ifdef __linux__
_Static_assert(sizeof(cpu_set_t) <= sizeof((pysimd_processors){0}.now), "there is room for a set of processors");

int pysimd_processor(void) { return sched_getcpu(); }

/* Moves a thread to the calling thread's processor, or to all others that it may run on. */
static pysimd_processors move(pthread_t thread, int here)
{
    pysimd_processors found = {.moved = 0, .cpu = sched_getcpu()};
    cpu_set_t allowed, one, others;
    if (found.cpu < 0 || pthread_getaffinity_np(thread, sizeof allowed, &allowed)) return found;
    CPU_ZERO(&one);
    CPU_SET(found.cpu, &one);
    CPU_AND(&one, &one, &allowed);
    CPU_XOR(&others, &one, &allowed);
    const cpu_set_t *wanted = here ? &one : &others;
    memcpy(found.before, &allowed, sizeof allowed), memcpy(found.now, wanted, sizeof *wanted);
    if (CPU_COUNT(wanted)) found.moved = pthread_setaffinity_np(thread, sizeof *wanted, wanted) == 0;
    return found;
}

pysimd_processors pysimd_move_away(pthread_t thread) { return move(thread, 0); }
pysimd_processors pysimd_move_here(pthread_t thread) { return move(thread, 1); }

void pysimd_replace(pthread_t thread, pysimd_processors *moved)
{
    cpu_set_t now;
    if (moved->moved && !pthread_getaffinity_np(thread, sizeof now, &now) && !memcmp(&now, moved->now, sizeof now))
        pthread_setaffinity_np(thread, sizeof now, (const cpu_set_t *)moved->before);
    moved->moved = 0;
}

int64_t pysimd_ran_ns(pthread_t thread)
{
    clockid_t clock;
    struct timespec t;
    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t)) return -1;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t pysimd_switches(void)
{
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) ? -1 : used.ru_nivcsw;
}

int64_t pysimd_all_switches(void)
{
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) ? -1 : used.ru_nivcsw;
}

/* Shorter sleeps end before the thread has left the processor: of a thousand of 1 to 5 microseconds at most one left
 * it, of 10 all, and they took no longer (a virtual machine on a Zen 5). */
void pysimd_nap(void)
{
    prctl(PR_SET_TIMERSLACK, 1);
    nanosleep(&(struct timespec){0, 10 * 1000}, NULL);
}
#else
int64_t pysimd_all_switches(void) { return -1; }
void pysimd_nap(void) {}
int pysimd_processor(void) { return -1; }
pysimd_processors pysimd_move_away(pthread_t thread) { return (void)thread, (pysimd_processors){.moved = 0}; }
pysimd_processors pysimd_move_here(pthread_t thread) { return (void)thread, (pysimd_processors){.moved = 0}; }
void pysimd_replace(pthread_t thread, pysimd_processors *moved) { (void)thread, (void)moved; }
int64_t pysimd_ran_ns(pthread_t thread) { return (void)thread, -1; }
int64_t pysimd_switches(void) { return -1; }
#endif
