/* strips.c: see strips.h. Compiled for the baseline processor.
 *
 * With few rows B is read as often as its elements are used, so packing all of it first would take as long as the
 * product; and a micro-tile that runs down a column of B touches another page, and the same few sets of the caches, in
 * every step. So a strip of columns of C is computed in pieces of some rows of B, from the first row to the last, and
 * its accumulators are in memory, in L1 or L2, in between. The terms are added in the same order as by one tile
 * (PYSIMD_CHAIN; integers are just added), and K is divided in the same blocks as in gemm.c, so the bits are the same.
 *
 *   in place   few rows, and B as the kernel reads it: eight or sixteen rows of B are read side by side, from left to
 *              right; more of them where they are short, or the kernel is one for few rows.
 *   in pieces  else a piece of B is packed, or widened, into L2, and multiplied at once. The columns of a transposed B
 *              are read in longer pieces, of fewer of them.
 *
 * A product of few columns whose A is transposed is computed like that with the operands exchanged, C^T = B^T A^T: A's
 * columns are the long rows that are read once.
 *
 * Tried on a Xeon (Ice Lake): products of 5 to 16 rows below LARGE multiply-adds (gemm.c) in place, by the kernels that
 * dispatch takes for their columns, 1.1 to 2 times as long as in the driver; products of 16 to 50 rows of doubles by
 * gemm.c, which packs B, 1.1 to 2 times as long; a transposed A of two tiles of columns read in place by gemm.c, 0.9 to
 * 1.05 times.
 *
 * While a piece of a B beyond L2 is multiplied, the next one is prefetched into L2, in the order of memory: each step
 * of a tile prefetches as many lines as it reads (outer.h). Its own rows are read in pieces of a tile's width, each in
 * another page, which the hardware's prefetch does not follow. 8 x 4096 x 4096 float took 5.2 ms and takes 3.1, where
 * reading B alone takes 2.1 and the multiply-adds 2.3, double 11.3 and 6.4; 28 x 3000 x 3000 double 17.8 and 11.8; what
 * is packed in pieces, 0.65 to 1.0 times as long: 8 x 2000 x 3000 double, B by columns, 5.8 ms and 3.9 (Zen 4). Pieces
 * of 16 and 64 rows took 1.1 to 1.4 times as long as those of 32. A's rows are packed: a power of two apart, 28 x 4096
 * x 4096 float took 1.35 times as long with A in place. All lines of a tile prefetched before it: as long as none. The
 * lines of the next tiles of the same rows, 2 to 16 tiles ahead: 0.8 to 0.9 of the time of none, where this takes 0.6.
 *
 * Tried before on a Zen 3, by pieces of eight and sixteen rows: pieces of short rows, so that accumulators or B stay in
 * L1, 1.1 to 1.4 times as long; software prefetch of the next piece, or further ahead in the same rows, into L1 or L2, a
 * line in each step or all at once, 1.0 to 1.3 times; a tile that packs B while it multiplies its first rows by it, 1.0.
 * What is above was not measured there.
 */
#include "strips.h"

#include <stdatomic.h>
#include <string.h>

#include "caches.h"
#include "gemm.h"
#include "pack.h"
#include "scale.h"
#include "split.h"
#include "stage.h"
#include "threads.h"
#include "widen.h"

enum {
    CACHE_LINE = 64,
    MOST_TILES = 4,        /* tiles of rows of C, */
    MOST_ROWS = 60,        /* or rows, of floats whose B lies by rows */
    LEAST_BYTES = 256,     /* a row of C, */
    LEAST_COLUMNS = 2,     /* and its tiles */
    LEAST_K = 64,          /* of products of few columns whose A is in L2 */
    STRIP_K = 8,           /* rows of B that are read side by side in place, */
    PAGE = 4096,           /* or twice as many, but not if their distance is a multiple of this, */
    MOST_K = 256,          /* more of them where they are short, */
    FEW_K = 64,            /* and by kernels for few rows */
    LONG_ROW = 1 << 10,    /* bytes of rows, or columns, of B of which the next piece is prefetched */
    AHEAD_K = 32,          /* rows of a piece in place while the next one is prefetched, */
    SAME_SETS = 512 << 10, /* over their distance, where that is a power of two, */
    GROUPS_K = 128,        /* and of one that is packed in groups of k */
    STRIP_TILES = 64,      /* of C, in a call of the kernel */
    STRIP_BYTES = 16 << 10, /* a row of accumulators */
    PIECE_K = 64,          /* rows of a piece */
    PIECE_BYTES = 16 << 10, /* a row of a piece */
    COLUMNS_K = 256,       /* rows of a piece of a transposed B */
    COLUMNS_PANELS = 8,    /* and micro-panels of it */
};

