/* placement.h: which processor a thread runs on. Where the system cannot say or do it, these change nothing. */
#ifndef PYSIMD_PLACEMENT_H
#define PYSIMD_PLACEMENT_H

#include <pthread.h>
#include <stdint.h>

/* Processors that a thread may run on: as they were before it was moved, and since then. */
typedef struct {
    _Alignas(8) unsigned char before[128], now[128];
    int moved, cpu; /* cpu: the calling thread's processor at that time */
} pysimd_processors;

/* The processor of the calling thread; -1: not known. */
int pysimd_processor(void);

/* The thread has to leave the calling thread's processor, or to come to it, until pysimd_replace, which changes nothing
 * if others have moved the thread since. A thread that waits for a processor, or sleeps, begins there. */
pysimd_processors pysimd_move_away(pthread_t thread);
pysimd_processors pysimd_move_here(pthread_t thread);
void pysimd_replace(pthread_t thread, pysimd_processors *moved);

/* Nanoseconds that the thread has run on a processor; -1: not known. */
int64_t pysimd_ran_ns(pthread_t thread);

/* Times that another thread got the processor while the calling one wanted to run; -1: not known. */
int64_t pysimd_switches(void);

/* The same of all threads of the process. */
int64_t pysimd_all_switches(void);

/* Leaves the processor for the shortest time: some microseconds. */
void pysimd_nap(void);

#endif
