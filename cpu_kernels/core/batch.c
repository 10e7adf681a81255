/* batch.c: products along the innermost dimension of a batch: the packing of operands that a kernel cannot read in
 * place, and the loops over micro-tiles. Compiled for the baseline processor. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "caches.h"
#include "direct.h"
#include "split.h"
#include "work.h"

int pysimd_has_small(const pysimd_kernel *kernel, const pysimd_product *p)
{
    const pysimd_call asked = {.m = p->m, .n = p->n, .k = p->k, .rs_a = p->rs_a, .cs_a = p->cs_a, .rs_b = p->rs_b,
                               .rs_c = p->rs_c, .cs_c = p->cs_c, .flags = p->flags};
    if (!kernel->small || p->n > PYSIMD_SMALL_COLUMNS || !(p->flags & PYSIMD_ZERO)) return 0;
    return kernel->small(&asked, p->cs_b);
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

/* The micro-tiles of a product. Computed once for all products of a call: the divisions took a tenth of the time of
 * products that are staged one at a time (33 x 33 x 33 float16, Xeon). */
typedef struct {
    int whole; /* a product is one tile: a batch is one call of the kernel */
    split rows, columns;
    int by_columns;         /* columns_of_tiles, a product after the other */
    int64_t together;       /* products side by side */
    int64_t same_m, same_n; /* of every tile; 0: tiles do not overlap */
    pysimd_batch_fn *compute;
    pysimd_sizes size; /* of the elements that it reads and writes */
} tiling;

/* How the last columns of a tile of n are computed. */
static int flag_of_last(const work *w, int64_t n)
{
    if (w->more) return w->product->cs_a == 1 ? 0 : PYSIMD_AFTER; /* or PYSIMD_DOTS */
    return pysimd_flags_of_last(w->kernel, n, w->product->k);
}

/* One product, whose first elements are at a, b and c, a column of micro-tiles after the other: tiles of the same
 * height are one call. In caches that took 0.97 times as long as a call for each tile, in the order of C's memory; from
 * beyond L2 1.1 times (Zen 3). A C that fills L2 took 1.3 to 2.7 times as long, for each column of tiles is in as many
 * pages as rows (Xeon). */
static void columns_of_tiles(const work *w, const tiling *plan, pysimd_call *t, const pysimd_call *s,
                             const char *a, const char *b, char *c, int64_t step_b)
{
    const split *rows = &plan->rows, *columns = &plan->columns;
    const pysimd_sizes size = plan->size;
    const int64_t cs_c = w->kernel->form == GEMV ? s->cs_c : 1;
    for (int64_t q = 0, j0 = 0; q < columns->count; q++, j0 += t->n) {
        t->n = part_of(columns, q, s->n - j0);
        t->flags = s->flags | flag_of_last(w, t->n);
        t->b = b + j0 * step_b * size.b;
        for (int64_t r = 0, i0 = 0; r < rows->count; r += t->batch, i0 += t->batch * t->m) {
            t->batch = r < rows->higher ? rows->higher : rows->count - r;
            t->m = part_of(rows, r, s->m - i0);
            t->a = a + i0 * s->rs_a * size.a, t->bs_a = t->m * s->rs_a;
            t->c = c + (i0 * s->rs_c + j0 * cs_c) * size.c, t->bs_c = t->m * s->rs_c;
            plan->compute(t);
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

/* Of a matrix that is multiplied by more vectors than a GEMV kernel takes at a time: all rows, or where they do not
 * stay in L2, as many as stay in L1. Matrices in L2 took 1.0 to 1.25 times as long in parts (Zen 4). */
static int64_t most_gemv_rows(const pysimd_kernel *kernel, const pysimd_call *s)
{
    enum { IN_L1 = 16 << 10 };
    if (s->n <= PYSIMD_GEMV_COLUMNS || s->cs_a != 1) return s->m;
    const int64_t row = s->k * pysimd_sizes_in_kernel(kernel).a;
    if ((double)s->m * (double)row <= (double)pysimd_caches().l2) return s->m;
    return multiple(most(IN_L1 / row, 1), kernel->mr);
}

/* That of products of the shape of `s`, with its flags. */
static tiling tiling_of(const work *w, const pysimd_call *s, int widens_b)
{
    const pysimd_kernel *kernel = w->kernel;
    pysimd_sizes size = pysimd_sizes_in_kernel(kernel);
    if (widens_b) size.b /= 2;
    pysimd_batch_fn *const compute = widens_b ? kernel->batch_widening_b : kernel->batch;
    const int gemv = kernel->form == GEMV;
    const int64_t most_m = gemv ? most_gemv_rows(kernel, s)
                                : pysimd_rows_of_tile(kernel, s->rs_a * pysimd_sizes_in_kernel(kernel).a);
    const int64_t most_n = gemv ? PYSIMD_GEMV_COLUMNS : kernel->nr + w->more;
    if (s->m <= most_m && s->n <= most_n) return (tiling){.whole = 1, .compute = compute, .size = size};
    tiling t = {.rows = gemv ? split_of(s->m, most_m, 1) : rows_of_tiles(kernel, s->m, most_m),
                .columns = split_of(s->n, most_n, kernel->column_step ? kernel->column_step : kernel->nr),
                .compute = compute, .size = size};
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
        s->flags |= pysimd_flags_in_a_row(kernel, before, s, ends) | flag_of_last(w, s->n);
        prefetch_share(w->next);
        plan->compute(s);
        s->flags = flags;
        return;
    }
    const pysimd_sizes size = plan->size;
    const split *rows = &plan->rows, *columns = &plan->columns;
    const int64_t step_b = kernel->form == OUTER ? pysimd_column_step(kernel) : s->rs_b;
    const int64_t cs_c = kernel->form == GEMV ? s->cs_c : 1;
    pysimd_call t;
    pysimd_copy_call(&t, s);
    if (plan->by_columns) {
        t.bs_b = 0;
        for (int64_t i = 0; i < s->batch; i++)
            columns_of_tiles(w, plan, &t, s, (const char *)s->a + i * s->bs_a * size.a,
                             (const char *)s->b + i * s->bs_b * size.b, (char *)s->c + i * s->bs_c * size.c, step_b);
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
                t.flags = s->flags | pysimd_flags_in_a_row(kernel, before, &t, last && ends) | flag_of_last(w, t.n);
                prefetch_share(w->next);
                plan->compute(&t);
            }
        }
    }
}

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