/* The product as it is computed: with the operands exchanged where `exchanged`. */
typedef struct {
    const pysimd_kernel *kernel, *of_b; /* that packs B for it */
    const pysimd_product *product;
    pysimd_sizes size, packed;
    int64_t m, n, k, rs_a, cs_a, rs_b, cs_b;
    int exchanged, in_place, a_in_place, chains;
    int prefetches;              /* the next piece, into L2, while one is multiplied */
    int64_t rows;                /* of a micro-tile */
    int64_t depth, width;        /* of a piece: rows and columns of B */
    int64_t strips, products;    /* strips of a product; products of the batch */
    int64_t kc;                  /* of a block of k */
    int64_t panel_bytes;         /* of a micro-panel of a piece */
    int64_t rs_sums;             /* between rows of accumulators, in elements */
    int64_t a_bytes, b_bytes, sums_bytes, bytes; /* of a thread's memory, and its parts */
    char *memory;
    _Atomic int stop;
} job;

/* Elements from one row to the next of `columns`, so that rows begin on cache lines and do not fall into the same
 * sets. */
static int64_t apart(int64_t columns, int64_t size)
{
    const int64_t bytes = multiple(columns * size, CACHE_LINE);
    return (bytes % 512 ? bytes : bytes + CACHE_LINE) / size;
}

/* The kernel that computes C^T = B^T A^T; NULL if there is none. Operands of one type can be exchanged: the panels of A
 * and B then hold each other's values. Of uint8 by int8 it is that of int8 which multiplies int16, or whose B is offset
 * by 128 to uint8: A^T needs no offset, and no row a correction. */
static const pysimd_kernel *exchanged(const pysimd_kernel *kernel)
{
    if (kernel->types != U8I8I32) return kernel;
    for (const pysimd_kernel *x = pysimd_kernels; x < pysimd_kernels + pysimd_kernel_count; x++)
        if (x->types == I8I32 && x->target == kernel->target && x->panel == (kernel->panel == PLAIN ? OFFSET : WIDE) &&
            x->k_group == kernel->k_group && x->nr == kernel->nr && x->mr == kernel->mr)
            return x;
    return NULL;
}

static int of_integers(const pysimd_kernel *kernel) { return kernel->types == I8I32 || kernel->types == U8I8I32; }

/* Kernels of floats must accumulate in one chain (PYSIMD_CHAIN), which those of outer.h do from 8 accumulators on. With
 * groups of two, which are packed in any case, products of few rows took 1.1 to 2.4 times as long like this as with all
 * of B packed before, but those of few columns 0.2 to 0.9 times (bfloat16, Zen 5); rows by a B beyond L2, of which the
 * next piece is prefetched, 0.55 to 1.0 times: 8 x 4096 x 4096 0.75, 28 x 2000 x 3000 0.85 (Zen 4). */
static int has_kernel(const pysimd_kernel *kernel, int most_k_group)
{
    const int64_t tile = (int64_t)kernel->mr * kernel->nr * pysimd_element_sizes[kernel->types].c;
    const int taken = kernel->dispatch != NEVER || kernel->dispatch_few_rows;
    return kernel->form == OUTER && taken && !kernel->k_tile && tile >= 256 &&
           (of_integers(kernel) || (kernel->k_group <= most_k_group && !kernel->unchained));
}

/* With more rows it pays to pack all of B before: from 57 on for int8 and a transposed B (1.0 to 1.25 times as fast),
 * from 96 on for floats, of which 57 rows took 0.83 to 0.92 times as long like this (Zen 3). */
static int has_rows(const pysimd_kernel *kernel, int64_t m, int by_rows)
{
    const int64_t tiles = MOST_TILES * (int64_t)kernel->mr;
    const int64_t rows = by_rows && !of_integers(kernel) ? most(tiles, MOST_ROWS) : tiles;
    return m <= rows;
}

