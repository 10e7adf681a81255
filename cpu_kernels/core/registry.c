/* registry.c: the table of kernels.inc, the targets with the CPU features they need, and the choice between kernels.
 * Compiled for the baseline processor, like everything that runs before a feature has been checked. */
#if defined(__AVX__)
#error "build cpu_kernels with the default flags: with AVX on globally the dispatcher itself may use it"
#endif

#include "registry.h"

#include <stdatomic.h>

#include "blocks.h"
#include "caches.h"
#include "few.h"
#include "small.h"
#include "split.h"

#define KERNEL(NAME, ...)                                                                                              \
    extern pysimd_run_fn NAME;                                                                                         \
    extern pysimd_batch_fn NAME##_batch;
#define KERNEL_OF(CODE, NAME, ...)
#include "../kernels.inc"
#undef KERNEL
#undef KERNEL_OF

pysimd_kernel pysimd_kernels[] = {
#define SMALL(FUNCTION) FUNCTION
#define KERNEL_OF(CODE, NAME, ...) {.name = #NAME, .run = CODE, .batch = CODE##_batch, __VA_ARGS__},
#define KERNEL(NAME, ...) KERNEL_OF(NAME, NAME, __VA_ARGS__)
#include "../kernels.inc"
#undef KERNEL
#undef KERNEL_OF
#undef SMALL
#define OF_OTHER_ARCHITECTURES
#define SMALL(FUNCTION) NULL
#define KERNEL(NAME, ...) {.name = #NAME, __VA_ARGS__},
#define KERNEL_OF(CODE, NAME, ...) KERNEL(NAME, __VA_ARGS__)
#include "../kernels.inc"
#undef KERNEL
#undef KERNEL_OF
#undef SMALL
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
    [AVX512FP16] = {"avx512fp16", "x86", HAS_AVX512 | HAS_AVX512_FP16},
    [AMX] = {"amx", "x86", HAS_AVX512 | HAS_AMX_TILE | HAS_AMX_INT8 | HAS_AMX_BF16},
    [NEON] = {"neon", "arm", HAS_NEON},
    [NEONDOT] = {"neondot", "arm", HAS_NEON | HAS_DOTPROD},
    [NEONMMLA] = {"neonmmla", "arm", HAS_NEON | HAS_I8MM | HAS_BF16},
    [SVE] = {"sve", "arm", HAS_SVE},
    [SME] = {"sme", "arm", HAS_SME},
    [RVV] = {"rvv", "riscv", HAS_RVV},
};

const pysimd_sizes pysimd_element_sizes[TYPES] = {
    [F32] = {4, 4, 4},    [F64] = {8, 8, 8},   [BF16F32] = {2, 2, 4},
    [F16F32] = {2, 2, 4}, [I8I32] = {1, 1, 4}, [U8I8I32] = {1, 1, 4}, [F16] = {2, 2, 2},
};

/* Set by pysimd_start, atomically: other threads may be multiplying. */
static _Atomic uint64_t features;
static _Atomic int bound = TARGETS - 1;
static _Atomic int halves;

/* The choices for each types and n: of all kernels with tiles, of those for any number of multiply-adds, and of GEMV
 * kernels. The last is for all larger n too, so a .dispatch is less than CHOICES - 1, or ANY_N. */
enum { CHOICES = 66 };
typedef enum { OF_ALL, OF_ANY_SIZE, OF_GEMV, KINDS_OF_CHOICE } kind_of_choice;
typedef struct {
    const pysimd_kernel *_Atomic of[KINDS_OF_CHOICE];
} choice;
static choice choices[TYPES][CHOICES];

/* The kernels that are taken by the order of the operands: that for few rows, or columns, and a GEMV kernel; and that
 * with tile registers. */
typedef struct {
    const pysimd_kernel *_Atomic few, *_Atomic dots, *_Atomic tiles;
} ordered_choice;
static ordered_choice ordered_choices[TYPES];

static int is_of(pysimd_target target)
{
    const uint64_t needs = pysimd_targets[target].needs;
    return (features & needs) == needs;
}

int pysimd_has(pysimd_target target) { return (int)target <= bound && is_of(target); }

int pysimd_can_run(const pysimd_kernel *kernel) { return pysimd_has(kernel->target); }

/* Whether dispatch takes `x` rather than `y`, where both are for n. */
static int is_preferred(const pysimd_kernel *x, const pysimd_kernel *y)
{
    if (x->dispatch_halves != y->dispatch_halves && halves) return x->dispatch_halves;
    return x->target != y->target ? x->target > y->target : x->dispatch < y->dispatch;
}

static int is_for_columns(const pysimd_kernel *kernel, int n)
{
    return (n >= kernel->dispatch_from && n <= kernel->dispatch) ||
           (kernel->dispatch_also && n >= kernel->dispatch_also_from && n <= kernel->dispatch_also);
}

/* The kernel of a kind that dispatch takes for n columns; NULL if there is none. */
static const pysimd_kernel *preferred(int types, int n, kind_of_choice kind)
{
    const pysimd_kernel *best = NULL;
    for (int i = 0; i < pysimd_kernel_count; i++) {
        const pysimd_kernel *kernel = pysimd_kernels + i;
        if ((int)kernel->types != types || kernel->dispatch == NEVER) continue;
        if (kernel->not_with && is_of(kernel->not_with)) continue;
        if ((kernel->form == GEMV) != (kind == OF_GEMV) || (kind == OF_ANY_SIZE && kernel->dispatch_macs)) continue;
        if (is_for_columns(kernel, n) && pysimd_can_run(kernel) && (!best || is_preferred(kernel, best))) best = kernel;
    }
    return best;
}

/* Those of the highest target. */
static void find_ordered(int types)
{
    const pysimd_kernel *few = NULL, *dots = NULL, *tiles = NULL;
    for (int i = 0; i < pysimd_kernel_count; i++) {
        const pysimd_kernel *kernel = pysimd_kernels + i;
        if ((int)kernel->types != types || !pysimd_can_run(kernel)) continue;
        if (kernel->dispatch_few_rows && (!few || kernel->target > few->target)) few = kernel;
        if (kernel->dispatch_dots && (!dots || kernel->target > dots->target)) dots = kernel;
        if (kernel->k_tile && kernel->dispatch != NEVER) tiles = kernel;
    }
    ordered_choices[types].few = few;
    ordered_choices[types].dots = dots;
    ordered_choices[types].tiles = tiles;
}

void pysimd_start(int highest_target)
{
    const uint64_t tiles = pysimd_targets[AMX].needs;
    uint64_t found = pysimd_cpu_features();
    if (highest_target >= AMX && (found & tiles) == tiles && !pysimd_permits_tiles()) found &= ~tiles;
    features = found;
    bound = highest_target;
    halves = pysimd_halves_avx512();
    for (pysimd_kernel *kernel = pysimd_kernels; kernel < pysimd_kernels + pysimd_kernel_count; kernel++) {
        const int lanes = pysimd_vector_bytes(kernel->target, features) / pysimd_element_sizes[kernel->types].c;
        if (kernel->mr_vl) kernel->mr = kernel->mr_vl * lanes;
        if (kernel->nr_vl) kernel->nr = kernel->nr_vl * lanes;
    }
    for (int types = 0; types < TYPES; types++) find_ordered(types);
    pysimd_start_few(halves);
    for (int types = 0; types < TYPES; types++)
        for (int n = 0; n < CHOICES; n++)
            for (kind_of_choice kind = 0; kind < KINDS_OF_CHOICE; kind++)
                choices[types][n].of[kind] = preferred(types, n, kind);
}

static const pysimd_kernel *chosen(int types, int64_t n, kind_of_choice kind)
{
    return atomic_load_explicit(&choices[types][n < CHOICES ? n : CHOICES - 1].of[kind], memory_order_acquire);
}

