"""cffi build script (API mode) of ``pysimd._cpu``: the dispatcher, linked with the kernel libraries of setup.py. The
same library holds a second module, ``pysimd._door`` (core/door.c): what is called for every product.

The cdef lists what Python calls. No kernel is named here: Python sees the rows of the table.
"""

import re
from pathlib import Path

import numpy as np
from cffi import FFI

HERE = "cpu_kernels"
DISPATCHER = (
    *("registry", "few", "features", "caches", "pack", "widen", "narrow", "stage", "threads", "gemm", "strips"),
    *("direct", "driver", "beyond", "batch", "scale", "placement", "measure", "cost", "api", "door", "entry"),
    *("request", "tensors", "ladder"),
)
RUNGS = re.findall(r"^LOOPS\((\w+)", Path(HERE, "ladder.inc").read_text(), re.MULTILINE)
SOURCES = [*(f"{HERE}/core/{name}.c" for name in DISPATCHER), *(f"{HERE}/ladder/{name}.c" for name in RUNGS)]
# Two fields of a struct that have just been written one by one are not loaded as a vector, which the store buffer does
# not forward: in the loop over tiles it waited behind the stores of C, and products of 4 to 64 rows, columns and K took
# 1.07 times as long in the mean (Zen 3, gcc 12).
FLAGS = ["-std=gnu11", "-O2", "-fno-tree-slp-vectorize", "-g0", "-fvisibility=hidden", "-ffp-contract=off", "-pthread"]
# Loops begin with a cache line of code: that which adds C to 20 x 31 integers took 43 ns, and 80 where it lay in two
# lines (Zen 4).
FLAGS += ["-falign-loops=64"]