static int has_shape(const pysimd_kernel *kernel, int64_t m, int64_t n, int by_rows)
{
    const int64_t bytes = n * pysimd_element_sizes[kernel->types].c;
    return has_rows(kernel, m, by_rows) && bytes >= LEAST_BYTES && n >= LEAST_COLUMNS * kernel->nr;
}

/* Whether the registry has chosen the kernel for few columns of a transposed A, or may have. */
static int is_of_few(const pysimd_kernel *kernel, const pysimd_product *q)
{
    const int few = kernel->dispatch_few_rows && q->n <= kernel->dispatch_few_columns;
    return few || pysimd_takes_few_columns(kernel, q->m, q->n, q->k);
}

/* An A in L2 is packed as fast, but for doubles, of which a register holds half as many, and floats of up to one tile
 * of columns, and unless K is short: 149 x 711 x 5 double took 0.35 times as long with operands exchanged, 404 x 79 x
 * 13 0.7 times, 64 x 150 x 20, 2000 x 200 x 20 and 800 x 300 x 30 float 0.64, 0.79 and 0.84, 2000 x 100 x 36 1.07 times
 * (Xeon). Of floats that the registry has chosen for few columns, it has looked at the shape; bytes that do not fill
 * two tiles took 1.3 to 2 times as long (Zen 5). */
static int exchanges(const pysimd_kernel *kernel, const pysimd_product *q)
{
    const int64_t size = pysimd_element_sizes[kernel->types].a;
    if (q->rs_a != 1 || q->cs_a == 1 || q->m <= q->n || !exchanged(kernel)) return 0;
    const int few = is_of_few(kernel, q);
    if (few && size >= (int64_t)sizeof(float)) return has_rows(kernel, q->n, 1);
    const int of_float = size == sizeof(double) || (size == sizeof(float) && q->n <= kernel->nr);
    const int from_l2 = few || (of_float && q->k >= LEAST_K);
    if (!from_l2 && (double)q->m * (double)q->k * (double)size <= (double)pysimd_caches().l2) return 0;
    return has_shape(kernel, q->n, q->m, 1);
}

/* Whether gemm.c would pack a B of float or double, because K is several blocks, that one row of tiles reads once. Up to
 * 32 columns took 0.4 to 0.8 times as long like this, 33 to 64 0.55 to 1.0; widened values 1.2 to 1.6 times (Xeon).
 * Several threads have no strips of so few columns, but blocks of K: grid.h. */
static int is_read_once(const pysimd_kernel *kernel, const pysimd_product *q)
{
    const int floats = kernel->types == F32 || kernel->types == F64;
    return floats && q->cs_b == 1 && q->m <= kernel->mr && q->k > pysimd_block_of_k(kernel, q->k);
}

/* Whether each of `threads` reads at least so many bytes of B, k x n, in rows that are long, or columns. */
static int has_long_rows(int64_t k, int64_t n, int64_t size, int by_rows, int64_t threads, double bytes)
{
    const int64_t row = (by_rows ? n / threads : k) * size;
    return row >= LONG_ROW && (double)k * (double)n * (double)size > bytes * (double)threads;
}

/* Whether the next piece is prefetched: B comes from L3 or memory. Rows of 300 to 500 bytes took 1.01 to 1.17 times as
 * long like that (Zen 4, from L3), and two to four rows by a B of up to 2 MiB 1.0 to 1.15 times. */
static int is_worth_prefetching(const job *j, const pysimd_kernel *kernel, int64_t threads)
{
    const double bytes = (double)pysimd_caches().l2 * (kernel->dispatch_few_rows ? 2 : 0.5);
    return has_long_rows(j->k, j->n, j->size.b, j->cs_b == 1, threads, bytes);
}

int pysimd_strips_take(const pysimd_kernel *kernel, const pysimd_product *q, int threads)
{
    const int by_rows = q->cs_b == 1;
    const int64_t size = pysimd_element_sizes[kernel->types].b;
    const int groups = has_long_rows(q->k, q->n, size, by_rows, threads, (double)pysimd_caches().l2);
    return (has_kernel(kernel, groups ? 2 : 1) &&
            (has_shape(kernel, q->m, q->n, by_rows) || (threads == 1 && is_read_once(kernel, q)))) ||
           (has_kernel(kernel, 2) && exchanges(kernel, q));
}

