/* pysimd.h: the contract of every CPU kernel, in C.
 *
 * A microkernel computes one micro-tile, C[mr,nr] += A[mr,K] * B[K,nr] on plain memory:
 *
 *     A   element (i, p) at a[i*rs_a + p*cs_a]    scalars to broadcast; a packed panel is rs_a = 1, cs_a = mr
 *     B   element (p, j) at b[p*rs_b + j]         rows of nr;           a packed panel is rs_b = nr
 *     C   element (i, j) at c[i*rs_c + j]
 *
 * Strides count elements, may be zero or negative; no pointer needs any alignment.
 * K >= 0 is a run-time argument; K = 0 leaves C as it is (or zero, with PYSIMD_ZERO).
 * Not one byte outside the elements named above is read or written, edge tiles included.
 * C does not overlap A or B; the caller makes sure of it.
 *
 * Narrow types step through K in groups of k_group: `element (i, p)` is then k_group adjacent values, K counts groups,
 * strides still count values, and a row of B interleaves its columns: b[p*rs_b + j*k_group + g]. What the values of a
 * panel are (as in the array, widened, offset) is the row's `.panel`; only pack.c and the kernels know it.
 * Inner-product kernels (`.form = INNER`) take B by columns: element (p, j) at b[j*rs_b + p], and A with cs_a = 1.
 * So do kernels for a vector (`.form = GEMV`, nr = 1), which also read A with rs_a = 1, whose batches have any m and up
 * to PYSIMD_GEMV_COLUMNS columns, and whose rows of C are at any distance.
 */
#ifndef PYSIMD_H
#define PYSIMD_H

#include <stddef.h>
#include <stdint.h>

enum { /* pysimd_call.flags */
    PYSIMD_ZERO = 1,   /* C = A B: C is written, never read */
    PYSIMD_CHAIN = 4,  /* C is what the accumulators start from; kernels of outer.h, tiles of 8 accumulators or more */
    PYSIMD_STREAM = 2, /* non-temporal stores of C, where the kernel has them; every row of C is 16-byte aligned */
    PYSIMD_EXCHANGED = 8, /* of GEMV: A has the type of B, and B that of A */
    /* Of kernels with tile registers (k_tile), whose configuration takes as long as three steps of a tile. */
    PYSIMD_KEEP = 16,       /* the next call of this thread is of the same kernel: it releases them */
    PYSIMD_CONFIGURED = 32, /* the call before had PYSIMD_KEEP, the same k, and the same m and n or half a tile's */
    PYSIMD_PADDED = 256,    /* both panels have zeros behind a K of more than k_tile groups, up to a multiple of them */
    PYSIMD_AHEAD = 64, /* of GEMV: the batch is larger than L2, so the next product's A is worth a prefetch */
    /* Of outer.h: one or two columns after whole vectors, of which there are nr or fewer, are dot products; cs_a is 1. */
    PYSIMD_DOTS = 128,
    /* Of outer.h, whole tiles, n = nr: each step prefetches as many bytes at `ahead` as it reads of B. */
    PYSIMD_NEXT = 512,
    PYSIMD_ROW_BY_ROW = 1024, /* of GEMV, cs_a is 1, k > 0: one row of A is read after the other */
    /* Of kernels with .half: n exceeds one vector, or more, by half a vector at most, for which a half is enough. */
    PYSIMD_HALF = 2048,
    /* Of outer.h, rs_a is 1: one or two columns after whole vectors are computed by themselves, whatever K is. */
    PYSIMD_AFTER = 4096,
};

enum { PYSIMD_GEMV_COLUMNS = 4, PYSIMD_SMALL_COLUMNS = 64 };

/* The fewest rows, and without PYSIMD_AFTER the least K, of a tile with adjacent elements down the columns of A (rs_a = 1)
 * that computes one or two columns after its vectors by themselves; then n may be nr + 1 or nr + 2, of kernels that have
 * .dots. */
enum { PYSIMD_AFTER_ROWS = 4, PYSIMD_AFTER_K = 16 };

/* Rows of memory that a later call reads, and this one prefetches into L2: from `at` on, where a row ends at `end`,
 * `jump` bytes before the next one, whose end is `pitch` bytes further. `rows` of them are left. */
typedef struct {
    const char *at, *end;
    int64_t jump, pitch, rows;
} pysimd_ahead;

/* `batch` products of one shape, m <= mr and n <= nr (GEMV: any m, n <= PYSIMD_GEMV_COLUMNS; with PYSIMD_DOTS or
 * PYSIMD_AFTER, and from PYSIMD_AFTER_K on, two columns more): edge tiles are the kernel's work, not its caller's. */
typedef struct {
    int64_t batch, m, n, k;
    const void *a;
    int64_t bs_a, rs_a, cs_a;
    const void *b;
    int64_t bs_b, rs_b;
    void *c;
    int64_t bs_c, rs_c, cs_c; /* cs_c is read by GEMV kernels alone, where n > 1; elsewhere it is 1 */
    int flags;
    pysimd_ahead *ahead; /* of PYSIMD_NEXT */
    struct pysimd_later *later; /* of pysimd_small_fn (later.h), or NULL */
} pysimd_call;

/* *to = *from, a field at a time. The compiler copies a struct by vectors, and a vector that covers a field which has
 * just been written is not forwarded from the store buffer: the load waits until the field is in L1, behind the stores
 * of C (Intel's optimization manual, store forwarding). So in loops over products no call is copied by assignment. */