/* Of C in a vector of 64 bytes. Called for each column of tiles, without divisions, which took 2 % of 34 x 14 x 41. */
static int64_t lanes_of(const pysimd_kernel *kernel) { return pysimd_element_sizes[kernel->types].c == 8 ? 8 : 16; }

/* Batches of 60 with 36, 40 and 52 columns of float, and 20 of double, took 0.77 to 0.93 times as long, 26 of double by
 * an A that is not transposed, whose last two columns the tile has by themselves otherwise, 0.89 to 0.91 (Zen 4).
 * Without gain there: 17 to 24 columns of float and 9 to 12 of double by one vector and a half, and not by the three of
 * 32 bytes of .dispatch_halves, 0.95 to 1.27 times; up to half a vector of columns alone 1.0 to 1.1 times. */
int pysimd_flag_of_half(const pysimd_kernel *kernel, int64_t n)
{
    if (!kernel->half || !halves) return 0;
    const int64_t lanes = lanes_of(kernel), rest = n & (lanes - 1);
    return n > lanes && rest > 0 && rest <= lanes / 2 ? PYSIMD_HALF : 0;
}

/* One column after two or three vectors, of a transposed A: 0.86 to 0.96 times as long as half a vector with K from 4 to
 * 15 (batches of 60 float, float16 and double, Zen 4). */
int pysimd_flags_of_last(const pysimd_kernel *kernel, int64_t n, int64_t k)
{
    enum { LEAST_K = 4 };
    const int flag = pysimd_flag_of_half(kernel, n);
    return flag && k >= LEAST_K && (n & (lanes_of(kernel) - 1)) == 1 ? flag | PYSIMD_AFTER : flag;
}

/* Each row of tiles widens B anew. By ratios of time to a B that is staged: in halves, where the conversions have ports
 * of their own, 0.94 in the mean of 70 batches of the grid of cliffs.py, up to five rows 0.55 to 0.75; in L2 12, 24 and
 * 42 rows 0.84, 0.92 and 0.97, 84 and 112 1.0, with 14 x 32 1.02; 64 rows and more from beyond L2 1.04 (Zen 4).
 * Elsewhere one row of tiles 0.88 in the mean of 23, two 1.0, three 1.02, four to seven 1.05 to 1.09, up to eleven 1.2
 * (Xeon with AMX). */
int pysimd_widens_b(const pysimd_kernel *kernel, int64_t m)
{
    enum { MOST_ROWS = 63 };
    return kernel->batch_widening_b && m <= (halves ? MOST_ROWS : kernel->mr);
}

int pysimd_is_started(void) { return chosen(F32, 0, OF_ALL) != NULL; }

/* Among the kernels for any number of multiply-adds, that for n columns and more. */
static const pysimd_kernel *of_columns(int types, int64_t n) { return chosen(types, n, OF_ANY_SIZE); }

const pysimd_kernel *pysimd_of_any_columns(int types) { return of_columns(types, CHOICES - 1); }

static const pysimd_kernel *unless_whole(const pysimd_kernel *kernel, int64_t m, int64_t n)
{
    const int whole = m == kernel->mr || (n == kernel->nr && m % kernel->mr == 0);
    if (!kernel->dispatch_whole || whole) return kernel;
    const pysimd_kernel *wider = of_columns((int)kernel->types, kernel->dispatch + 1);
    /* Five to eight columns of double took 1.15 times as long by the three vectors of 32 bytes for nine (Zen 4). */
    return wider->dispatch_halves ? of_columns((int)kernel->types, CHOICES - 1) : wider;
}

/* The part of tile registers that a product fills, of those that it takes; 1: its kernel has no tile registers. */
static double filled(const pysimd_kernel *kernel, double macs, int64_t m, int64_t n, int64_t k)
{
    enum { TILE = 16 };
    if (!kernel->k_tile) return 1;
    const double rows = (double)multiple(m, TILE), columns = (double)multiple(n, TILE);
    return macs / (rows * columns * (double)multiple(k, TILE * kernel->k_group));
}

/* Whether a product is worth the parts of a SPLIT panel: elements are split once for each row of A and column of B, of
 * which `filled` m n / (m + n) is a mean, and the part of the tile registers that it fills counts, too. Of 6,554
 * products and batches of 4 to 100 with 768 thousand multiply-adds and more, the 3,005 within these limits took 0.78
 * times as long as with AVX-512 in the mean, 11 % of them more than 1.05 times, one more than 1.34 times in a hundred;
 * the others 1.28 times in the mean; those with 256 to 768 thousand 0.95 to 1.4 times. A transposed A is copied before
 * it is split (Xeon with AMX). */
static int is_worth_splitting(const pysimd_kernel *kernel, double macs, int64_t m, int64_t n, int64_t k, int transposed)
{
    enum { LEAST = 24, LEAST_TRANSPOSED = 36, LEAST_OF_SHORT_K = 64, SHORT_K = 32 };
    const double part = filled(kernel, macs, m, n, k), mean = (double)m * (double)n / (double)(m + n);
    const int least = k < SHORT_K ? LEAST_OF_SHORT_K : transposed ? LEAST_TRANSPOSED : LEAST;
    return 5 * part >= 3 && part * mean >= least;
}

/* Whether the product fills a fifth of the tile registers that it takes, unless the kernel reads A where it is, or few
 * columns would be computed by a GEMV kernel, which is slower still. Of 1,400 batches of 10 and 100 with an odd K, an A
 * by rows and 8,192 multiply-adds and more, those that fill a fifth took 0.45 to 0.9 times as long as with AVX-512 in
 * the means of their sizes (33 x 33 x 33 0.75 to 0.8), of 4,096 to 8,192 0.9 to 1.05; those that fill less 0.9 to 1.2
 * times. Single products of less than 32,768 took 1.0 to 1.3 times as long, since the tile registers are configured for
 * each call (Xeon with AMX). */
static int fills_tiles(const pysimd_kernel *kernel, double macs, int64_t m, int64_t n, int64_t k)
{
    if (!kernel->k_tile || k % kernel->k_group == 0 || n <= PYSIMD_GEMV_COLUMNS) return 1;
    return 5 * filled(kernel, macs, m, n, k) >= 1;
}

/* Whether a product has the rows, the k and the multiply-adds that a kernel asks for; of some rows `macs`. */
static int fits(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k, int macs)
{
    const double all = (double)m * (double)n * (double)k;
    const int is_wide = kernel->dispatch_wide && n >= kernel->dispatch_wide;
    if (m < kernel->dispatch_rows) return 0;
    if (kernel->panel == SPLIT) return all >= macs && is_worth_splitting(kernel, all, m, n, k, 0);
    if (is_wide && k >= kernel->dispatch_wide_k && all >= kernel->dispatch_wide_macs) return 1;
    if (k < kernel->dispatch_k) return 0;
    if (all >= kernel->dispatch_macs_otherwise && all >= macs) return 1;
    return m >= kernel->dispatch_some_rows && all >= macs && fills_tiles(kernel, all, m, n, k);
}

static int is_before_gemv(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    const int least = kernel->dispatch_before_gemv;
    return least && n >= least && fits(kernel, m, n, k, kernel->dispatch_macs_few);
}

/* The GEMV kernel of few rows, whose K is long, or of few columns; NULL: none. */
static const pysimd_kernel *gemv_of_rows(int types, int64_t m, int64_t n, int64_t k)
{
    if (m > PYSIMD_GEMV_COLUMNS && n > PYSIMD_GEMV_COLUMNS) return NULL;
    const pysimd_kernel *gemv = chosen(types, m < n ? m : n, OF_GEMV);
    if (!gemv || !gemv->dispatch_long_k || k < gemv->dispatch_long_k) return NULL;
    return (m < n ? n : m) >= gemv->dispatch_rows ? gemv : NULL;
}

