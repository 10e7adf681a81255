/* gemm.c: see gemm.h. The five loops of GotoBLAS (Goto and van de Geijn, Anatomy of High-Performance Matrix
 * Multiplication, 2008; BLIS: Van Zee and van de Geijn, 2015) around the microkernels of the table. Compiled for the
 * baseline processor.
 *
 *     for jc, pc     a block of B is packed into micro-panels of nr columns and kc rows, for L3, by all threads
 *     for ic         a block of mc rows of A: each thread takes its own, then those that are left of others (claims.h),
 *                    then packs parts of the next block of B
 *     for pr         kc columns of it are packed, for L2
 *     for jr         some micro-panels of B, for L2
 *     for ir         a micro-panel of A, for L1, and a row of micro-tiles of C: one call of the kernel
 *
 * Several threads share these loops, or each has parts of C, or blocks of K, of its own: see grid.h.
 *
 * In GotoBLAS and BLIS a micro-panel of B stays in L1 and micro-tiles follow one another down the columns of C, whose
 * lines are then written in pieces of a tile's width, each at the distance of a row. Like that 4096 x 64 x 4096 float
 * took 1.8 times as long on a Xeon and 1.17 times on a Zen 3, 1117 x 34 x 3459 double 1.7 and 1.2 times, 128 x 128 x
 * 128 float 1.08 and 1.03 times, and from 512 x 512 x 512 on as long.
 *
 * For a kernel with tile registers a block of B is packed for L2, and is read by all micro-panels of A. On a Xeon
 * 512 x 512 x 512 bfloat16 took 0.9 times as long as with micro-tiles down the columns of C, 1024 x 1024 x 1024 int8
 * 0.7 times. Blocks of B with fewer columns and more blocks of k, so that C's rows stay in L2, took 1.03 to 1.06 times
 * as long at 1024 and 2048.
 *
 * Products with few rows or columns take another route: strips.c. Of a batch, each thread computes whole products where
 * that leaves few threads idle; otherwise all threads compute some products together, as if they were one: see team.
 *
 * K is divided into blocks by the kernel and K alone, and the blocks of an element of C are added in ascending order.
 * So the bits of the result do not depend on m, n, strides, the number of threads or the route.
 *
 * Tried without gain on a Zen 3: prefetching the next micro-panel of B into L2 during the tiles of this one (92 instead
 * of 95 GFLOP/s for 512 x 512 x 512: most of it is there already); a batch that shares B as one product (341 times
 * 128 x 128 x 128 took as long); prefetching the rows of B that are packed next, 4 to 16 rows ahead, or the lines they
 * are packed to; 4, 8 or 64 panels packed together instead of 16; A read in place where its rows are no longer than a
 * block (512: 1.01 times as fast, 2048: 0.99 times); blocks of A of one and a half or two times as many rows (0.95 to
 * 1.0), or more or fewer rows than a third of L2 holds. There, packing B takes 3 % of the time of 512 x 512 x 512 and
 * 2 % of 2048 x 2048 x 2048, packing A 2 %, and the tiles run at 95 % of the peak, of which updating C takes 1 to 2.
 *
 * Nor on the Zen 3 and a Xeon: prefetching the lines of C before a tile (0.98 to 1.0 times as fast); non-temporal
 * stores of C (0.2 to 0.5 times); A packed by columns of a micro-tile (0.97 to 1.02 times), or with a cache line
 * between its rows (0.99 to 1.01 times); B read in place up to 256 x 256 x 256 (0.9 to 1.02 times).
 *
 * Nor on a Zen 4: prefetching the next rows of an A that is read in place into L2, a share in each step as in strips.c
 * (4096 x 4000 x 12 double 0.86 times as long, 5 to 32 columns of float and double 0.95 to 1.05 times).
 */
#include "gemm.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "blocks.h"
#include "caches.h"
#include "claims.h"
#include "grid.h"
#include "pack.h"
#include "scale.h"
#include "split.h"
#include "stage.h"
#include "strips.h"
#include "threads.h"

enum {
    CACHE_LINE = 64,
    HUGE_PAGE = 2 << 20,
    SMALL = 48 * 48 * 48,         /* multiply-adds up to which packing does not pay */
    LARGE = 1 << 20,              /* the same of products whose A stays near L1, and is read by several tiles */
    MOST_COLUMNS = 8192,          /* of a block of B */
    FEW_PANELS = 2,               /* for which a block of A is not worth packing, and tiles are computed by columns */
    PANELS_AT_A_TIME = 16,        /* micro-panels that are packed together, so that rows of B are read in long pieces */
    ITEMS_A_THREAD = 4,           /* parts of a block that threads take in turn, for their times differ */
    PARTS_A_THREAD = 16,          /* the same of a batch */
    MOST_ROW_ITEMS = 1 << 24,     /* blocks of rows of A */
    LARGEST_TILE = 32 * 32 * 4,   /* bytes */
    PRODUCT_OF_A_THREAD = 1 << 25, /* smaller products of a batch, in multiply-adds, are computed by one thread each */
    WORTH_TWO_THREADS = 1 << 21,  /* multiply-adds, */
    WORTH_TWO_OF_BLOCKS = 1 << 19, /* where K has several blocks, */
    WORTH_TWO_NS = 12 * 1000,     /* the same in nanoseconds: int8 of 128 x 128 x 128 takes 10 to 14 thousand (Xeon), */
    WORTH_TWO_OF_TILES_NS = 40 * 1000, /* with tile registers, B by rows, on few threads */
    WORTH_A_THREAD = 1 << 18,     /* multiply-adds of each, where there are so many */
    CLAIMED_PHASES = 3,           /* whose claims are kept: the last, this one and the next */
    WORTH_A_PHASE = 1 << 22,      /* multiply-adds of each thread between two barriers, if there are so many */
};
static const int64_t MOST_MEMORY = 64 << 20; /* of the blocks of B of all teams */

/* --- sizes of blocks --- */

