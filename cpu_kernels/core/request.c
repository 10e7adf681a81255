/* request.c: see request.h. Stable ABI of Python 3.10, C API of NumPy 1.23. */
#define NO_IMPORT_ARRAY
#include "request.h"

#include "caches.h"
#include "driver.h"

int pysimd_type_numbers[TYPES][3];
PyTypeObject *pysimd_masked_array;

/* --- operands --- */

int pysimd_is_array(PyObject *x)
{
    if (PyArray_CheckExact(x)) return 1;
    return PyArray_Check(x) && pysimd_masked_array && !PyObject_TypeCheck(x, pysimd_masked_array);
}

int pysimd_is_fractional(PyArrayObject *array)
{
    const npy_intp size = PyArray_ITEMSIZE(array); /* 0 of some of NumPy's dtypes */
    npy_intp strides = 0;
    for (int d = 0; d < PyArray_NDIM(array); d++)
        if (PyArray_DIM(array, d) > 1) strides |= PyArray_STRIDE(array, d);
    if (size > 0 && !(size & (size - 1))) return (strides & (size - 1)) != 0; /* no division: three take 0.02 us */
    for (int d = 0; d < PyArray_NDIM(array); d++)
        if (size > 0 && PyArray_STRIDE(array, d) % size && PyArray_DIM(array, d) > 1) return 1;
    return 0;
}

/* A stride of whole elements of 1, 2, 4 or 8 bytes, in elements: a shift by 0, 1, 2 or 3. */
static int64_t in_elements(int64_t bytes, int size) { return bytes >> ((size >> 1) - (size >> 3)); }

static int read_operand(operand *x, PyObject *given, shape_kind kind)
{
    if (!pysimd_is_array(given)) return 0;
    PyArrayObject *array = (PyArrayObject *)given;
    const int nd = PyArray_NDIM(array);
    const npy_intp *shape = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
    x->array = array, x->data = PyArray_BYTES(array), x->size = (int)PyArray_ITEMSIZE(array);
    if (!PyArray_ISNOTSWAPPED(array) || x->size == 0) return 0; /* NumPy has dtypes of no bytes, such as V0 */
    if (nd == 1 && kind == ROW_OR_MATRIX)
        x->batch_dims = 0, x->rows = 1, x->rs = 0, x->cols = shape[0], x->cs = strides[0];
    else if (nd == 1 && kind == COLUMN_OR_MATRIX)
        x->batch_dims = 0, x->rows = shape[0], x->rs = strides[0], x->cols = 1, x->cs = 0;
    else if (nd < 2)
        return 0;
    else {
        const int row = nd - 2 + (kind == TRANSPOSED), col = nd - 1 - (kind == TRANSPOSED);
        x->batch_dims = nd - 2;
        x->rows = shape[row], x->rs = strides[row], x->cols = shape[col], x->cs = strides[col];
    }
    if (x->rows == 1) x->rs = 0;
    if (x->cols == 1) x->cs = 0;
    return !pysimd_is_fractional(array);
}

static int type_number(const operand *x) { return PyArray_TYPE(x->array); }

/* The first and the one past the last byte of an array. */
static void extent(PyArrayObject *array, const char **low, const char **high)
{
    const char *first = PyArray_BYTES(array), *last = first;
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        if (PyArray_DIM(array, d) == 0) {
            *low = *high = first;
            return;
        }
        const npy_intp reach = (PyArray_DIM(array, d) - 1) * PyArray_STRIDE(array, d);
        if (reach < 0)
            first += reach;
        else
            last += reach;
    }
    *low = first, *high = last + PyArray_ITEMSIZE(array);
}

int pysimd_overlap(PyArrayObject *x, PyArrayObject *y)
{
    const char *x_low, *x_high, *y_low, *y_high;
    extent(x, &x_low, &x_high), extent(y, &y_low, &y_high);
    return x_low < y_high && y_low < x_high && x_low < x_high && y_low < y_high;
}