/* The kernel with tiles for three and four columns of up to 32 rows, where the processor does not execute AVX-512 in
 * halves, so that unused lanes cost nothing; or NULL: a GEMV kernel has to add up its lanes for each row. By ratios of
 * time to GEMV kernels on a Xeon with AMX, means of some 50 products and batches of 10 and 100 each, A and B by rows:
 * four columns of up to 16 rows 0.77 to 0.95 times, of up to 32 with K up to 32 0.9, with a longer K without tiles;
 * three columns of up to 16 rows 0.8 to 0.9, of up to 32 with K up to 16 0.95; three of double with K up to 32 0.9 to
 * 0.95. With one B, which a GEMV kernel keeps in registers, three columns took 1.03 times as long in the mean, four
 * 0.98 times. */
static const pysimd_kernel *of_some_rows(int types, int64_t m, int64_t n, int64_t k)
{
    enum { SOME_ROWS = 16, MOST_ROWS = 32, SHORT_K = 16, SOME_K = 32, MOST_K = 64, COLUMNS = 8 };
    const pysimd_kernel *widest = of_columns(types, CHOICES - 1);
    if (halves || widest->target < AVX512 || pysimd_element_sizes[types].a == 1) return NULL;
    if (n < 3 || m > MOST_ROWS || k > MOST_K) return NULL;
    if (types == F64) return n == 3 && k <= SOME_K ? of_columns(types, COLUMNS + 1) : NULL;
    return m <= SOME_ROWS || k <= (n == 3 ? SHORT_K : SOME_K) ? of_columns(types, COLUMNS) : NULL;
}

/* The kernel of AVX-512 with longer rows of tiles, for more columns than 64, or a few less of double, and a short K:
 * the time is that of writing C, whose rows are written in longer pieces. Tiles of six vectors took 0.75 to 0.9 times
 * as long as those of two for float and double with K up to 7, of four vectors 0.8 to 0.95 times with K up to 24 and
 * 15; for batches of 10 and 100 0.8 to 1.0; with a longer K, and six vectors from K = 8 on with few rows, up to 1.2
 * times. 33 to 48 columns of double took 0.7 to 1.0 times as long as with three vectors with K up to 8, batches of 20
 * and 100, and 0.97 times with K up to 16 (Xeon with AMX). Where AVX-512 is executed in halves, 120 products and
 * batches took 0.9 times as long in the mean, and none more than 1.03 times (Zen 4). NULL: none. Of widened values see
 * with_longer_rows. */
static const pysimd_kernel *of_short_k(int types, int64_t m, int64_t n, int64_t k)
{
    enum { LEAST_ROWS = 4, SHORTEST = 8, SHORT = 25, SHORT_OF_DOUBLE = 16, SOME_COLUMNS = 33, COLUMNS = 48 };
    if ((types != F32 && types != F64) || m < LEAST_ROWS) return NULL;
    const pysimd_kernel *few = atomic_load_explicit(&ordered_choices[types].few, memory_order_acquire);
    if (!few || few->target != AVX512) return NULL;
    if (types == F64 && n >= SOME_COLUMNS && n <= COLUMNS) return k <= SHORTEST ? few : NULL;
    if (n <= PYSIMD_SMALL_COLUMNS || k >= (types == F64 ? SHORT_OF_DOUBLE : SHORT)) return NULL;
    return k < SHORTEST ? few : of_columns(types, PYSIMD_SMALL_COLUMNS);
}

/* The same of widened values, whose tiles of two vectors those of three and four replace: 600 products and batches with
 * 65 to 127 columns took 0.87 times as long in the mean with K up to 8, 0.88 up to 15, 0.93 up to 24, three vectors up
 * to 96 columns and four from there; of a transposed A or B 0.87, 0.89 and 0.93 times (Xeon with AMX); in halves 0.98
 * times (40 of float16, Zen 4). With a longer K other routes take 0.75 to 0.9 times as long as tiles. Tiles of six
 * vectors took 0.97 to 1.0 times as long as of two. */
static const pysimd_kernel *with_longer_rows(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    enum { LEAST_ROWS = 4, SHORT = 25, SOME_COLUMNS = 96, THREE_VECTORS = 48, FOUR_VECTORS = 64 };
    if (kernel->target != AVX512 || kernel->panel != WIDE || kernel->k_group > 1) return kernel;
    if (n <= PYSIMD_SMALL_COLUMNS || m < LEAST_ROWS || k >= SHORT) return kernel;
    return of_columns((int)kernel->types, n <= SOME_COLUMNS ? THREE_VECTORS : FOUR_VECTORS);
}

static const pysimd_kernel *of_tiles(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    return unless_whole(with_longer_rows(kernel, m, n, k), m, n);
}

/* The kernel that is taken before a GEMV kernel: that for so many columns, or for any number where the processor does
 * not execute AVX-512 in halves; NULL: none. */
static const pysimd_kernel *before_gemv(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    const int types = (int)kernel->types;
    const pysimd_kernel *other = of_columns(types, n), *wide = halves ? other : of_columns(types, CHOICES - 1);
    if (is_before_gemv(kernel, m, n, k)) return kernel;
    if (is_before_gemv(other, m, n, k)) return unless_whole(other, m, n);
    return is_before_gemv(wide, m, n, k) ? wide : NULL;
}

/* pysimd_choose, of all kernels or of those for any number of multiply-adds; `dots`: as if none were taken before a
 * GEMV kernel, or instead of it. */
static const pysimd_kernel *choose_of(kind_of_choice kind, int types, int64_t m, int64_t n, int64_t k, int dots)
{
    const pysimd_kernel *one = chosen(types, 1, OF_GEMV), *kernel = chosen(types, n, kind);
    if (one && (m == 1 || n == 1)) return one;
    const pysimd_kernel *long_one = gemv_of_rows(types, m, n, k);
    if (long_one) return long_one;
    const pysimd_kernel *of_short = of_short_k(types, m, n, k);
    if (of_short) return of_short;
    if (!kernel) return NULL;
    const pysimd_kernel *gemv = chosen(types, n, OF_GEMV);
    if (gemv) {
        const pysimd_kernel *before = dots ? NULL : before_gemv(kernel, m, n, k);
        if (before) return before;
        if (fits(gemv, m, n, k, gemv->dispatch_macs)) {
            const pysimd_kernel *tiles = dots ? NULL : of_some_rows(types, m, n, k);
            return tiles ? tiles : gemv;
        }
    } else if (!kernel->dispatch_macs || fits(kernel, m, n, k, kernel->dispatch_macs)) {
        return of_tiles(kernel, m, n, k);
    }
    return of_tiles(of_columns(types, n), m, n, k);
}

const pysimd_kernel *pysimd_choose(int types, int64_t m, int64_t n, int64_t k)
{
    return choose_of(OF_ALL, types, m, n, k, 0);
}

/* Whether products of a transposed A, which is copied before, fill a fourth of their tile registers, or are so large
 * that gemm.c packs any A. Of 1,100 with 32 thousand multiply-adds and more, those that do took 0.9 to 1.05 times as
 * long as with AVX-512 in the means of their sizes, with 64 thousand 0.7 to 0.9; others 0.85 to 1.1 times (Xeon with
 * AMX). */
static int fills_transposed(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    enum { LARGE = 1 << 17 };
    const double macs = (double)m * (double)n * (double)k;
    if (kernel->panel == SPLIT) return is_worth_splitting(kernel, macs, m, n, k, 1);
    return macs >= LARGE || 4 * filled(kernel, macs, m, n, k) >= 1;
}

/* pysimd_of_batch of two columns, which a GEMV kernel would compute one product after the other. Of 17 rows and more, K
 * from 16 to 64, batches of 16 to 400 with one A took 0.66 times as long in the mean by tile registers, with one B 0.79
 * times, others 0.97 times; up to 16 rows 0.8 to 1.0 times. Of a transposed A, int8 took 0.77 times as long by the
 * tiles of VNNI, uint8 0.93 to 1.6 times (Xeon with AMX). */
