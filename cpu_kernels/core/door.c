/* door.c: see door.h. The layout is PyArrayObject_fields of numpy/ndarraytypes.h, part of NumPy's C ABI and the same in
 * NumPy 1 and 2; it is written out here because a build against NumPy's headers would tie the wheel to them. Python
 * compares it with a real array before the first use, and does not call pysimd_fast_matmul if anything differs. */
#include "door.h"

typedef struct {
    intptr_t references;
    void *type;
    char *data;
    int ndim;
    intptr_t *dimensions, *strides;
    void *base, *dtype;
    int flags;
} array_fields;

enum { C_CONTIGUOUS = 0x1, WRITEABLE = 0x400, WRITEBACK_IF_COPY = 0x2000 };

static uintptr_t ndarray_type;
static uintptr_t dtypes[TYPES][3];
static int64_t most_product_macs, most_macs, most_bytes;

void pysimd_fast_limits(int64_t product_macs, int64_t macs, int64_t bytes)
{
    most_product_macs = product_macs, most_macs = macs, most_bytes = bytes;
}

void pysimd_fast_types(uintptr_t ndarray, int types, uintptr_t dtype_a, uintptr_t dtype_b, uintptr_t dtype_c)
{
    ndarray_type = ndarray;
    dtypes[types][0] = dtype_a, dtypes[types][1] = dtype_b, dtypes[types][2] = dtype_c;
}

pysimd_fast_view pysimd_fast_look(uintptr_t array)
{
    const array_fields *x = (const array_fields *)array;
    return (pysimd_fast_view){(uintptr_t)x->data, x->ndim, x->dimensions[0], x->strides[0]};
}

static int disjoint(const char *x, int64_t x_bytes, const char *y, int64_t y_bytes)
{
    return x + x_bytes <= y || y + y_bytes <= x;
}

int pysimd_fast_matmul(uintptr_t a_, uintptr_t b_, uintptr_t out_)
{
    const array_fields *a = (const array_fields *)a_, *b = (const array_fields *)b_, *c = (const array_fields *)out_;
    if ((uintptr_t)a->type != ndarray_type || (uintptr_t)b->type != ndarray_type || (uintptr_t)c->type != ndarray_type)
        return 0;
    if (!(a->flags & b->flags & c->flags & C_CONTIGUOUS) || !(c->flags & WRITEABLE) || c->flags & WRITEBACK_IF_COPY)
        return 0;
    const int nd = a->ndim;
    if (nd < 2 || nd > PYSIMD_MAX_DIMS || b->ndim != nd || c->ndim != nd) return 0;
    int types = 0;
    while (types < TYPES && ((uintptr_t)a->dtype != dtypes[types][0] || (uintptr_t)b->dtype != dtypes[types][1] ||
                             (uintptr_t)c->dtype != dtypes[types][2]))
        types++;
    if (types == TYPES) return 0;

    int64_t batch = 1;
    for (int d = 0; d < nd - 2; d++) {
        if (a->dimensions[d] != b->dimensions[d] || a->dimensions[d] != c->dimensions[d]) return 0;
        batch *= a->dimensions[d];
    }
    const int64_t m = a->dimensions[nd - 2], k = a->dimensions[nd - 1], n = b->dimensions[nd - 1];
    if (b->dimensions[nd - 2] != k || c->dimensions[nd - 2] != m || c->dimensions[nd - 1] != n) return 0;
    if (m == 0 || k == 0 || n == 0 || m > most_macs || k > most_macs || n > most_macs || batch > most_macs) return 0;
    if (m * k > most_macs || m * k * n > most_product_macs || m * k * n * batch > most_macs) return 0;
    const pysimd_sizes size = pysimd_element_sizes[types];
    const int64_t bytes_a = batch * m * k * size.a, bytes_b = batch * k * n * size.b, bytes_c = batch * m * n * size.c;
    if (bytes_a + bytes_b + bytes_c > most_bytes) return 0;
    if (!disjoint(c->data, bytes_c, a->data, bytes_a) || !disjoint(c->data, bytes_c, b->data, bytes_b)) return 0;

    pysimd_product product;
    product.m = m, product.n = n, product.k = k;
    product.a = a->data, product.rs_a = k, product.cs_a = 1;
    product.b = b->data, product.rs_b = n, product.cs_b = 1;
    product.c = c->data, product.rs_c = n;
    product.ndim = 1;
    product.shape[0] = batch;
    product.batch_a[0] = m * k, product.batch_b[0] = k * n, product.batch_c[0] = m * n;
    product.flags = PYSIMD_ZERO;
    product.threads = 1;
    return pysimd_multiply(pysimd_choose(types, n), &product) == 0;
}
