/* driver.c: the loops over batch and micro-tiles, the packing of operands that a kernel cannot read in place, and the
 * threads. Compiled for the baseline processor.
 *
 * A thread computes whole products or whole rows of tiles, so the bits of the result do not depend on the number of
 * threads.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "caches.h"
#include "claims.h"
#include "direct.h"
#include "gemm.h"
#include "pack.h"
#include "scale.h"
#include "split.h"
#include "stage.h"
#include "strips.h"
#include "threads.h"
#include "trial.h"

enum {
    ON_STACK = 4 << 10,
    MUCH_SCRATCH = 256 << 10, /* bytes that are kept for the next call: 4096 x 64 x 4096 float16 took 16 threads of a
                                 Xeon 4.8 milliseconds, and 3.0 without the faults of fresh pages */
    PARTS_A_THREAD = 4, /* each takes its own, then those of others, for they do not begin at the same time */
};

/* Memory that is prefetched: up to `end`, `share` bytes at a time. */
typedef struct {
    const char *at, *end;
    int64_t share;
} stretch;

/* Matrices of later products. */
typedef struct {
    stretch a, b, c;
    way way;
} later;

/* Inlined, for GCC 12 leaves out a function whose only effect is prefetches. */
static inline __attribute__((always_inline)) void prefetch(stretch *x, way way)
{
    enum { CACHE_LINE = 64 };
    const char *stop = x->end - x->at < x->share ? x->end : x->at + x->share;
    if (way == PREFETCH_L1) /* the level is a constant of the instruction */
        for (; x->at < stop; x->at += CACHE_LINE) __builtin_prefetch(x->at, 0, 3);
    else
        for (; x->at < stop; x->at += CACHE_LINE) __builtin_prefetch(x->at, 0, 2);
}

static inline __attribute__((always_inline)) void prefetch_share(later *x)
{
    if (x) prefetch(&x->a, x->way), prefetch(&x->b, x->way), prefetch(&x->c, x->way);
}

/* A part of a product: `count` products from `first` on, rows [row0, row1) of each. */
typedef struct {
    const pysimd_kernel *kernel;
    const pysimd_product *product;
    int64_t first, count, row0, row1;
    way way;
    const candidates *ways; /* or NULL: IN_ORDER */
    int64_t segment;        /* products that are timed in each way, or rows of a single one */
    int64_t together;       /* products that are computed while the next ones are prefetched */
    int stages, stages_few; /* whether operands are staged, and then few products at a time */
    int64_t shares;   /* 0, or in how many shares: before an operand is staged, and before each call of the kernel */
    later *next;      /* what is prefetched in shares, or NULL */
    int direct, exchanged; /* direct.h */
    int more; /* columns beyond nr, after whole vectors, that a tile computes by themselves */
    char *scratch, *sums; /* sums: with an epilogue, products before they are stored */
    int64_t pieces;       /* how many of them */
    pysimd_staged *kept; /* B as this thread has staged it for a part before (data NULL: not yet), or NULL */
    pysimd_shape *before; /* of which tile registers are configured, or NULL */
    int follow;           /* whether products of the same kernel follow, for which they stay so */
} work;

/* Bytes of the elements of the product's own A, B and C. */
static pysimd_sizes sizes_of(const pysimd_kernel *kernel, const pysimd_product *p)
{
    const pysimd_sizes *size = &pysimd_element_sizes[kernel->types];
    const int exchanged = p->flags & PYSIMD_EXCHANGED;
    return (pysimd_sizes){exchanged ? size->b : size->a, exchanged ? size->a : size->b, size->c};
}

/* The same, of C as the epilogue stores it. */
static pysimd_sizes sizes_in_memory(const pysimd_kernel *kernel, const pysimd_product *p)
{
    pysimd_sizes size = sizes_of(kernel, p);
    if (p->epilogue) size.c = p->epilogue->size;
    return size;
}

static int64_t tile_rows(const pysimd_kernel *kernel, int64_t m)
{
    const int64_t tiles = (m + kernel->mr - 1) / kernel->mr;
    return tiles ? (m + tiles - 1) / tiles : 1; /* 17 rows are 9 and 8, not 16 and 1 */
}

/* Bytes of A and B of a product, as the kernel reads them. */
static double bytes_read(const pysimd_kernel *kernel, const pysimd_call *s)
{
    const pysimd_sizes size = pysimd_sizes_in_kernel(kernel);
    const double a = (double)s->m * (double)s->k * size.a, b = (double)s->k * (double)s->n * size.b;
    return (a + b) * kernel->k_group;
}

/* Whether a thread's products are in L2 all together. */
static int in_l2(const work *w, double each) { return (double)w->count * each <= (double)pysimd_caches().l2; }

/* How many products are computed side by side, tile by tile, so that a call of the kernel has more than one of them.
 * They are in L1. Products from beyond L2 are computed one after the other, since the hardware's prefetch follows only
 * operands that are read in the order of memory: 20x20 floats took 297 ns each, and 729 in groups (Zen 3). Tried for
 * products that are staged one at a time: columns of tiles, 1.0 (33x33x33 bfloat16) to 1.07 times as long (Xeon). */
static int64_t side_by_side(const work *w, double each)
{
    enum { IN_L1 = 24 << 10 };
    if (each >= IN_L1 || !in_l2(w, each)) return 1;
    return (int64_t)(IN_L1 / (each + 1)) + 1;
}

/* One product, whose first elements are at a, b and c, a column of micro-tiles after the other: tiles of the same
 * height are one call. In caches that took 0.97 times as long as a call for each tile, in the order of C's memory; from
 * beyond L2 1.1 times (Zen 3). A C that fills L2 took 1.3 to 2.7 times as long, for each column of tiles is in as many
 * pages as rows (Xeon). */
static void columns_of_tiles(const pysimd_kernel *kernel, pysimd_call *t, const pysimd_call *s, const char *a,
                             const char *b, char *c, const split *rows, const split *columns, int64_t step_b)
{
    const pysimd_sizes size = pysimd_sizes_in_kernel(kernel);
    const int64_t cs_c = kernel->form == GEMV ? s->cs_c : 1;
    for (int64_t q = 0, j0 = 0; q < columns->count; q++, j0 += t->n) {
        t->n = part_of(columns, q, s->n - j0);
        t->b = b + j0 * step_b * size.b;
        for (int64_t r = 0, i0 = 0; r < rows->count; r += t->batch, i0 += t->batch * t->m) {
            t->batch = r < rows->higher ? rows->higher : rows->count - r;
            t->m = part_of(rows, r, s->m - i0);
            t->a = a + i0 * s->rs_a * size.a, t->bs_a = t->m * s->rs_a;
            t->c = c + (i0 * s->rs_c + j0 * cs_c) * size.c, t->bs_c = t->m * s->rs_c;
            kernel->batch(t);
        }
    }
}

/* The rows or columns of a micro-tile: `first`, and how many. */
typedef struct {
    int64_t first, count;
} span;

/* The next of the tiles that `parts` describes, of `whole` rows or columns. With tile registers every tile of C = A B
 * is as large as the first, or half of it, which takes no new configuration, so the last one overlaps the one before
 * it: a new shape takes longer than multiply-adds that are done twice. Ten 40 x 40 x 40 bfloat16 took 0.85 times as
 * long as with four shapes (Xeon). */