static const pysimd_kernel *of_two_columns(const pysimd_kernel *gemv, int64_t m, int64_t k, pysimd_order a)
{
    enum { FEW_ROWS = 8, SOME_ROWS = 17, LEAST_K = 16, MOST_K = 64 };
    const int types = (int)gemv->types;
    const pysimd_kernel *registers = atomic_load_explicit(&ordered_choices[types].tiles, memory_order_acquire);
    if (k < LEAST_K || k > MOST_K || !registers) return gemv;
    if (a == PYSIMD_BY_ROWS) return m >= SOME_ROWS ? registers : gemv;
    return a == PYSIMD_BY_COLUMNS && types == I8I32 && m >= FEW_ROWS ? of_columns(types, 2) : gemv;
}

/* The kernel with tile registers of three to eight columns, an A by rows and K a multiple of four; or NULL. Products of
 * 2,048 to 4,095 multiply-adds took 0.6 to 1.05 times as long by it in the means of n, of 4,096 and more int8 0.4 to
 * 0.6, uint8 0.5 to 0.85 (Xeon with AMX, batches of 8 to 60). */
static const pysimd_kernel *of_few_columns_of_bytes(int types, int64_t m, int64_t n, int64_t k, pysimd_order a,
                                                    pysimd_order b)
{
    enum { LEAST_K = 8, LEAST_MACS = 2 << 10 };
    if (!pysimd_is_of_few(m, n, k) || n < 3 || n >= m || a != PYSIMD_BY_ROWS || b == PYSIMD_BY_NEITHER) return NULL;
    if (k % 4 || k < LEAST_K || m * n * k < LEAST_MACS) return NULL;
    return atomic_load_explicit(&ordered_choices[types].tiles, memory_order_acquire);
}

/* With one B, whose panels are made once, products that fill two fifths of their tile registers: 1,000 batches of 100
 * took 0.81 times as long as with AVX-512 in the mean, uint8 0.87 times, of 8 and 10 0.92 and 0.98 times; where they
 * fill a fifth, up to 2.4 times. Of batches with a B each, 6,000 took 0.85 to 1.15 times as long (Xeon with AMX). */
const pysimd_kernel *pysimd_of_batch(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k, pysimd_order a,
                                     pysimd_order b, int one_b)
{
    enum { LEAST_MACS = 2 << 10 };
    const double macs = (double)m * (double)n * (double)k;
    if (pysimd_element_sizes[kernel->types].a != 1) return kernel;
    const pysimd_kernel *registers = of_few_columns_of_bytes((int)kernel->types, m, n, k, a, b);
    if (registers) return registers;
    if (kernel->form == GEMV) return n == 2 && m > n && b == PYSIMD_BY_ROWS ? of_two_columns(kernel, m, k, a) : kernel;
    const pysimd_kernel *tiles = atomic_load_explicit(&ordered_choices[kernel->types].tiles, memory_order_acquire);
    if (!tiles || kernel->form != OUTER || !one_b || a != PYSIMD_BY_ROWS || macs < LEAST_MACS) return kernel;
    if (m <= PYSIMD_GEMV_COLUMNS || n <= PYSIMD_GEMV_COLUMNS) return kernel;
    return 5 * filled(tiles, macs, m, n, k) >= 2 ? tiles : kernel;
}

const pysimd_kernel *pysimd_of_order(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k, pysimd_order a,
                                     pysimd_order b)
{
    const int bytes = pysimd_element_sizes[kernel->types].a == 1, otherwise = kernel->dispatch_macs_otherwise;
    const int few = n <= PYSIMD_GEMV_COLUMNS && kernel->form == OUTER && !bytes;
    const int dots = few && b == PYSIMD_BY_COLUMNS;
    if (!dots && !(otherwise && a == PYSIMD_BY_COLUMNS)) return kernel;
    if (otherwise && fits(kernel, m, n, k, otherwise / 3 * 2) && fills_transposed(kernel, m, n, k)) return kernel;
    return choose_of(OF_ANY_SIZE, (int)kernel->types, m, n, k, dots);
}

/* Bytes of the operand that is read once, up to which the kernels below are taken: from beyond L3 others are as fast.
 * In halves, where the next piece of it is prefetched, three rows or columns took 0.75 to 1.0 times as long from there,
 * four 0.5 to 0.95 (Zen 4), but on a Xeon with AMX 0.8 to 1.1 times on one thread, 1.0 to 1.7 on several. */
static double most_bytes(void) { return 4 * (double)pysimd_caches().l2; }

/* Whether a GEMV kernel computes products of more than PYSIMD_GEMV_COLUMNS rows and columns, whose operands both have
 * adjacent elements along K: .dispatch_dots. The large one is many x k; `wide`: it is B. 8 x 4096 x 4096 double took
 * 1.2 times as long like that. */
static int takes_dots(const pysimd_kernel *kernel, int64_t few, int64_t many, int64_t k, int wide)
{
    enum { SMALL = 1 << 17, SOME_K = 128, SOME = 8, NOT_MANY = 16 };
    const int size = pysimd_element_sizes[kernel->types].a;
    if (few > kernel->dispatch_dots) return 0;
    if (!wide || few > PYSIMD_GEMV_COLUMNS * size) { /* tile registers do as many multiply-adds in less time */
        const pysimd_kernel *other = pysimd_choose(kernel->types, wide ? few : many, wide ? many : few, k);
        if (other && other->k_tile) return 0;
    }
    const double large = (double)many * (double)k;
    const int small = size < 4 ? large * size <= (double)pysimd_caches().l2 : large <= SMALL;
    /* Rows of float from two thirds of that K on: 9 to 16 of them took 0.8 to 1.0 times as long (Xeon with AMX), but
     * columns 1.05 times in the mean. */
    const int of_float_rows = size == 4 && wide && many <= PYSIMD_SMALL_COLUMNS && kernel->target >= AVX512;
    const int64_t terms = (many <= NOT_MANY ? 2 : 1) * k + (of_float_rows ? k / 2 : 0);
    if (small && terms >= few * kernel->dispatch_dots_k) return 1;
    const int some = small || (few <= SOME && large * size <= most_bytes());
    return kernel->types == F64 && wide && k >= SOME_K && some;
}

/* The GEMV kernel of products of up to PYSIMD_GEMV_COLUMNS rows or columns, whose operands both have adjacent elements
 * along K; NULL: no other than in general. Of as few columns and rows the kernel for one column is faster while K is
 * short: 4 x 32 x 4 took 0.8 times as long as with tiles, a batch 0.5 to 0.7 times (Ice Lake Xeon). So it is of two
 * rows from LEAST_K of pysimd_is_long on: batches of 16 to 64 columns took 0.7 to 0.95 times as long as with tiles; of
 * three rows, those of float and double 0.67 to 0.94 times; four 0.9 to 1.3 times, bytes 1.1 to 2.6 times (Xeon with
 * AMX). */
static const pysimd_kernel *dots_of_few(const pysimd_kernel *dots, int types, int64_t few, int64_t many, int64_t k)
{
    enum { NOT_MANY = 8, SOME_K = 64, SOME_K_OF_NARROW = 48 };
    const int size = pysimd_element_sizes[types].a;
    if (k >= dots->dispatch_k) return dots;
    const pysimd_kernel *one = chosen(types, 1, OF_GEMV);
    if (!one) return NULL;
    if (size > 1 && few <= (size >= 4 || k >= SOME_K_OF_NARROW ? 3 : 2)) return one;
    return many <= NOT_MANY || (size >= 4 && k >= SOME_K) ? one : NULL;
}

/* Whether a GEMV kernel computes few rows or columns, but for those that AMX takes (.dispatch_before_gemv). */
static int gemv_of_few(int types, int64_t m, int64_t n, int64_t k)
{
    enum { MANY_ROWS = 256 };
    if (gemv_of_rows(types, m, n, k)) return 1;
    const pysimd_kernel *gemv = chosen(types, n, OF_GEMV);
    if (!gemv || !fits(gemv, m, n, k, gemv->dispatch_macs)) return 0;
    return m >= MANY_ROWS || !before_gemv(of_columns(types, n), m, n, k);
}