static int64_t longest_block(const pysimd_kernel *kernel)
{
    return pysimd_longest_block(kernel, pysimd_sizes_in_kernel(kernel));
}

int64_t pysimd_block_of_k(const pysimd_kernel *kernel, int64_t k)
{
    return pysimd_equal_block(kernel, pysimd_sizes_in_kernel(kernel), k);
}

typedef struct {
    const pysimd_kernel *kernel;
    const pysimd_product *product;
    pysimd_sizes size, packed; /* bytes of elements, in the arrays and in panels */
    int64_t batch;
    int a_in_place, k_major_a;
    int64_t kc, k_blocks;           /* columns of A in a block; blocks of K */
    int64_t panels, panel_bytes;    /* micro-panels of B: number in n columns, bytes of one of kc rows */
    int64_t block_panels, block_ks; /* what a block of B holds: micro-panels, blocks of k */
    int64_t blocks, b_bytes;        /* blocks of B in a product; bytes of one */
    int64_t mc;                     /* rows of A in a block, at most */
    int64_t packed_rows, a_bytes;   /* of which so many are packed at a time; bytes of them */
    int64_t across;                 /* micro-tiles of a row that follow one another, at most */
    int prefetches_c;               /* rows of C, before they are computed */
    int64_t tile_rows;              /* of a micro-tile, at most */
    int tall;                       /* tile registers: C has so few micro-panels that a call computes columns of them */
} plan;

/* Whether rows at this distance fall into few sets of a cache. */
static int aliases(int64_t bytes) { return bytes % 1024 == 0; }

/* Whether no row of A that a tile register loads is in two cache lines. */
static int starts_on_lines(const pysimd_kernel *kernel, const pysimd_product *q)
{
    const int64_t size = pysimd_element_sizes[kernel->types].a;
    int64_t offsets = (int64_t)(intptr_t)q->a | q->rs_a * size;
    for (int d = 0; d < q->ndim; d++) offsets |= q->batch_a[d] * size;
    return offsets % CACHE_LINE == 0;
}

/* A is packed unless the kernel can read it in rows and so few columns use it that packing takes longer. A tile
 * register loads A's own rows as fast if each is in one cache line: 256 to 1024 columns took 0.87 to 0.96 times as
 * long, and up to 1.15 times from rows that are in two lines (Xeon). Those of few columns are read once: up to 32 took
 * 0.65 to 0.9 times as long from rows in two lines, 33 to 64 0.85 to 1.0, but 1.04 to 1.09 times where K is several
 * blocks. */
static int reads_a_in_place(const pysimd_kernel *kernel, const pysimd_product *q, int64_t panels, int64_t k_blocks)
{
    enum { SOME = 12 };
    if (q->cs_a != 1 || !pysimd_reads_a(kernel, q->k, q->rs_a, q->cs_a)) return 0;
    if (kernel->k_tile && panels > (k_blocks == 1 ? FEW_PANELS : 1) && !starts_on_lines(kernel, q)) return 0;
    const int adjacent = k_blocks == 1 && q->rs_a == q->k; /* a micro-panel is one piece of memory */
    if (kernel->k_tile && adjacent) return 1;
    return panels <= FEW_PANELS || (panels <= SOME && !aliases(q->rs_a * pysimd_element_sizes[kernel->types].a));
}

/* Whether the micro-panels of A, stored by columns, are K-major. Else 16-bit values are widened as columns a block
 * apart. Of more than 320 rows a kernel reads them from few sets of L1: 403 x 264 x 1880 float16 took 0.85 times as
 * long K-major as transposed (Xeon), which took 0.66 times as long as columns (Zen 5). Where a block has so many
 * columns that the lines of a micro-tile fill L1, each of many micro-panels of B reads them from L2: 97 x 512 x 512,
 * 118 x 625 x 1205 and 67 x 2848 x 1636 bfloat16 and float16 took 0.83 to 0.95 times as long K-major, 64 x 4096 x 64
 * and 250 x 600 x 100 1.02 to 1.03 times (Zen 3). Wider values are transposed, unless the columns, or the rows that
 * they become, are in few sets: 48 x 4096 x 48 float took 0.85 times as long K-major, 512 x 512 x 512 0.96 and double
 * 0.97 times (Zen 3; Xeon 0.92 and 0.84), but 60 x 4000 x 60 1.04 times (Zen 3). On an Ice Lake rows took 0.91 to 0.97
 * times as long as such panels for 384 x 384 x 384 and 512 x 512 x 512, when these were packed otherwise. */
static int k_major_a(const pysimd_kernel *kernel, const pysimd_product *q, int64_t panels, int64_t kc)
{
    enum { MANY_ROWS = 320, MANY_PANELS = 8 };
    if (q->rs_a != 1 || q->cs_a == 1 || kernel->k_group > 1) return 0;
    if (kernel->panel != WIDE) {
        const int64_t size = pysimd_element_sizes[kernel->types].a;
        return aliases(q->cs_a * size) || aliases(kc * size);
    }
    return panels > 1 && (q->m > MANY_ROWS || (panels >= MANY_PANELS && kc * CACHE_LINE >= pysimd_caches().l1));
}

/* Bytes of a block of B, of so many that threads read at the same time. Tile registers read each panel once for 32
 * rows: from L2. */
static int64_t bytes_of_b(const pysimd_kernel *kernel, int blocks)
{
    enum { LEAST = 1 << 20, MOST = 16 << 20 };
    if (kernel->k_tile) return pysimd_caches().l2 * 5 / 8;
    return most(least(pysimd_caches().l3 / 4, MOST) / blocks, LEAST);
}