static span next_tile(const split *parts, int64_t index, span before, int64_t whole, int64_t of_same_size)
{
    if (of_same_size) {
        const int64_t at = index * of_same_size, left = whole - at, half = of_same_size / 2;
        const int64_t count = whole <= of_same_size ? whole : left <= half ? half : of_same_size;
        return (span){left < count ? whole - count : at, count};
    }
    const int64_t first = before.first + before.count;
    return (span){first, part_of(parts, index, whole - first)};
}

/* The micro-tiles of a product. Computed once for all products of a call: the divisions took a tenth of the time of
 * products that are staged one at a time (33 x 33 x 33 float16, Xeon). */
typedef struct {
    int whole; /* a product is one tile: a batch is one call of the kernel */
    split rows, columns;
    int by_columns;         /* columns_of_tiles, a product after the other */
    int64_t together;       /* products side by side */
    int64_t same_m, same_n; /* of every tile; 0: tiles do not overlap */
} tiling;

/* Of a matrix that is multiplied by more vectors than a GEMV kernel takes at a time: all rows, or where they do not stay
 * in L2, as many as stay in L1. Matrices in L2 took 1.0 to 1.25 times as long in parts (Zen 4). */
static int64_t most_gemv_rows(const pysimd_kernel *kernel, const pysimd_call *s)
{
    enum { IN_L1 = 16 << 10 };
    const int64_t row = s->k * pysimd_sizes_in_kernel(kernel).a;
    if (s->n <= PYSIMD_GEMV_COLUMNS || s->cs_a != 1) return s->m;
    if ((double)s->m * (double)row <= (double)pysimd_caches().l2) return s->m;
    return multiple(most(IN_L1 / row, 1), kernel->mr);
}

/* That of products of the shape of `s`, with its flags. */
static tiling tiling_of(const work *w, const pysimd_call *s)
{
    const pysimd_kernel *kernel = w->kernel;
    const int gemv = kernel->form == GEMV;
    const int64_t most_m = gemv ? most_gemv_rows(kernel, s)
                                : pysimd_rows_of_tile(kernel, s->rs_a * pysimd_sizes_in_kernel(kernel).a);
    const int64_t most_n = gemv ? PYSIMD_GEMV_COLUMNS : kernel->nr + w->more;
    if (s->m <= most_m && s->n <= most_n) return (tiling){.whole = 1};
    tiling t = {.rows = gemv ? split_of(s->m, most_m, 1) : rows_of_tiles(kernel, s->m, most_m),
                .columns = split_of(s->n, most_n, kernel->column_step ? kernel->column_step : kernel->nr)};
    const double each = bytes_read(kernel, s) + (double)s->m * (double)s->n * pysimd_sizes_in_kernel(kernel).c;
    t.together = side_by_side(w, each);
    const int in_order = t.columns.count == 1 && !w->next; /* 64 x 4 x 4 float from memory: 262 ns, and 121 (Zen 3) */
    t.by_columns = t.together == 1 && t.rows.step == 1 && (gemv ? most_m == s->m : in_order || in_l2(w, 2 * each));
    if (kernel->k_tile && s->flags & PYSIMD_ZERO) t.same_m = most_m, t.same_n = most_n;
    return t;
}

/* The micro-tiles of the products `s`. Tile registers are still configured for a product of the shape `before`; unless
 * it `ends` those that this thread computes in a row, they are left to the next. */
static void tiles(const work *w, const tiling *plan, pysimd_call *s, pysimd_shape *before, int ends)
{
    const pysimd_kernel *kernel = w->kernel;
    if (plan->whole) {
        const int flags = s->flags;
        s->flags |= pysimd_flags_in_a_row(kernel, before, s, ends);
        prefetch_share(w->next);
        kernel->batch(s);
        s->flags = flags;
        return;
    }
    const pysimd_sizes size = pysimd_sizes_in_kernel(kernel);
    const split *rows = &plan->rows, *columns = &plan->columns;
    const int64_t step_b = kernel->form == OUTER ? pysimd_column_step(kernel) : s->rs_b;
    const int64_t cs_c = kernel->form == GEMV ? s->cs_c : 1;
    pysimd_call t;
    pysimd_copy_call(&t, s);
    if (plan->by_columns) {
        t.bs_b = 0;
        for (int64_t i = 0; i < s->batch; i++)
            columns_of_tiles(kernel, &t, s, (const char *)s->a + i * s->bs_a * size.a,
                             (const char *)s->b + i * s->bs_b * size.b, (char *)s->c + i * s->bs_c * size.c, rows,
                             columns, step_b);
        return;
    }
    for (int64_t i = 0; i < s->batch; i += plan->together) {
        t.batch = s->batch - i < plan->together ? s->batch - i : plan->together;
        span x = {0, 0};
        for (int64_t r = 0; r < rows->count; r++) { /* C is written in the order of memory */
            x = next_tile(rows, r, x, s->m, plan->same_m);
            t.m = x.count;
            t.a = (const char *)s->a + (i * s->bs_a + x.first * s->rs_a) * size.a;
            span y = {0, 0};
            for (int64_t q = 0; q < columns->count; q++) {
                y = next_tile(columns, q, y, s->n, plan->same_n);
                t.n = y.count;
                t.b = (const char *)s->b + (i * s->bs_b + y.first * step_b) * size.b;
                t.c = (char *)s->c + (i * s->bs_c + x.first * s->rs_c + y.first * cs_c) * size.c;
                const int last = i + t.batch == s->batch && r + 1 == rows->count && q + 1 == columns->count;
                t.flags = s->flags | pysimd_flags_in_a_row(kernel, before, &t, last && ends);
                prefetch_share(w->next);
                kernel->batch(&t);
            }
        }
    }
}

/* How the operands come to the kernel: bytes of scratch memory for the panels of one product (0 where the kernel reads
 * the operand in place), and how many products are staged together. They are those of whole products also where a
 * thread computes some of the rows: what is allocated is enough for every thread. */
typedef struct {
    int64_t bytes_a, bytes_b, products;
    int64_t offset_b, total; /* of B's panels in the scratch memory, and its size; -1 where it cannot be counted */
} staging;

static int64_t rounded(int64_t bytes) { return bytes > INT64_MAX - 63 ? INT64_MAX - 63 : (bytes + 63) & ~(int64_t)63; }

/* Then the rest of L1 is worth more than calls for more products: ten products of 31 x 31 x 31 float16 took 0.9 times
 * as long with half as many at a time (Xeon). */
static int widens_by_avx512(const pysimd_kernel *kernel)
{
#ifdef __x86_64__
    return kernel->panel == WIDE && kernel->target >= AVX512;
#else
    (void)kernel;
    return 0;
#endif
}

/* Whether rows of a few narrow values, at a distance, are made dense for a GEMV kernel, which then takes those of a
 * register together (gemv.h, by_short_rows). Batches of 100 with K from 1 to 3 took 0.35 to 0.75 times as long, bytes
 * with K up to 8 0.35 to 0.9; 16 bits with K = 8, and with K = 4 and several columns, 1.2 to 1.6, floats 1.1 to 1.5
 * times (Xeon with AMX). */
static int copies_short_rows(const work *w)
{
    enum { FEW_BYTES = 8, FEW_BYTES_OF_SOME = 6, ROWS = 4, ROWS_OF_ONE = 128, MOST_ROWS = 1 << 11 };
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_product *p = w->product;
    const int size = pysimd_element_sizes[kernel->types].a;
    if (kernel->form != GEMV || size > 2 || p->cs_a != 1 || p->rs_a == p->k) return 0;
    if (p->k * size > (p->n > 1 ? FEW_BYTES_OF_SOME : FEW_BYTES)) return 0;
    return p->m >= (w->count > 1 ? ROWS : ROWS_OF_ONE) && p->m <= MOST_ROWS;
}