int pysimd_strips_take_few(const pysimd_kernel *kernel, const pysimd_product *q)
{
    if (q->cs_b == 1 && q->m <= kernel->dispatch_few_rows) return has_shape(kernel, q->m, q->n, 1);
    if (q->rs_a != 1 || q->cs_a == 1) return 0;
    return is_of_few(kernel, q) && exchanges(kernel, q);
}

/* Whether the kernel reads B where it lies. A tile then loads and stores its accumulators for every eight terms, and in
 * a piece for every 64: with three tiles of rows 16 x 1024 x 1024 and 16 x 4096 x 4096 float took 1.26 and 1.1 times as
 * long in place (Zen 3), 42 x 300 x 300 float and 40 x 1000 x 1000 double 1.25 and 1.22 times (Xeon); with two of them
 * 12 x 1024 x 1024 1.16 times, 28 x 500 x 500 double 1.11; with up to four thirds of a tile's rows as long (18 x 1000 x
 * 1000, Xeon), or 0.9 times (8 x 4096 x 4096, Zen 3). While the next piece is prefetched, in place takes as long or
 * less whatever the rows: 20 to 56 rows of 1000 x 1000 to 3000 x 3000 float and double 0.75 to 1.0 times (Zen 4). */
static int reads_in_place(const job *j)
{
    if (!pysimd_reads_b(j->kernel, j->rs_b, j->cs_b)) return 0;
    return j->prefetches || 3 * j->m <= 4 * (int64_t)j->kernel->mr;
}

/* Rows of a piece in place while the next one is prefetched: fewer where they are a power of two apart, and both pieces
 * in few sets of L2. Rows 32 and 64 KiB apart took 1.0 to 1.8 times as long in pieces of 32 as with none prefetched,
 * 0.85 to 1.25 times in pieces of 16 and of 8 (Xeon, one thread to 16). */
static int64_t rows_ahead(const job *j)
{
    const int64_t pitch = j->rs_b * j->size.b, power = pitch & -pitch; /* the largest that divides it */
    return power ? most(STRIP_K, least(AHEAD_K, SAME_SETS / power)) : AHEAD_K;
}

/* Rows of B that are read side by side in place: sixteen, unless all are in the same sets of L1 or come from memory,
 * and of short ones so many that the accumulators are not loaded and stored more often than B is. 12 x 300 x 1000 and
 * 16 x 1000 x 1000 float and double took 0.80 to 0.88 times as long as with eight, 8 x 4096 x 4096 1.03 to 1.11 times,
 * and with 32 1.3 to 1.4 times (Xeon); 8 x 300 x 1000 0.84 and 8 x 2000 x 3000 1.5 times (Zen 3); 12 x 1282 x 65 float
 * with more 0.65 times. A kernel for few rows keeps its
 * accumulators in registers down 64 rows: 32 and 128 took 0.95 to 1.1 times as long (Xeon). */
static int64_t rows_in_place(const job *j)
{
    if (j->prefetches) return rows_ahead(j);
    if (j->kernel->dispatch_few_rows) return FEW_K;
    const int64_t rows = STRIP_BYTES / (j->n * j->size.b) / STRIP_K * STRIP_K;
    const int more = j->rs_b * j->size.b % PAGE != 0;
    return most(more ? 2 * STRIP_K : STRIP_K, least(rows, MOST_K));
}

/* Whether a kernel adds the same terms in the same order. */
static int is_like(const pysimd_kernel *x, const pysimd_kernel *kernel)
{
    return x->types == kernel->types && x->panel == kernel->panel && x->k_group == kernel->k_group &&
           x->dispatch != NEVER && has_kernel(x, 1);
}

/* The kernel with the widest tiles, of those that have as few rows of them: longer pieces of the rows of B. Eight rows
 * by three vectors took 0.8 to 0.95 times as long as by two (Zen 4, from memory). */
static const pysimd_kernel *widest(const pysimd_kernel *kernel, const job *j)
{
    const pysimd_kernel *const chosen = pysimd_choose(kernel->types, j->m, j->n, j->k);
    if (chosen && is_like(chosen, kernel)) kernel = chosen;
    const int64_t tiles = quotient(j->m, kernel->mr);
    for (const pysimd_kernel *x = pysimd_kernels; x < pysimd_kernels + pysimd_kernel_count; x++)
        if (x->target == kernel->target && is_like(x, kernel) && x->nr > kernel->nr && quotient(j->m, x->mr) == tiles)
            kernel = x;
    return kernel;
}

