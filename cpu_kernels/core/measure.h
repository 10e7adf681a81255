/* measure.h: times too short for Python to take: a microkernel in cache, and the peak of each target and type. */
#ifndef PYSIMD_MEASURE_H
#define PYSIMD_MEASURE_H

#include "driver.h"

/* Nanoseconds per call of kernel->run on packed panels in cache, K = k groups: the best of `rounds` of `calls`. */
double pysimd_time_tile(const pysimd_kernel *kernel, int64_t k, const void *a, const void *b, void *c, int64_t calls,
                        int rounds);

/* The peak of one target and type: independent multiply-adds in registers, and loads of the same vectors. A step is one
 * iteration of either loop. */
enum { PYSIMD_LOADS_A_STEP = 16 };
/* Runs n steps of PYSIMD_LOADS_A_STEP loads over a window of bytes, repeatedly; the window is a multiple of a step.
 * Returns the bytes of a step. */
typedef int64_t pysimd_loads_fn(const void *from, int64_t window, int64_t n);
typedef struct {
    int target, types;
    int64_t macs;             /* multiply-adds of one step */
    void (*steps)(int64_t n); /* runs n steps */
    pysimd_loads_fn *loads;
} pysimd_peak;
extern const pysimd_peak pysimd_peaks[];
extern const int pysimd_peak_count;

/* Nanoseconds per step: the best of `rounds` rounds of `steps` steps. */
double pysimd_time_peak(int index, int64_t steps, int rounds);

/* The same for the loads; `from` starts on a cache line. */
double pysimd_time_loads(int index, const void *from, int64_t window, int64_t steps, int rounds);

/* Nanoseconds per pysimd_multiply, without the call from Python: one round of `calls`. */
double pysimd_time_multiply(const pysimd_kernel *kernel, const pysimd_product *product, int64_t calls);

/* Nanoseconds for c = a + b over arrays of `bytes` (a multiple of 64, 16-byte aligned), the memory traffic of a product
 * of small matrices without its arithmetic; non-temporal stores of c if `stream`. The best of `rounds`. */
double pysimd_time_traffic(const void *a, const void *b, void *c, int64_t bytes, int stream, int rounds);

#endif
