/* scale.c: see scale.h. Compiled for the baseline processor. Each multiplication and the addition are rounded on their
 * own (no fused multiply-add), factors are rounded to the type of the result; int32 wraps around. Half is computed in
 * float, and rounded once. */
#include "scale.h"

#include <string.h>

#include "every_other.h"
#include "narrow.h"
#include "pack.h"
#include "widen.h"

/* gcc makes vectors of adjacent elements at -O3, clang at -O2. */
#ifdef __clang__
#define VECTORIZED
#else
#define VECTORIZED __attribute__((optimize("O3")))
#endif

typedef float unaligned_f32 __attribute__((aligned(1)));
typedef double unaligned_f64 __attribute__((aligned(1)));
typedef uint32_t unaligned_u32 __attribute__((aligned(1), may_alias));

typedef void row_fn(int64_t n, pysimd_factors f, const char *x, int64_t step_x, const char *c, int64_t step_c, char *to,
                    int64_t step_to);

/* Whether adjacent elements go to every other one, by vectors. */
static int spreads(int size, int64_t step_to)
{
#ifdef __x86_64__
    return step_to == 2 * size && pysimd_has(AVX512);
#else
    (void)size, (void)step_to;
    return 0;
#endif
}

static void spread(int size, int64_t n, const char *from, char *to)
{
#ifdef __x86_64__
    avx512_to_every_other(size, n, from, to);
#else
    (void)size, (void)n, (void)from, (void)to;
#endif
}

/* T: of the elements; U: what they are computed in. A product of 14 x 56 with adjacent elements took a fifth of the
 * time of that with steps (Xeon). */
#define ROW(NAME, T, U)                                                                                                \
    VECTORIZED static void NAME##_adjacent(int64_t n, pysimd_factors f, const U *x, const U *c, U *to)                 \
    {                                                                                                                  \
        const U alpha = (U)(T)f.alpha, beta = (U)(T)f.beta;                                                            \
        if (c && alpha == 1 && beta == 1)                                                                              \
            for (int64_t i = 0; i < n; i++) to[i] = x[i] + c[i];                                                       \
        else if (c)                                                                                                    \
            for (int64_t i = 0; i < n; i++) to[i] = x[i] * alpha + c[i] * beta;                                        \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++) to[i] = x[i] * alpha;                                                      \
    }                                                                                                                  \
    static void NAME(int64_t n, pysimd_factors f, const char *x, int64_t step_x, const char *c, int64_t step_c,        \
                     char *to, int64_t step_to)                                                                        \
    {                                                                                                                  \
        enum { EACH = sizeof(T) };                                                                                     \
        if (step_x == EACH && step_to == EACH && (!c || step_c == EACH)) {                                             \
            NAME##_adjacent(n, f, (const U *)x, (const U *)c, (U *)to);                                                \
            return;                                                                                                    \
        }                                                                                                              \
        if (!c && f.alpha == 1 && step_x == EACH && spreads(EACH, step_to)) {                                          \
            spread(EACH, n, x, to);                                                                                    \
            return;                                                                                                    \
        }                                                                                                              \
        const U alpha = (U)(T)f.alpha, beta = (U)(T)f.beta;                                                            \
        if (c)                                                                                                         \
            for (int64_t i = 0; i < n; i++)                                                                            \
                *(U *)(to + i * step_to) = *(const U *)(x + i * step_x) * alpha + *(const U *)(c + i * step_c) * beta; \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++) *(U *)(to + i * step_to) = *(const U *)(x + i * step_x) * alpha;           \
    }
ROW(row_f32, float, unaligned_f32)
ROW(row_f64, double, unaligned_f64)
ROW(row_i32, int32_t, unaligned_u32)

/* --- results of 16 bits --- */

enum { PIECE = 256 }; /* elements converted at a time */

static const void *adjacent(int64_t n, const char *from, int64_t step, uint16_t *copy)
{
    if (step == sizeof *copy) return from;
    for (int64_t i = 0; i < n; i++) memcpy(copy + i, from + i * step, sizeof *copy);
    return copy;
}

static void store_halves(int64_t n, const uint16_t *halves, char *to, int64_t step)
{
    if (spreads(sizeof *halves, step)) {
        spread(sizeof *halves, n, (const char *)halves, to);
        return;
    }
    for (int64_t i = 0; i < n; i++) memcpy(to + i * step, halves + i, sizeof *halves);
}