/* Whether the kernel widens the values of B while it loads them from the array: then only A is staged. A B that is
 * broadcast is staged once. */
static int widens_b(const work *w)
{
    const pysimd_product *p = w->product;
    const int last = p->ndim - 1;
    if (p->cs_b != 1 || !pysimd_widens_b(w->kernel, p->m)) return 0;
    return last < 0 || p->shape[last] == 1 || p->batch_b[last] != 0;
}

/* Products from beyond L2 may be staged few at a time (beyond.c): what the next ones come from is then read while these
 * are multiplied. 90 batches took 0.91 times as long in the mean on a Zen 4 (14 x 14 x 14 float16 of every other
 * element 0.65), 1.05 times on a Xeon with AMX. Without gain: C of the products that are staged prefetched before them,
 * 0.95 to 1.2 times where the trial chooses (5 x 6 x 63 and 22 x 19 x 5 double of every other element, from L3 and
 * memory), 0.83 for 3 x 12 x 28 in order with few staged (Zen 4). */
staging pysimd_staging_of(const work *w, int64_t batch)
{
    enum { IN_L1 = 16 << 10, FEW = 2 << 10 };
    const pysimd_product *p = w->product;
    staging s = {.products = batch};
    if (!pysimd_reads_a(w->kernel, p->k, p->rs_a, p->cs_a) || copies_short_rows(w) || pads_rows(w))
        s.bytes_a = pysimd_staged_bytes_a(w->kernel, p->m, p->k);
    s.widens_b = widens_b(w);
    if (!s.widens_b && !pysimd_reads_b(w->kernel, p->rs_b, p->cs_b))
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

/* Whether B is packed for one tile at a time, because each is used once: so the packed columns stay in L1. Not of a B by
 * rows, whose rows would be read in pieces, which the hardware's prefetch does not follow: 5 x 6 x 63 and 6 x 100 x 200
 * double of every other element took 2.4 and 1.7 times as long from memory, ten sizes 1.0 times in the mean in cache
 * (Zen 4). */
static int packs_tiles_of_b(const work *w, const staging *g, int used_once)
{
    const pysimd_kernel *kernel = w->kernel;
    const int floats = kernel->form == OUTER && kernel->panel == PLAIN && kernel->k_group == 1;
    const int one_row = w->row1 - w->row0 <= kernel->mr;
    if (llabs(w->product->cs_b) < llabs(w->product->rs_b) && g->bytes_b <= pysimd_caches().l2 / 4) return 0;
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
    from_arrays.k = p->k, from_arrays.cs_a = p->cs_a, from_arrays.rs_b = p->rs_b, from_arrays.later = w->next;
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
    const staging g = pysimd_staging_of(w, count);
    pysimd_shape none = {0, 0, 0}, *before = w->before ? w->before : &none;
    const int ends = !w->follow;
    if (!g.bytes_a && !g.bytes_b) {
        const tiling plan = tiling_of(w, &s, g.widens_b);
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
    const tiling plan = tiling_of(w, &s, g.widens_b);
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
void pysimd_multiply_some(const work *w, int64_t count, const char *a, const char *b, char *c, int64_t bs_a,
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

