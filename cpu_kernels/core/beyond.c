/* beyond.c: the work of a thread, products from beyond L2 in the fastest of several ways to read them, which is found
 * by timing. Compiled for the baseline processor. */
#include "caches.h"
#include "split.h"
#include "work.h"

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

/* Calls of the kernel for so many products, and how often an operand is staged before them: 0 for a single call that
 * reads both operands in the order of memory. */
static int64_t shares_of(const work *w, int64_t products, int by_columns)
{
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_product *p = w->product;
    if (kernel->form != OUTER || w->direct) return 0;
    const int small = pysimd_has_small(kernel, p);
    if (small) return small > 1 ? small * products : 0;
    const int64_t tiles = quotient(p->m, kernel->mr) * quotient(p->n, kernel->nr + w->more);
    if (tiles == 1 && !by_columns) return 0;
    const staging g = pysimd_staging_of(w, products);
    return (tiles > 1 ? tiles * products : 1) + (g.bytes_a > 0) + (g.bytes_b > 0);
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
 * not follow: 90 x 125 float took 4.0 times as long from L3, and 2.6 times from memory, 64 x 64 double 2.7 times from
 * memory; a Xeon's does, and rows one by one took 1.0 to 2 times as long there, as they do from L2. */
static int may_read_row_by_row(const work *w, int threads)
{
    enum { LEAST_BYTES = 144, MOST_BYTES = 4 << 10 }; /* of a row */
    const pysimd_product *p = w->product;
    if (w->kernel->form != GEMV || w->direct || p->cs_a != 1 || p->k > MOST_BYTES) return 0;
    const int64_t row = p->k * sizes_of(w->kernel, p).a;
    if (row < LEAST_BYTES || row > MOST_BYTES) return 0;
    if (w->count > 1 && p->batch_a[p->ndim - 1] == 0) return 0;
    return (double)w->count * (double)p->m * (double)row > (double)threads * (double)pysimd_caches().l2;
}

void pysimd_choose_ways(work *w, int threads)
{
    enum { SEGMENT = 64 << 10, LEAST_TOGETHER = 4, SEGMENTS = 96 };
    static const candidates prefetch = {3, {PREFETCH_L2, IN_ORDER, PREFETCH_L1}},
                            prefetch_or_rows = {4, {PREFETCH_L2, IN_ORDER, PREFETCH_L1, ROW_BY_ROW}},
                            rows = {2, {IN_ORDER, ROW_BY_ROW}};
    const pysimd_product *p = w->product;
    const double elements = (double)p->m * (double)p->k + (double)p->k * (double)p->n + (double)p->m * (double)p->n;
    if (2 * 8 * (double)w->count * elements <= (double)pysimd_caches().l2) return; /* with all gaps: see matrices_of */
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
    const int64_t row = p->k * sizes_of(w->kernel, p).a;
    w->ways = &rows;
    w->of_rows = w->count == 1;
    w->segment = w->count > 1 ? most(SEGMENT / (p->m * row), 1) : multiple(most(SEGMENT / row, 1), w->kernel->mr);
}

/* A trial is half of the work at most, or where nothing is prefetched, whose ways differ more, a sixteenth. */
trial pysimd_trial_of(const work *w, int threads)
{
    trial x = trial_of(w->ways, w->stages && !w->of_rows);
    const int64_t segments = (w->of_rows ? w->product->m : w->count) / threads / w->segment;
    if (segments < (w->together ? 2 : 16) * x.most_segments) end_trial(&x);
    return x;
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
        pysimd_multiply_some(&w, end - i, x->a + i * bs_a * size.a, x->b + i * bs_b * size.b,
                             x->c + i * bs_c * size.c, bs_a, bs_b, bs_c);
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
        pysimd_multiply_some(&piece, 1, of.a, of.b, of.c, 0, 0, 0);
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
        pysimd_multiply_some(w, count, of.a, of.b, of.c, row.a, row.b, row.c);
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
            pysimd_multiply_some(&piece, count, of.a, of.b, of.c, row.a, row.b, row.c);
        if (timed) add_time(x, (now_ns() - before) / (double)count);
    }
}

void pysimd_compute(const work *w)
{
    if (!w->ways)
        run_in_order(w);
    else if (w->of_rows)
        run_rows(w, w->trial);
    else
        run_products(w, w->trial);
#ifdef __SSE2__
    if (w->product->flags & PYSIMD_STREAM) __builtin_ia32_sfence(); /* before other threads see that this ends */
#endif
}