ffi = FFI()
ffi.cdef(
    """
    typedef void pysimd_run_fn(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b,
                               void *c, int64_t rs_c);
    typedef struct {
        int64_t batch, m, n, k, bs_a, rs_a, cs_a, bs_b, rs_b, bs_c, rs_c, cs_c;
        const void *a, *b;
        void *c;
        int flags;
        ...;
    } pysimd_call;
    typedef void pysimd_batch_fn(const pysimd_call *s);
    typedef struct {
        const char *name;
        int target, types, form, mr, nr, k_group, mr_vl, nr_vl, k_tile, panel;
        int dispatch_from, dispatch, dispatch_also_from, dispatch_also, dispatch_macs, dispatch_rows, dispatch_k,
            not_with, column_step, unchained, dispatch_few_rows, dispatch_few_columns, dispatch_dots, dispatch_dots_k,
            dispatch_whole, dispatch_halves, dispatch_some_rows, dispatch_macs_otherwise, dispatch_before_gemv,
            dispatch_macs_few, dispatch_wide, dispatch_wide_k, dispatch_wide_macs;
        pysimd_run_fn *run;
        int half;
        int dots;
        pysimd_batch_fn *batch, *batch_widening_b;
        ...;
    } pysimd_kernel;
    extern pysimd_kernel pysimd_kernels[];
    extern const int pysimd_kernel_count;

    typedef struct { const char *name, *folder; uint64_t needs; } pysimd_target_row;
    extern const pysimd_target_row pysimd_targets[];
    extern const char *const pysimd_feature_names[];
    extern const int pysimd_feature_count;

    #define GENERIC ...
    #define AMX ...
    #define TARGETS ...
    #define F32 ...
    #define F64 ...
    #define BF16F32 ...
    #define F16F32 ...
    #define I8I32 ...
    #define U8I8I32 ...
    #define F16 ...
    #define OUTER ...
    #define INNER ...
    #define GEMV ...
    #define PLAIN ...
    #define WIDE ...
    #define OFFSET ...
    #define SPLIT ...
    #define NEVER ...
    #define ANY_N ...
    #define PYSIMD_ZERO ...
    #define PYSIMD_CHAIN ...
    #define PYSIMD_DOTS ...
    #define PYSIMD_HALF ...
    #define PYSIMD_AFTER ...
    #define AVX512 ...
    #define PYSIMD_STREAM ...
    #define PYSIMD_MAX_DIMS ...

    typedef struct {
        int64_t l1, l2, l3;
    } pysimd_cache_sizes;
    pysimd_cache_sizes pysimd_caches(void);

    typedef struct {
        int64_t spin_ns, awake_ns, lost_ns, shared_ns, shared_spin_ns, look_ns, few, worth_ns, apart,
                shared_until, crowded_until, lost, rescued, looks, absent, beside, freed,
                led, taken;
        ...;
    } pysimd_waiting;
    extern pysimd_waiting pysimd_waits;

    typedef struct {
        void *context;
        int64_t phases;
        int64_t (*items)(void *context, int64_t phase);
        void (*run)(void *context, int thread, int64_t phase, int64_t item);
        ...;
    } pysimd_work;
    void pysimd_run(const pysimd_work *work, int threads, int woken, double ns);

    uint64_t pysimd_cpu_features(void);
    int pysimd_halves_avx512(void);
    void pysimd_start(int highest_target);
    int pysimd_can_run(const pysimd_kernel *kernel);
    const pysimd_kernel *pysimd_choose(int types, int64_t m, int64_t n, int64_t k);
    typedef enum { PYSIMD_BY_ROWS, PYSIMD_BY_COLUMNS, PYSIMD_BY_NEITHER, ... } pysimd_order;
    const pysimd_kernel *pysimd_choose_ordered(int types, int64_t m, int64_t n, int64_t k, pysimd_order a,
                                               pysimd_order b);

    typedef struct {
        int64_t m, n, k;
        const void *a;
        int64_t rs_a, cs_a;
        const void *b;
        int64_t rs_b, cs_b;
        void *c;
        int64_t rs_c, cs_c;
        int ndim;
        int64_t shape[...], batch_a[...], batch_b[...], batch_c[...];
        int flags, threads;
        double alpha, beta;
        ...;
    } pysimd_product;
    int pysimd_multiply(const pysimd_kernel *kernel, const pysimd_product *product);
    typedef struct {
        int64_t rows, columns, blocks;
    } pysimd_grid;
    pysimd_grid pysimd_grid_for(const pysimd_kernel *kernel, const pysimd_product *product, int threads,
                                int64_t batch, int64_t blocks, int packs_a);
    typedef struct { ...; } pysimd_claim;
    int64_t pysimd_take_item(pysimd_claim *claims, int threads, int64_t items, int thread);

    typedef int pysimd_rung_fn(const pysimd_product *product);
    typedef struct {
        const char *name, *source, *adds;
        int form, mr, nr, vectors, blocks, threads;
        pysimd_rung_fn *run[...];
        ...;
    } pysimd_rung;
    extern const pysimd_rung pysimd_rungs[];
    extern const int pysimd_rung_count;
    int pysimd_rung_target(const pysimd_rung *rung);
    int pysimd_run_rung(const pysimd_rung *rung, const pysimd_product *product);
    const pysimd_kernel *pysimd_ladder_kernel(void);
    typedef struct {
        int64_t mc, nc, kc;
    } pysimd_ladder_block;
    pysimd_ladder_block pysimd_ladder_blocks(void);

    double pysimd_time_tile(const pysimd_kernel *kernel, int64_t k, const void *a, const void *b, void *c,
                            int64_t calls, int rounds);
    #define PYSIMD_LOADS_A_STEP ...
    typedef int64_t pysimd_loads_fn(const void *from, int64_t window, int64_t n);
    typedef struct {
        int target, types;
        int64_t macs;
        void (*steps)(int64_t n);
        pysimd_loads_fn *loads;
    } pysimd_peak;
    extern const pysimd_peak pysimd_peaks[];
    extern const int pysimd_peak_count;
    double pysimd_time_peak(int index, int64_t steps, int rounds);
    double pysimd_time_loads(int index, const void *from, int64_t window, int64_t steps, int rounds);
    double pysimd_time_multiply(const pysimd_kernel *kernel, const pysimd_product *product, int64_t calls);
    double pysimd_time_traffic(const void *a, const void *b, void *c, int64_t bytes, int stream, int rounds);
    """
)
ffi.set_source(
    "pysimd._cpu",
    '#include "core/caches.h"\n#include "core/driver.h"\n#include "core/ladder.h"\n#include "core/measure.h"\n'
    '#include "core/threads.h"\n#include "core/claims.h"\n#include "core/grid.h"\n',
    sources=SOURCES,
    include_dirs=[HERE, np.get_include()],
    # Without this an edited kernel would leave the old extension in build/.
    depends=sorted(str(path) for pattern in ("*.c", "*.h", "*.inc") for path in Path(HERE).rglob(pattern)),
    extra_compile_args=FLAGS,
    extra_link_args=["-pthread"],
)
