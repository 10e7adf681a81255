/* registry.h: the tables of kernels and targets, the CPU's features, and the choice of a kernel. */
#ifndef PYSIMD_REGISTRY_H
#define PYSIMD_REGISTRY_H

#include "pysimd.h"

/* Bits of pysimd_cpu_features(); pysimd_feature_names[] has the same order. */
enum {
    HAS_SSE2 = 1 << 0,
    HAS_AVX = 1 << 1,
    HAS_AVX2 = 1 << 2,
    HAS_FMA = 1 << 3,
    HAS_AVX512F = 1 << 4,
    HAS_AVX512BW = 1 << 5,
    HAS_AVX512DQ = 1 << 6,
    HAS_AVX512VL = 1 << 7,
    HAS_AVX512_VNNI = 1 << 8,
    HAS_AVX512_BF16 = 1 << 9,
    HAS_F16C = 1 << 10,
    HAS_NEON = 1 << 11,
    HAS_DOTPROD = 1 << 12,
    HAS_I8MM = 1 << 13,
    HAS_BF16 = 1 << 14,
    HAS_SVE = 1 << 15,
    HAS_SME = 1 << 16,
    HAS_RVV = 1 << 17,
    HAS_AMX_TILE = 1 << 18,
    HAS_AMX_INT8 = 1 << 19,
    HAS_AMX_BF16 = 1 << 20,
    HAS_AVX512_FP16 = 1 << 21,
    HAS_AVX512 = HAS_AVX | HAS_AVX2 | HAS_FMA | HAS_F16C | HAS_AVX512F | HAS_AVX512BW | HAS_AVX512DQ | HAS_AVX512VL,
};

typedef struct {
    const char *name;
    const char *folder; /* of the target's kernel files, in cpu_kernels/ */
    uint64_t needs;     /* bits of pysimd_cpu_features() */
} pysimd_target_row;

extern pysimd_kernel pysimd_kernels[]; /* written by pysimd_start alone */
extern const int pysimd_kernel_count;
extern const pysimd_target_row pysimd_targets[];
extern const char *const pysimd_feature_names[];
extern const int pysimd_feature_count;

/* Bytes of one element of A, B and C in the arrays. */
typedef struct {
    int a, b, c;
} pysimd_sizes;
extern const pysimd_sizes pysimd_element_sizes[TYPES];

/* The features that both the processor has and the operating system saves. */
uint64_t pysimd_cpu_features(void);

/* Whether this processor executes instructions of 64 bytes as two of 32, as it says itself: then two vectors of AVX2
 * take no longer than one of AVX-512. */
int pysimd_halves_avx512(void);

/* Asks the operating system for the tile registers of AMX, for all threads of the process; 0 if it refuses. */
int pysimd_permits_tiles(void);

/* Bytes of a vector register of a target whose vectors have no fixed length, at most PYSIMD_MOST_VECTOR_BYTES; 16, the
 * least, where this CPU does not have the target's registers. */
int pysimd_vector_bytes(pysimd_target target, uint64_t features);

/* Detects the CPU, asks for its tile registers if the bound allows them, bounds dispatch to targets <= highest_target,
 * and sets mr and nr of the tiles that are counted in vectors. Called before anything else but pysimd_is_started. */
void pysimd_start(int highest_target);
int pysimd_is_started(void);

/* Whether kernels of this target may run here: the processor has its features, and the bound allows it. */
int pysimd_has(pysimd_target target);

int pysimd_can_run(const pysimd_kernel *kernel);

/* The kernel that dispatch takes for products of m rows, n columns and k, by the rule of kernels.inc, but for what it
 * says of the order of the operands. A single row is computed by a GEMV kernel with the operands exchanged,
 * C^T = B^T A^T, and so are few rows with a long K. NULL for types of which kernels are taken by name alone. */
const pysimd_kernel *pysimd_choose(int types, int64_t m, int64_t n, int64_t k);

/* PYSIMD_HALF, if the kernel has it, a tile of n columns ends with half a vector or less, and the processor executes
 * AVX-512 in halves; or 0. */
