/* cost.h: the estimated time of a product, and the number of threads that it is worth. */
#ifndef PYSIMD_COST_H
#define PYSIMD_COST_H

#include "driver.h"

/* Estimated nanoseconds of a product on one thread: its multiply-adds at the rate of the kernel, and the bytes of all
 * operands. The rate is measured at the first estimate for a kernel (some 100 microseconds), on packed panels in L1. */
double pysimd_estimate_ns(const pysimd_kernel *kernel, double macs, double bytes);

/* Threads for `ns` nanoseconds of work: at least `thread_ns` of it for each thread, at most `most` threads, and so many
 * if `thread_ns` is 0. */
int pysimd_threads_for(double ns, double thread_ns, int most);

/* Threads for `ns` nanoseconds of work where they are awake: one for less than two `thread_ns` (on up to three cores one
 * of them, or eight where they are shared with threads that spin); half of the cores for a fourth of that each, and all
 * of them for eight times that each. */
int pysimd_threads_awake(double ns, double thread_ns, int cores);

#endif