/* Micro-panels of B that a row of micro-tiles takes. The longer the row, the longer the pieces in which C is written,
 * but the next rows of A need the same panels again. A quarter of an L2 of 1 MiB or more holds them, beside a third of
 * it for the block of A, and C's rows: with half of it 3000 x 3000 x 3000 and 2000 x 300 x 2000 float took 1.07 times
 * as long, 1024 x 1024 x 1024 1.04, 512 x 512 x 512 1.02, double 1.06, 1.03 and 1.06 (Xeon with AMX, 2 MiB of L2),
 * with all of B 1024 x 1024 x 1024 float 1.2 times. Smaller ones come with an L3 that delivers as fast as the
 * multiply-adds take (2048 x 2048 x 2048 float took 1.03 times as long with half of L2, Zen 3). */
static int64_t panels_across(int64_t panels, int64_t panel_bytes)
{
    const int64_t l2 = pysimd_caches().l2;
    return l2 < 1 << 20 ? panels : most(l2 / 4 / panel_bytes, 1);
}

/* Whether the time of a product is that of writing a C larger than L2, whose rows are short: the hardware's prefetch
 * ends with a page. 877,000 x 7 x 56 int8 took 230 microseconds for each 7000 rows and takes 144 (Xeon), 4031 x 2 x 359
 * and 4000 x 3 x 300 float16 took 0.64 and 0.69 times as long, 3000 x 30 x 300 0.86 times (Zen 3), on the Xeon, whose
 * L2 is four times as large, 0.97 to 1.03 times; with rows of up to 48 KiB up to 1.07 times (Zen 3). */
static int prefetches_c(const plan *p)
{
    enum { SHALLOW = 64, MOST_BYTES = 16 << 10 };
    const pysimd_product *q = p->product;
    const int64_t row = q->n * p->size.c;
    if (q->k > SHALLOW || q->rs_c != q->n || p->kernel->mr * row > MOST_BYTES || p->panels > p->block_panels) return 0;
    return (double)q->m * (double)row > (double)pysimd_caches().l2;
}

/* `blocks` of B are read at the same time. */
static plan plan_of(const pysimd_kernel *kernel, const pysimd_product *product, int blocks)
{
    plan p = {.kernel = kernel, .product = product, .size = pysimd_element_sizes[kernel->types],
              .packed = pysimd_sizes_in_kernel(kernel), .batch = pysimd_batch_of(product)};

    p.kc = pysimd_block_of_k(kernel, product->k);
    p.k_blocks = quotient(product->k, p.kc);
    p.panels = quotient(product->n, kernel->nr);

    /* A cache line more than a power of two: rows of B are written to many micro-panels at a time. */
    p.panel_bytes = multiple(pysimd_panel_of_b(kernel, p.kc, kernel->nr).bytes, CACHE_LINE) + CACHE_LINE;
    const int64_t budget = bytes_of_b(kernel, blocks) / p.panel_bytes; /* in micro-panels */
    const int64_t columns = least(least(p.panels, quotient(MOST_COLUMNS, kernel->nr)), most(budget, 1));
    p.block_panels = equal_parts(p.panels, columns, 1);
    p.block_ks = equal_parts(p.k_blocks, least(p.k_blocks, most(budget / p.block_panels, 1)), 1);
    p.b_bytes = p.block_panels * p.block_ks * p.panel_bytes;
    p.blocks = quotient(p.panels, p.block_panels) * quotient(p.k_blocks, p.block_ks);

    p.a_in_place = reads_a_in_place(kernel, product, p.panels, p.k_blocks);
    p.k_major_a = !p.a_in_place && k_major_a(kernel, product, p.panels, p.kc);
    p.mc = most(pysimd_caches().l2 / 3 / (p.kc * p.packed.a) / kernel->mr * kernel->mr, kernel->mr);
    if (p.a_in_place && p.panels == 1 && p.k_blocks > 1) p.mc = kernel->mr; /* whole rows of A in one stream */
    p.mc = most(p.mc, multiple(product->m / MOST_ROW_ITEMS + 1, kernel->mr));
    p.mc = equal_parts(product->m, p.mc, kernel->mr);
    p.across = kernel->k_tile ? p.panels : panels_across(p.panels, p.panel_bytes);
    p.tall = kernel->k_tile && p.panels <= FEW_PANELS;
    p.prefetches_c = prefetches_c(&p);
    p.tile_rows = p.a_in_place ? pysimd_rows_of_tile(kernel, product->rs_a * p.size.a) : kernel->mr;
    p.packed_rows = kernel->k_tile && !p.tall ? kernel->mr : p.mc;
    if (!p.a_in_place) p.a_bytes = multiple(pysimd_panel_of_a(kernel, p.packed_rows, p.kc).bytes, CACHE_LINE);
    return p;
}

/* Whether the tiles of a product of medium size read A and B in place as fast as packed: the rows of A that a tile
 * reads are in L1 for its next columns. 64 x 64 x 64 to 96 x 96 x 96 took 0.73 to 0.93 times as long unpacked as packed
 * (Zen 3 and Xeon; transposed B 0.9 to 1.02), but 1000 x 32 x 32, whose A is read once, 1.07 to 1.4 times (Xeon). */
static int fits_unpacked(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    const double bytes_a = (double)m * (double)k * pysimd_sizes_in_kernel(kernel).a;
    return kernel->k_group == 1 && n > kernel->nr && bytes_a <= 2 * (double)pysimd_caches().l1;
}

int pysimd_gemm_takes(const pysimd_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    if (kernel->form == INNER || kernel->form == GEMV || m == 0 || n == 0 || k == 0) return 0;
    if (k > PYSIMD_SHORTEST_BLOCK && k > longest_block(kernel)) return 1;
    const double macs = (double)m * (double)n * (double)k;
    if (kernel->k_tile && kernel->k_group == 2) return macs >= LARGE / 2; /* 48 to 63: 0.6 of the time (Xeon) */
    return macs >= SMALL && (macs >= LARGE || !fits_unpacked(kernel, m, n, k));
}

/* --- threads --- */

