/* cost.c: see cost.h. Compiled for the baseline processor.
 *
 * One fixed rate for all kernels was four times too low for AVX-512 float and sixteen times for int8: two threads were
 * then started for 40 microseconds of work, which took longer than one. Nor are the first microseconds enough to find
 * the rate: a core of a Xeon that has not used its 512-bit registers for a while needs three times as long for some 30
 * microseconds. */
#include "cost.h"

#include <stdatomic.h>
#include <string.h>

#include "measure.h"
#include "threads.h"

enum {
    GROUPS = 64,            /* length of the measured panels, in groups of k */
    CALLS = 8, ROUNDS = 24, /* the shortest round counts */
    PANEL_BYTES = 24 << 10, /* of the widest tile: 96 columns, 64 groups, four bytes a group */
};
/* Of one core, from L2. Ten products of a row and 128 x 128 float take 13 microseconds (Zen 3): with 24 bytes they were
 * given two threads, which took 20. */
static const double BYTES_PER_NS = 40;

static _Atomic float macs_per_ns[1024]; /* by the kernel's index in the table; 0: not measured yet */

static float rate(const pysimd_kernel *kernel)
{
    _Atomic float *known = &macs_per_ns[kernel - pysimd_kernels];
    float found = atomic_load_explicit(known, memory_order_relaxed);
    if (found == 0) { /* several threads may measure at the same time: each finds a usable rate */
        _Alignas(64) char a[PANEL_BYTES], b[PANEL_BYTES], c[PANEL_BYTES];
        memset(a, 0x3c, sizeof a), memset(b, 0x3c, sizeof b), memset(c, 0, sizeof c);
        const double ns = pysimd_time_tile(kernel, GROUPS, a, b, c, CALLS, ROUNDS);
        found = (float)((double)kernel->mr * kernel->nr * kernel->k_group * GROUPS / (ns > 1 ? ns : 1));
        atomic_store_explicit(known, found, memory_order_relaxed);
    }
    return found;
}

double pysimd_estimate_ns(const pysimd_kernel *kernel, double macs, double bytes)
{
    return macs / rate(kernel) + bytes / BYTES_PER_NS;
}

int pysimd_threads_for(double ns, double thread_ns, int most)
{
    if (thread_ns <= 0) return most;
    const double worth = ns / thread_ns;
    return worth >= most ? most : worth < 2 ? 1 : (int)worth;
}

/* Awake threads begin at once, so that further ones are worth less work than the second. Where there is only one more
 * core or two, something else often has it, such as a thread of another library that spins: 700 products that took 6
 * to 80 microseconds, in turn with NumPy's on two cores, were 1.09 times as fast in the mean with a limit of 64
 * microseconds as with one of 16, the slowest against NumPy 0.57 and 0.41; with limits of 48, 96 and 128 1.07, 1.06
 * and 1.05 times (Xeon with AMX). Alone, two threads took 0.6 to 0.9 times as long as one for 16 to 40 microseconds, on a
 * Zen 3 0.62 to 0.77 times for 16 to 33, on a Zen 4 0.6 to 0.7 times for 8 to 16. So the limit is eight times as high
 * while processors are shared.
 * All cores are used for long work only: where one of them runs another thread, all others wait for that part of the
 * product. Ten float products of 128 x 128 x 128 took 87 microseconds on 8 of the 16 cores of a Xeon, and 202 on all;
 * doubles 163 and 227. */
int pysimd_threads_awake(double ns, double thread_ns, int cores)
{
    enum { FEW_CORES = 3, SECOND = 2, SECOND_OF_SHARED = 8 };
    if (ns < (cores > FEW_CORES ? SECOND : 1) * thread_ns) return 1;
    if (cores <= FEW_CORES && ns < SECOND_OF_SHARED * thread_ns && pysimd_processors_are_shared()) return 1;
    const int some = pysimd_threads_for(ns, thread_ns / 4, cores > FEW_CORES ? cores / 2 : cores);
    const int all = pysimd_threads_for(ns, thread_ns * 8, cores);
    return some > all ? some : all;
}
