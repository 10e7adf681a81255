/* few.c: the table of few.inc: kernels for products of few rows or columns, as they were measured. */
#include "few.h"

#include <stdatomic.h>
#include <string.h>

typedef enum { FEW_ARE_COLUMNS, FEW_ARE_ROWS, SIDES } side;
typedef enum { ANY, HALVES, WHOLE } processor;
typedef struct {
    int from, to;
} range;

typedef struct {
    int types, a, b;
    side few_are;
    range few, many, k;
    processor where;
    const char *kernel;
} few_row;

static const few_row rows[] = {
#define FEW(TYPES_, A, B, FEW_ARE, FEW_FROM, FEW_TO, MANY_FROM, MANY_TO, K_FROM, K_TO, WHERE, KERNEL)                  \
    {TYPES_, PYSIMD_BY_##A, PYSIMD_BY_##B, FEW_ARE_##FEW_ARE, {FEW_FROM, FEW_TO}, {MANY_FROM, MANY_TO},                \
     {K_FROM, K_TO}, WHERE, #KERNEL},
#include "../few.inc"
#undef FEW
};
enum { ROWS = sizeof rows / sizeof *rows, ORDERS = 2 };

/* Each row's kernel, or NULL where the row does not count; the first row of each types, orders and side, or ROWS. */
static const pysimd_kernel *_Atomic kernels[ROWS];
static _Atomic int first[TYPES][ORDERS][ORDERS][SIDES];

static int is_of(const few_row *row, int types, int a, int b, side few_are)
{
    return row->types == types && row->a == a && row->b == b && row->few_are == few_are;
}

static int first_of(int types, int a, int b, side few_are)
{
    for (int i = 0; i < ROWS; i++)
        if (is_of(rows + i, types, a, b, few_are)) return i;
    return ROWS;
}

static const pysimd_kernel *named(const char *name)
{
    for (int i = 0; i < pysimd_kernel_count; i++)
        if (strcmp(pysimd_kernels[i].name, name) == 0) return pysimd_kernels + i;
    return NULL;
}

void pysimd_start_few(int halves)
{
    for (int i = 0; i < ROWS; i++) {
        const pysimd_kernel *kernel = named(rows[i].kernel);
        const int here = pysimd_has(AVX512) && rows[i].where != (halves ? WHOLE : HALVES);
        kernels[i] = kernel && here && pysimd_can_run(kernel) ? kernel : NULL;
    }
    for (int types = 0; types < TYPES; types++)
        for (int order = 0; order < ORDERS * ORDERS; order++)
            for (side few_are = 0; few_are < SIDES; few_are++) {
                const int a = order / ORDERS, b = order % ORDERS;
                first[types][a][b][few_are] = first_of(types, a, b, few_are);
            }
}

static int has(range r, int64_t value) { return value >= r.from && value <= r.to; }

const pysimd_kernel *pysimd_of_few(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    const side few_are = m < n ? FEW_ARE_ROWS : FEW_ARE_COLUMNS;
    const int64_t few = m < n ? m : n, many = m < n ? n : m;
    if (few == 1 && m < n) a = b; /* the order of one row, or column, does not matter */
    if (few == 1 && m > n) b = a;
    if (!pysimd_is_of_few(m, n, k) || a == PYSIMD_BY_NEITHER || b == PYSIMD_BY_NEITHER) return NULL;
    int i = atomic_load_explicit(&first[types][a][b][few_are], memory_order_relaxed);
    for (; i < ROWS && is_of(rows + i, types, (int)a, (int)b, few_are); i++) {
        if (!has(rows[i].few, few) || !has(rows[i].many, many) || !has(rows[i].k, k)) continue;
        const pysimd_kernel *kernel = atomic_load_explicit(kernels + i, memory_order_acquire);
        if (kernel) return kernel;
    }
    return NULL;
}