/* Where a GEMV kernel computes up to PYSIMD_GEMV_COLUMNS columns of a transposed A, or rows of a B by rows, that with
 * the longest registers: 180 shapes of narrow types took 0.59 to 1.05 times as long as by AVX2, in the mean 0.77 times,
 * 14 x 2027 x 4 float16 1.3 times, 2213 x 50 x 3 float 1.4 times, 3433 x 644 x 3 double 0.6 times (Zen 5). Three and
 * four columns of bytes and less than 256 rows are left to the tiles (gemv_of_few). */
static const pysimd_kernel *few_by_columns(int types, int64_t m, int64_t n, int64_t k)
{
    enum { SOME = 32, SOME_K = 64 };
    const pysimd_kernel *longest = atomic_load_explicit(&ordered_choices[types].dots, memory_order_acquire);
    const int size = pysimd_element_sizes[types].a;
    if (!longest || (m < n ? n : m) < SOME || (size >= 4 && k < SOME_K)) return NULL;
    return gemv_of_few(types, m, n, k) ? longest : NULL;
}

/* Whether a GEMV kernel of AVX-512 computes few columns of an A by rows, whatever the order of B, which is copied; or
 * so few rows. Products and batches of 10 (bytes 100 too) with K from 128 on, B by rows: two columns of 2 to 7 rows
 * took 0.15 to 0.6 times as long as otherwise, of more rows, bytes, float16 and bfloat16, 0.55 to 0.9; three and four
 * of 8 rows and more 0.55 to 0.9, of fewer 0.6 to 1.5; bytes with K from 64 on 0.7 to 1.1. With K from 512 on two to
 * four of double 0.8 to 0.9, of float 0.8 to 1.0, five to eight of float16 0.65 to 0.85 (Xeon with AMX). In halves five
 * and six columns of float16 from K = 48 on, seven and eight from 64 on 0.55 to 1.0 (batches of 1 to 100, 8 to 200
 * rows), of 3,000 to 100,000 rows 0.42 to 0.9; of float 0.8 to 2.1, of bfloat16, which others multiply in pairs, 0.7 to
 * 1.6 (Zen 4). */
static int copies_few(const pysimd_kernel *dots, int64_t few, int64_t many, int64_t k, int wide)
{
    enum { SOME = 8, LONG_K = 512, LEAST_K_OF_SIX = 48, LEAST_K = 64 };
    const int size = pysimd_element_sizes[dots->types].a;
    if (dots->target == AVX2 || few > SOME || (few > 2 && many < SOME)) return 0;
    if (few <= PYSIMD_GEMV_COLUMNS) return size > 2 ? size == 8 && k >= LONG_K && many >= SOME : k >= dots->dispatch_k;
    const int64_t least_k = !halves || wide ? LONG_K : few <= 6 ? LEAST_K_OF_SIX : LEAST_K;
    if (size != 2 || k < least_k) return 0;
    const pysimd_kernel *other = pysimd_choose((int)dots->types, wide ? few : many, wide ? many : few, k);
    return other && !other->k_tile && (k >= LONG_K || other->k_group == 1);
}

/* The kernel for products of few rows or columns whose large operand is in this order; NULL: no other than in general.
 */
static const pysimd_kernel *choose_by_order(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    enum { TWO = 2, LEAST_COLUMNS = 64, DEEPEST = 8, TERMS_A_COLUMN = 6, LEAST_BYTES = 1024, NOT_MANY = 8, SOME_K = 64 };
    const int wide = m < n;
    const int64_t few = wide ? m : n, many = wide ? n : m, size = pysimd_element_sizes[types].a;
    const ordered_choice *found = &ordered_choices[types];
    const pysimd_kernel *dots = atomic_load_explicit(&found->dots, memory_order_acquire);
    if (dots && (wide ? b == PYSIMD_BY_COLUMNS : a == PYSIMD_BY_ROWS) && copies_few(dots, few, many, k, wide))
        return dots;
    if (a == PYSIMD_BY_ROWS && b == PYSIMD_BY_COLUMNS) {
        if (!dots) return NULL;
        if (few <= PYSIMD_GEMV_COLUMNS) return dots_of_few(dots, types, few, many, k);
        return takes_dots(dots, few, many, k, wide) ? dots : NULL;
    }
    const pysimd_kernel *kernel = atomic_load_explicit(&found->few, memory_order_acquire);
    if (wide ? b != PYSIMD_BY_ROWS : a != PYSIMD_BY_COLUMNS) return NULL;
    const double bytes = (double)many * (double)k * (double)size;
    const int fits = kernel && many >= 2 * kernel->nr && k / DEEPEST <= many &&
                     (bytes <= most_bytes() || (halves && few > TWO));
    if (wide && fits && few <= kernel->dispatch_few_rows) return kernel;
    if (!wide && fits && few <= kernel->dispatch_few_columns && k >= TERMS_A_COLUMN * few &&
        few * k * size >= LEAST_BYTES)
        return kernel;
    /* Of the few columns of a GEMV kernel, long ones that do not fill two tiles: 45 x 970 x 6 float took 0.31 times as
     * long, 97 x 288 x 4 0.58, 26 x 548 x 4 double 0.61, 9 x 77 x 3 1.09 times (Zen 5); float16 and bytes, without a
     * kernel for few rows, 1.3 to 3.6 times, and 0.8 to 1.8 times with 5 to 16 of less than LEAST_COLUMNS. Rows
     * that are as short took 0.8 to 1.8 times as long. */
    const int some = kernel && !wide && many > NOT_MANY;
    if (some && few <= PYSIMD_GEMV_COLUMNS && many < 2 * kernel->nr && k >= SOME_K) return kernel;
    if (few <= PYSIMD_GEMV_COLUMNS) return few_by_columns(types, m, n, k);
    if (wide || (!some && many < LEAST_COLUMNS)) return NULL;
    kernel = chosen(types, CHOICES - 1, OF_ALL);
    if (kernel && !kernel->dispatch_few_columns) kernel = of_columns(types, CHOICES - 1); /* AMX has none */
    return kernel && pysimd_takes_few_columns(kernel, m, n, k) ? kernel : NULL;
}

/* The kernel whose function for small products computes the few columns of a transposed A, by registers of its columns;
 * or NULL. */
static const pysimd_kernel *of_few_transposed(int types, int64_t m, int64_t k)
{
    enum { LEAST_ELEMENTS = 128 };
    const pysimd_kernel *kernel = of_columns(types, PYSIMD_GEMV_COLUMNS + 1);
    return m * k >= LEAST_ELEMENTS && kernel && k <= kernel->dispatch_transposed_k ? kernel : NULL;
}

/* For K from `k` on, the fewest rows from which on a GEMV kernel of AVX2 computes two, three and four columns rather
 * than tiles; of double, of float, and of two bytes, whose last vector of a row is loaded in parts. From the ratios of
 * their times for 8 to 200 rows and K up to 32, batches of 100 in cache (Zen 3): with so many rows 0.75 to 0.98, with
 * twice as many 0.4 to 0.9, with half as many up to 2.6. */
typedef struct {
    int k, rows[PYSIMD_GEMV_COLUMNS - 1];
} rows_from_k;

enum { NO_ROWS = 1 << 10, ROWS_FROM_K = 11 }; /* more than there are; the most lines of a table */
typedef const rows_from_k rows_of_types[3][ROWS_FROM_K];