int pysimd_flag_of_half(const pysimd_kernel *kernel, int64_t n);
int pysimd_flags_of_last(const pysimd_kernel *kernel, int64_t n, int64_t k); /* and PYSIMD_AFTER where that is faster */

/* Whether products of m rows are computed by .batch_widening_b, where B is the array's. */
int pysimd_widens_b(const pysimd_kernel *kernel, int64_t m);

/* The kernel of products of many columns. */
const pysimd_kernel *pysimd_of_any_columns(int types);

/* How a matrix is stored: elements of a row are adjacent, or those of a column. */
typedef enum { PYSIMD_BY_ROWS, PYSIMD_BY_COLUMNS, PYSIMD_BY_NEITHER } pysimd_order;

/* That of a matrix whose adjacent elements are `one` apart, in the unit of its strides. */
static inline pysimd_order pysimd_order_by(int64_t rs, int64_t cs, int64_t one)
{
    return cs == one ? PYSIMD_BY_ROWS : rs == one ? PYSIMD_BY_COLUMNS : PYSIMD_BY_NEITHER;
}

/* Whether a product has two to PYSIMD_GEMV_COLUMNS columns, or rows, not many more rows, or columns, and a short K. Its
 * kernel depends on the order of the larger operand: with AVX2 see of_few_columns and of_few_rows in registry.c, with
 * AVX-512 there is one for a transposed A (.dispatch_transposed_k). */
static inline int pysimd_is_skinny(int64_t m, int64_t n, int64_t k)
{
    enum { LEAST = 8, MOST = 256, MOST_K = 64 };
    const int64_t few = m < n ? m : n, many = m < n ? n : m;
    return few > 1 && few <= PYSIMD_GEMV_COLUMNS && many >= LEAST && many <= MOST && k <= MOST_K;
}

/* Whether few rows or columns can be computed in the order of the large operand. */
static inline int pysimd_is_long(int64_t m, int64_t n, int64_t k)
{
    enum { FEW = 16, LEAST_K = 32, LEAST_MACS = 192 };
    const int64_t few = m < n ? m : n;
    return k >= LEAST_K && few > 1 && few <= FEW && (double)m * (double)n * (double)k >= LEAST_MACS;
}

/* Whether a matrix is multiplied by up to PYSIMD_GEMV_COLUMNS vectors, and has so many elements, in such an order,
 * that a kernel with one chain an element may compute it (.dispatch_by_columns). */
static inline int pysimd_is_of_vectors(int64_t m, int64_t n, int64_t k)
{
    enum { LEAST_ROWS = 2, LEAST_ROWS_OF_SOME = 32 };
    const int64_t few = m < n ? m : n, many = m < n ? n : m;
    return few <= PYSIMD_GEMV_COLUMNS && k > 1 && many >= (few == 1 ? LEAST_ROWS : LEAST_ROWS_OF_SOME);
}

/* Whether a product of 33 to PYSIMD_SMALL_COLUMNS columns and not many rows may be computed by another kernel where B
 * is by rows (of_long_k in registry.c). */
static inline int pysimd_is_of_long_k(int64_t m, int64_t n, int64_t k)
{
    enum { LEAST_COLUMNS = 33, MOST_ROWS = 99, SHORT_K = 64 };
    return n >= LEAST_COLUMNS && n <= PYSIMD_SMALL_COLUMNS && m <= MOST_ROWS && k > SHORT_K;
}

/* Whether few columns of 16-bit values and a transposed A are computed by direct.c, and not by a GEMV kernel or tile
 * registers, if A is in L2, whatever the batch. By ratios of time, 5 to 2048 rows, single products and batches of 2 to
 * 100 (Xeon with AMX): three and four columns 0.45 to 0.9 times (more than 200 rows 1.0 to 2.1 times), five to eight
 * 0.3 to 0.8, nine to twelve 0.55 to 1.0, thirteen to sixteen of 64 rows and more 0.65 to 0.9, but 0.85 to 1.5 times
 * with K below 128. Two columns took 0.6 to 1.6 times as long, fewer rows of nine and more columns 0.8 to 1.7 times.
 * */