/* Whether an A that a tile register could read is packed, with zeros behind K: otherwise the kernel copies what K has
 * more than whole steps of a tile of both operands, for each tile of C. */
static int pads_rows(const work *w)
{
    const pysimd_kernel *kernel = w->kernel;
    const int64_t step = kernel->k_tile * kernel->k_group;
    return kernel->k_tile && w->product->k > step && w->product->k % step != 0;
}

static staging staging_of(const work *w, int64_t batch)
{
    enum { IN_L1 = 16 << 10, FEW = 2 << 10 };
    const pysimd_product *p = w->product;
    staging s = {.products = batch};
    if (!pysimd_reads_a(w->kernel, p->k, p->rs_a, p->cs_a) || copies_short_rows(w) || pads_rows(w))
        s.bytes_a = pysimd_staged_bytes_a(w->kernel, p->m, p->k);
    if (!pysimd_reads_b(w->kernel, p->rs_b, p->cs_b))
        s.bytes_b = pysimd_staged_bytes_b(w->kernel, p->k, p->n);
    const int64_t larger = s.bytes_a > s.bytes_b ? s.bytes_a : s.bytes_b;
    if (larger == 0) return s;
    const int64_t most_bytes = w->stages_few ? FEW : widens_by_avx512(w->kernel) ? IN_L1 / 2 : IN_L1;
    const int64_t fit = larger < most_bytes ? most_bytes / larger : 1;
    if (fit < s.products) s.products = fit;
    int64_t of_a, of_b;
    if (__builtin_mul_overflow(s.bytes_a, s.products, &of_a) || __builtin_mul_overflow(s.bytes_b, s.products, &of_b) ||
        __builtin_add_overflow(rounded(of_a), rounded(of_b), &s.total))
        s.total = -1;
    s.offset_b = rounded(of_a);
    return s;
}

/* Whether B is packed for one tile at a time, because each is used once: so the packed columns stay in L1. */
static int packs_tiles_of_b(const work *w, const staging *g, int used_once)
{
    const pysimd_kernel *kernel = w->kernel;
    const int floats = kernel->form == OUTER && kernel->panel == PLAIN && kernel->k_group == 1;
    const int one_row = w->row1 - w->row0 <= kernel->mr;
    return floats && g->bytes_b && !g->bytes_a && used_once && one_row && w->product->n > kernel->nr + w->more;
}

/* The products `given`, of one row of tiles: ten of 14 x 60 x 60 double took 0.77 times as long as with all of B packed
 * before. Without gain on the same Xeon: to prefetch the columns that are packed next (1.02 times as long); to prefetch
 * the rows of C before a tile (1.0); to copy a B that is read in place to rows that start on cache lines (1.15). */
static void tiles_of_packed_columns(const work *w, const pysimd_call *given, const pysimd_operand *b, char *to)
{
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_sizes size = pysimd_element_sizes[kernel->types];
    const split columns = split_of(given->n, kernel->nr, kernel->column_step ? kernel->column_step : kernel->nr);
    pysimd_call s;
    pysimd_copy_call(&s, given);
    s.batch = 1;
    for (int64_t i = 0; i < given->batch; i++) {
        s.a = (const char *)given->a + i * given->bs_a * size.a;
        for (int64_t q = 0, j = 0; q < columns.count; q++, j += s.n) {
            s.n = part_of(&columns, q, given->n - j);
            const pysimd_operand part = {1, b->rows, s.n, b->from + (i * b->bs + j * b->cs) * size.b, 0, b->rs, b->cs};
            const pysimd_staged found = pysimd_stage_b(kernel, &part, to);
            s.b = found.data, s.rs_b = found.rs;
            s.c = (char *)given->c + (i * given->bs_c + j) * size.c;
            prefetch_share(w->next);
            kernel->batch(&s);
        }
    }
}

/* Products with PYSIMD_DOTS are not: their bits would depend on the rows of a thread. */
static int is_for_small(int flags) { return (flags & (PYSIMD_ZERO | PYSIMD_DOTS)) == PYSIMD_ZERO; }

/* Whether the row's function for small products has computed the products `s`. */
static int is_small(const work *w, const pysimd_call *s)
{
    if (!w->kernel->small || s->n > PYSIMD_SMALL_COLUMNS || !is_for_small(s->flags)) return 0;
    pysimd_call from_arrays;
    pysimd_copy_call(&from_arrays, s);
    const pysimd_product *p = w->product;
    from_arrays.k = p->k, from_arrays.cs_a = p->cs_a, from_arrays.rs_b = p->rs_b;
    return w->kernel->small(&from_arrays, p->cs_b);
}

/* An operand of the products of a call that is made dense, some products at a time. */
typedef struct {
    int copied;    /* whether neither its rows nor its columns are adjacent elements */
    int64_t bytes; /* of a product's */
    pysimd_operand from;
} dense_copy;

static dense_copy dense_copy_of(int64_t rows, int64_t cols, int size, const void *from, int64_t bs, int64_t rs,
                                int64_t cs)
{
    return (dense_copy){cs != 1 && (rs != 1 || size == 1), rows * cols * size, {1, rows, cols, from, bs, rs, cs}};
}

/* The copy of products [first, first + count), unless it is there: of an operand that is broadcast there is one. */
static void copy_products(const dense_copy *x, int size, int64_t first, int64_t count, char *to)
{
    if (!x->copied || (first && !x->from.bs)) return;
    pysimd_operand part = x->from;
    part.count = part.bs ? count : 1, part.from += first * part.bs * size;
    pysimd_make_dense(&part, size, to);
}

/* is_small of products whose operands have any strides: these are made dense in L1 before. 1000 products of 6 x 6 x 6
 * int8 of every other element took 116 microseconds through panels, and 14 (Ice Lake). Bytes are also transposed: 36 x
 * 6 x 6 int8 with a transposed A took 247 ns through panels, and 126, 8 x 8 x 8 with a transposed B 40 and 24 (Zen
 * 3). */
static int is_small_of_copies(const work *w, const pysimd_call *s)
{
    enum { IN_L1 = 8 << 10 };
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_product *p = w->product;
    const pysimd_sizes size = pysimd_element_sizes[kernel->types];
    if (!kernel->small || s->n > PYSIMD_SMALL_COLUMNS || s->m > IN_L1 || p->k > IN_L1) return 0;
    if (!is_for_small(s->flags)) return 0;
    const dense_copy a = dense_copy_of(s->m, p->k, size.a, s->a, s->bs_a, p->rs_a, p->cs_a),
                     b = dense_copy_of(p->k, s->n, size.b, s->b, s->bs_b, p->rs_b, p->cs_b);
    const int64_t of_a = a.copied ? a.bytes : 0, each = of_a + (b.copied ? b.bytes : 0);
    if (each == 0 || each > IN_L1) return 0;
    _Alignas(64) char memory[IN_L1];
    const int64_t together = IN_L1 / each, cs_b = b.copied ? 1 : p->cs_b;
    pysimd_call t;
    pysimd_copy_call(&t, s);
    char *const to_b = memory + (s->bs_a ? together : 1) * of_a;
    t.batch = 0, t.k = p->k, t.cs_a = p->cs_a, t.rs_b = p->rs_b;
    if (a.copied) t.a = memory, t.bs_a = s->bs_a ? s->m * p->k : 0, t.rs_a = p->k, t.cs_a = 1;
    if (b.copied) t.b = to_b, t.bs_b = s->bs_b ? p->k * s->n : 0, t.rs_b = s->n;
    if (!kernel->small(&t, cs_b)) return 0;
    for (int64_t i = 0; i < s->batch; i += together) {
        t.batch = s->batch - i < together ? s->batch - i : together;
        copy_products(&a, size.a, i, t.batch, memory);
        copy_products(&b, size.b, i, t.batch, to_b);
        if (!a.copied) t.a = (const char *)s->a + i * s->bs_a * size.a;
        if (!b.copied) t.b = (const char *)s->b + i * s->bs_b * size.b;
        t.c = (char *)s->c + i * s->bs_c * size.c;
        kernel->small(&t, cs_b);
    }
    return 1;
}

