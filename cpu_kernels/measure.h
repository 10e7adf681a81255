/* measure.h: speeds that Python cannot time: a microkernel in cache, and the peak of each target's multiply-add. */
#ifndef PYSIMD_MEASURE_H
#define PYSIMD_MEASURE_H

#include "registry.h"

/* Nanoseconds per call of kernel->run on panels in cache, K = k groups: the best of `rounds` rounds of `calls` calls. */
double pysimd_time_tile(const pysimd_kernel *kernel, int64_t k, const void *a, const void *b, void *c, int64_t calls,
                        int rounds);

/* A chain of independent multiply-adds in registers for one target and type: the rate nothing can exceed. */
typedef struct {
    int target, types;
    int64_t macs;              /* multiply-adds of one step */
    void (*steps)(int64_t n); /* runs n steps */
} pysimd_peak;
extern const pysimd_peak pysimd_peaks[];
extern const int pysimd_peak_count;

/* Nanoseconds per step: the best of `rounds` rounds of `steps` steps. */
double pysimd_time_peak(int index, int64_t steps, int rounds);

#endif