int pysimd_same_memory(PyArrayObject *x, PyArrayObject *y)
{
    if (x == y) return 1;
    if (PyArray_BYTES(x) != PyArray_BYTES(y) || PyArray_NDIM(x) != PyArray_NDIM(y)) return 0;
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (PyArray_DIM(x, d) != PyArray_DIM(y, d) || PyArray_STRIDE(x, d) != PyArray_STRIDE(y, d)) return 0;
    return 1;
}

/* --- a call --- */

static int find_types(const request *r, plan *p)
{
    const int a = type_number(&p->a), b = type_number(&p->b);
    if (r->kernel) {
        const int types = r->kernel->types;
        const int *numbers = pysimd_type_numbers[types];
        const int bits = types == BF16F32; /* uint16 may hold the bits of bfloat16 where a kernel is named */
        p->types = types;
        return (a == numbers[0] || (bits && a == NPY_USHORT)) && (b == numbers[1] || (bits && b == NPY_USHORT));
    }
    for (int types = 0; types < TYPES; types++)
        if (a == pysimd_type_numbers[types][0] && b == pysimd_type_numbers[types][1]) {
            p->types = types;
            return 1;
        }
    return 0;
}

/* `out` may ask for a result of the 16-bit type of a. Kernels add to float32, and so does a call of one. */
static int find_result_type(const request *r, const plan *p)
{
    const int bits = p->types == F16F32 || p->types == BF16F32, own = type_number(&p->a);
    const int by_out = r->out && !r->tile && pysimd_is_array(r->out) &&
                       PyArray_TYPE((PyArrayObject *)r->out) == own;
    return bits && (r->narrow || by_out) ? own : pysimd_type_numbers[p->types][2];
}

int pysimd_is_narrow(const plan *p) { return p->result_type != pysimd_type_numbers[p->types][2]; }

/* Extends the batch shape of `p` by that of an operand, as NumPy broadcasts. */
static int broadcast(plan *p, const operand *x)
{
    const npy_intp *shape = PyArray_DIMS(x->array);
    if (x->batch_dims > p->batch_dims) {
        const int more = x->batch_dims - p->batch_dims;
        for (int d = p->batch_dims - 1; d >= 0; d--) p->batch[d + more] = p->batch[d];
        for (int d = 0; d < more; d++) p->batch[d] = 1;
        p->batch_dims = x->batch_dims;
    }
    const int first = p->batch_dims - x->batch_dims;
    for (int d = 0; d < x->batch_dims; d++) {
        int64_t *length = &p->batch[first + d];
        if (*length == 1)
            *length = shape[d];
        else if (shape[d] != 1 && shape[d] != *length)
            return 0;
    }
    return 1;
}

int64_t pysimd_batch_stride(const plan *p, const operand *x, int d)
{
    const int own = d - (p->batch_dims - x->batch_dims);
    return own < 0 || PyArray_DIM(x->array, own) == 1 ? 0 : PyArray_STRIDE(x->array, own);
}

/* The batch dimensions of the product: those of length 1 left out, adjacent ones merged where all operands allow it. */
static void merge_batch(plan *p)
{
    pysimd_product *q = &p->product;
    q->ndim = 0;
    for (int d = 0; d < p->batch_dims; d++) {
        const int64_t n = p->batch[d];
        if (n == 1) continue;
        const int64_t a = in_elements(pysimd_batch_stride(p, &p->a, d), p->a.size);
        const int64_t b = in_elements(pysimd_batch_stride(p, &p->b, d), p->b.size);
        const int64_t c = in_elements(pysimd_batch_stride(p, &p->out, d), p->out.size);
        const int last = q->ndim - 1;
        if (last >= 0 && q->batch_a[last] == n * a && q->batch_b[last] == n * b && q->batch_c[last] == n * c)
            q->shape[last] *= n;
        else
            q->shape[q->ndim++] = n;
        q->batch_a[q->ndim - 1] = a, q->batch_b[q->ndim - 1] = b, q->batch_c[q->ndim - 1] = c;
    }
}

static int integral(double x) { return x >= INT32_MIN && x <= INT32_MAX && x == (double)(int32_t)x; }