/* The products `s` straight from the arrays. */
static void multiply_direct(const work *w, const pysimd_call *s)
{
    pysimd_call from_arrays;
    pysimd_copy_call(&from_arrays, s);
    const pysimd_product *p = w->product;
    const pysimd_sizes size = sizes_of(w->kernel, p);
    from_arrays.k = p->k, from_arrays.cs_a = p->cs_a, from_arrays.rs_b = p->rs_b;
    for (int64_t q = 0; q < s->batch; q++) {
        from_arrays.a = (const char *)s->a + q * s->bs_a * size.a;
        from_arrays.b = (const char *)s->b + q * s->bs_b * size.b;
        from_arrays.c = (char *)s->c + q * s->bs_c * size.c;
        pysimd_direct(w->kernel, &from_arrays, p->cs_b, w->exchanged);
    }
}

/* `count` products along the innermost dimension of the batch. */
static void multiply_row(const work *w, int64_t count, const char *a, const char *b, char *c, int64_t bs_a,
                             int64_t bs_b, int64_t bs_c)
{
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_product *p = w->product;
    const pysimd_sizes size = sizes_of(kernel, p);
    const int64_t m = w->row1 - w->row0;
    pysimd_call s = {.batch = count,
                     .m = m,
                     .n = p->n,
                     .k = (p->k + kernel->k_group - 1) / kernel->k_group,
                     .a = a + w->row0 * p->rs_a * size.a,
                     .bs_a = bs_a,
                     .rs_a = p->rs_a,
                     .cs_a = p->cs_a * kernel->k_group,
                     .b = b,
                     .bs_b = bs_b,
                     .rs_b = kernel->form == OUTER ? p->rs_b : p->cs_b,
                     .c = c + w->row0 * p->rs_c * size.c,
                     .bs_c = bs_c,
                     .rs_c = p->rs_c,
                     .cs_c = p->cs_c,
                     .flags = p->flags | (w->more && p->cs_a == 1 ? PYSIMD_DOTS : 0)};
    if (is_small(w, &s) || is_small_of_copies(w, &s)) return;
    if (w->direct) {
        multiply_direct(w, &s);
        return;
    }
    const int reads_ahead = kernel->form == GEMV && bs_a && w->way == IN_ORDER;
    if (reads_ahead && !in_l2(w, bytes_read(kernel, &s))) s.flags |= PYSIMD_AHEAD;
    if (w->way == ROW_BY_ROW) s.flags |= PYSIMD_ROW_BY_ROW;
    const staging g = staging_of(w, count);
    pysimd_shape none = {0, 0, 0}, *before = w->before ? w->before : &none;
    const int ends = !w->follow;
    if (!g.bytes_a && !g.bytes_b) {
        const tiling plan = tiling_of(w, &s);
        tiles(w, &plan, &s, before, ends);
        return;
    }
    pysimd_operand from_a = {.rows = m, .cols = p->k, .from = s.a, .bs = bs_a, .rs = p->rs_a, .cs = p->cs_a};
    pysimd_operand from_b = {.rows = p->k, .cols = p->n, .from = b, .bs = bs_b, .rs = p->rs_b,
                             .cs = p->cs_b};
    if (!w->kept && packs_tiles_of_b(w, &g, bs_b || count == 1)) {
        tiles_of_packed_columns(w, &s, &from_b, w->scratch);
        return;
    }
    const tiling plan = tiling_of(w, &s);
    if (kernel->k_tile && g.bytes_a && g.bytes_b) s.flags |= PYSIMD_PADDED;
    for (int64_t i = 0; i < count; i += g.products) {
        s.batch = count - i < g.products ? count - i : g.products;
        if (!g.bytes_a) {
            s.a = from_a.from + i * bs_a * size.a;
        } else if (i == 0 || bs_a != 0) { /* an operand that is broadcast is staged once */
            pysimd_operand part = from_a;
            prefetch_share(w->next);
            part.count = bs_a ? s.batch : 1, part.from += i * bs_a * size.a;
            const pysimd_staged found = pysimd_stage_a(kernel, &part, w->scratch);
            s.a = found.data, s.bs_a = bs_a ? found.bs : 0, s.rs_a = found.rs, s.cs_a = found.cs;
        }
        if (!g.bytes_b) {
            s.b = from_b.from + i * bs_b * size.b;
        } else if (w->kept && w->kept->data) {
            s.b = w->kept->data, s.bs_b = 0, s.rs_b = w->kept->rs;
        } else if (i == 0 || bs_b != 0) {
            pysimd_operand part = from_b;
            prefetch_share(w->next);
            part.count = bs_b ? s.batch : 1, part.from += i * bs_b * size.b;
            const pysimd_staged found = pysimd_stage_b(kernel, &part, w->scratch + g.offset_b);
            s.b = found.data, s.bs_b = bs_b ? found.bs : 0, s.rs_b = found.rs;
            if (w->kept) *w->kept = found;
        }
        tiles(w, &plan, &s, before, ends && i + s.batch == count);
        s.c = (char *)s.c + s.batch * bs_c * size.c;
    }
}

/* multiply_row, to sums that the epilogue stores where there is one: while they are in L1, and by all threads. By
 * ratios of time to an array of all products, which is then copied: 117 batches of 3 to 200 products whose results are
 * every other element 0.77 to 0.95 in the means of types (one thread) and 0.69 (two), those of more than 8,192 elements
 * 0.64; padded rows and an alpha 0.85; products that are added to C, with an alpha or a beta, 0.75 to 0.95, with
 * neither 0.95 to 1.0. Sums of 8 to 64 KiB were as fast; to prefetch what is stored next took 1.2 to 2 times as long
 * (Zen 4). */
static void multiply_some(const work *w, int64_t count, const char *a, const char *b, char *c, int64_t bs_a,
                          int64_t bs_b, int64_t bs_c)
{
    const pysimd_product *p = w->product;
    const pysimd_epilogue *epilogue = p->epilogue;
    if (!epilogue) {
        multiply_row(w, count, a, b, c, bs_a, bs_b, bs_c);
        return;
    }
    const pysimd_sizes size = sizes_of(w->kernel, p);
    work piece = *w;
    pysimd_shape before = {0, 0, 0};
    if (!piece.before) piece.before = &before;
    for (int64_t i = 0; i < count; i += w->pieces) {
        const int64_t some = least(count - i, w->pieces), step = bs_c * epilogue->size;
        piece.follow = w->follow || i + some < count; /* tile registers are released after the last piece alone */
        multiply_row(&piece, some, a + i * bs_a * size.a, b + i * bs_b * size.b, w->sums, bs_a, bs_b, p->m * p->n);
        pysimd_store_products(epilogue, some, w->sums, c + i * step, step);
    }
}

