/* direct.c: see direct.h. Compiled for the baseline processor.
 *
 * One thread of an Ice Lake Xeon, before and with direct.c: 2 x 15 x 2242 bfloat16 9.8 and 2.2 microseconds, 3 x 9 x
 * 1390 5.5 and 2.0, 33 x 4 x 1873 float16 17.0 and 12.5; 37 x 2 x 3107 uint8 by int8 60 and 20. */
#include "direct.h"

#include "caches.h"
#include "gemm.h"
#include "pack.h"

/* Of floats with more than a few rows, those of fewer columns took up to 1.1 times as long like this (1000 x 8 x 30,
 * Ice Lake); 65 to 127 columns 0.9 to 1.0 times in the mean, single ones up to 1.5 times. */
enum {
    SHORT_K = PYSIMD_DIRECT_SHORT_K, /* of floats, */
    MANY_COLUMNS = 128,       /* which have so many columns, */
    FEW_ROWS = 6,             /* or so few rows that B is widened in registers, */
    SOME_ROWS = PYSIMD_DIRECT_ROWS, /* or some, of a longer K and more than PYSIMD_SMALL_COLUMNS columns */
    LONGEST_K = 672,          /* of few rows, which are all staged */
    SHORT_K_BYTES = 16,       /* of int8 */
    ROWS_A_THREAD = 16,
};

static pysimd_direct_fn *function_of(const pysimd_kernel *kernel)
{
#ifdef __x86_64__
    if (kernel->form != OUTER || kernel->unchained || kernel->dispatch == NEVER) return NULL;
    if (kernel->target == AVX512 && kernel->types == BF16F32) return avx512_direct_bf16;
    if (kernel->target == AVX512 && kernel->types == F16F32) return avx512_direct_f16;
    if (kernel->target == AVX512VNNI && kernel->types == I8I32) return avx512vnni_direct_i8;
    if (kernel->target == AVX512VNNI && kernel->types == U8I8I32) return avx512vnni_direct_u8i8;
#endif
    (void)kernel;
    return NULL;
}

static pysimd_direct_fn *function_exchanged(const pysimd_kernel *kernel)
{
#ifdef __x86_64__
    pysimd_direct_fn *const direct = function_of(kernel);
    if (direct == avx512_direct_bf16) return avx512_columns_bf16;
    if (direct == avx512_direct_f16) return avx512_columns_f16;
#endif
    (void)kernel;
    return NULL;
}

/* Whether B of few rows is in L2, or follows the B before it closely: of each four vectors of columns all K is read,
 * and rows of B are apart. Of float16 on a Xeon with 2 MiB of L2, 5 and 6 rows took 0.42 to 0.63 times as long as by
 * strips.c with a B of up to 1.5 MB, and as long with 2.3 MB; 7 to 12 rows, for which B is widened twice, 0.6 to 0.82
 * times as long as otherwise, 16 rows 0.8 to 0.93; batches of 10 0.5 to 0.9 times with up to 310 KB each (10 x 10 x 40
 * x 100 1.1), 0.5 to 1.4 times with 400 to 800 KB, from there up to 2.5 times. Seven and more rows of an A that is
 * staged value by value took 1.1 to 1.4 times as long (12 x 446 x 74). */
static int stays_in_l2(const pysimd_product *p)
{
    const double l2 = (double)pysimd_caches().l2, bytes = (double)p->k * (double)p->n * pysimd_element_sizes[BF16F32].b;
    return bytes <= l2 / 6 || bytes * (double)pysimd_batch_of(p) <= l2 * 3 / 4;
}

/* Whether a batch may be computed like that: each product has a B of its own and many columns, and all of C stays in L2
 * unless it has few rows. On a Xeon with AMX 10 x 2 x 34 x 180 bfloat16 took 0.46 times as long, 10 x 4 x 48 x 218
 * float16 0.49, 10 x 48 x 9 x 368 uint8 by int8 0.37; batches of 2, 10 and 100 with up to six rows, two and more of
 * which have 2,048 multiply-adds, 0.85 times in the mean, bytes 0.83 to 0.87. A C larger than L2, which is prefetched
 * otherwise, took 1.1 to 1.2 times as long (10 x 142 x 6 x 399 float16), 100 products of some hundred multiply-adds 1.2
 * to 1.7 times. */
static int takes_batch(const pysimd_product *p)
{
    if (p->n <= PYSIMD_SMALL_COLUMNS || p->batch_b[p->ndim - 1] == 0) return 0;
    const double c_bytes = 4 * (double)p->m * (double)p->n * (double)pysimd_batch_of(p);
    return p->m <= FEW_ROWS || c_bytes <= (double)pysimd_caches().l2;
}

/* Whether a single product is computed like that whose operands would be packed otherwise. By ratios of time, 5 to 2048
 * rows and K from 2 on (Xeon with AMX): five to eight columns 0.75 to 0.95 with K up to 32, nine to sixteen 0.75 to
 * 0.98 (sixteen columns of many rows with K up to 16 1.0 to 1.2), four with K from 16 to 64 0.7 to 0.9. Batches of 20,
 * which are packed in L1, 0.75 to 1.5. */