/* What the threads of a call share. */
typedef struct {
    const plan *plan;
    char *a, *b;          /* a_bytes for each thread; blocks of B */
    int64_t a_bytes, b_bytes;
    int64_t products;     /* in an item, where a thread computes whole products */
    pysimd_grid grid;     /* where it computes parts of them */
    int64_t items;        /* of these */
    char *sums;           /* C of each block of K but the first, where parts have one block */
    int64_t sums_bytes;   /* of one block of one product */
    int threads;
    pysimd_claim *claims; /* one for each thread */
    _Atomic int *stop;
} job;

/* Threads that compute products of the batch together. In a phase they take items of `together` products, so that a
 * batch of small products has no more barriers than a large product. */
typedef struct {
    job *job;
    int members;
    int64_t first, count; /* products */
    int64_t together;     /* 1 where a product has several blocks of B */
    int buffers;          /* blocks of B of these: the next ones are packed while other threads still read the last */
    char *b;
} team;

typedef struct {
    job *job;
    int watches; /* the caller's own thread: the one that asks whether to stop */
    char *a;     /* its packed block of A, or the accumulators of its strip */
} worker;

static worker worker_of(job *j, int thread)
{
    return (worker){.job = j, .watches = thread == 0, .a = j->a + thread * j->a_bytes};
}

static int stopped(const worker *w)
{
    const pysimd_product *q = w->job->plan->product;
    if (w->watches && q->interrupted && q->interrupted(q->context)) atomic_store(w->job->stop, 1);
    return atomic_load(w->job->stop);
}

/* --- blocks of k --- */

/* A block of k: its first column of A, its columns, and what happens to C. */
typedef struct {
    int64_t first, count;
    int zero;               /* C is written only */
    int scales;             /* the block is not just added to C */
    pysimd_factors factors;
} k_block;

static k_block k_block_of(const plan *p, int64_t index)
{
    const pysimd_product *q = p->product;
    k_block k = {.first = index * p->kc, .zero = index == 0 && q->flags & PYSIMD_ZERO,
                 .scales = (q->flags & PYSIMD_FACTORS) != 0};
    k.count = least(p->kc, q->k - k.first);
    k.factors = (pysimd_factors){k.scales ? q->alpha : 1, k.scales && index == 0 ? q->beta : 1, !k.zero};
    return k;
}

/* --- packed blocks --- */

/* A block of B, of each of `products` products, and the items in which it is packed and multiplied. Items are counted
 * product by product. */
typedef struct {
    int64_t first, products;
    char *b;                          /* panels, p->b_bytes for each product */
    int64_t panel0, panels, k0, ks;   /* micro-panels of B, blocks of k */
    int64_t pack_groups;              /* of panels that are packed together, by block of k */
    int64_t tiles, row_items;         /* rows of micro-tiles; parts of them */
    int64_t groups;                   /* of panels that are multiplied together */
    int by_columns;                   /* items are counted group by group, not row by row */
} block;

/* Where part `i` of `count` nearly equal parts of `whole` begins. */
static int64_t begin_of(int64_t whole, int64_t i, int64_t count)
{
    return whole / count * i + whole % count * i / count;
}

/* Whether each of few threads computes columns of its own, times panels that it has packed itself: those of others come
 * from another processor's caches. The other way each computes rows, and A is packed only once: that is faster where
 * the columns cannot be divided equally, or are fewer than the rows, and for groups of k, which take longer to pack.
 * On two threads of a Xeon 512 x 512 x 512 float took 0.90 times as long as with items of any thread (by rows 0.97),
 * 384 x 384 x 384 float, double and bfloat16 0.84 to 0.87 (0.88 to 0.91), 100 x 300 x 2000 float 0.76 (1.01); int8 of
 * 320 x 320 x 320 1.24 (1.04). */
static int has_own_columns(const plan *p, int64_t members, int64_t panels)
{
    enum { FEW_THREADS = 4, PANELS_A_THREAD = 4 };
    const int64_t m = p->product->m, n = panels * p->kernel->nr;
    if (members > FEW_THREADS || p->kernel->k_group > 1 || panels < members * PANELS_A_THREAD || m > 2 * n) return 0;
    return quotient(panels, members) * p->kernel->nr <= n / members + n / members / 16;
}

static block block_of(const team *t, int64_t index)
{
    const plan *p = t->job->plan;
    const int64_t m = p->product->m, along_k = quotient(p->k_blocks, p->block_ks);
    const int64_t done = index / p->blocks * t->together;
    block k = {.first = t->first + done, .products = least(t->together, t->count - done),
               .b = t->b + index % t->buffers * t->together * p->b_bytes};
    index %= p->blocks;
    k.panel0 = index / along_k * p->block_panels, k.panels = least(p->block_panels, p->panels - k.panel0);
    k.k0 = index % along_k * p->block_ks, k.ks = least(p->block_ks, p->k_blocks - k.k0);
    k.tiles = quotient(m, p->kernel->mr);

    /* Blocks of rows, and groups of columns where there are not enough of them for all threads. */
    const int64_t wanted = t->members == 1 ? 1 : quotient(t->members * ITEMS_A_THREAD, k.products);
    k.by_columns = k.products == 1 && wanted > 1 && has_own_columns(p, t->members, k.panels);
    const int64_t fewest = k.by_columns ? quotient(wanted, t->members) : wanted;
    k.row_items = quotient(m, least(p->mc, multiple(quotient(m, fewest), p->kernel->mr)));
    if (wanted > 1 && !k.by_columns && k.row_items > t->members)
        k.row_items = least(multiple(k.row_items, t->members), k.tiles);
    k.groups = k.by_columns ? t->members : most(least(wanted / k.row_items, k.panels), 1);
    const int64_t at_a_time = least(least(PANELS_AT_A_TIME, k.panels), quotient(k.panels * k.products, t->members));
    k.pack_groups = quotient(k.panels, at_a_time);
    if (k.by_columns) k.pack_groups = least(multiple(k.pack_groups, t->members), k.panels);
    return k;
}

