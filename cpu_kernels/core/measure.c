/* measure.c: see measure.h. Compiled for the baseline processor. */
#include "measure.h"

#include <time.h>

#define PEAK(TARGET, TYPES_, FUNCTION, MACS) extern void FUNCTION(int64_t); extern pysimd_loads_fn FUNCTION##_loads;
#include "../peaks.inc"
#undef PEAK

const pysimd_peak pysimd_peaks[] = {
#define PEAK(TARGET, TYPES_, FUNCTION, MACS)                                                                           \
    {.target = TARGET, .types = TYPES_, .macs = MACS, .steps = FUNCTION, .loads = FUNCTION##_loads},
#include "../peaks.inc"
#undef PEAK
};
const int pysimd_peak_count = sizeof pysimd_peaks / sizeof *pysimd_peaks;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* As products call such kernels: A by rows, and the tile registers configured once for many tiles. */
static double time_batch(const pysimd_kernel *kernel, int64_t k, const void *a, const void *b, void *c, int64_t calls,
                         int rounds)
{
    const pysimd_call call = {.batch = calls, .m = kernel->mr, .n = kernel->nr, .k = k, .a = a,
                              .rs_a = k * kernel->k_group, .cs_a = kernel->k_group, .b = b,
                              .rs_b = kernel->nr * kernel->k_group, .c = c, .rs_c = kernel->nr};
    double best = 1e300;
    for (int r = 0; r < rounds; r++) {
        const double start = now_ns();
        kernel->batch(&call);
        const double each = (now_ns() - start) / (double)calls;
        if (each < best) best = each;
    }
    return best;
}

double pysimd_time_tile(const pysimd_kernel *kernel, int64_t k, const void *a, const void *b, void *c, int64_t calls,
                        int rounds)
{
    const int inner = kernel->form != OUTER;
    const int64_t rs_a = inner ? k : kernel->k_group, cs_a = inner ? 1 : kernel->mr * kernel->k_group;
    const int64_t rs_b = inner ? k : kernel->nr * kernel->k_group;
    if (kernel->k_tile) return time_batch(kernel, k, a, b, c, calls, rounds);
    double best = 1e300;
    for (int r = 0; r < rounds; r++) {
        const double start = now_ns();
        for (int64_t i = 0; i < calls; i++) kernel->run(k, a, rs_a, cs_a, b, rs_b, c, kernel->nr);
        const double each = (now_ns() - start) / (double)calls;
        if (each < best) best = each;
    }
    return best;
}

double pysimd_time_peak(int index, int64_t steps, int rounds)
{
    double best = 1e300;
    for (int r = 0; r < rounds; r++) {
        const double start = now_ns();
        pysimd_peaks[index].steps(steps);
        const double each = (now_ns() - start) / (double)steps;
        if (each < best) best = each;
    }
    return best;
}

double pysimd_time_loads(int index, const void *from, int64_t window, int64_t steps, int rounds)
{
    double best = 1e300;
    for (int r = 0; r < rounds; r++) {
        const double start = now_ns();
        pysimd_peaks[index].loads(from, window, steps);
        const double each = (now_ns() - start) / (double)steps;
        if (each < best) best = each;
    }
    return best;
}

double pysimd_time_multiply(const pysimd_kernel *kernel, const pysimd_product *product, int64_t calls)
{
    const double start = now_ns();
    for (int64_t i = 0; i < calls; i++) pysimd_multiply(kernel, product);
    return (now_ns() - start) / (double)calls;
}

#ifdef __SSE2__
#include <emmintrin.h>
typedef __m128 sixteen;
#define STREAM16(p, v) _mm_stream_ps((float *)(p), v)
#else
typedef float sixteen __attribute__((vector_size(16)));
#define STREAM16(p, v) (*(p) = (v))
#endif

static void traffic(const sixteen *a, const sixteen *b, sixteen *c, int64_t n, int stream)
{
    if (stream)
        for (int64_t i = 0; i < n; i += 4) {
            STREAM16(c + i, a[i] + b[i]);
            STREAM16(c + i + 1, a[i + 1] + b[i + 1]);
            STREAM16(c + i + 2, a[i + 2] + b[i + 2]);
            STREAM16(c + i + 3, a[i + 3] + b[i + 3]);
        }
    else
        for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}

double pysimd_time_traffic(const void *a, const void *b, void *c, int64_t bytes, int stream, int rounds)
{
    double best = 1e300;
    for (int r = 0; r < rounds; r++) {
        const double start = now_ns();
        traffic(a, b, c, bytes / 16, stream);
        const double each = now_ns() - start;
        if (each < best) best = each;
    }
    return best;
}