static void row_f16(int64_t n, pysimd_factors f, const char *x, int64_t step_x, const char *c, int64_t step_c, char *to,
                    int64_t step_to)
{
    float sums[PIECE], added[PIECE];
    uint16_t halves[PIECE];
    for (int64_t count; n > 0; n -= count, x += count * step_x, c += c ? count * step_c : 0, to += count * step_to) {
        count = n < PIECE ? n : PIECE;
        pysimd_widen_f16(count, adjacent(count, x, step_x, halves), sums);
        if (c) pysimd_widen_f16(count, adjacent(count, c, step_c, halves), added);
        row_f32(count, f, (const char *)sums, sizeof *sums, c ? (const char *)added : NULL, sizeof *added, (char *)sums,
                sizeof *sums);
        pysimd_narrow_f16(count, sums, halves);
        store_halves(count, halves, to, step_to);
    }
}

static row_fn *const rows[TYPES] = {[F32] = row_f32,   [F64] = row_f64,     [BF16F32] = row_f32, [F16F32] = row_f32,
                                    [I8I32] = row_i32, [U8I8I32] = row_i32, [F16] = row_f16};

static void narrow_row(const pysimd_scaling *s, int64_t n, const char *x, int64_t step_x, const char *c, int64_t step_c,
                       char *to, int64_t step_to)
{
    float sums[PIECE], added[PIECE];
    uint16_t halves[PIECE];
    if (!c && s->factors.alpha == 1 && step_x == sizeof *sums && step_to == sizeof *halves) {
        s->narrow(n, (const float *)x, to); /* nothing but the rounding */
        return;
    }
    for (int64_t count; n > 0; n -= count, x += count * step_x, c += c ? count * step_c : 0, to += count * step_to) {
        count = n < PIECE ? n : PIECE;
        if (c) s->widen(count, adjacent(count, c, step_c, halves), added);
        row_f32(count, s->factors, x, step_x, c ? (const char *)added : NULL, sizeof *added, (char *)sums,
                sizeof *sums);
        s->narrow(count, sums, step_to == sizeof *halves ? to : (char *)halves);
        if (step_to != sizeof *halves) store_halves(count, halves, to, step_to);
    }
}

/* --- whole arrays --- */

/* A product that is only stored elsewhere, into a target with adjacent rows: transposed matrix by matrix. 24 products
 * of 6 x 137 took 16 microseconds element by element (Xeon). */
static int stores_columns(const pysimd_scaling *s)
{
    const int row = s->ndim - 2, column = s->ndim - 1, size = pysimd_element_sizes[s->types].c;
    if (s->narrow || s->c || s->factors.alpha != 1 || s->target_strides[row] != size) return 0;
    if (s->target_strides[column] <= 0 || s->target_strides[column] % size) return 0;
    return s->product_strides[column] == size && s->product_strides[row] % size == 0;
}