static int64_t pack_items(const block *x) { return x->products * x->ks * x->pack_groups; }
static int64_t multiply_items(const block *x) { return x->products * x->row_items * x->groups; }

static void pack_item(worker *w, const block *x, int64_t item)
{
    const plan *p = w->job->plan;
    const pysimd_product *q = p->product;
    const int64_t product = item / (x->ks * x->pack_groups), rest = item % (x->ks * x->pack_groups);
    const int64_t i = x->by_columns ? rest % x->ks : rest / x->pack_groups;
    const int64_t group = x->by_columns ? rest / x->ks : rest % x->pack_groups;
    const int64_t first = begin_of(x->panels, group, x->pack_groups), column = (x->panel0 + first) * p->kernel->nr;
    const int64_t panels = begin_of(x->panels, group + 1, x->pack_groups) - first;
    const int64_t columns = least(panels * p->kernel->nr, q->n - column);
    const k_block k = k_block_of(p, x->k0 + i);
    const pysimd_matrices of = pysimd_matrices_at(q, p->size, x->first + product);
    const char *b = of.b + (k.first * q->rs_b + column * q->cs_b) * p->size.b;
    char *to = x->b + product * p->b_bytes + (i * x->panels + first) * p->panel_bytes;
    pysimd_stage_panels(p->kernel, k.count, columns, b, q->rs_b, q->cs_b, to, p->panel_bytes);
}

/* A row of micro-tiles, of which each is computed by itself and then added to a scaled C, from c on. */
static void scaled_tiles(const plan *p, const pysimd_call *row, pysimd_factors factors, char *c)
{
    const pysimd_kernel *kernel = p->kernel;
    _Alignas(CACHE_LINE) char tile[LARGEST_TILE];
    pysimd_call s = *row;
    s.batch = 1, s.c = tile, s.rs_c = kernel->nr, s.flags |= PYSIMD_ZERO;
    for (int64_t q = 0; q < row->batch; q++, c += kernel->nr * p->size.c) {
        s.b = (const char *)row->b + q * p->panel_bytes;
        kernel->batch(&s);
        pysimd_scale_tile(kernel->types, factors, s.m, s.n, tile, kernel->nr, c, p->product->rs_c);
    }
}

/* Inlined, for GCC 12 leaves out a function whose only effect is prefetches. */
static inline __attribute__((always_inline)) void prefetch(const char *c, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += CACHE_LINE) __builtin_prefetch(c + at, 1, 3);
}

/* A block of A times one of B, both as the kernel reads them: rows of C from c on. A call of the kernel computes a row
 * of whole micro-tiles (a column of them if the plan is tall): C is written along its rows, and the micro-panel of A
 * stays in L1. A last tile that is narrower follows those of its rows: after all rows of the block, 877,000 x 7 x 56
 * int8 took 1.7 times as long (Xeon), since each line of C was written in two pieces, far apart. With tile registers
 * each is written to C while the next is multiplied (tdp.h), unless C is scaled. `last`: no call follows that may use
 * the registers as they are. Without tile registers, whose blocks have one row of micro-tiles, it may end early: with
 * the address sanitizer a block takes three seconds. */
static void micro_tiles(const worker *w, int64_t rows, const pysimd_staged *a, int64_t columns, const char *b, char *c,
                        k_block k, pysimd_shape *before, int last)
{
    const plan *p = w->job->plan;
    const pysimd_kernel *kernel = p->kernel;
    const int64_t mr = kernel->mr, nr = kernel->nr, rs_c = p->product->rs_c;
    const int64_t panel = p->panel_bytes / p->packed.b;
    const split tiles = rows_of_tiles(kernel, rows, p->tile_rows);
    const int each = kernel->k_tile && k.scales, tall = p->tall && !each;
    pysimd_call s = {.k = quotient(k.count, kernel->k_group), .bs_a = tall ? mr * a->rs : 0, .rs_a = a->rs,
                     .cs_a = a->cs, .bs_b = tall ? 0 : panel, .bs_c = tall ? mr * rs_c : nr, .rs_c = rs_c};
    for (int64_t j = 0, across, end; j < columns && (kernel->k_tile || !stopped(w)); j = end) {
        across = tall || each ? 1 : most(least((columns - j) / nr, p->across), 1);
        end = least(j + across * nr, columns);
        const int narrow = !kernel->k_tile && end < columns && columns - end < nr; /* the last tile goes with them */
        for (int64_t t = 0, i = 0, down; t < tiles.count; t += down, i += down * s.m) {
            down = tall ? most((rows - i) / mr, 1) : 1;
            s.m = part_of(&tiles, t, rows - i);
            if (p->k_major_a) s.rs_a = 1, s.cs_a = s.m;
            s.a = (const char *)a->data + i * a->rs * p->packed.a;
            if (p->prefetches_c && i + 3 * s.m <= rows) /* after the next ones */
                prefetch(c + (i + 2 * s.m) * rs_c * p->size.c, s.m * rs_c * p->size.c);
            for (int64_t q = j, n; q < (narrow ? columns : end); q += n) {
                n = q < end ? end - q : columns - q;
                s.n = least(nr, n), s.batch = q < end ? across * down : 1;
                const int ends = last && q + n >= columns && t + down == tiles.count;
                s.flags = (k.zero ? PYSIMD_ZERO : 0) | pysimd_flags_in_a_row(kernel, before, &s, ends) |
                          pysimd_flag_of_half(kernel, s.n);
                s.b = b + q / nr * p->panel_bytes, s.rs_b = pysimd_panel_of_b(kernel, k.count, s.n).rs;
                s.c = c + (i * rs_c + q) * p->size.c;
                if (k.scales)
                    scaled_tiles(p, &s, k.factors, s.c);
                else
                    kernel->batch(&s);
            }
        }
        if (narrow) end = columns;
    }
}

