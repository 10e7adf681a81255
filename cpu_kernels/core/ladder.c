/* ladder.c: see ladder.h. Compiled for the baseline processor. */
#include "ladder.h"

#include <stdlib.h>
#include <string.h>

#include "caches.h"
#include "pack.h"
#include "scale.h"

#ifdef __x86_64__
#define RUNG(NAME, ...) extern pysimd_rung_fn generic_rung_##NAME, avx2_rung_##NAME, avx512_rung_##NAME;
#else
#define RUNG(NAME, ...) extern pysimd_rung_fn generic_rung_##NAME;
#endif
#define LOOPS(NAME, ...) extern pysimd_rung_fn pysimd_rung_##NAME;
#define PRODUCT(NAME, ...)
#include "../ladder.inc"
#undef RUNG
#undef LOOPS
#undef PRODUCT

#define ROW(NAME, SOURCE, ...) {.name = #NAME, .source = SOURCE, __VA_ARGS__},
#ifdef __x86_64__
#define RUNG(NAME, ...)                                                                                                \
    ROW(NAME, "ladder/" #NAME ".c", __VA_ARGS__,                                                                       \
        .run = {[GENERIC] = generic_rung_##NAME, [AVX2] = avx2_rung_##NAME, [AVX512] = avx512_rung_##NAME})
#else
#define RUNG(NAME, ...) ROW(NAME, "ladder/" #NAME ".c", __VA_ARGS__, .run = {[GENERIC] = generic_rung_##NAME})
#endif
#define LOOPS(NAME, ...) ROW(NAME, "ladder/" #NAME ".c", __VA_ARGS__, .run = {[GENERIC] = pysimd_rung_##NAME})
#define PRODUCT(NAME, ...) ROW(NAME, "core/" #NAME ".c", __VA_ARGS__)

const pysimd_rung pysimd_rungs[] = {
#include "../ladder.inc"
};
const int pysimd_rung_count = sizeof pysimd_rungs / sizeof *pysimd_rungs;

int pysimd_rung_target(const pysimd_rung *rung)
{
    int target = TARGETS - 1;
    while (target > GENERIC && !(rung->run[target] && pysimd_can_run(&(pysimd_kernel){.target = target}))) target--;
    return target;
}

const pysimd_kernel *pysimd_ladder_kernel(void) { return pysimd_choose(F32, 2, INT32_MAX, 1); }

/* What GotoBLAS asks for. A micro-panel of B, kc x nr, is as large as L1: half of it is there for every tile, and the
 * next half is on its way. A block of A, mc x kc, is half of L2; a block of B, kc x nc, half of L3, which other cores
 * share. */
pysimd_ladder_block pysimd_ladder_blocks(void)
{
    enum { LEAST_K = 64, MOST_COLUMNS = 4096 };
    const pysimd_kernel *kernel = pysimd_ladder_kernel();
    const pysimd_cache_sizes cache = pysimd_caches();
    const int64_t size = sizeof(float), kc = cache.l1 / (kernel->nr * size);
    pysimd_ladder_block b = {.kc = kc > LEAST_K ? kc : LEAST_K};
    const int64_t rows = cache.l2 / 2 / (b.kc * size), columns = cache.l3 / 2 / (b.kc * size);
    b.mc = rows > kernel->mr ? rows / kernel->mr * kernel->mr : kernel->mr;
    b.nc = columns > kernel->nr ? columns / kernel->nr * kernel->nr : kernel->nr;
    if (columns > MOST_COLUMNS) b.nc = MOST_COLUMNS;
    return b;
}

void pysimd_ladder_scale_c(const pysimd_product *product)
{
    if (product->beta == 1) return;
    float *c = product->c;
    const pysimd_factors factors = {.alpha = product->beta};
    for (int64_t i = 0; i < product->m; i++, c += product->rs_c)
        if (product->beta == 0)
            memset(c, 0, (size_t)product->n * sizeof *c);
        else
            pysimd_scale_tile(F32, factors, 1, product->n, c, 0, c, 0);
}

/* One product; B first copied row by row where the rung reads it so. */
static int run(const pysimd_rung *rung, pysimd_product product)
{
    float *copy = NULL;
    if (rung->reads_rows && product.cs_b != 1 && product.k > 0) {
        copy = malloc((size_t)product.k * (size_t)product.n * sizeof *copy);
        if (!copy) return -1;
        pysimd_copy_matrix(product.k, product.n, sizeof *copy, product.b, product.rs_b, product.cs_b, (char *)copy,
                           product.n);
        product.b = copy, product.rs_b = product.n, product.cs_b = 1;
    }
    const int failed = rung->run[pysimd_rung_target(rung)](&product);
    free(copy);
    return failed;
}

int pysimd_run_rung(const pysimd_rung *rung, const pysimd_product *product)
{
    int64_t count = product->m && product->n;
    for (int d = 0; d < product->ndim; d++) count *= product->shape[d];
    for (int64_t index = 0; index < count; index++) {
        int64_t rest = index, a = 0, b = 0, c = 0;
        for (int d = product->ndim - 1; d >= 0; d--) {
            const int64_t at = rest % product->shape[d];
            rest /= product->shape[d];
            a += at * product->batch_a[d], b += at * product->batch_b[d], c += at * product->batch_c[d];
        }
        pysimd_product one = *product;
        one.a = (const float *)product->a + a, one.b = (const float *)product->b + b;
        one.c = (float *)product->c + c;
        if (run(rung, one)) return -1;
    }
    return 0;
}