/* --- products from beyond L2 --- */

/* One matrix of each product along the innermost dimension of the batch: the first, and bytes from one to the next; 0
 * for what is not prefetched: one matrix of all products, or matrices with gaps. */
typedef struct {
    const char *first;
    int64_t step;
} matrices;

static matrices matrices_of(const void *first, int64_t bs, int size, int64_t elements)
{
    return (matrices){first, bs >= elements && bs <= 2 * elements ? bs * size : 0};
}

typedef struct {
    matrices a, b, c;
} row_of_products;

static row_of_products row_of(const pysimd_product *p, pysimd_sizes size, const pysimd_matrices *x)
{
    const int last = p->ndim - 1;
    const int64_t bs_c = p->flags & PYSIMD_STREAM ? 0 : p->batch_c[last];
    return (row_of_products){matrices_of(x->a, p->batch_a[last], size.a, p->m * p->k),
                             matrices_of(x->b, p->batch_b[last], size.b, p->k * p->n),
                             matrices_of(x->c, bs_c, size.c, p->m * p->n)};
}

int pysimd_has_small(const pysimd_kernel *kernel, const pysimd_product *p)
{
    const pysimd_call asked = {.m = p->m, .n = p->n, .k = p->k, .rs_a = p->rs_a, .cs_a = p->cs_a, .rs_b = p->rs_b,
                               .rs_c = p->rs_c, .cs_c = p->cs_c, .flags = p->flags};
    if (!kernel->small || p->n > PYSIMD_SMALL_COLUMNS || !(p->flags & PYSIMD_ZERO)) return 0;
    return kernel->small(&asked, p->cs_b);
}

/* Calls of the kernel for so many products, and how often an operand is staged before them: 0 for a single call that
 * reads both operands in the order of memory. */
static int64_t shares_of(const work *w, int64_t products, int by_columns)
{
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_product *p = w->product;
    if (kernel->form != OUTER || w->direct || pysimd_has_small(kernel, p)) return 0;
    const int64_t tiles = quotient(p->m, kernel->mr) * quotient(p->n, kernel->nr + w->more);
    if (tiles == 1 && !by_columns) return 0;
    return (tiles > 1 ? tiles * products : 1) + !pysimd_reads_a(kernel, p->k, p->rs_a, p->cs_a) +
           !pysimd_reads_b(kernel, p->rs_b, p->cs_b);
}

enum { TOGETHER = 8 << 10 }; /* bytes of products that are computed while the next ones are prefetched */

/* Whether products may be prefetched while others are computed: those from beyond L2. Tiles read and write rows at a
 * distance, and parts of lines, which the hardware's prefetch may follow badly: so the next products are prefetched
 * between the tiles of these, or before a single call. Whether that is faster depends on the machine, and on where the
 * operands come from, so all are timed (trial.h). On a Xeon with AMX, one thread, 64 x 28 x 50 double took 7.6
 * microseconds without a prefetch and 4.3 with it (NumPy 5.8), 33 x 33 x 33 3.0 and 1.7 (2.2), 96 x 96 x 96 47 and 32
 * (42), float16 32 x 32 x 32 1.02 and 0.73; on a Zen 5, whose hardware does not follow parts of vectors, 16 x 16 x 16
 * bfloat16 243 ns from L3 and 83, 39 x 3 x 1 float from memory 92 and 24; on a Zen 4, whose hardware does, 7 x 7 x 7
 * float 1.9 times as long with a prefetch, and a row by 61 x 60 float 1.7 times. There a prefetch to L1 took 1.1 times
 * as long as to L2 in the mean of 72 batches, on a Xeon 0.7 to 0.9 times. All of the next products before the first
 * tile was no gain for 64 x 28 x 50 double, and took 1.1 times as long for the float16; so did 32 KiB of products at a
 * time, 2 KiB 1.0 to 1.2 times. Products in L2 took up to 1.25 times as long with a prefetch (24 x 24 x 24 bfloat16).
 * Lower tiles and smaller shares, of 1 to 4 KiB, took 0.75 times as long for 13 x 48 x 52 float with a transposed B
 * (Zen 4: 16 KB a product, of which the prefetch is three bursts), but 1.0 to 1.02 times in the mean of 88 batches. An
 * A that is broadcast is staged again for each share of the batch, which costs less than it gains. A matrix that is
 * multiplied by a vector is read in the order of memory: a row by 128 x 128 float from L3 took 1.3 to 1.5 times as long
 * with a prefetch of the next one (Zen 3), but some vectors 0.88 to 1.0 times (60 x 100 x 4, 2 x 100 x 50 and 3 x 50 x
 * 50 with a transposed B, float and double, Xeon). */
static int may_prefetch(const work *w, int threads, int64_t each)
{
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_product *p = w->product;
    const int64_t l2 = pysimd_caches().l2;
    if (each == 0 || each > l2 / 4 || (double)w->count * (double)each <= (double)threads * (double)l2) return 0;
    return kernel->form != GEMV || (p->m > 1 && p->n > 1) || each <= TOGETHER;
}

/* Whether the rows of a matrix from beyond L2 that is multiplied by a vector, or by a few, may be read one after the
 * other. Eight or sixteen rows at a time are as many streams, each of a few lines, which the prefetch of a Zen 4 does
 * not follow: 100 x 125 float took 4.0 times as long from L3, and 2.3 times from memory, 64 x 64 double 2.7 times from
 * memory; a Xeon's does, and rows one by one took 1.0 to 2 times as long there, as they do from L2. */
static int may_read_row_by_row(const work *w, int threads)
{
    enum { LEAST_BYTES = 144, MOST_BYTES = 4 << 10 }; /* of a row */
    const pysimd_product *p = w->product;
    const int64_t row = p->k * sizes_of(w->kernel, p).a;
    if (w->kernel->form != GEMV || w->direct || p->cs_a != 1 || row < LEAST_BYTES || row > MOST_BYTES) return 0;
    if (w->count > 1 && p->batch_a[p->ndim - 1] == 0) return 0;
    return (double)w->count * (double)p->m * (double)row > (double)threads * (double)pysimd_caches().l2;
}

static void choose_ways(work *w, int threads)
{
    enum { SEGMENT = 64 << 10, LEAST_TOGETHER = 4, SEGMENTS = 96 };
    static const candidates prefetch = {3, {PREFETCH_L2, IN_ORDER, PREFETCH_L1}},
                            prefetch_or_rows = {4, {PREFETCH_L2, IN_ORDER, PREFETCH_L1, ROW_BY_ROW}},
                            rows = {2, {IN_ORDER, ROW_BY_ROW}};
    const pysimd_product *p = w->product;
    const int row_by_row = may_read_row_by_row(w, threads);
    if (w->count > 1) {
        const row_of_products x = row_of(p, sizes_in_memory(w->kernel, p), &(pysimd_matrices){NULL, NULL, NULL});
        const int64_t each = x.a.step + x.b.step + x.c.step;
        if (may_prefetch(w, threads, each)) {
            const int by_columns = (p->rs_a == 1 && p->cs_a != 1) || (p->rs_b == 1 && p->cs_b != 1);
            w->ways = row_by_row ? &prefetch_or_rows : &prefetch;
            w->together = most(TOGETHER / each, 1);
            w->segment = most(least(SEGMENT / each, w->count / threads / SEGMENTS), LEAST_TOGETHER * w->together);
            w->shares = shares_of(w, w->together, by_columns);
            return;
        }
    }
    if (!row_by_row) return;
    const int64_t row = p->k * sizes_of(w->kernel, p).a, together = w->kernel->mr;
    w->ways = &rows;
    w->segment = w->count > 1 ? most(SEGMENT / (p->m * row), 1) : multiple(most(SEGMENT / row, 1), together);
}