static void multiply_item(worker *w, const block *x, int64_t item)
{
    const plan *p = w->job->plan;
    const pysimd_product *q = p->product;
    const int64_t product = item / (x->row_items * x->groups), rest = item % (x->row_items * x->groups);
    const int64_t i0 = x->by_columns ? rest % x->row_items : rest / x->groups;
    const int64_t group = x->by_columns ? rest / x->row_items : rest % x->groups;
    const int64_t row0 = begin_of(x->tiles, i0, x->row_items) * p->kernel->mr;
    const int64_t row1 = least(begin_of(x->tiles, i0 + 1, x->row_items) * p->kernel->mr, q->m);
    const int64_t first = begin_of(x->panels, group, x->groups), column = (x->panel0 + first) * p->kernel->nr;
    const int64_t panels = begin_of(x->panels, group + 1, x->groups) - first;
    const int64_t columns = least(panels * p->kernel->nr, q->n - column);
    const pysimd_matrices of = pysimd_matrices_at(q, p->size, x->first + product);
    pysimd_shape before = {0, 0, 0};
    int last = stopped(w);
    for (int64_t row = row0; row < row1 && !last; row += p->packed_rows) {
        const int64_t rows = least(p->packed_rows, row1 - row);
        char *c = of.c + (row * q->rs_c + column) * p->size.c;
        for (int64_t i = 0; i < x->ks && !last; i++) {
            last = stopped(w) || (i + 1 == x->ks && row + rows == row1);
            const k_block k = k_block_of(p, x->k0 + i);
            const char *a = of.a + (row * q->rs_a + k.first * q->cs_a) * p->size.a;
            const char *b = x->b + product * p->b_bytes + (i * x->panels + first) * p->panel_bytes;
            pysimd_staged of_a = {.data = a, .rs = q->rs_a, .cs = q->cs_a * p->kernel->k_group};
            if (!p->a_in_place) {
                const pysimd_operand from = {1, rows, k.count, a, 0, q->rs_a, q->cs_a};
                if (p->k_major_a)
                    pysimd_stage_tiles_of_a(p->kernel, &from, w->a), of_a = (pysimd_staged){w->a, 0, k.count, 1};
                else
                    of_a = pysimd_stage_a(p->kernel, &from, w->a);
            }
            micro_tiles(w, rows, &of_a, columns, b, c, k, &before, last);
        }
    }
}

/* --- memory --- */

/* The memory of the last call is kept for the next one: fresh memory costs a page fault every 4 KiB. A call takes it,
 * so calls at the same time, and a child after fork, have their own; of two that are given back one is kept. */
typedef pysimd_buffer buffer;

static buffer *_Atomic spare;

buffer *pysimd_take_buffer(int64_t bytes)
{
    buffer *kept = atomic_exchange(&spare, NULL);
    if (kept && kept->bytes >= bytes) return kept;
    free(kept);
    const int64_t whole = multiple((int64_t)sizeof(buffer) + bytes, HUGE_PAGE);
    buffer *fresh = aligned_alloc(HUGE_PAGE, (size_t)whole);
    if (!fresh) return NULL;
#ifdef MADV_HUGEPAGE
    madvise(fresh, (size_t)whole, MADV_HUGEPAGE);
#endif
    fresh->bytes = whole - (int64_t)sizeof(buffer);
    return fresh;
}

void pysimd_give_back_buffer(buffer *used) { free(atomic_exchange(&spare, used)); }

/* --- a call --- */

/* Where parts have one block of K each, that many parts of the rows of a product are items of a second phase. */
static int64_t parts_of_rows(const job *j)
{
    const pysimd_product *q = j->plan->product;
    return pysimd_grid_adding(q->m, q->n, j->grid.blocks, j->threads);
}

/* Parts of the products in which sums of blocks of K are added. */
static int64_t adding_items(const job *j) { return j->plan->batch * parts_of_rows(j); }

/* Whole products, by one thread. */
static int64_t items_of_products(void *context, int64_t phase)
{
    const job *j = context;
    return phase == 0 ? j->items : adding_items(j);
}

static void product_by_blocks(worker *w, int64_t index, char *of_b)
{
    const team alone = {.job = w->job, .members = 1, .first = index, .count = 1, .together = 1, .buffers = 1,
                        .b = of_b};
    for (int64_t b = 0; b < w->job->plan->blocks && !stopped(w); b++) {
        const block k = block_of(&alone, b);
        for (int64_t i = 0; i < pack_items(&k); i++) pack_item(w, &k, i);
        for (int64_t i = 0; i < multiply_items(&k); i++) multiply_item(w, &k, i);
    }
}

static void run_products(void *context, int thread, int64_t phase, int64_t item)
{
    job *j = context;
    const plan *p = j->plan;
    worker w = worker_of(j, thread);
    (void)phase;
    item = pysimd_take_item(j->claims, j->threads, j->items, thread);
    for (int64_t i = item * j->products; i < least((item + 1) * j->products, p->batch) && !stopped(&w); i++) {
        product_by_blocks(&w, i, j->b + thread * j->b_bytes);
    }
}

/* Parts of products, by one thread. Part `index` of product `of`: of C, or of the sums of a block of K. */
static pysimd_product part_at(const job *j, int64_t of, int64_t index)
{
    const plan *p = j->plan;
    const pysimd_grid grid = j->grid;
    const pysimd_product *q = p->product;
    const int64_t block = index % grid.blocks, at = index / grid.blocks;
    const int64_t tiles = quotient(q->m, p->kernel->mr), i0 = at / grid.columns, j0 = at % grid.columns;
    const int64_t row = begin_of(tiles, i0, grid.rows) * p->kernel->mr;
    const int64_t column = begin_of(p->panels, j0, grid.columns) * p->kernel->nr;
    const int64_t first = block * p->kc;
    pysimd_product part = *q;
    part.m = least(begin_of(tiles, i0 + 1, grid.rows) * p->kernel->mr, q->m) - row;
    part.n = least(begin_of(p->panels, j0 + 1, grid.columns) * p->kernel->nr, q->n) - column;
    if (grid.blocks > 1) part.k = least(p->kc, q->k - first);
    part.a = (const char *)q->a + (row * q->rs_a + first * q->cs_a) * p->size.a;
    part.b = (const char *)q->b + (first * q->rs_b + column * q->cs_b) * p->size.b;
    part.c = (char *)q->c + (row * q->rs_c + column) * p->size.c;
    if (block == 0) return part;
    part.c = j->sums + (of * (grid.blocks - 1) + block - 1) * j->sums_bytes + (row * q->n + column) * p->size.c;
    part.rs_c = q->n, part.cs_c = 1;
    part.flags = PYSIMD_ZERO;
    for (int d = 0; d < q->ndim; d++) part.batch_c[d] = 0;
    return part;
}