static inline void pysimd_copy_call(pysimd_call *to, const pysimd_call *from)
{
    to->batch = from->batch, to->m = from->m, to->n = from->n, to->k = from->k;
    to->a = from->a, to->bs_a = from->bs_a, to->rs_a = from->rs_a, to->cs_a = from->cs_a;
    to->b = from->b, to->bs_b = from->bs_b, to->rs_b = from->rs_b;
    to->c = from->c, to->bs_c = from->bs_c, to->rs_c = from->rs_c, to->cs_c = from->cs_c;
    to->flags = from->flags, to->ahead = from->ahead, to->later = from->later;
}

/* One full tile, C += A B. */
typedef void pysimd_run_fn(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c,
                           int64_t rs_c);
typedef void pysimd_batch_fn(const pysimd_call *call);
/* C = A B of a batch of small products straight from the arrays, without panels: k and the strides count the arrays'
 * own values, and element (p, j) of B is at b[p*rs_b + j*cs_b]. The bits are those of the row's kernel. Returns 0,
 * having written nothing, for products that it does not take. A batch of 0 only asks: nothing is read. A value above
 * one is the tiles of a product, after each of which a share of `later` is prefetched. */
typedef int pysimd_small_fn(const pysimd_call *call, int64_t cs_b);

typedef enum { OUTER, INNER, GEMV } pysimd_form;

typedef enum {
    F32,     /* f32 = f32 * f32 */
    F64,     /* f64 = f64 * f64 */
    BF16F32, /* f32 = bf16 * bf16 */
    F16F32,  /* f32 = f16 * f16 */
    I8I32,   /* i32 = i8 * i8 */
    U8I8I32, /* i32 = u8 * i8 */
    F16,     /* f16 = f16 * f16: accumulated in half, so only by name; after F16F32, which dtypes find first */
    TYPES,
} pysimd_types;

typedef enum {
    PLAIN,  /* the array's own values; with k_group = 1 a kernel may read the array itself */
    WIDE,   /* values widened in both panels: int8 and uint8 to int16, f16 and bf16 to f32 */
    OFFSET, /* B holds b + 128 as uint8; each row of A is followed by an int32, -128 * sum(a) */
    SPLIT,  /* f16 as two bf16 whose sum it is: the upper of 32 k of A, then the lower; half a row of B each */
} pysimd_panel;

/* In the order of preference: where kernels of both can run, dispatch takes one of the later. */
typedef enum {
    GENERIC,
    SSE, AVX, AVX2, AVX512, AVX512VNNI, AVX512BF16, AVX512FP16, AMX, /* x86-64 */
    NEON, NEONDOT, NEONMMLA, SVE, SME,                               /* AArch64 */
    RVV,                                                             /* RISC-V */
    TARGETS
} pysimd_target;

/* What a vector-length-agnostic kernel uses of a longer vector register. No processor has a longer one. */
enum { PYSIMD_MOST_VECTOR_BYTES = 64 };

/* pysimd_kernel.dispatch, but for a number of columns. */
enum { NEVER = 0, ANY_N = INT32_MAX };

/* One line of kernels.inc. */
typedef struct {
    const char *name;
    pysimd_target target;
    pysimd_types types;
    pysimd_form form;
    int mr, nr, k_group;
    int mr_vl, nr_vl; /* mr and nr in vectors of C, where their length is the processor's; else 0 */
    int k_tile; /* groups of k, adjacent, that an instruction takes from each row of A; 0: one, at any stride */
    pysimd_panel panel;
    int dispatch_from, dispatch; /* fewest and most columns of the products that matmul takes it for; see kernels.inc */
    int dispatch_also_from, dispatch_also; /* a second range of columns; 0: none */
    int dispatch_macs, dispatch_rows, dispatch_k; /* fewest multiply-adds and rows, and least k, of such products */
    int dispatch_some_rows, dispatch_macs_otherwise; /* fewest multiply-adds of fewer rows, or of a transposed A */
    int dispatch_wide, dispatch_wide_k, dispatch_wide_macs; /* of so many columns and more, instead; 0: no columns */
    int dispatch_before_gemv;     /* fewest columns for which it is taken before a GEMV kernel; 0: none */
    int dispatch_macs_few;        /* fewest multiply-adds of these, instead of dispatch_macs */
    int dispatch_long_k; /* GEMV: the least k of products of few rows; 0: none but of one row */
    int dispatch_few_rows, dispatch_few_columns, dispatch_dots; /* most rows, columns, or either; see kernels.inc */
    int dispatch_dots_k; /* least k of dot products, for each of more rows and columns than PYSIMD_GEMV_COLUMNS */
    int dispatch_by_columns; /* GEMV: fewest rows of a transposed A, or columns of a B by rows; 0: no such products */
    pysimd_target not_with; /* matmul does not take it where the processor is of this target too; 0: it does */
    int dispatch_whole;        /* 1: of one row of tiles, or whole tiles; others go to the kernel for more columns */
    int dispatch_transposed_k; /* most k of few columns of a transposed A, for more columns than this; see kernels.inc */
    int dispatch_halves;       /* 1: rather than AVX-512, where that is executed in halves */
    int column_step; /* tiles side by side have multiples of so many columns; 0: all but the last have nr */
    int dots;        /* 1: has PYSIMD_DOTS */
    int half;        /* 1: has PYSIMD_HALF */
    int unchained;   /* terms are added in more than one chain: no PYSIMD_CHAIN */
    pysimd_run_fn *run; /* NULL: of another architecture than this build */
    pysimd_batch_fn *batch;
    pysimd_batch_fn *batch_widening_b; /* WIDE: B is the array's, and widened while it is loaded; NULL: none */
    pysimd_small_fn *small; /* what is asked first, for products of at most PYSIMD_SMALL_COLUMNS; NULL: nothing */
} pysimd_kernel;

#endif