static rows_of_types by_rows = {
    {{2, {48, 64, NO_ROWS}}, {3, {48, 48, 200}}, {4, {32, 32, 200}}, {6, {32, 48, 200}},
     {8, {20, 24, 64}}, {10, {24, 32, 100}}, {12, {16, 32, 48}}, {16, {16, 16, 48}}, {24, {12, 12, 24}}},
    {{2, {16, 24, 48}}, {4, {12, 24, 200}}, {5, {16, 48, NO_ROWS}}, {8, {16, 24, 64}},
     {10, {12, 32, 100}}, {12, {12, 24, 64}}, {16, {8, 12, 20}}, {24, {8, 12, 16}}},
    {{2, {12, 24, 32}}, {4, {12, 20, NO_ROWS}}, {5, {20, NO_ROWS, NO_ROWS}}, {8, {12, 20, 48}},
     {9, {12, NO_ROWS, NO_ROWS}}, {12, {12, 48, NO_ROWS}}, {16, {8, 12, 16}}, {24, {8, 12, 12}}},
};
static rows_of_types by_columns = {
    {{1, {32, 32, 200}}, {2, {48, 48, 200}}, {6, {32, 32, 200}}, {12, {16, 24, 64}}, {24, {16, 16, 48}}},
    {{1, {12, 16, 64}}, {2, {16, 20, 64}}, {6, {16, 20, 32}}, {24, {12, 20, 32}}},
    {{1, {12, 16, 64}}, {2, {16, 20, 64}}, {6, {16, 20, 32}}, {24, {12, 20, 32}}},
};
/* The same of two to four rows by a transposed B, whose columns tiles pack. */
static rows_of_types exchanged = {
    {{2, {16, NO_ROWS, NO_ROWS}}, {24, {16, 16, 48}}},
    {{2, {32, 32, 32}}, {3, {16, 16, 16}}, {4, {32, 32, 32}}, {5, {100, NO_ROWS, NO_ROWS}},
     {8, {32, NO_ROWS, NO_ROWS}}},
    {{3, {16, 16, 16}}, {5, {NO_ROWS, NO_ROWS, NO_ROWS}}, {24, {8, NO_ROWS, NO_ROWS}}},
};

/* The same where AVX-512 computes the others, for an A by rows: single products and batches of 10 and 100, 5 to 1500
 * rows (Xeon with AMX), with so many rows 0.7 to 1.0, with 128 0.35 to 0.75 (three of float with K = 9 to 11, and four
 * with K from 5 on, up to 1.5 times). */
static rows_of_types by_rows_beside_avx512 = {
    {{2, {16, 32, NO_ROWS}}},
    {{2, {8, 16, 16}}, {5, {32, NO_ROWS, NO_ROWS}}, {8, {32, 32, NO_ROWS}}, {9, {32, NO_ROWS, NO_ROWS}}},
    {{2, {8, 16, 16}}, {5, {32, NO_ROWS, NO_ROWS}}, {8, {8, 32, NO_ROWS}}, {9, {32, NO_ROWS, NO_ROWS}},
     {12, {16, 32, NO_ROWS}}},
};

static int64_t least_rows_of_avx2(rows_of_types table, int types, int64_t few, int64_t k)
{
    const int size = pysimd_element_sizes[types].a;
    const rows_from_k *from = table[size == 8 ? 0 : size == 4 ? 1 : 2];
    int64_t rows = NO_ROWS;
    for (int i = 0; i < ROWS_FROM_K && from[i].k && from[i].k <= k; i++) rows = from[i].rows[few - 2];
    return rows;
}

/* Whether AVX2 is the highest target of the kernels for floats; of some types all are taken by name alone. */
static int has_avx2_alone(int types)
{
    const pysimd_kernel *widest = of_columns(types, CHOICES - 1);
    return widest && widest->target == AVX2 && pysimd_element_sizes[types].a > 1;
}

/* The kernel of AVX2 for few columns (pysimd_is_skinny), unless both operands have adjacent elements along K and the
 * GEMV kernel is taken in general; NULL: no other than in general. */
static const pysimd_kernel *of_few_columns(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    if (!has_avx2_alone(types)) return NULL;
    const pysimd_kernel *gemv = chosen(types, n, OF_GEMV);
    if (a == PYSIMD_BY_ROWS && b == PYSIMD_BY_COLUMNS && k >= gemv->dispatch_k) return NULL;
    const int one_column = k == 1 && a != PYSIMD_BY_NEITHER;
    const int64_t rows = least_rows_of_avx2(one_column || a == PYSIMD_BY_COLUMNS ? by_columns : by_rows, types, n, k);
    return m >= rows ? gemv : of_columns(types, n);
}

/* The GEMV kernel of AVX2 for few columns of an A by rows and a short K, where AVX-512 computes the others, or NULL. In
 * halves 150 products and batches of 20 and 200 took 0.85 times as long in the mean, those with K from 4 on at most 1.12
 * times, with K = 2 and rows at a distance up to 1.7 times (Zen 4). */
static const pysimd_kernel *of_short_rows(int types, int64_t m, int64_t n, int64_t k, pysimd_order a)
{
    const int64_t least_k = halves ? 4 : 2;
    if (n < 2 || n > PYSIMD_GEMV_COLUMNS || n >= m || k < least_k || a != PYSIMD_BY_ROWS) return NULL;
    const pysimd_kernel *gemv = chosen(types, n, OF_GEMV), *widest = of_columns(types, CHOICES - 1);
    if (!gemv || widest->target < AVX512 || pysimd_element_sizes[types].a == 1 || k >= gemv->dispatch_k) return NULL;
    return m >= least_rows_of_avx2(by_rows_beside_avx512, types, n, k) ? gemv : NULL;
}

/* The GEMV kernel of AVX2 for few rows (pysimd_is_skinny) whose operands both have adjacent elements along K, with the
 * operands exchanged; or NULL. */
static const pysimd_kernel *of_few_rows(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    const int in_order = a == PYSIMD_BY_ROWS && b == PYSIMD_BY_COLUMNS;
    if (!in_order || !has_avx2_alone(types) || pysimd_is_long(m, n, k)) return NULL;
    return n >= least_rows_of_avx2(exchanged, types, m, k) ? chosen(types, m, OF_GEMV) : NULL;
}

/* The kernel with tile registers of three and four columns of bfloat16 whose operands both have adjacent elements along
 * an even K, which is then no dot product of a GEMV kernel; or NULL. By ratios of time, 12 to 200 rows, K up to 64
 * (Xeon with AMX): four columns in batches of 10 and 100 0.2 to 0.7, single products of 2,048 to 8,191 multiply-adds
 * 0.75 to 1.15, larger ones 0.65 to 0.9; three columns of 4,096 multiply-adds and more 0.6 to 0.75, single products 0.9
 * to 1.1; fewer, and two columns, 0.75 to 1.25. Four with an odd K 0.8 to 1.0, single products 1.05 to 1.25. */
static const pysimd_kernel *of_tiles_in_order(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    enum { SOME_K = 16 };
    if (types != BF16F32 || a != PYSIMD_BY_ROWS || b != PYSIMD_BY_COLUMNS || n < 3 || n > PYSIMD_GEMV_COLUMNS || k % 2)
        return NULL;
    const ordered_choice *found = &ordered_choices[types];
    const pysimd_kernel *tiles = atomic_load_explicit(&found->tiles, memory_order_acquire);
    const pysimd_kernel *dots = atomic_load_explicit(&found->dots, memory_order_acquire);
    if (!tiles || !dots || k >= dots->dispatch_k || (n == 3 && k < SOME_K)) return NULL;
    return fits(tiles, m, n, k, n == 3 ? tiles->dispatch_macs : tiles->dispatch_macs_few) ? tiles : NULL;
}

/* From which K on the GEMV kernel of AVX-512 computes two to eight rows, or columns, whose operands both have adjacent
 * elements along K; of double, float and two bytes. By ratios of time to what was taken before, 8 to 100 columns or
 * rows, batches of 20 (Xeon with AMX): two to four rows of double 0.65 to 0.95; of float 0.6 to 0.95, five to eight
 * from there on 0.75 to 0.95, before 1.0 to 1.9; of float16 two to four 0.65 to 1.0, five to seven 0.65 to 0.95, eight
 * 0.8, before 1.05 to 2.5. Two to four columns of float16 0.6 to 0.95, five and six 0.75 to 0.9, before 0.9 to 2.6; of
 * float two 0.9 to 1.0, three and four 1.0 to 1.3. */