/* Whether a tile takes less of each row of B than a line, or less than two lines where the rows fall in the same sets
 * of L1, so that lines which the next tile needs, too, are evicted before. With SSE and without vectors 8 and 28 rows
 * took 0.95 to 1.1 times as long with the next piece prefetched, up to 1.45 times. With AVX2 8, 20 and 42 rows by 4096
 * x 4096 float and double took 1.06 to 1.9 times as long with the next piece prefetched as before, by 3000 x 3000 0.6
 * to 0.85 times (Zen 4, one thread). */
static int is_narrow(const job *j, const pysimd_kernel *kernel)
{
    const int in_same_sets = j->rs_b * j->size.b % PAGE == 0;
    return kernel->nr * j->size.b < (in_same_sets ? 2 * CACHE_LINE : CACHE_LINE);
}

/* Rows of a piece. */
static int64_t depth_of(const job *j)
{
    if (j->in_place) return rows_in_place(j);
    if (j->cs_b != 1) return COLUMNS_K;
    return j->prefetches && j->chains && j->kernel->k_group > 1 ? GROUPS_K : PIECE_K;
}

/* Micro-panels of a piece, at most. While the next one is prefetched, both and the accumulators are in L2. In place
 * half of L2 took 0.87 to 1.0 times as long as three quarters; in pieces of 16 KiB a row bfloat16, which takes three
 * quarters, took 1.05 to 1.15 times as long (Zen 4; on a Xeon as long). */
static int64_t longest_of(const job *j)
{
    const int64_t nr = j->kernel->nr, l2 = pysimd_caches().l2;
    if (!j->in_place && j->cs_b != 1) return COLUMNS_PANELS;
    const int64_t group = j->in_place ? 1 : j->kernel->k_group, rows = j->depth / group;
    const int64_t row = j->in_place ? STRIP_BYTES : PIECE_BYTES;
    const int64_t fits = j->in_place ? l2 / 2 / (rows + j->m) : l2 / 4 * 3 / (2 * rows + j->m);
    return (j->prefetches ? least(row, fits) : row) / (j->in_place ? j->size.c : j->packed.b * group) / nr;
}

static job job_of(const pysimd_kernel *given, const pysimd_product *q, int threads)
{
    const int exchange = exchanges(given, q);
    const pysimd_kernel *kernel = exchange ? exchanged(given) : given;
    job j = {.of_b = given, .product = q, .size = pysimd_element_sizes[kernel->types],
             .packed = pysimd_sizes_in_kernel(kernel), .exchanged = exchange, .k = q->k,
             .products = pysimd_batch_of(q)};
    if (j.exchanged)
        j.m = q->n, j.n = q->m, j.rs_a = q->cs_b, j.cs_a = q->rs_b, j.rs_b = q->cs_a, j.cs_b = q->rs_a;
    else
        j.m = q->m, j.n = q->n, j.rs_a = q->rs_a, j.cs_a = q->cs_a, j.rs_b = q->rs_b, j.cs_b = q->cs_b;
    const int64_t members = quotient(threads, j.products);
    j.prefetches = is_worth_prefetching(&j, kernel, members);
    j.kc = pysimd_block_of_k(kernel, j.k); /* of the kernel given: the bits do not depend on what is prefetched */
    if (j.prefetches && pysimd_reads_b(kernel, j.rs_b, j.cs_b)) {
        const pysimd_kernel *const wide = q->chosen ? widest(kernel, &j) : kernel;
        j.prefetches = !is_narrow(&j, wide);
        if (j.prefetches) kernel = wide;
    }
    j.kernel = kernel;
    const int64_t nr = kernel->nr, panels = quotient(j.n, nr);
    j.chains = !of_integers(kernel);
    j.rows = equal_parts(j.m, kernel->mr, 1);
    j.in_place = reads_in_place(&j);
    const int packs_a = j.in_place && j.prefetches;
    j.a_in_place = pysimd_reads_a(kernel, j.k, j.rs_a, j.cs_a) && kernel->k_group == 1 && !packs_a;
    j.depth = depth_of(&j);
    const int64_t wide = most(longest_of(&j), 1), strips = least(members, panels);
    const int64_t rounds = quotient(panels, strips * wide);
    j.width = quotient(panels, strips * rounds) * nr;
    j.strips = quotient(j.n, j.width);
    j.rs_sums = apart(j.width, j.size.c);
    j.panel_bytes = multiple(pysimd_panel_of_b(kernel, j.depth, nr).bytes, CACHE_LINE) + CACHE_LINE;
    j.a_bytes = multiple(pysimd_panel_of_a(kernel, j.m, j.depth).bytes + CACHE_LINE, CACHE_LINE);
    if (!j.in_place) j.b_bytes = j.width / nr * j.panel_bytes + 2 * j.depth * CACHE_LINE;
    j.sums_bytes = multiple(j.m * j.rs_sums * j.size.c, CACHE_LINE);
    j.bytes = j.a_bytes + j.b_bytes + j.sums_bytes * (j.exchanged ? 2 : 1);
    return j;
}