/* The sums of the blocks of K are added to C in ascending order, as one thread adds them: the same bits. */
static void add_sums(const job *j, int64_t item)
{
    const plan *p = j->plan;
    const pysimd_product *q = p->product;
    const int64_t parts = parts_of_rows(j), product = item / parts;
    const int64_t row = begin_of(q->m, item % parts, parts), rows = begin_of(q->m, item % parts + 1, parts) - row;
    const pysimd_factors factors = {q->flags & PYSIMD_FACTORS ? q->alpha : 1, 1, 1};
    char *c = pysimd_matrices_at(q, p->size, product).c + row * q->rs_c * p->size.c;
    const char *sums = j->sums + product * (j->grid.blocks - 1) * j->sums_bytes + row * q->n * p->size.c;
    for (int64_t i = 1; i < j->grid.blocks; i++, sums += j->sums_bytes)
        pysimd_scale_tile(p->kernel->types, factors, rows, q->n, sums, q->n, c, q->rs_c);
}

static void run_parts(void *context, int thread, int64_t phase, int64_t item)
{
    const job *j = context;
    const int64_t parts = j->grid.rows * j->grid.columns * j->grid.blocks;
    if (phase > 0) {
        if (!atomic_load(j->stop)) add_sums(j, item);
        return;
    }
    item = pysimd_take_item(j->claims, j->threads, j->items, thread);
    const pysimd_product product = part_at(j, item / parts, item % parts);
    const plan p = plan_of(j->plan->kernel, &product, j->threads);
    job part = *j;
    part.plan = &p;
    worker w = worker_of(&part, thread);
    product_by_blocks(&w, item / parts, j->b + thread * j->b_bytes);
}

/* The memory that any part takes: parts are as high and wide as the first ones, or a tile less, and the last block of K
 * may be shorter. */
static void size_parts(job *j)
{
    const plan *p = j->plan;
    const pysimd_kernel *kernel = p->kernel;
    const int64_t tiles = quotient(p->product->m, kernel->mr) / j->grid.rows, panels = p->panels / j->grid.columns;
    pysimd_product part = *p->product;
    j->a_bytes = j->b_bytes = 0;
    for (int i = 0; i < 8; i++) {
        part.m = (tiles + i / 2 % 2) * kernel->mr, part.n = (panels + i % 2) * kernel->nr;
        if (j->grid.blocks > 1) part.k = i < 4 ? p->kc : p->product->k - (p->k_blocks - 1) * p->kc;
        const plan of = plan_of(kernel, &part, j->threads);
        j->a_bytes = most(j->a_bytes, of.a_bytes), j->b_bytes = most(j->b_bytes, of.b_bytes);
    }
    j->sums_bytes = multiple(p->product->m * p->product->n * p->size.c, CACHE_LINE);
}

/* Phase i multiplies by block i - 1 of B, and packs block i: the blocks of one product, or of some, after those of the
 * others. */
static int64_t blocks_of(const team *t) { return quotient(t->count, t->together) * t->job->plan->blocks; }

static int64_t first_items(const team *t, int64_t phase)
{
    if (phase == 0) return 0;
    const block k = block_of(t, phase - 1);
    return multiply_items(&k);
}

static int64_t items_of_blocks(void *context, int64_t phase)
{
    const team *t = context;
    const int64_t items = first_items(t, phase);
    if (phase == blocks_of(t)) return items;
    const block k = block_of(t, phase);
    return items + pack_items(&k);
}

/* The claims of the items of a phase. */
static pysimd_claim *claims_of(const team *t, int64_t phase, int packs)
{
    return t->job->claims + (phase % CLAIMED_PHASES * 2 + packs) * t->members;
}

static void run_blocks(void *context, int thread, int64_t phase, int64_t item)
{
    const team *t = context;
    worker w = worker_of(t->job, thread);
    if (item == 0) /* those of the next phase: nobody uses them, or has since the last phase but one */
        memset(claims_of(t, phase + 1, 0), 0, (size_t)(2 * t->members) * sizeof(pysimd_claim));
    if (stopped(&w)) return;
    const int64_t items = first_items(t, phase);
    const int packs = item >= items;
    const block k = block_of(t, packs ? phase : phase - 1);
    const int64_t all = packs ? pack_items(&k) : items;
    /* Of few columns A is only read, in one stream: 300 x 2000 x 20 and 1500 x 1500 x 8 int8 took 1.2 times as long
     * with rows of each thread's own (Xeon). */
    if (t->job->plan->panels > FEW_PANELS)
        item = pysimd_take_item(claims_of(t, phase, packs), t->members, all, thread);
    else if (packs)
        item -= items;
    if (packs)
        pack_item(&w, &k, item);
    else
        multiply_item(&w, &k, item);
}

static double macs_of(const plan *p)
{
    const pysimd_product *q = p->product;
    return (double)q->m * (double)q->n * (double)q->k;
}

/* Whether each thread computes whole products of a batch: small ones. */
static int divides_batch(const plan *p, int threads)
{
    if (threads == 1) return 1;
    return macs_of(p) < PRODUCT_OF_A_THREAD && pysimd_divides_batch(p->batch, threads) &&
           threads * p->b_bytes <= MOST_MEMORY;
}