enum { MOST_IN_ORDER = 8, NO_K = INT32_MAX };
static const int least_k_in_order[2][3][MOST_IN_ORDER - 1] = {
    {{NO_K, NO_K, 24, NO_K, NO_K, NO_K, NO_K}, {NO_K, NO_K, NO_K, NO_K, NO_K, NO_K, NO_K}, {8, 8, 12, 48, 48, NO_K, NO_K}},
    {{4, 4, 12, NO_K, NO_K, NO_K, NO_K}, {4, 8, 16, 48, 48, 48, 48}, {8, 8, 24, 32, 32, 32, 64}},
};

/* The GEMV kernel of few rows, or columns, whose operands both have adjacent elements along K, where AVX-512 computes
 * the others, or NULL: that of AVX-512, or of AVX2, by which two and three columns of float with K from 4 to 11 took
 * 0.75 to 0.9 times as long as by tiles, three of double 0.8, four with K from 8 on 0.75 to 0.95 (Xeon with AMX). In
 * halves 150 products and batches of 20 took 0.98 times as long in the mean (0.62 to 1.29, Zen 4). */
static const pysimd_kernel *of_few_in_order(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    enum { LEAST = 8, LEAST_K = 4, SHORT_K = 12, SOME_K = 32, SHORT_K_OF_FOUR = 8 };
    const int wide = m < n, size = pysimd_element_sizes[types].a;
    const int64_t few = wide ? m : n, many = wide ? n : m;
    if (a != PYSIMD_BY_ROWS || b != PYSIMD_BY_COLUMNS || size == 1) return NULL;
    if (few < 2 || few > MOST_IN_ORDER || many < LEAST || k < LEAST_K) return NULL;
    const pysimd_kernel *dots = atomic_load_explicit(&ordered_choices[types].dots, memory_order_acquire);
    if (!dots || dots->target < AVX512) return NULL;
    const int halves_register = size == 2 && k % 16 == 8 && k < SOME_K; /* 41 x 8 x 2 float16 took 1.45 times as long */
    if (!halves_register && k >= least_k_in_order[wide][size == 8 ? 0 : size == 4 ? 1 : 2][few - 2]) {
        const pysimd_kernel *other = few > PYSIMD_GEMV_COLUMNS ? pysimd_choose(types, m, n, k) : NULL;
        return other && (other->k_tile || other->k_group > 1) ? NULL : dots; /* 5 x 53 x 46 bfloat16 took 1.17 times as
                                                                                long as by pairs (Zen 4) */
    }
    if (wide || few > PYSIMD_GEMV_COLUMNS) return NULL;
    const int four = size == 8 && few == 4, short_k = size <= 4 && few < 4 && k < SHORT_K;
    const int takes_one = short_k || (size == 8 && few == 3) || (four && k >= SHORT_K_OF_FOUR);
    return takes_one ? chosen(types, 1, OF_GEMV) : NULL;
}

/* From how many columns of a B by rows, or rows of a transposed A, on a GEMV kernel with sixteen registers computes two
 * to four rows, or columns. By ratios of time to the kernels with tiles, K from 2 to 48 (Zen 3): 300 rows by two or
 * three columns 0.4 to 0.6 times, 64 rows by four 0.7 to 1.0, 33 rows by three 0.9 to 1.1; two rows by 300 columns 0.8
 * to 1.0 times, three by 64 columns of float 0.8 to 1.5, bfloat16 0.7 to 1.0. Wide and narrow types have one table: of
 * two that a condition chooses, GCC 12's object-size check refuses elements that are there. */
static int least_of_vectors(int64_t few, int wide, int narrow)
{
    static const int columns[2][PYSIMD_GEMV_COLUMNS - 1] = {{96, 256, 768}, {32, 64, 256}};
    if (!wide) return few < PYSIMD_GEMV_COLUMNS ? 32 : 64;
    return columns[narrow][few - 2];
}

/* From how many rows of a transposed A on an AVX-512 kernel with one chain an element computes two to four columns. By
 * ratios of time to the kernels with tiles, float, double and bfloat16 (Xeon with AMX): two columns of 33 rows 0.4 to
 * 0.9 times with K = 2 and 6, of 100 0.4 to 0.6; three of 33 and 64 rows 0.5 to 1.0 with K = 2, 0.6 to 1.3 with more,
 * of 100 0.5 to 1.0; four of 64 rows 0.6 to 1.4, of 100 0.7 to 1.1. */
static int least_rows(int64_t columns, int64_t k)
{
    enum { SHORT_K = 4, SOME_K = 16 };
    if (columns == 2) return k <= SOME_K ? 32 : 64;
    return columns == 3 && k <= SHORT_K ? 32 : 96;
}

/* The kernel of the product of a matrix by up to PYSIMD_GEMV_COLUMNS vectors, where it is that with one chain an
 * element, or for few rows because K is short; or NULL. By ratios of time to the other kernels on a Xeon with AMX,
 * single calls and batches, one thread: two rows of float and double by 500 to 3000 columns of K = 2 and 4 0.6 to 0.9
 * times with chains, of K = 6 to 28 0.55 to 0.9 times by the kernel for few rows. Bytes of one row or column whose
 * operands both have adjacent elements along K took 0.6 to 0.95 times as long by VNNI as by AVX2 with K from 32 on. */
static const pysimd_kernel *of_vectors(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    enum { SHORT_K = 8, SOME_K = 64, LONG_K = 64, DIRECT_K = 32, DIRECT_BYTES = 64 << 10, LEAST_K_OF_BYTES = 32 };
    const int wide = m < n, size = pysimd_element_sizes[types].a, narrow = size < 4;
    const int64_t few = wide ? m : n, many = wide ? n : m;
    const ordered_choice *found = &ordered_choices[types];
    const pysimd_kernel *kernel = atomic_load_explicit(&found->dots, memory_order_acquire);
    const int dots = wide ? b == PYSIMD_BY_COLUMNS : a == PYSIMD_BY_ROWS;
    if (kernel && size == 1 && few == 1 && dots && k >= LEAST_K_OF_BYTES) return kernel;
    if (!kernel || !kernel->dispatch_by_columns || (wide ? b != PYSIMD_BY_ROWS : a != PYSIMD_BY_COLUMNS)) return NULL;
    if (kernel->target == AVX2) return few > 1 && many >= least_of_vectors(few, wide, narrow) ? kernel : NULL;
    const int fills = many >= kernel->dispatch_by_columns;
    if (few == 1) {
        const int some = many > kernel->dispatch_by_columns / 2 ? k <= SOME_K : many < kernel->mr && k >= LONG_K;
        return fills || some || k <= SHORT_K ? kernel : NULL;
    }
    if (k >= SOME_K) return NULL;
    if (!wide) return many >= least_rows(few, k) ? kernel : NULL;
    if (!fills) return NULL;
    if (narrow) return k > DIRECT_K && 2.0 * (double)many * (double)k >= DIRECT_BYTES ? kernel : NULL;
    const pysimd_kernel *of_few_rows = atomic_load_explicit(&found->few, memory_order_acquire);
    if (few < 4 ? k <= SHORT_K / 2 : k <= 2 * SHORT_K) return kernel;
    if (of_few_rows && many >= 2 * of_few_rows->nr) return k < SOME_K / 2 ? of_few_rows : NULL;
    return k <= SHORT_K ? kernel : NULL;
}

int pysimd_is_in_part_of_l2(int64_t m, int64_t n, int64_t k)
{
    const double bytes = (double)m * (double)k * pysimd_element_sizes[BF16F32].a, l2 = (double)pysimd_caches().l2;
    return bytes <= (n <= 6 ? l2 : l2 / 2);
}