int pysimd_read_request(const request *r, plan *p)
{
    if (!read_operand(&p->a, r->a, r->kind_a) || !read_operand(&p->b, r->b, r->kind_b)) return 0;
    if (p->a.cols != p->b.rows || !find_types(r, p)) return 0;
    if (p->a.size == 1 && !(integral(r->factors.alpha) && integral(r->factors.beta))) return 0; /* int32 factors */
    p->result_type = find_result_type(r, p);
    if (r->tile && (p->a.rows != r->kernel->mr || p->b.cols != r->kernel->nr)) return 0;
    p->batch_dims = 0;
    if (!broadcast(p, &p->a) || !broadcast(p, &p->b)) return 0;
    if (r->c) {
        if (!read_operand(&p->c, r->c, r->tile ? MATRIX : ROW_OR_MATRIX)) return 0;
        if (type_number(&p->c) != p->result_type || !broadcast(p, &p->c)) return 0;
        if (p->c.rows != p->a.rows && (r->tile || p->c.rows != 1)) return 0; /* a single row or column broadcasts */
        if (p->c.cols != p->b.cols && (r->tile || p->c.cols != 1)) return 0;
    }
    double elements = (double)p->a.rows * (double)p->b.cols;
    p->count = 1;
    for (int d = 0; d < p->batch_dims; d++) {
        elements *= (double)p->batch[d];
        if (__builtin_mul_overflow(p->count, p->batch[d], &p->count)) p->count = INT64_MAX;
    }
    return elements < 9e18; /* no array has more */
}

int pysimd_result_shape(const request *r, const plan *p, npy_intp *shape)
{
    int nd = 0;
    for (int d = 0; d < p->batch_dims; d++) shape[nd++] = (npy_intp)p->batch[d];
    if (r->kind_a != ROW_OR_MATRIX || PyArray_NDIM(p->a.array) > 1) shape[nd++] = (npy_intp)p->a.rows;
    if (r->kind_b != COLUMN_OR_MATRIX || PyArray_NDIM(p->b.array) > 1) shape[nd++] = (npy_intp)p->b.cols;
    return nd;
}

void pysimd_result_operand(const request *r, const plan *p, PyArrayObject *array, operand *x)
{
    const int row_vector = r->kind_a == ROW_OR_MATRIX && PyArray_NDIM(p->a.array) == 1;
    const int column_vector = r->kind_b == COLUMN_OR_MATRIX && PyArray_NDIM(p->b.array) == 1;
    const npy_intp *strides = PyArray_STRIDES(array);
    *x = (operand){.array = array, .data = PyArray_BYTES(array), .batch_dims = p->batch_dims, .rows = p->a.rows,
                   .cols = p->b.cols, .size = (int)PyArray_ITEMSIZE(array)};
    int d = p->batch_dims;
    if (!row_vector) x->rs = x->rows == 1 ? 0 : strides[d], d++;
    if (!column_vector) x->cs = x->cols == 1 ? 0 : strides[d];
}

int pysimd_takes_out(const request *r, plan *p, PyObject *given, const npy_intp *shape, int nd)
{
    if (!pysimd_is_array(given)) return 0;
    PyArrayObject *out = (PyArrayObject *)given;
    if (PyArray_NDIM(out) != nd || PyArray_TYPE(out) != p->result_type || !PyArray_ISNOTSWAPPED(out)) return 0;
    if ((PyArray_FLAGS(out) & (NPY_ARRAY_WRITEABLE | NPY_ARRAY_WRITEBACKIFCOPY)) != NPY_ARRAY_WRITEABLE) return 0;
    for (int d = 0; d < nd; d++)
        if (PyArray_DIM(out, d) != shape[d]) return 0;
    pysimd_result_operand(r, p, out, &p->out);
    return 1;
}

/* Whether an element is at two indices. */
static int repeats(PyArrayObject *array)
{
    for (int d = 0; d < PyArray_NDIM(array); d++)
        if (PyArray_STRIDE(array, d) == 0 && PyArray_DIM(array, d) > 1) return 1;
    return 0;
}

