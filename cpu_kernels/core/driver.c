/* driver.c: the loops over batch and micro-tiles, the packing of operands that a kernel cannot read in place, and the
 * threads. Compiled for the baseline processor.
 *
 * Threads are created by the call and joined before it returns: a pool would save some 20 microseconds per thread, but
 * would not survive a fork (nor does OpenMP's), and only calls that take far longer use a second thread. A thread
 * computes whole products or whole rows of tiles, so the bits of the result do not depend on the number of threads.
 */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pack.h"

enum { MAX_THREADS = 256 };

/* The part of a product that one thread computes: `count` products from `first` on, rows [row0, row1) of each. */
typedef struct {
    const pysimd_kernel *kernel;
    const pysimd_product *product;
    int64_t first, count, row0, row1;
    char *scratch;
} work;

static int64_t tile_rows(const pysimd_kernel *kernel, int64_t m)
{
    const int64_t tiles = (m + kernel->mr - 1) / kernel->mr;
    return tiles ? (m + tiles - 1) / tiles : 1; /* 17 rows are 9 and 8, not 16 and 1 */
}

/* The micro-tiles of the products `s`, whose m and n are those of the whole product. */
static void tiles(const work *w, const pysimd_call *s)
{
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_sizes size = pysimd_sizes_in_kernel(kernel);
    const int64_t rows = tile_rows(kernel, w->product->m);
    if (s->m <= rows && s->n <= kernel->nr) { /* the whole batch in one call */
        kernel->batch(s);
        return;
    }
    const int64_t step_b = kernel->form == INNER ? s->rs_b : kernel->k_group;
    for (int64_t i = 0; i < s->batch; i++) {
        pysimd_call t = *s;
        t.batch = 1;
        for (int64_t j0 = 0; j0 < s->n; j0 += kernel->nr)
            for (int64_t i0 = 0; i0 < s->m; i0 += rows) {
                t.m = s->m - i0 < rows ? s->m - i0 : rows;
                t.n = s->n - j0 < kernel->nr ? s->n - j0 : kernel->nr;
                t.a = (const char *)s->a + (i * s->bs_a + i0 * s->rs_a) * size.a;
                t.b = (const char *)s->b + (i * s->bs_b + j0 * step_b) * size.b;
                t.c = (char *)s->c + (i * s->bs_c + i0 * s->rs_c + j0) * size.c;
                kernel->batch(&t);
            }
    }
}

/* Bytes of scratch memory that the panels of one product take; 0 where the kernel reads the operand in place. */
static void panel_bytes(const work *w, int64_t m, int64_t *a, int64_t *b)
{
    const pysimd_product *p = w->product;
    *a = pysimd_reads_a(w->kernel, p->k, p->cs_a) ? 0 : pysimd_panel_of_a(w->kernel, m, p->k).bytes;
    *b = pysimd_reads_b(w->kernel, p->rs_b, p->cs_b) ? 0 : pysimd_panel_of_b(w->kernel, p->k, p->n).bytes;
    *a = *a > INT64_MAX - 63 ? INT64_MAX - 63 : (*a + 63) & ~(int64_t)63;
}

/* `count` products along the innermost dimension of the batch. */
static void multiply_row(const work *w, int64_t count, const char *a, const char *b, char *c, int64_t bs_a,
                         int64_t bs_b, int64_t bs_c)
{
    const pysimd_kernel *kernel = w->kernel;
    const pysimd_product *p = w->product;
    const pysimd_sizes size = pysimd_element_sizes[kernel->types];
    const int64_t m = w->row1 - w->row0;
    int64_t bytes_a, bytes_b;
    panel_bytes(w, m, &bytes_a, &bytes_b);
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
                     .rs_b = kernel->form == INNER ? p->cs_b : p->rs_b,
                     .c = c + w->row0 * p->rs_c * size.c,
                     .bs_c = bs_c,
                     .rs_c = p->rs_c,
                     .flags = p->flags};
    if (!bytes_a && !bytes_b) {
        tiles(w, &s);
        return;
    }
    s.batch = 1;
    const char *unpacked_a = s.a, *unpacked_b = s.b;
    for (int64_t i = 0; i < count; i++) {
        if (bytes_a && (i == 0 || bs_a != 0)) {
            const pysimd_panel_shape shape = pysimd_panel_of_a(kernel, m, p->k);
            pysimd_pack_a(kernel, m, p->k, unpacked_a + i * bs_a * size.a, p->rs_a, p->cs_a, w->scratch);
            s.a = w->scratch, s.rs_a = shape.rs, s.cs_a = shape.cs;
        } else if (!bytes_a) {
            s.a = unpacked_a + i * bs_a * size.a;
        }
        if (bytes_b && (i == 0 || bs_b != 0)) {
            pysimd_pack_b(kernel, p->k, p->n, unpacked_b + i * bs_b * size.b, p->rs_b, p->cs_b, w->scratch + bytes_a);
            s.b = w->scratch + bytes_a, s.rs_b = pysimd_panel_of_b(kernel, p->k, p->n).rs;
        } else if (!bytes_b) {
            s.b = unpacked_b + i * bs_b * size.b;
        }
        tiles(w, &s);
        s.c = (char *)s.c + bs_c * size.c;
    }
}