static int takes_single_exchanged(const pysimd_product *p)
{
    enum { LEAST = 1024, LEAST_ROWS = 5, SOME_ROWS = 12, NOT_MANY_ROWS = 256, SOME_K = 32, COLUMNS = 12 };
    if (p->ndim || p->n < PYSIMD_GEMV_COLUMNS || (double)p->m * (double)p->k * (double)p->n < LEAST) return 0;
    if (p->n == PYSIMD_GEMV_COLUMNS) return p->k >= SOME_K && p->m >= 2 * SOME_ROWS && p->m <= NOT_MANY_ROWS;
    if (p->m < (p->n <= 6 ? LEAST_ROWS : SOME_ROWS)) return 0;
    return p->n <= COLUMNS || p->k >= SOME_K || p->m <= NOT_MANY_ROWS;
}

/* Whether a single product of not many columns, whose tiles have up to 14 or 16 rows, is computed from rows of A that
 * are widened in L1. By ratios of time, 8 to 2500 rows (Xeon with AMX): an A by rows and K up to 24 0.7 to 1.0 times,
 * of more terms 0.75 to 0.9 with up to 16 rows, 0.9 to 1.2 with more; a transposed A of up to 300 rows 0.8 to 0.95, of
 * 1000 and more 1.0 to 1.2. Batches of 20 took 0.8 to 1.6 times as long. In halves 70 took 0.94 times as long in the
 * mean, none more than 1.05 times, of few columns of a transposed A 50 took 0.94 (Zen 4). */
static int takes_some_columns(const pysimd_product *p)
{
    enum { LEAST = 10, MOST = 32, LEAST_ROWS = 8, FEW = 16, TRANSPOSED_ROWS = 300, SHORT = 24, LONG = 128, MANY = 24 };
    if (p->ndim || p->n < LEAST || p->n > MOST || p->m < LEAST_ROWS || p->k > LONG) return 0;
    if (p->n == FEW + 1 || p->n == FEW + 2) return 0; /* of batches the last columns are dot products: other bits */
    if (p->cs_a == 1) return p->k <= SHORT || p->m <= FEW;
    return p->rs_a == 1 && p->n > FEW && p->m <= TRANSPOSED_ROWS && (p->k <= SHORT || p->n >= MANY);
}

int pysimd_is_direct_exchanged(const pysimd_kernel *kernel, const pysimd_product *p)
{
    if (p->rs_a != 1 || p->cs_a == 1 || p->n > PYSIMD_MOST_DIRECT_COLUMNS || p->flags & ~PYSIMD_ZERO) return 0;
    if (pysimd_exchanges_columns(kernel, p->m, p->n, p->k)) return 1;
    if (!function_exchanged(kernel)) return 0;
    return takes_single_exchanged(p) && pysimd_is_in_part_of_l2(p->m, p->n, p->k);
}

int pysimd_exchanges_columns(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    if (!pysimd_is_of_direct_columns(m, n, k) || !function_exchanged(kernel)) return 0;
    return pysimd_is_in_part_of_l2(m, n, k);
}

int pysimd_takes_direct(const pysimd_kernel *kernel, const pysimd_product *p)
{
    if (!function_of(kernel) || p->k == 0) return 0;
    if (p->interrupted && pysimd_gemm_takes(kernel, p->m, p->n, p->k)) return 0; /* which looks for signals */
    if (pysimd_is_direct_exchanged(kernel, p)) return 1;
    if (p->flags != PYSIMD_ZERO || (p->ndim && !takes_batch(p))) return 0;
    const int64_t threads = pysimd_threads_of_rows(p);
    if (threads > 1 && p->m > PYSIMD_DIRECT_ROWS && p->m < ROWS_A_THREAD * threads) return 0;
    if (kernel->target == AVX512VNNI) return p->k <= SHORT_K_BYTES && p->n > PYSIMD_SMALL_COLUMNS;
    if (takes_some_columns(p)) return 1;
    if (p->k <= SHORT_K) return p->n >= MANY_COLUMNS || p->m <= FEW_ROWS;
    if (p->k > pysimd_block_of_k(kernel, p->k)) return 0; /* 8x48 of 512 where L1 has 32 KiB */
    const int by_values = p->cs_a != 1 && !(p->rs_a == 1 && p->k <= PYSIMD_DIRECT_WORDS / SOME_ROWS);
    if (p->m > (p->n > PYSIMD_SMALL_COLUMNS && !by_values ? SOME_ROWS : FEW_ROWS)) return 0;
    return p->k <= LONGEST_K && p->cs_b == 1 && stays_in_l2(p);
}

void pysimd_direct(const pysimd_kernel *kernel, const pysimd_call *s, int64_t cs_b, int exchanged)
{
    (exchanged ? function_exchanged : function_of)(kernel)(kernel, s, cs_b);
}