/* A team of all threads. */
static team team_of(job *j, int threads)
{
    const plan *p = j->plan;
    team t = {.job = j, .members = threads, .count = p->batch, .together = 1, .buffers = 2};
    if (p->blocks == 1) {
        const double wanted = (double)threads * WORTH_A_PHASE / (macs_of(p) + 1);
        const int64_t fit = bytes_of_b(p->kernel, 1) / p->b_bytes;
        t.together = most(least(least(fit, p->batch), (int64_t)wanted), 1);
    }
    if (blocks_of(&t) == 1) t.buffers = 1;
    return t;
}

int pysimd_gemm_divides(double macs) { return macs >= WORTH_TWO_THREADS; }

/* At most those of the product; one where it is too small to be divided: from 128 x 128 x 128 on, two were faster than
 * one (1.3 to 1.6 times), below they were not (Zen 3; see is_divided in driver.c), unless there are few rows: 250
 * products of up to 28 rows and 0.5 to 2.2 million multiply-adds took two threads of a Xeon 0.9 to 0.98 times as long
 * in the mean, 16 0.86 times (11 x 164 x 734 float 15 microseconds, and 35 as one thread's); or K has several blocks:
 * 200 products of 0.5 to 3 million multiply-adds were 1.47 times as fast on two threads of a Xeon, or each computes
 * whole products of a batch: 400 batches of 0.5 to 2 million took two threads 0.94 times as long as before, when most
 * of them took one, a tenth of them 0.35 to 0.75 times. Of 16 cores of a Xeon eight took 0.6 times as long as one for
 * 128 x 128 x 128, four 0.7 times. With tile registers two threads took 0.8 to 1.4 times as long for work that is
 * estimated at less than 40 microseconds, unless B is transposed while it is packed, of which the estimate knows
 * nothing; eight 0.6 to 1.3 times; and 0.4 to 0.5 times for 1137 x 3 x 502, whose C alone takes longer than that. */
static int threads_of(const pysimd_kernel *kernel, const pysimd_product *q)
{
    enum { FEW_THREADS = 3 };
    const int asked = q->threads;
    const double macs = (double)q->m * (double)q->n * (double)q->k * (double)pysimd_batch_of(q);
    const double worth = macs / WORTH_A_THREAD;
    const int bound = asked < 1 ? 1 : asked > PYSIMD_MAX_THREADS ? PYSIMD_MAX_THREADS : asked;
    const int64_t batch = pysimd_batch_of(q);
    const int few_rows = !kernel->k_tile && q->m < 2 * (int64_t)kernel->mr; /* a grid of columns */
    const int some = few_rows || q->k > longest_block(kernel) || (batch > 1 && pysimd_divides_batch(batch, bound));
    const int of_c = kernel->k_tile && q->ns >= WORTH_TWO_OF_TILES_NS; /* whose time is that of writing it */
    const int divides = of_c || (some ? macs >= WORTH_TWO_OF_BLOCKS : pysimd_gemm_divides(macs));
    const int short_of_tiles = kernel->k_tile && q->cs_b == 1 && asked <= FEW_THREADS; /* B takes little time to pack */
    const int worth_two_ns = short_of_tiles ? WORTH_TWO_OF_TILES_NS : WORTH_TWO_NS;
    if (!divides || (q->ns > 0 && q->ns < worth_two_ns)) return 1;
    return worth >= bound ? bound : (int)most((int64_t)worth, least(bound, 2));
}

int pysimd_gemm(const pysimd_kernel *kernel, const pysimd_product *given)
{
    const int asked = threads_of(kernel, given);
    if (pysimd_strips_take(kernel, given, asked)) return pysimd_strips(kernel, given, asked);
    const plan p = plan_of(kernel, given, 1);
    const int threads = pysimd_threads_at_hand(asked, given->woken, given->ns);
    _Atomic int stop = 0;
    job j = {.plan = &p, .threads = threads, .a_bytes = p.a_bytes, .b_bytes = p.b_bytes, .stop = &stop,
             .products = quotient(p.batch, threads * PARTS_A_THREAD),
             .grid = pysimd_grid_for(kernel, given, threads, p.batch, p.k_blocks, !p.a_in_place)};
    const int by_parts = j.grid.rows > 0, by_products = by_parts || divides_batch(&p, threads);
    j.items = by_parts ? p.batch * j.grid.rows * j.grid.columns * j.grid.blocks : quotient(p.batch, j.products);
    if (by_parts) size_parts(&j);
    team t = team_of(&j, threads);
    const int64_t b_bytes = (by_products ? threads : t.buffers * t.together) * j.b_bytes;
    const int64_t a_bytes = threads * j.a_bytes;
    const int64_t claims_bytes = threads * 2 * CLAIMED_PHASES * (int64_t)sizeof(pysimd_claim);
    const int64_t sums_bytes = by_parts ? p.batch * (j.grid.blocks - 1) * j.sums_bytes : 0;
    buffer *memory = pysimd_take_buffer(b_bytes + a_bytes + claims_bytes + sums_bytes);
    if (!memory) return -1;
    j.b = t.b = memory->data, j.a = memory->data + b_bytes;
    j.claims = (pysimd_claim *)(memory->data + b_bytes + a_bytes);
    j.sums = memory->data + b_bytes + a_bytes + claims_bytes;
    memset(j.claims, 0, (size_t)claims_bytes);
    pysimd_work work;
    if (by_products)
        work = (pysimd_work){&j, 1 + (by_parts && j.grid.blocks > 1), items_of_products,
                             by_parts ? run_parts : run_products, &stop, threads};
    else
        work = (pysimd_work){&t, blocks_of(&t) + 1, items_of_blocks, run_blocks, &stop, threads};
    const int refused = given->begin && given->begin(given->context);
    if (!refused) pysimd_run(&work, asked, given->woken, given->ns);
    pysimd_give_back_buffer(memory);
    return refused || stop ? PYSIMD_INTERRUPTED : 0;
}