/* Products [from, to), in so many shares of whole cache lines. */
static stretch stretch_of(const matrices *x, int64_t from, int64_t to, int64_t shares)
{
    enum { CACHE_LINE = 64 };
    const int64_t share = multiple(quotient((to - from) * x->step, shares), CACHE_LINE);
    return (stretch){x->first + from * x->step, x->first + to * x->step, share};
}

/* `count` products along the innermost dimension of the batch, of which the first is `x`. */
static void multiply_ahead(const work *given, int64_t count, const pysimd_matrices *x, pysimd_sizes size)
{
    const pysimd_product *p = given->product;
    const int last = p->ndim - 1;
    const int64_t bs_a = p->batch_a[last], bs_b = p->batch_b[last], bs_c = p->batch_c[last];
    /* A B that is broadcast stays staged, and none of the shares comes before it: batches of 13 sizes from beyond L2
     * took 0.91 to 0.97 times as long in the mean with bfloat16 and bytes, 0.97 to 1.0 with other types (Xeon with
     * AMX). */
    const int keeps = bs_b == 0 && !given->kept && given->shares && !pysimd_reads_b(given->kernel, p->rs_b, p->cs_b);
    const int64_t shares = most(given->shares - keeps, 1);
    const row_of_products row = row_of(p, size, x);
    work w = *given;
    pysimd_staged kept = {.data = NULL};
    pysimd_shape before = {0, 0, 0};
    if (keeps) w.kept = &kept;
    w.before = &before;
    for (int64_t i = 0, end; i < count; i = end) {
        end = least(i + w.together, count);
        w.follow = end < count;
        const int64_t stop = least(end + w.together, count);
        later next = {stretch_of(&row.a, end, stop, shares), stretch_of(&row.b, end, stop, shares),
                      stretch_of(&row.c, end, stop, shares), w.way};
        if (w.shares)
            w.next = &next;
        else
            prefetch_share(&next);
        multiply_some(&w, end - i, x->a + i * bs_a * size.a, x->b + i * bs_b * size.b, x->c + i * bs_c * size.c, bs_a,
                      bs_b, bs_c);
    }
}

/* Segments of the rows of one product, or the rest of them. */
static void run_rows(const work *w, trial *x)
{
    const pysimd_matrices of = pysimd_matrices_at(w->product, sizes_in_memory(w->kernel, w->product), w->first);
    work piece = *w;
    for (int64_t row = w->row0; row < w->row1; row = piece.row1) {
        const int timed = is_timed(x);
        const int64_t rows = least(w->row1 - row, timed ? w->segment : w->row1);
        const double before = timed ? now_ns() : 0;
        piece.way = way_of(x), piece.row0 = row, piece.row1 = row + rows;
        multiply_some(&piece, 1, of.a, of.b, of.c, 0, 0, 0);
        if (timed) add_time(x, (now_ns() - before) / (double)rows);
    }
}

/* Distances in the innermost dimension of the batch. */
typedef struct {
    int64_t count, a, b, c;
} innermost;

static innermost innermost_of(const pysimd_product *p)
{
    const int last = p->ndim - 1;
    if (p->ndim == 0) return (innermost){1, 0, 0, 0};
    return (innermost){p->shape[last], p->batch_a[last], p->batch_b[last], p->batch_c[last]};
}

/* Whole rows of the batch's innermost dimension. */
static void run_in_order(const work *w)
{
    const innermost row = innermost_of(w->product);
    const pysimd_sizes size = sizes_in_memory(w->kernel, w->product);
    for (int64_t at = w->first, end = w->first + w->count, count; at < end; at += count) {
        const pysimd_matrices of = pysimd_matrices_at(w->product, size, at);
        count = least(end - at, row.count - at % row.count);
        multiply_some(w, count, of.a, of.b, of.c, row.a, row.b, row.c);
    }
}

/* Segments of them, or the rest of one. */
static void run_products(const work *w, trial *x)
{
    const innermost row = innermost_of(w->product);
    const pysimd_sizes size = sizes_in_memory(w->kernel, w->product);
    work piece = *w;
    for (int64_t at = w->first, end = w->first + w->count, count; at < end; at += count) {
        const pysimd_matrices of = pysimd_matrices_at(w->product, size, at);
        const int timed = is_timed(x);
        count = least(end - at, row.count - at % row.count);
        if (timed) count = least(count, w->segment);
        const double before = timed ? now_ns() : 0;
        piece.way = way_of(x), piece.stages_few = stages_few(x);
        if (piece.way == PREFETCH_L1 || piece.way == PREFETCH_L2)
            multiply_ahead(&piece, count, &of, size);
        else
            multiply_some(&piece, count, of.a, of.b, of.c, row.a, row.b, row.c);
        if (timed) add_time(x, (now_ns() - before) / (double)count);
    }
}

/* The part of a thread. */
static void run(const work *w)
{
    if (w->ways) {
        trial x = trial_of(w->ways, w->stages);
        const int64_t segments = (w->count == 1 ? w->row1 - w->row0 : w->count) / w->segment;
        if (segments < (w->together ? 2 : 16) * x.most_segments) end_trial(&x);
        if (w->count == 1)
            run_rows(w, &x);
        else
            run_products(w, &x);
    } else {
        run_in_order(w);
    }
#ifdef __SSE2__
    if (w->product->flags & PYSIMD_STREAM) __builtin_ia32_sfence(); /* before other threads see that this ends */
#endif
}

/* A product and its division into parts, of products, of rows or of columns. */
typedef struct {
    work whole;
    int by_rows, by_columns;
    int64_t tile, units; /* rows, or columns, of a tile; products or tiles */
    int64_t parts, scratch_bytes, sums_at; /* of a thread's scratch memory */
    int threads;
    pysimd_claim *claims; /* one for each thread */
    pysimd_staged *kept;  /* the same, where all parts have one B; or NULL */
} division;

static int64_t parts_of(void *context, int64_t phase)
{
    const division *d = context;
    (void)phase;
    return d->parts;
}

/* Columns [first, first + columns) of the products. */
static pysimd_product columns_of(const work *w, int64_t first, int64_t columns)
{
    const pysimd_sizes size = sizes_of(w->kernel, w->product);
    pysimd_product part = *w->product;
    part.b = (const char *)part.b + first * part.cs_b * size.b;
    part.c = (char *)part.c + first * size.c;
    part.n = columns;
    return part;
}

static void run_part(void *context, int thread, int64_t phase, int64_t part)
{
    const division *d = context;
    part = pysimd_take_item(d->claims, d->threads, d->parts, thread);
    const int64_t each = d->units / d->parts, rest = d->units % d->parts;
    const int64_t first = part * each + (part < rest ? part : rest), count = each + (part < rest);
    work w = d->whole;
    (void)phase;
    w.scratch += thread * d->scratch_bytes;
    w.sums = w.scratch + d->sums_at;
    if (d->kept) w.kept = d->kept + thread;
    if (d->by_rows) {
        w.row0 = first * d->tile;
        if (first + count < d->units) w.row1 = (first + count) * d->tile;
    } else if (d->by_columns) {
        const int64_t column = first * d->tile;
        const pysimd_product columns = columns_of(&w, column, least(count * d->tile, w.product->n - column));
        w.product = &columns;
        run(&w);
        return;
    } else {
        w.first = first, w.count = count;
    }
    run(&w);
}

