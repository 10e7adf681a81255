/* driver.c: which route a product takes, its division into parts, and the threads that compute them. Compiled for the
 * baseline processor.
 *
 * A thread computes whole products or whole rows of tiles, so the bits of the result do not depend on the number of
 * threads.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#include "caches.h"
#include "claims.h"
#include "direct.h"
#include "gemm.h"
#include "split.h"
#include "strips.h"
#include "threads.h"
#include "work.h"

enum {
    ON_STACK = 4 << 10,
    MUCH_SCRATCH = 256 << 10, /* bytes that are kept for the next call: 4096 x 64 x 4096 float16 took 16 threads of a
                                 Xeon 4.8 milliseconds, and 3.0 without the faults of fresh pages */
    PARTS_A_THREAD = 4, /* each takes its own, then those of others, for they do not begin at the same time */
};

/* A product and its division into parts, of products, of rows or of columns. */
typedef struct {
    work whole;
    int by_rows, by_columns;
    int64_t tile, units; /* rows, or columns, of a tile; products or tiles */
    int64_t parts, scratch_bytes, sums_at; /* of a thread's scratch memory */
    int threads;
    pysimd_claim *claims; /* one for each thread */
    pysimd_staged *kept;  /* the same, where all parts have one B; or NULL */
    trial *trials;        /* the same, where there are several ways; or NULL */
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
    if (d->trials) w.trial = d->trials + thread;
    if (d->by_rows) {
        w.row0 = first * d->tile;
        if (first + count < d->units) w.row1 = (first + count) * d->tile;
    } else if (d->by_columns) {
        const int64_t column = first * d->tile;
        const pysimd_product columns = columns_of(&w, column, least(count * d->tile, w.product->n - column));
        w.product = &columns;
        pysimd_compute(&w);
        return;
    } else {
        w.first = first, w.count = count;
    }
    pysimd_compute(&w);
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
static int has_registers(const pysimd_kernel *kernel, int64_t m, int64_t vectors, int64_t columns, int64_t lanes)
{
    enum { MOST_ACCUMULATORS = 29 };
    const int64_t rows = tile_rows(kernel, m);
    return rows * vectors + columns * quotient(rows, lanes) <= MOST_ACCUMULATORS;
}

/* The least K of a transposed A; `given` where no other was measured. By ratios of time, batches of 60 with K from 4 to
 * 15. Zen 4: one column of float and float16 after one vector 0.77 to 0.84 in the means, after two and three 0.87 to
 * 0.96, of double 0.83 to 0.91; two columns after one vector 0.9 and 0.87 from K = 11 on, below, and after more vectors
 * or of double, 0.92 to 1.12. Xeon with AMX: one column of float and float16 after one vector 0.95 with K up to 6, then
 * 0.78 to 0.83; two 0.9 from 11 on; after two and three vectors, and of double, up to 1.44. */
static int64_t least_k_transposed(int64_t given, int row, int64_t vectors, int64_t columns, int halves)
{
    enum { LEAST = 4, LEAST_OF_TWO = 11 };
    const int narrow_after_one = row < 2 && vectors == 1;
    if (columns == 1) return halves || narrow_after_one ? LEAST : given;
    return narrow_after_one ? LEAST_OF_TWO : given;
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
 * 17 x 39 x 17 double 0.84, 8 rows 1.0 to 1.07).
 *
 * Where AVX-512 is executed in halves, 17 and 18 columns of float, and 9 and 10 of double, are otherwise three vectors
 * of 32 bytes. Batches of 100 with K from PYSIMD_AFTER_K on: of a transposed A one column more took 0.7 to 0.88 times
 * as long, two 0.75 to 1.0; as dot products one column of float 0.92 to 1.04 times from K = 28 on, of double 0.83 to
 * 0.98 from 24 on, of float16 0.78 to 1.0 from 20 on (one of 13 1.07), two 0.95 to 1.1 (Zen 4).
 *
 * `chosen`, the kernel of all columns, becomes that of the other columns, which computes them too. */
static int columns_after_vectors(const pysimd_kernel **chosen, const pysimd_product *p, int whole)
{
    enum { VECTOR = 64, ROWS = 8, MOST_K = 512, COLUMNS_OF_DOUBLE = 33, NO_K = MOST_K + 1 };
    /* of one column and of two: float, widened values, double */
    static const int64_t least_k[][3] = {{0, PYSIMD_AFTER_K, 32}, {0, 20, 40}, {0, 24, NO_K}};
    static const int64_t least_k_halves[][3] = {{0, 30, NO_K}, {0, 20, NO_K}, {0, 24, NO_K}};
    _Static_assert(ROWS / 2 >= PYSIMD_AFTER_ROWS, "eight and more rows are tiles of half as many at least");
    const pysimd_kernel *kernel = *chosen;
    const int transposed = p->cs_a != 1, halves = kernel->dispatch_halves;
    if (!(kernel->dots || halves) || !p->chosen || p->flags != PYSIMD_ZERO || p->m < ROWS) return 0;
    if (transposed && !(whole && is_by_columns(p))) return 0;
    const int64_t lanes = VECTOR / pysimd_element_sizes[kernel->types].c, columns = p->n % lanes;
    if (columns == 0 || columns > 2 || columns == p->n || p->n > PYSIMD_SMALL_COLUMNS + 2) return 0;
    if (kernel->types == F64 && p->n > COLUMNS_OF_DOUBLE) return 0;
    const int row = kernel->types == F64 ? 2 : kernel->panel == WIDE;
    const int64_t given = !halves ? least_k[row][columns] : transposed ? PYSIMD_AFTER_K : least_k_halves[row][columns];
    const int64_t least = transposed ? least_k_transposed(given, row, p->n / lanes, columns, halves) : given;
    if (p->k < least || p->k > MOST_K || pysimd_has_small(kernel, p)) return 0;
    const pysimd_kernel *before = pysimd_choose((int)kernel->types, p->m, p->n - columns, p->k);
    if (halves && !before->dots) before = pysimd_of_any_columns((int)kernel->types);
    if (transposed && !has_registers(before, p->m, p->n / lanes, columns, lanes)) return 0;
    if (!before->dots || before->nr < p->n - columns) return 0; /* one tile has all columns */
    *chosen = before;
    return (int)columns;
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
    const int more = direct || divided ? 0 : columns_after_vectors(&kernel, product, batch >= threads);
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
    const staging staged = direct ? (staging){.total = 0} : pysimd_staging_of(&d.whole, inner);
    /* A B that is staged for several rows of tiles is kept by each thread for all of its parts: with one part each, all
     * wait for the thread that begins last. */
    const int keeps = d.by_rows && batch == 1 && kernel->form != GEMV && staged.bytes_b > 0 && d.units > threads;
    const int one_part_each = kernel->form == GEMV || exchanged || staged.bytes_b;
    const int whole = threads == 1 || d.by_columns || (d.by_rows && !keeps && one_part_each);
    const int64_t wanted = whole ? threads : threads * PARTS_A_THREAD;
    d.parts = wanted < d.units ? wanted : d.units;
    d.whole.stages = staged.total > 0;
    if (!d.by_columns && (!d.by_rows || batch == 1)) pysimd_choose_ways(&d.whole, threads);

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
    trial trials[PYSIMD_MAX_THREADS]; /* a thread goes on with its own in the next part */
    for (int t = 0; d.whole.ways && t < threads; t++) trials[t] = pysimd_trial_of(&d.whole, threads);
    d.threads = threads, d.claims = claims, d.kept = keeps ? kept : NULL, d.trials = d.whole.ways ? trials : NULL;
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