/* The part of one thread: whole rows of the batch's innermost dimension, or parts of them. */
static void *run(void *argument)
{
    const work *w = argument;
    const pysimd_product *p = w->product;
    const pysimd_sizes size = pysimd_element_sizes[w->kernel->types];
    const int last = p->ndim - 1;
    const int64_t inner = p->ndim ? p->shape[last] : 1;
    for (int64_t at = w->first, end = w->first + w->count; at < end;) {
        int64_t rest = at / inner, a = 0, b = 0, c = 0;
        const int64_t start = at % inner, count = end - at < inner - start ? end - at : inner - start;
        for (int d = last - 1; d >= 0; d--) {
            const int64_t index = rest % p->shape[d];
            rest /= p->shape[d];
            a += index * p->batch_a[d], b += index * p->batch_b[d], c += index * p->batch_c[d];
        }
        const int64_t bs_a = p->ndim ? p->batch_a[last] : 0, bs_b = p->ndim ? p->batch_b[last] : 0,
                      bs_c = p->ndim ? p->batch_c[last] : 0;
        a += start * bs_a, b += start * bs_b, c += start * bs_c;
        multiply_row(w, count, (const char *)p->a + a * size.a, (const char *)p->b + b * size.b,
                     (char *)p->c + c * size.c, bs_a, bs_b, bs_c);
        at += count;
    }
#ifdef __SSE2__
    if (p->flags & PYSIMD_STREAM) __builtin_ia32_sfence(); /* non-temporal stores become visible before the join */
#endif
    return NULL;
}

int pysimd_multiply(const pysimd_kernel *kernel, const pysimd_product *product)
{
    int64_t batch = 1;
    for (int d = 0; d < product->ndim; d++) batch *= product->shape[d];
    if (batch == 0 || product->m == 0 || product->n == 0) return 0;

    work parts[MAX_THREADS];
    int threads = product->threads < 1 ? 1 : product->threads > MAX_THREADS ? MAX_THREADS : product->threads;
    const int64_t tile = tile_rows(kernel, product->m), tile_count = (product->m + tile - 1) / tile;
    const int by_rows = batch < threads;
    const int64_t units = by_rows ? tile_count : batch;
    if (units < threads) threads = units < 1 ? 1 : (int)units;
    for (int t = 0; t < threads; t++) {
        const int64_t lo = units * t / threads, hi = units * (t + 1) / threads;
        parts[t] =
            (work){.kernel = kernel, .product = product, .first = 0, .count = batch, .row0 = 0, .row1 = product->m};
        if (by_rows) {
            parts[t].row0 = lo * tile;
            parts[t].row1 = hi * tile < product->m ? hi * tile : product->m;
        } else {
            parts[t].first = lo;
            parts[t].count = hi - lo;
        }
    }

    int64_t bytes_a, bytes_b; /* memory is allocated before the first byte of C is written */
    const work whole = {.kernel = kernel, .product = product};
    panel_bytes(&whole, product->m, &bytes_a, &bytes_b);
    int64_t each, all;
    if (__builtin_add_overflow(bytes_a, bytes_b, &each) || __builtin_add_overflow(each, 63, &each) ||
        __builtin_mul_overflow(each & ~(int64_t)63, threads, &all))
        return -1;
    each &= ~(int64_t)63;
    char *scratch = NULL;
    if (all && !(scratch = aligned_alloc(64, (size_t)all))) return -1;
    pthread_t ids[MAX_THREADS];
    int started[MAX_THREADS];
    for (int t = 0; t < threads; t++) parts[t].scratch = scratch + t * each;
    for (int t = 1; t < threads; t++) started[t] = pthread_create(&ids[t], NULL, run, &parts[t]) == 0;
    run(&parts[0]);
    for (int t = 1; t < threads; t++)
        if (started[t])
            pthread_join(ids[t], NULL);
        else
            run(&parts[t]); /* the system refused a thread: its part is computed here */
    free(scratch);
    return 0;
}