/* --- a piece of B --- */

/* Where the kernel finds columns of B: the first micro-tile, the distance of the next one, and of rows, in elements as
 * it reads them. */
typedef struct {
    const char *data;
    int64_t bs, rs;
    int panels; /* of which the last is as wide as its columns */
} piece;

/* `count` rows of `columns` columns, as the kernel reads them. */
static piece piece_of(const job *j, const char *b, int64_t count, int64_t columns, char *to)
{
    const pysimd_kernel *kernel = j->kernel;
    const int64_t nr = kernel->nr;
    if (j->in_place) return (piece){b, nr, j->rs_b, 0};
    if (kernel->panel == WIDE && kernel->k_group == 1 && j->cs_b == 1) {
        const int64_t rs = apart(columns, j->packed.b);
        pysimd_widen_fn *widen = pysimd_widening(j->of_b, !j->exchanged);
        for (int64_t p = 0; p < count; p++)
            widen(columns, b + p * j->rs_b * j->size.b, to + p * rs * j->packed.b);
        return (piece){to, nr, rs, 0};
    }
    if (j->of_b != kernel && kernel->panel == WIDE)
        pysimd_stage_unsigned_panels(nr, count, columns, b, j->rs_b, to, j->panel_bytes);
    else
        pysimd_stage_panels(j->of_b, count, columns, b, j->rs_b, j->cs_b, to, j->panel_bytes);
    return (piece){to, j->panel_bytes / j->packed.b, nr * kernel->k_group, 1};
}

/* What the kernel would subtract for an offset that B does not have: the int32 behind the last group of each row. */
static void clear_corrections(const job *j, int64_t count, const pysimd_staged *a, char *panel)
{
    const int64_t groups = quotient(count, j->kernel->k_group);
    for (int64_t i = 0; i < j->m; i++) memset(panel + (i * a->rs + groups * a->cs) * j->packed.a, 0, sizeof(int32_t));
}

/* Adds `count` terms, from a and b on, to the accumulators of `columns` columns, or begins with them if `first`. */
static void add_terms(const job *j, const char *a, const char *b, int64_t count, int64_t columns, int first,
                      pysimd_ahead *ahead, char *memory)
{
    const pysimd_kernel *kernel = j->kernel;
    const int64_t nr = kernel->nr;
    char *sums = memory + j->a_bytes + j->b_bytes;
    const pysimd_operand of_a = {1, j->m, count, a, 0, j->rs_a, j->cs_a};
    pysimd_staged x = {a, 0, j->rs_a, j->cs_a};
    if (!j->a_in_place) x = pysimd_stage_a(kernel, &of_a, memory);
    if (kernel->panel == OFFSET && j->of_b != kernel) clear_corrections(j, count, &x, memory);
    const piece y = piece_of(j, b, count, columns, memory + j->a_bytes);
    pysimd_call s = {.k = quotient(count, kernel->k_group), .rs_a = x.rs, .cs_a = x.cs, .bs_b = y.bs, .rs_b = y.rs,
                     .bs_c = nr, .rs_c = j->rs_sums, .ahead = ahead};
    const int flags = first ? PYSIMD_ZERO : j->chains ? PYSIMD_CHAIN : 0;
    for (int64_t c = 0, n; c < columns; c += n) {
        const int64_t rest = columns - c;
        n = rest < nr ? rest : least(rest / nr, STRIP_TILES) * nr;
        s.n = least(n, nr), s.batch = quotient(n, nr);
        s.b = y.data + c / nr * y.bs * j->packed.b;
        if (rest < nr && y.panels) s.rs_b = rest * kernel->k_group;
        for (int64_t i = 0; i < j->m; i += j->rows) {
            s.m = least(j->rows, j->m - i);
            s.a = (const char *)x.data + i * x.rs * j->packed.a;
            s.c = sums + (i * j->rs_sums + c) * j->size.c;
            s.flags = flags | (i == 0 && s.n == nr && ahead->rows > 0 ? PYSIMD_NEXT : pysimd_flag_of_half(kernel, s.n));
            kernel->batch(&s);
        }
    }
}