/* Whether a large product has so short a K that its time is that of writing C. Here tiles follow one another along the
 * rows of C, in gemm.c down its columns: 2000 x k x 2000 float took 0.5 to 0.7 times as long for k from 4 to 16, double
 * 0.4 to 0.8 (Zen 3). For k from 32 to 64 products of some hundred rows and columns took 0.7 to 0.97 times as long, and
 * those whose B is half of L2 1.0 to 1.15 times (Zen 3), or 0.4 to 0.9 (Xeon). B stays in L2; and there are rows for
 * all threads. More than some columns of A are better packed, for each is in a page of its own, unless C has few
 * columns: 3360 x 44 x 1170 and 2000 x 18 x 1500 float took 0.70 and 0.92 times as long by gemm.c, 746 x 39 x 1494
 * double 0.72, 603 x 52 x 2125 float16 0.62, 3570 x 28 x 82 float and 2000 x 24 x 1500 float16 1.14 (Ice Lake). */
static int is_shallow(const pysimd_kernel *kernel, const pysimd_product *p)
{
    enum { SHALLOW = 64, ROWS_A_THREAD = 4, FEW_THREADS = 4, MOST_STAGED = 1 << 20, PANELS = 8 };
    if (p->k > SHALLOW || kernel->form != OUTER || kernel->k_tile || p->flags & PYSIMD_FACTORS || p->interrupted)
        return 0;
    if (p->m < ROWS_A_THREAD * (int64_t)kernel->mr * least(pysimd_threads_of_rows(p), FEW_THREADS)) return 0;
    if (pysimd_staged_bytes_b(kernel, p->k, p->n) > pysimd_caches().l2 / 2) return 0;
    const int by_columns = p->rs_a == 1 && p->cs_a != 1 && kernel->k_group == 1;
    const int few_columns = kernel->panel == WIDE ? 32 : 16;
    if (by_columns && p->k > few_columns && p->n >= PANELS * (int64_t)kernel->nr) return 0;
    return pysimd_reads_a(kernel, p->k, p->rs_a, p->cs_a) ||
           pysimd_staged_bytes_a(kernel, p->m, p->k) <= MOST_STAGED;
}

/* Whether the rows of a product of medium size, which gemm.c does not divide, are those of several threads. B is not
 * packed, or by each thread. 96 to 120 rows and columns took two threads 0.5 to 0.8 times as long as one, B by rows or
 * by columns, bytes 0.6 to 0.9 times; 60 x 200 x 100 and 40 x 150 x 200 0.5 to 0.9 (Zen 3). Of 400 products of 0.25 to
 * 2.2 million multiply-adds on 16 cores of a Xeon 28 % were slower than NumPy on eight threads while such products were
 * one thread's, and 12 % are: they take 0.8 times as long in the mean, a tenth of them up to 0.33 (70 x 98 x 242
 * float 49 microseconds and 13). */
static int is_divided(const pysimd_kernel *kernel, const pysimd_product *p)
{
    if (p->threads < 2 || kernel->k_tile || p->flags & PYSIMD_FACTORS) return 0;
    if (p->m < 2 * (int64_t)kernel->mr || p->k > pysimd_block_of_k(kernel, p->k)) return 0;
    return !pysimd_gemm_divides((double)p->m * (double)p->n * (double)p->k);
}

/* Whether A is read by columns, and staged by them where its values are widened. */
static int is_by_columns(const pysimd_product *p) { return p->rs_a == 1 && llabs(p->cs_a) > 1; }

/* Whether a tile of a transposed A has registers for the columns after its vectors, whose lanes are rows: 14 rows of
 * two vectors of float and one column are 29 accumulators. With two columns, and with doubles, whose column is two
 * registers, they are 30, and 28 x 40 x 34 float took 1.25 times as long, 56 x 39 x 17 double 1.1 times. */
static int has_registers(const pysimd_kernel *kernel, int64_t m, int64_t columns, int64_t lanes)
{
    enum { MOST_ACCUMULATORS = 29 };
    const int64_t rows = tile_rows(kernel, m);
    return rows * (kernel->nr / lanes) + columns * quotient(rows, lanes) <= MOST_ACCUMULATORS;
}

/* How many columns, one or two, follow whole vectors of 64 bytes, and are computed by themselves: a vector of which one
 * lane is used takes as long as a full one. They are dot products (outer_dots.h). By ratios of 17,000 batches of 10 and
 * 100 products, up to 64 rows, columns and K (Xeon with AMX): with one column more, float took 1.0 to 1.04 times as
 * long below K = 16, 0.95 from there and 0.85 to 0.92 from 48 on; with two 1.05, 1.05 and 0.92; widened values 0.02 to
 * 0.04 more. Double with up to 33 columns took as long as float from K = 24 on, with more columns, of which the last
 * tile has eight and one, 1.0 to 1.13 times. Fewer than eight rows 0.98 to 1.04. Before, a GEMV kernel computed the
 * last column of some products at a time, from 32 rows on, and the lines of A and C came from L2 once more: this takes
 * 0.9 times as long, which is a part of the ratios above.
 *
 * Of a transposed A the tile itself has the rows of such a column in a register (outer.h), where `whole` products are a
 * thread's: the least rows of a part are fewer than the kernel takes. Tiles of as many whole vectors as the kernel has
 * took 0.95 times as long as those of the kernel for more columns in the mean of 79 batches (33 x 33 x 33 float 0.87,
 * 17 x 39 x 17 double 0.84, 8 rows 1.0 to 1.07). */
static int columns_after_vectors(const pysimd_kernel *kernel, const pysimd_product *p, int whole)
{
    enum { VECTOR = 64, ROWS = 8, MOST_K = 512, COLUMNS_OF_DOUBLE = 33, NO_K = MOST_K + 1 };
    /* of one column and of two: float, widened values, double */
    static const int64_t least_k[][3] = {{0, PYSIMD_AFTER_K, 32}, {0, 20, 40}, {0, 24, NO_K}};
    _Static_assert(ROWS / 2 >= PYSIMD_AFTER_ROWS, "eight and more rows are tiles of half as many at least");
    if (!kernel->dots || !p->chosen || p->flags != PYSIMD_ZERO || p->m < ROWS) return 0;
    if (p->cs_a != 1 && !(whole && is_by_columns(p))) return 0;
    const int64_t lanes = VECTOR / pysimd_element_sizes[kernel->types].c, columns = p->n % lanes;
    if (columns == 0 || columns > 2 || columns == p->n || p->n > PYSIMD_SMALL_COLUMNS + 2) return 0;
    if (kernel->types == F64 && p->n > COLUMNS_OF_DOUBLE) return 0;
    const int64_t *least = least_k[kernel->types == F64 ? 2 : kernel->panel == WIDE];
    if (p->k < least[columns] || p->k > MOST_K || pysimd_has_small(kernel, p)) return 0;
    const pysimd_kernel *before = pysimd_choose((int)kernel->types, p->m, p->n - columns, p->k);
    if (p->cs_a != 1 && !has_registers(before, p->m, columns, lanes)) return 0;
    return before->dots && before->nr >= p->n - columns ? (int)columns : 0; /* one tile has all columns */
}

