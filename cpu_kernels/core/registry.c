/* registry.c: the table of kernels.inc, the targets with the CPU features they need, and the choice between kernels.
 * Compiled for the baseline processor, like everything that runs before a feature has been checked. */
#if defined(__AVX__)
#error "build cpu_kernels with the default flags: with AVX on globally the dispatcher itself may use it"
#endif

#include "registry.h"

#include <stdatomic.h>

#define KERNEL(NAME, ...)                                                                                              \
    extern pysimd_run_fn NAME;                                                                                         \
    extern pysimd_batch_fn NAME##_batch;
#define KERNEL_OF(CODE, NAME, ...)
#include "../kernels.inc"
#undef KERNEL
#undef KERNEL_OF

pysimd_kernel pysimd_kernels[] = {
#define KERNEL_OF(CODE, NAME, ...) {.name = #NAME, .run = CODE, .batch = CODE##_batch, __VA_ARGS__},
#define KERNEL(NAME, ...) KERNEL_OF(NAME, NAME, __VA_ARGS__)
#include "../kernels.inc"
#undef KERNEL
#undef KERNEL_OF
#define OF_OTHER_ARCHITECTURES
#define KERNEL(NAME, ...) {.name = #NAME, __VA_ARGS__},
#define KERNEL_OF(CODE, NAME, ...) KERNEL(NAME, __VA_ARGS__)
#include "../kernels.inc"
#undef KERNEL
#undef KERNEL_OF
};
const int pysimd_kernel_count = sizeof pysimd_kernels / sizeof *pysimd_kernels;

/* What a kernel of this target may execute, by bit of pysimd_cpu_features(). */
const pysimd_target_row pysimd_targets[TARGETS] = {
    [GENERIC] = {"generic", "generic", 0},
    [SSE] = {"sse", "x86", HAS_SSE2},
    [AVX] = {"avx", "x86", HAS_AVX},
    [AVX2] = {"avx2", "x86", HAS_AVX | HAS_AVX2 | HAS_FMA | HAS_F16C},
    [AVX512] = {"avx512", "x86", HAS_AVX512},
    [AVX512VNNI] = {"avx512vnni", "x86", HAS_AVX512 | HAS_AVX512_VNNI},
    [AVX512BF16] = {"avx512bf16", "x86", HAS_AVX512 | HAS_AVX512_BF16},
    [NEON] = {"neon", "arm", HAS_NEON},
    [NEONDOT] = {"neondot", "arm", HAS_NEON | HAS_DOTPROD},
    [NEONMMLA] = {"neonmmla", "arm", HAS_NEON | HAS_I8MM | HAS_BF16},
    [SVE] = {"sve", "arm", HAS_SVE},
    [SME] = {"sme", "arm", HAS_SME},
    [RVV] = {"rvv", "riscv", HAS_RVV},
};

const pysimd_sizes pysimd_element_sizes[TYPES] = {
    [F32] = {4, 4, 4},    [F64] = {8, 8, 8},   [BF16F32] = {2, 2, 4},
    [F16F32] = {2, 2, 4}, [I8I32] = {1, 1, 4}, [U8I8I32] = {1, 1, 4},
};

/* Set by pysimd_start, atomically: other threads may be multiplying. */
static _Atomic uint64_t features;
static _Atomic int bound = TARGETS - 1;

/* The choice for each types and n; the last is for all larger n too, so a .dispatch is less than CHOICES - 1, or
 * ANY_N. */
enum { CHOICES = 64 };
static const pysimd_kernel *_Atomic choices[TYPES][CHOICES];

int pysimd_can_run(const pysimd_kernel *kernel)
{
    const uint64_t needs = pysimd_targets[kernel->target].needs;
    return (int)kernel->target <= bound && (features & needs) == needs;
}

/* Whether dispatch takes `x` rather than `y`, where both are for n. */
static int is_preferred(const pysimd_kernel *x, const pysimd_kernel *y)
{
    if ((x->form == GEMV) != (y->form == GEMV)) return x->form == GEMV;
    return x->target != y->target ? x->target > y->target : x->dispatch < y->dispatch;
}

void pysimd_start(int highest_target)
{
    features = pysimd_cpu_features();
    bound = highest_target;
    for (pysimd_kernel *kernel = pysimd_kernels; kernel < pysimd_kernels + pysimd_kernel_count; kernel++) {
        const int lanes = pysimd_vector_bytes(kernel->target, features) / pysimd_element_sizes[kernel->types].c;
        if (kernel->mr_vl) kernel->mr = kernel->mr_vl * lanes;
        if (kernel->nr_vl) kernel->nr = kernel->nr_vl * lanes;
    }
    for (int types = 0; types < TYPES; types++)
        for (int n = 0; n < CHOICES; n++) {
            const pysimd_kernel *best = NULL;
            for (int i = 0; i < pysimd_kernel_count; i++) {
                const pysimd_kernel *kernel = pysimd_kernels + i;
                if ((int)kernel->types != types || kernel->dispatch == NEVER) continue;
                if (n < kernel->dispatch_from || n > kernel->dispatch) continue;
                if (pysimd_can_run(kernel) && (!best || is_preferred(kernel, best))) best = kernel;
            }
            choices[types][n] = best;
        }
}

const pysimd_kernel *pysimd_choose(int types, int64_t m, int64_t n)
{
    if (m == 1) {
        const pysimd_kernel *kernel = atomic_load_explicit(&choices[types][1], memory_order_acquire);
        if (kernel->form == GEMV) return kernel;
    }
    return atomic_load_explicit(&choices[types][n < CHOICES ? n : CHOICES - 1], memory_order_acquire);
}