/* Of what is rounded to 16 bits nothing is stored before all has been read, unless C is read as it is rounded. */
way_to_out pysimd_way_to_out(const request *r, const plan *p)
{
    const operand *out = &p->out;
    const int narrow = pysimd_is_narrow(p);
    if (PyArray_SIZE(out->array) == 0) return STORED; /* its strides are arbitrary */
    if (pysimd_is_fractional(out->array) || repeats(out->array)) return COPIED;
    if (!narrow && (pysimd_overlap(out->array, p->a.array) || pysimd_overlap(out->array, p->b.array))) return COPIED;
    if (r->c && !pysimd_same_memory(out->array, p->c.array) && pysimd_overlap(out->array, p->c.array)) return COPIED;
    if (narrow || out->cols <= 1 || out->cs == out->size) return STORED;
    const int may_exchange = !r->kernel && p->types != U8I8I32; /* there is no int8 x uint8 */
    return may_exchange && (out->rows <= 1 || out->rs == out->size) ? STORED_TRANSPOSED : STORED_APART;
}

static operand transposed(operand x)
{
    const operand old = x;
    x.rows = old.cols, x.rs = old.cs, x.cols = old.rows, x.cs = old.rs;
    return x;
}

void pysimd_exchange_plan(const request *r, plan *p)
{
    const operand a = p->a;
    p->a = transposed(p->b), p->b = transposed(a), p->out = transposed(p->out);
    if (r->c) p->c = transposed(p->c);
}

pysimd_order pysimd_order_of(const operand *x) { return pysimd_order_by(x->rs, x->cs, x->size); }

/* The distance of rows, if those of product after product along batch dimension d are at equal distances; else 0. */
static int64_t distance_of_rows(const plan *p, const operand *x, int d)
{
    const int64_t step = pysimd_batch_stride(p, x, d);
    if (step <= 0 || step & (x->size - 1)) return 0;
    return x->rows == 1 ? step : step == x->rows * x->rs ? x->rs : 0;
}

/* Whether a batch with one B is faster as one product. Of 420 random ones of 10 to 1000 products on a Zen 5, those of
 * one row were 2.5 times as fast in the geometric mean (1.1 to 10.5), of one column 1.2 (1.03 to 2.1), of up to three
 * rows and more than eight columns 2.0 (1.02 to 10), of four to seven rows of narrow types 1.4 (0.98 to 2.1), of floats
 * 1.15 (0.8 to 1.5); more rows 1.05 (0.56 to 1.8), and fewer columns too (0.41 to 2.0). Matrices from memory times a
 * column stay a batch, of which the next products are prefetched: 105,517 of 39 x 3 x 1 float took 90 ns each as one
 * product, and 25. */
static int rows_are_few(const plan *p)
{
    enum { SMALL_COLUMNS = 8, ROWS = 4, NARROW_ROWS = 8 };
    const int64_t m = p->a.rows, n = p->b.cols;
    if (m == 1) return 1;
    if (n == 1) return (double)p->count * (double)m * (double)p->a.cols * p->a.size <= (double)pysimd_caches().l3 / 2;
    const int narrow = p->types != F32 && p->types != F64;
    return n > SMALL_COLUMNS && m < (narrow ? NARROW_ROWS : ROWS);
}

static void leave_dimension(operand *x) { x->batch_dims -= x->batch_dims > 0; }

void pysimd_merge_rows(plan *p)
{
    if (!rows_are_few(p)) return;
    while (p->batch_dims > 0) {
        const int d = p->batch_dims - 1;
        const int64_t count = p->batch[d];
        if (count > 1) {
            if (pysimd_batch_stride(p, &p->b, d)) return;
            const int64_t rs_a = distance_of_rows(p, &p->a, d), rs_c = distance_of_rows(p, &p->out, d);
            if (!rs_a || !rs_c) return;
            p->a.rs = rs_a, p->out.rs = rs_c;
            p->a.rows *= count, p->out.rows *= count, p->count /= count;
        }
        p->batch_dims = d;
        leave_dimension(&p->a), leave_dimension(&p->b), leave_dimension(&p->out);
    }
}