/* pysimd_of_batch, unless gemm.c packs the product's A. */
static const pysimd_kernel *of_batch(const pysimd_kernel *kernel, const pysimd_product *p)
{
    enum { SOME = 16 };
    if (!p->chosen || p->flags != PYSIMD_ZERO || p->ndim != 1 || p->shape[0] < SOME) return kernel;
    const pysimd_order a = pysimd_order_by(p->rs_a, p->cs_a, 1), b = pysimd_order_by(p->rs_b, p->cs_b, 1);
    const pysimd_kernel *other = pysimd_of_batch(kernel, p->m, p->n, p->k, a, b, p->batch_b[0] == 0);
    return pysimd_gemm_takes(other, p->m, p->n, p->k) ? kernel : other;
}

/* How products are computed: by gemm.c, straight from the arrays, or tile by tile. */
typedef struct {
    const pysimd_kernel *kernel;
    int gemm, direct, divided;
} route;

static route route_of(const pysimd_kernel *given, const pysimd_product *p, int64_t batch)
{
    const pysimd_kernel *kernel = of_batch(given, p);
    const int direct = pysimd_is_direct(kernel, p);
    const int strips = !direct && kernel->dispatch_few_columns && pysimd_strips_take_few(kernel, p);
    const int by_tiles = direct || is_shallow(kernel, p);
    const int by_blocks = !by_tiles && pysimd_gemm_takes(kernel, p->m, p->n, p->k);
    const int divided = by_blocks && batch == 1 && is_divided(kernel, p);
    return (route){kernel, strips || (by_blocks && !divided), direct, divided};
}

/* Products of a batch whose sums are in a part of L1; at least one, where pysimd_takes_epilogue. */
static int64_t pieces_of(const pysimd_kernel *kernel, const pysimd_product *p, int64_t batch)
{
    enum { IN_L1 = 16 << 10 };
    const int64_t each = p->m * p->n * pysimd_element_sizes[kernel->types].c;
    return most(least(IN_L1 / each, batch), 1);
}

int pysimd_takes_epilogue(const pysimd_kernel *kernel, const pysimd_product *p)
{
    enum { MOST = 32 << 10 }; /* bytes */
    const int64_t batch = pysimd_batch_of(p);
    if (batch < 2 || (double)p->m * (double)p->n * pysimd_element_sizes[kernel->types].c > MOST) return 0;
    /* Of what gemm.c takes a long call goes there in any case, to look for signals: p->interrupted is not set yet. */
    const route way = route_of(kernel, p, batch);
    return !way.gemm && !pysimd_gemm_takes(way.kernel, p->m, p->n, p->k);
}

int pysimd_multiply(const pysimd_kernel *given, const pysimd_product *product)
{
    const int64_t batch = pysimd_batch_of(product);
    if (batch == 0 || product->m == 0 || product->n == 0) return 0;
    const route way = route_of(given, product, batch);
    if (way.gemm) return pysimd_gemm(way.kernel, product);

    const pysimd_kernel *kernel = way.kernel;
    const int direct = way.direct, divided = way.divided;
    const int exchanged = direct && pysimd_is_direct_exchanged(kernel, product);
    const int asked = (int)least(most(product->threads, 1), PYSIMD_MAX_THREADS);
    int threads = pysimd_threads_at_hand(asked, product->woken, product->ns);
    const int more = direct || divided ? 0 : columns_after_vectors(kernel, product, batch >= threads);
    if (more) kernel = pysimd_choose((int)kernel->types, product->m, product->n - more, product->k);
    division d = {.whole = {.kernel = kernel, .product = product, .count = batch, .row1 = product->m,
                            .direct = direct, .exchanged = exchanged, .more = more}};
    /* Of a matrix times a vector no part has so few rows that their terms are added in another order (gemv_chain.h). */
    d.tile = kernel->form == GEMV ? (kernel->mr < 16 ? 4 : 1) * kernel->mr : tile_rows(kernel, product->m);
    if (exchanged) d.tile = PYSIMD_DIRECT_LANES;
    const int64_t tiles_of_rows = kernel->form == GEMV ? most(product->m / d.tile, 1) : quotient(product->m, d.tile);
    const int64_t tiles_of_columns = quotient(product->n, PYSIMD_DIRECT_COLUMNS);
    const int few_rows = direct && !exchanged && product->m <= PYSIMD_DIRECT_ROWS;
    const int may_divide = !product->epilogue;
    d.by_columns = may_divide && few_rows && batch < threads && batch < tiles_of_columns;
    d.by_rows = may_divide && !d.by_columns && batch < threads && batch < tiles_of_rows;
    if (d.by_columns) d.tile = PYSIMD_DIRECT_COLUMNS;
    d.units = d.by_columns ? tiles_of_columns : d.by_rows ? tiles_of_rows : batch;
    if (d.units < threads) threads = (int)d.units;
    /* Of a vector times a matrix, parts are columns: the rows of the matrix are read in long pieces. */
    const int64_t inner = product->ndim ? product->shape[product->ndim - 1] : 1;
    const staging staged = direct ? (staging){.total = 0} : staging_of(&d.whole, inner);
    /* A B that is staged for several rows of tiles is kept by each thread for all of its parts: with one part each, all
     * wait for the thread that begins last. */
    const int keeps = d.by_rows && batch == 1 && kernel->form != GEMV && staged.bytes_b > 0 && d.units > threads;
    const int one_part_each = kernel->form == GEMV || exchanged || staged.bytes_b;
    const int whole = threads == 1 || d.by_columns || (d.by_rows && !keeps && one_part_each);
    const int64_t wanted = whole ? threads : threads * PARTS_A_THREAD;
    d.parts = wanted < d.units ? wanted : d.units;
    d.whole.stages = staged.total > 0;
    if (!d.by_columns && (!d.by_rows || batch == 1)) choose_ways(&d.whole, threads);

    /* Memory is allocated before the first byte of C is written. */
    d.scratch_bytes = staged.total;
    if (product->epilogue && staged.total >= 0) {
        d.whole.pieces = pieces_of(kernel, product, batch);
        d.sums_at = staged.total;
        d.scratch_bytes += rounded(d.whole.pieces * product->m * product->n * pysimd_element_sizes[kernel->types].c);
    }
    int64_t all;
    if (d.scratch_bytes < 0 || __builtin_mul_overflow(d.scratch_bytes, threads, &all)) return -1;
    _Alignas(64) char local[ON_STACK];
    pysimd_buffer *kept_memory = all >= MUCH_SCRATCH ? pysimd_take_buffer(all) : NULL;
    if (all >= MUCH_SCRATCH)
        d.whole.scratch = kept_memory ? kept_memory->data : NULL;
    else
        d.whole.scratch = all <= ON_STACK ? local : aligned_alloc(64, (size_t)all);
    if (!d.whole.scratch) return -1;
    pysimd_claim claims[PYSIMD_MAX_THREADS];
    memset(claims, 0, (size_t)threads * sizeof *claims);
    pysimd_staged kept[PYSIMD_MAX_THREADS];
    if (keeps) memset(kept, 0, (size_t)threads * sizeof *kept);
    d.threads = threads, d.claims = claims, d.kept = keeps ? kept : NULL;
    const int refused = product->begin && product->begin(product->context);
    if (!refused)
        pysimd_run(&(pysimd_work){.context = &d, .phases = 1, .items = parts_of, .run = run_part, .threads = threads},
                   asked, product->woken, product->ns);
    if (kept_memory)
        pysimd_give_back_buffer(kept_memory);
    else if (d.whole.scratch != local)
        free(d.whole.scratch);
    return refused ? PYSIMD_INTERRUPTED : 0;
}