/* The kernel of AVX-512 for few columns of a transposed A (pysimd_is_of_direct_columns), or NULL. */
static const pysimd_kernel *of_direct_columns(int types, int64_t m, int64_t n, int64_t k, pysimd_order a)
{
    if (a != PYSIMD_BY_COLUMNS || (types != BF16F32 && types != F16F32)) return NULL;
    if (!pysimd_is_of_direct_columns(m, n, k) || !pysimd_is_in_part_of_l2(m, n, k)) return NULL;
    const pysimd_kernel *kernel = of_columns(types, PYSIMD_MOST_DIRECT_COLUMNS); /* all columns are in one tile */
    return kernel && kernel->target == AVX512 ? kernel : NULL;
}

static int is_one_block(const pysimd_kernel *kernel, int64_t k)
{
    return k <= pysimd_longest_block(kernel, pysimd_element_sizes[kernel->types]);
}

/* The kernel of AVX-512 for few rows of float and double, B by rows, and a long K, where it is not that of
 * pysimd_choose; or NULL. A product whose K is several blocks of its kernel is packed, unless it has so many columns as
 * two tiles, for strips.c. By ratios of time, products and batches of 10, K from 128 to 3000 (Xeon with AMX): 2 to 4
 * rows by up to 48 columns 0.35 to 0.95 with three vectors, K in one block of it; 5 to 14 rows of double by up to 32
 * columns, K in two blocks of the other, 0.5 to 0.85; with two vectors 33 to 64 columns of double, K in several blocks
 * of the other, 0.4 to 0.97, of float, K in one block of it, 0.5 to 0.9, with K and rows as below. With a B by columns
 * they took 0.9 to 3.8 times as long, but 15 and more rows of double 0.75 to 1.0. In halves 165 products and batches of
 * 10 took 0.96 times as long in the mean, none but those excepted more than 1.08 times (Zen 4). */
static const pysimd_kernel *of_long_k(int types, int64_t m, int64_t n, int64_t k, pysimd_order b)
{
    enum { FEW = 4, NOT_MANY = 8, SOME = 14, MANY = 40, MOST = 99 };
    enum { SHORT_K = 64, LONG_K = 128, COLUMNS = 32, COLUMNS_OF_THREE = 48 };
    const pysimd_kernel *three = of_columns(types, COLUMNS_OF_THREE), *two = of_columns(types, CHOICES - 1);
    if ((types != F32 && types != F64) || two->target != AVX512 || n <= PYSIMD_GEMV_COLUMNS) return NULL;
    if (n > PYSIMD_SMALL_COLUMNS || m > MOST || k <= SHORT_K) return NULL;
    if (b != PYSIMD_BY_ROWS && (types == F32 || m <= SOME)) return NULL;
    const int of_three_halves = halves && types == F64 && of_columns(types, n)->dispatch_halves; /* up to 1.28 times */
    if (m <= FEW && of_three_halves) return NULL;
    if (m <= FEW) return m > 1 && n <= COLUMNS_OF_THREE && k >= LONG_K && is_one_block(three, k) ? three : NULL;
    const pysimd_kernel *kernel = pysimd_choose(types, m, n, k);
    if (n <= COLUMNS) return m <= SOME && !is_one_block(kernel, k) && is_one_block(three, k) ? three : NULL;
    if (types == F64) return is_one_block(kernel, k) ? NULL : two;
    const int64_t least_k = m <= NOT_MANY ? 300 : m <= SOME && n <= COLUMNS_OF_THREE ? 200 : m <= MANY ? 100 : SHORT_K;
    return k > least_k && k <= (m <= MANY ? INT64_MAX : 300) && is_one_block(two, k) ? two : NULL;
}

/* The kernel of AVX-512 with two vectors, of which all rows are one tile, for 33 to 64 columns of a B by columns and K
 * from 65 on: B is packed a tile at a time. 7 to 14 rows of double took 0.55 to 1.0 times as long as by the kernel of
 * pysimd_choose, 9 to 14 of float by 49 to 64 columns 0.7 to 0.95 (batches of 20, Xeon with AMX); or NULL. */
static const pysimd_kernel *of_one_row_of_tiles(int types, int64_t m, int64_t n, int64_t k, pysimd_order a,
                                                pysimd_order b)
{
    enum { FEW_OF_DOUBLE = 6, FEW_OF_FLOAT = 8, SHORT_K = 64, COLUMNS = 32, COLUMNS_OF_THREE = 48 };
    const pysimd_kernel *two = of_columns(types, CHOICES - 1);
    if ((types != F32 && types != F64) || two->target != AVX512) return NULL;
    if (a != PYSIMD_BY_ROWS || b != PYSIMD_BY_COLUMNS || k <= SHORT_K) return NULL;
    if (n <= COLUMNS || n > PYSIMD_SMALL_COLUMNS || m > two->mr) return NULL;
    return types == F64 ? (m > FEW_OF_DOUBLE ? two : NULL) : m > FEW_OF_FLOAT && n > COLUMNS_OF_THREE ? two : NULL;
}

/* The kernel with tile registers where pysimd_choose takes it for operands in this order, or where it has few columns
 * of bfloat16, an A by rows and a short, even K: 3 to 8 columns of 4,096 multiply-adds and more took 0.4 to 0.6 times as
 * long in the means of K (Xeon with AMX, batches of 8 to 60); or NULL. */
static const pysimd_kernel *of_tiles_of_few(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    enum { LEAST_MACS = 2 << 10, SOME_MACS = 4 << 10, LEAST_K = 4, SHORT_K = 12 };
    const pysimd_kernel *tiles = atomic_load_explicit(&ordered_choices[types].tiles, memory_order_acquire);
    if (!tiles || tiles->panel == SPLIT || !pysimd_is_of_few(m, n, k) || m * n * k < LEAST_MACS) return NULL;
    if (m == 1 || n == 1) return NULL;
    const int of_few_columns = n >= 3 && n < m && a == PYSIMD_BY_ROWS && b != PYSIMD_BY_NEITHER;
    const int of_short_k = k % 2 == 0 && k >= LEAST_K && k < SHORT_K && m * n * k >= SOME_MACS;
    if (types == BF16F32 && of_few_columns && of_short_k) return tiles;
    const pysimd_kernel *kernel = pysimd_choose(types, m, n, k);
    if (!kernel || !kernel->k_tile) return NULL;
    kernel = pysimd_of_order(kernel, m, n, k, a, b);
    return kernel && kernel->k_tile ? kernel : NULL;
}

const pysimd_kernel *pysimd_choose_ordered(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    const int few_columns = pysimd_is_skinny(m, n, k) && n < m, few_rows = pysimd_is_skinny(m, n, k) && m < n;
    const pysimd_kernel *kernel = of_tiles_in_order(types, m, n, k, a, b);
    if (!kernel) kernel = of_tiles_of_few(types, m, n, k, a, b);
    if (!kernel) kernel = pysimd_of_few(types, m, n, k, a, b);
    if (!kernel) kernel = of_direct_columns(types, m, n, k, a);
    if (!kernel && few_columns) kernel = of_few_columns(types, m, n, k, a, b);
    if (!kernel && few_rows) kernel = of_few_rows(types, m, n, k, a, b);
    if (!kernel) kernel = of_few_in_order(types, m, n, k, a, b);
    if (!kernel && pysimd_is_of_vectors(m, n, k)) kernel = of_vectors(types, m, n, k, a, b);
    if (!kernel) kernel = of_short_rows(types, m, n, k, a);
    if (!kernel && few_columns && a == PYSIMD_BY_COLUMNS) kernel = of_few_transposed(types, m, k);
    if (!kernel) kernel = of_long_k(types, m, n, k, b);
    if (!kernel && pysimd_is_long(m, n, k)) kernel = choose_by_order(types, m, n, k, a, b);
    if (!kernel) kernel = of_one_row_of_tiles(types, m, n, k, a, b);
    if (kernel) return kernel;
    kernel = pysimd_choose(types, m, n, k);
    return kernel ? pysimd_of_order(kernel, m, n, k, a, b) : NULL;
}
