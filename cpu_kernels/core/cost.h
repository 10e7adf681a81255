/* cost.h: how long a product will take, and how many threads are worth their start. */
#ifndef PYSIMD_COST_H
#define PYSIMD_COST_H

#include "driver.h"

/* Estimated nanoseconds of a product on one thread: its multiply-adds at the rate of the kernel, and the bytes of all
 * operands. The rate is measured when a kernel is first asked for (some 20 microseconds), on packed panels in L1. */
double pysimd_estimate_ns(const pysimd_kernel *kernel, double macs, double bytes);

/* Threads for work of so many nanoseconds: each gets `thread_ns` of it at least, and there are at most `most`. */
int pysimd_threads_for(double ns, double thread_ns, int most);

#endif