enum { PYSIMD_MOST_DIRECT_COLUMNS = 16 };
static inline int pysimd_is_of_direct_columns(int64_t m, int64_t n, int64_t k)
{
    enum { SHORT_K = 32, SOME_K = 65, LONG_K = 128, ROWS = 5, SOME_ROWS = 10, MANY_ROWS = 64, MOST_ROWS = 200 };
    if (n < 3 || n > PYSIMD_MOST_DIRECT_COLUMNS || m < ROWS || k < SHORT_K) return 0;
    if (k < SOME_K) return n > PYSIMD_GEMV_COLUMNS && n <= 8 && m >= MANY_ROWS;
    if (n <= PYSIMD_GEMV_COLUMNS) return m <= MOST_ROWS;
    if (n > 12) return m >= MANY_ROWS && k >= LONG_K;
    return m >= (n <= 6 ? ROWS : SOME_ROWS);
}

/* Whether that A is in L2, or in half of it where it is read more than once. Its columns of values are apart: with one
 * and two times L2 it took 0.8 to 1.2 times as long. */
int pysimd_is_in_part_of_l2(int64_t m, int64_t n, int64_t k);

/* Whether few.inc may have a row for a product. */
static inline int pysimd_is_of_few(int64_t m, int64_t n, int64_t k)
{
    enum { MOST_FEW = 8, MOST = 256, MOST_K = 64, MOST_K_OF_ONE = 256 };
    const int64_t few = m < n ? m : n, many = m < n ? n : m;
    return few <= MOST_FEW && many > 1 && many <= MOST && k > 1 && k <= (few == 1 ? MOST_K_OF_ONE : MOST_K);
}

/* Whether the order of operands can matter: no other small product is looked at any further. */
static inline int pysimd_looks_at_order(int64_t m, int64_t n, int64_t k)
{
    return pysimd_is_of_few(m, n, k) || pysimd_is_long(m, n, k) || pysimd_is_skinny(m, n, k) ||
           pysimd_is_of_vectors(m, n, k) || pysimd_is_of_long_k(m, n, k);
}

/* The same of operands in this order: products of few rows or columns are computed in the order in which the large
 * operand is read fastest. So their bits depend on it, but never on the size of the batch. */
const pysimd_kernel *pysimd_choose_ordered(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b);

/* `kernel`, which pysimd_choose has found, or another one where it asks for more multiply-adds of operands in this
 * order (.dispatch_macs_otherwise), or few columns are dot products (.dispatch_before_gemv). */
const pysimd_kernel *pysimd_of_order(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k, pysimd_order a,
                                     pysimd_order b);

/* `kernel`, which is for such products of bytes, or another one that is faster for many of them, whose operands have
 * these orders; `one_b`: the batch has one B. The results are equal, so the choice may depend on the batch. */
const pysimd_kernel *pysimd_of_batch(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k, pysimd_order a,
                                     pysimd_order b, int one_b);

/* Whether a kernel for few columns of a transposed A computes the product with the operands exchanged (strips.c). With
 * fewer terms, transposing C takes longer than it saves; of panels that are widened, as many as of float (354 x 33 x 8
 * float16 took 1.3 times as long), of bytes ten for each column: 2705 x 82 x 16 took 1.3 times as long, 1031 x 46 x 10
 * 2.4 times, 3126 x 115 x 9 0.66 times (Zen 5). Of float five from K = 64 on, of double eight: 500 x 80 x 12 float took
 * 0.65 times as long, 1000 x 100 x 8 double 0.88, but 2000 x 40 x 5, 300 x 64 x 12 and 64 x 80 x 16 double 1.25 to 1.3
 * times (Xeon with AMX). */
static inline int pysimd_takes_few_columns(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    enum { SOME_K = 64, TERMS_OF_FLOAT = 5, TERMS_OF_DOUBLE = 8 };
    const int size = pysimd_element_sizes[kernel->types].a * (kernel->panel == WIDE ? 2 : 1);
    const int64_t least = n * (size == 8 ? TERMS_OF_DOUBLE : TERMS_OF_FLOAT);
    const int some = kernel->panel == PLAIN && size >= 4 && k >= SOME_K && k >= least;
    return n < m && n <= kernel->dispatch_few_columns && (some || k / 2 >= n * (size > 1 ? size : 5));
}

#endif