int pysimd_may_store_apart(const request *r, const plan *p)
{
    PyArrayObject *out = p->out.array;
    if (p->count < 2 || (r->factors.adds && !pysimd_same_memory(out, p->c.array))) return 0;
    if (pysimd_overlap(out, p->a.array) || pysimd_overlap(out, p->b.array)) return 0;
    int one_b = 1;
    for (int d = 0; d < p->batch_dims; d++) one_b &= p->batch[d] == 1 || !pysimd_batch_stride(p, &p->b, d);
    return !one_b || !rows_are_few(p);
}

/* Whether C is written by non-temporal stores: only where they are one ascending sequence that fills every cache line,
 * so rows as wide as the tile, one after the other. Lines of which a part is stored at another time, or in another way,
 * are written to memory more than once: 24x24 float products took 14 times as long. */
static int can_stream(const plan *p, const pysimd_kernel *kernel, double stream_bytes)
{
    const pysimd_product *q = &p->product;
    const int dense = q->rs_c == q->n && q->ndim <= 1 && (q->ndim == 0 || q->batch_c[0] == q->m * q->n);
    return dense && kernel->form == OUTER && q->n == kernel->nr && (uintptr_t)p->out.data % 16 == 0 &&
           (double)p->count * (double)q->m * (double)q->n * p->out.size >= stream_bytes;
}

/* C^T = B^T A^T: a product of few rows as one of few columns. */
static void exchange_operands(pysimd_product *q)
{
    const pysimd_product old = *q;
    q->m = old.n, q->n = old.m;
    q->a = old.b, q->rs_a = old.cs_b, q->cs_a = q->k == 1 ? 1 : old.rs_b;
    q->b = old.a, q->rs_b = q->k == 1 ? 1 : old.cs_a, q->cs_b = old.rs_a;
    q->rs_c = 1, q->cs_c = old.rs_c;
    for (int d = 0; d < q->ndim; d++) q->batch_a[d] = old.batch_b[d], q->batch_b[d] = old.batch_a[d];
    q->flags |= PYSIMD_EXCHANGED;
}

void pysimd_fill_product(plan *p, const pysimd_kernel *kernel, int flags, double stream_bytes)
{
    pysimd_product *q = &p->product;
    q->m = p->a.rows, q->n = p->b.cols, q->k = p->a.cols;
    const operand *a = &p->a, *b = &p->b;
    q->a = a->data, q->rs_a = in_elements(a->rs, a->size), q->cs_a = q->k == 1 ? 1 : in_elements(a->cs, a->size);
    q->b = b->data, q->rs_b = q->k == 1 ? 1 : in_elements(b->rs, b->size);
    q->cs_b = q->n == 1 ? 1 : in_elements(b->cs, b->size);
    q->c = p->out.data, q->rs_c = in_elements(p->out.rs, p->out.size), q->cs_c = 1;
    merge_batch(p);
    q->flags = flags | (flags & PYSIMD_ZERO && can_stream(p, kernel, stream_bytes) ? PYSIMD_STREAM : 0);
    q->chosen = 0;
    q->threads = q->woken = 1;
    q->ns = 0;
    q->epilogue = NULL;
    q->interrupted = NULL;
    const int dots = kernel->dispatch_dots && q->cs_a == 1 && q->rs_b == 1;
    if (kernel->form == GEMV && q->m < q->n && (q->m <= PYSIMD_GEMV_COLUMNS || dots)) exchange_operands(q);
}

void pysimd_fill_stored_apart(plan *p, const pysimd_kernel *kernel, const pysimd_epilogue *epilogue)
{
    pysimd_product *q = &p->product;
    pysimd_fill_product(p, kernel, PYSIMD_ZERO, 0);
    const int exchanged = q->flags & PYSIMD_EXCHANGED;
    q->flags &= ~PYSIMD_STREAM;
    q->rs_c = exchanged ? 1 : q->n, q->cs_c = exchanged ? q->m : 1;
    q->epilogue = epilogue;
}
