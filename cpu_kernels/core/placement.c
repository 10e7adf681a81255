/* placement.c: see placement.h. Compiled for the baseline processor. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu, pthread_setaffinity_np */
#endif
#include "placement.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#ifdef __linux__
_Static_assert(sizeof(cpu_set_t) <= sizeof((pysimd_processors){0}.bytes), "there is room for a set of processors");

/* Moves a thread to the calling thread's processor, or to all others that it may run on. */
static pysimd_processors move(pthread_t thread, int here)
{
    pysimd_processors before = {.moved = 0};
    cpu_set_t allowed, one, others;
    const int cpu = sched_getcpu();
    if (cpu < 0 || pthread_getaffinity_np(thread, sizeof allowed, &allowed)) return before;
    memcpy(before.bytes, &allowed, sizeof allowed);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CPU_AND(&one, &one, &allowed);
    CPU_XOR(&others, &one, &allowed);
    const cpu_set_t *wanted = here ? &one : &others;
    if (CPU_COUNT(wanted)) before.moved = pthread_setaffinity_np(thread, sizeof *wanted, wanted) == 0;
    return before;
}

pysimd_processors pysimd_move_away(pthread_t thread) { return move(thread, 0); }
pysimd_processors pysimd_move_here(pthread_t thread) { return move(thread, 1); }

void pysimd_replace(pthread_t thread, const pysimd_processors *before)
{
    if (before->moved) pthread_setaffinity_np(thread, sizeof(cpu_set_t), (const cpu_set_t *)before->bytes);
}

int64_t pysimd_ran_ns(pthread_t thread)
{
    clockid_t clock;
    struct timespec t;
    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t)) return -1;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
#else
pysimd_processors pysimd_move_away(pthread_t thread) { return (void)thread, (pysimd_processors){.moved = 0}; }
pysimd_processors pysimd_move_here(pthread_t thread) { return (void)thread, (pysimd_processors){.moved = 0}; }
void pysimd_replace(pthread_t thread, const pysimd_processors *before) { (void)thread, (void)before; }
int64_t pysimd_ran_ns(pthread_t thread) { return (void)thread, -1; }
#endif