static void store_columns(const pysimd_scaling *s)
{
    const int row = s->ndim - 2, column = s->ndim - 1, size = pysimd_element_sizes[s->types].c;
    const int64_t m = s->shape[row], n = s->shape[column];
    int64_t index[PYSIMD_MAX_DIMS + 2];
    for (int d = 0; d < row; d++) index[d] = 0;
    const char *product = s->product;
    char *target = s->target;
    for (;;) {
        pysimd_copy_matrix(n, m, size, product, 1, s->product_strides[row] / size, target,
                           s->target_strides[column] / size);
        int d = row - 1;
        for (; d >= 0; d--) { /* the next matrix */
            product += s->product_strides[d], target += s->target_strides[d];
            if (++index[d] < s->shape[d]) break;
            product -= s->shape[d] * s->product_strides[d], target -= s->shape[d] * s->target_strides[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

/* Dimensions of length 1 left out, adjacent ones merged where all arrays allow it: rows as long as they can be. */
static void merge(pysimd_scaling *s)
{
    int last = 0;
    for (int d = 1; d < s->ndim; d++) {
        const int64_t n = s->shape[d];
        if (n == 1) continue;
        const int one = s->shape[last] == 1;
        if (!one && (s->product_strides[last] != n * s->product_strides[d] ||
                     s->target_strides[last] != n * s->target_strides[d] || s->c_strides[last] != n * s->c_strides[d]))
            last++, s->shape[last] = 1;
        s->shape[last] *= n;
        s->product_strides[last] = s->product_strides[d], s->target_strides[last] = s->target_strides[d];
        s->c_strides[last] = s->c_strides[d];
    }
    s->ndim = last + 1;
}

static void scale_rows(const pysimd_scaling *s)
{
    const int last = s->ndim - 1;
    const int64_t n = s->shape[last], step = s->product_strides[last], step_c = s->c_strides[last],
                  step_to = s->target_strides[last];
    int64_t index[PYSIMD_MAX_DIMS + 2]; /* clearing all takes as long as a small product */
    for (int d = 0; d < last; d++) index[d] = 0;
    const char *product = s->product, *c = s->c;
    char *target = s->target;
    for (;;) {
        if (s->narrow)
            narrow_row(s, n, product, step, c, step_c, target, step_to);
        else
            rows[s->types](n, s->factors, product, step, c, step_c, target, step_to);
        int d = last - 1;
        for (; d >= 0; d--) { /* the next row */
            product += s->product_strides[d], target += s->target_strides[d];
            if (c) c += s->c_strides[d];
            if (++index[d] < s->shape[d]) break;
            product -= s->shape[d] * s->product_strides[d], target -= s->shape[d] * s->target_strides[d];
            if (c) c -= s->shape[d] * s->c_strides[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

void pysimd_scale(pysimd_scaling *s)
{
    for (int d = 0; d < s->ndim; d++)
        if (s->shape[d] == 0) return;
    if (stores_columns(s)) {
        store_columns(s);
        return;
    }
    merge(s);
    scale_rows(s);
}

void pysimd_store_products(const pysimd_epilogue *e, int64_t count, char *products, char *to, int64_t step)
{
    const int size = pysimd_element_sizes[e->types].c;
    const int64_t row = e->n * size, shape[] = {count, e->m, e->n}, from[] = {e->m * row, row, size},
                  steps[] = {step, e->rs, e->cs};
    pysimd_scaling s; /* not all of its dimensions are set */
    s.types = e->types, s.narrow = e->narrow, s.widen = e->widen, s.factors = e->factors;
    if (s.factors.alpha != 1 && !s.factors.adds && !s.narrow && e->cs != size) { /* then they are only stored */
        rows[s.types](count * e->m * e->n, s.factors, products, size, NULL, 0, products, size);
        s.factors.alpha = 1;
    }
    s.ndim = sizeof shape / sizeof *shape, s.product = products, s.target = to, s.c = e->factors.adds ? to : NULL;
    for (int d = 0; d < s.ndim; d++) {
        s.shape[d] = shape[d], s.product_strides[d] = from[d];
        s.target_strides[d] = s.c_strides[d] = steps[d];
    }
    pysimd_scale(&s);
}

/* --- tiles --- */

typedef void tile_fn(pysimd_factors f, int64_t m, int64_t n, const void *product, int64_t rs_product, void *c,
                     int64_t rs_c);

#define TILE(NAME, ROW_OF, U)                                                                                          \
    static void NAME(pysimd_factors f, int64_t m, int64_t n, const void *product, int64_t rs_product, void *c,         \
                     int64_t rs_c)                                                                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i < m; i++) {                                                                              \
            U *to = (U *)c + i * rs_c;                                                                                 \
            ROW_OF##_adjacent(n, f, (const U *)product + i * rs_product, f.adds ? to : NULL, to);                      \
        }                                                                                                              \
    }
TILE(tile_f32, row_f32, unaligned_f32)
TILE(tile_f64, row_f64, unaligned_f64)
TILE(tile_i32, row_i32, unaligned_u32)

static void tile_f16(pysimd_factors f, int64_t m, int64_t n, const void *product, int64_t rs_product, void *c,
                     int64_t rs_c)
{
    enum { EACH = sizeof(uint16_t) };
    for (int64_t i = 0; i < m; i++) {
        char *to = (char *)c + i * rs_c * EACH;
        row_f16(n, f, (const char *)product + i * rs_product * EACH, EACH, f.adds ? to : NULL, EACH, to, EACH);
    }
}

static tile_fn *const tiles[TYPES] = {[F32] = tile_f32,    [F64] = tile_f64,   [BF16F32] = tile_f32,
                                      [F16F32] = tile_f32, [I8I32] = tile_i32, [U8I8I32] = tile_i32,
                                      [F16] = tile_f16};

void pysimd_scale_tile(int types, pysimd_factors factors, int64_t m, int64_t n, const void *product, int64_t rs_product,
                       void *c, int64_t rs_c)
{
    tiles[types](factors, m, n, product, rs_product, c, rs_c);
}