/* --- strips --- */

/* The accumulators into C, from column `column` of the computed product on. */
static void finish(const job *j, pysimd_factors factors, int64_t column, int64_t columns, char *c, char *memory)
{
    const pysimd_product *q = j->product;
    char *sums = memory + j->a_bytes + j->b_bytes;
    if (!j->exchanged) {
        pysimd_scale_tile(j->kernel->types, factors, j->m, columns, sums, j->rs_sums, c + column * j->size.c, q->rs_c);
        return;
    }
    char *to = sums + j->sums_bytes;
    pysimd_copy_matrix(columns, j->m, j->size.c, sums, 1, j->rs_sums, to, j->m);
    pysimd_scale_tile(j->kernel->types, factors, columns, j->m, to, j->m, c + column * q->rs_c * j->size.c, q->rs_c);
}

static int stopped(job *j, int thread)
{
    const pysimd_product *q = j->product;
    if (thread == 0 && q->interrupted && q->interrupted(q->context)) atomic_store(&j->stop, 1);
    return atomic_load(&j->stop);
}

static int64_t items(void *context, int64_t phase)
{
    const job *j = context;
    (void)phase;
    return j->products * j->strips;
}

/* The piece that begins with row `first` of the strip whose first row is at b; none after the last one. */
static pysimd_ahead ahead_of(const job *j, const char *b, int64_t first, int64_t columns)
{
    const int by_rows = j->cs_b == 1;
    const int64_t count = least(j->depth, j->k - first), length = (by_rows ? columns : count) * j->size.b;
    const int64_t pitch = (by_rows ? j->rs_b : j->cs_b) * j->size.b;
    if (count == 0) return (pysimd_ahead){0};
    b += first * j->rs_b * j->size.b;
    return (pysimd_ahead){b, b + length, pitch - length, pitch, by_rows ? count : columns};
}

static void run(void *context, int thread, int64_t phase, int64_t item)
{
    job *j = context;
    const pysimd_product *q = j->product;
    pysimd_matrices x = pysimd_matrices_at(q, j->size, item / j->strips);
    if (j->exchanged) x = (pysimd_matrices){x.b, x.a, x.c};
    const int64_t column = item % j->strips * j->width, columns = least(j->width, j->n - column);
    const char *b = x.b + column * j->cs_b * j->size.b;
    char *memory = j->memory + thread * j->bytes;
    const int scales = (q->flags & PYSIMD_FACTORS) != 0;
    (void)phase;
    for (int64_t k = 0; k < j->k && !stopped(j, thread); k += j->kc) {
        const int64_t end = least(k + j->kc, j->k);
        for (int64_t p = k, count; p < end; p += count) {
            count = least(j->depth, end - p);
            pysimd_ahead ahead = {0};
            if (j->prefetches) ahead = ahead_of(j, b, p + count, columns);
            add_terms(j, x.a + p * j->cs_a * j->size.a, b + p * j->rs_b * j->size.b, count, columns, p == k, &ahead,
                      memory);
        }
        const int zero = k == 0 && q->flags & PYSIMD_ZERO;
        const pysimd_factors factors = {scales ? q->alpha : 1, scales && k == 0 ? q->beta : 1, !zero};
        finish(j, factors, column, columns, x.c, memory);
    }
}

int pysimd_strips(const pysimd_kernel *kernel, const pysimd_product *product, int asked)
{
    const int threads = pysimd_threads_at_hand(asked, product->woken, product->ns);
    job j = job_of(kernel, product, threads);
    pysimd_buffer *memory = pysimd_take_buffer(threads * j.bytes);
    if (!memory) return -1;
    j.memory = memory->data;
    const pysimd_work work = {&j, 1, items, run, &j.stop, threads};
    const int refused = product->begin && product->begin(product->context);
    if (!refused) pysimd_run(&work, asked, product->woken, product->ns);
    pysimd_give_back_buffer(memory);
    return refused || j.stop ? PYSIMD_INTERRUPTED : 0;
}
