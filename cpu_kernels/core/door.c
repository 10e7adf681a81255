/* door.c: see door.h. Compiled for the baseline processor; stable ABI of Python 3.10, C API of NumPy 1.23.
 *
 * A NumPy gufunc would have broadcasting, `out` and overlap at no cost in code, but numpy.matmul is one, and its call
 * alone takes longer than a whole call of this module: docs/how_it_works.md has the figures. */
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL pysimd_numpy
#include "door.h"

#include <Python.h>
#include <numpy/arrayobject.h>
#include <structmember.h>
#include <time.h>

#include "../include/pysimd_api.h"
#include "cost.h"
#include "driver.h"
#include "gemm.h"
#include "pack.h"
#include "scale.h"
#include "tensors.h"

/* This many multiply-adds, and eight times as many bytes, take less time than any limit on every processor. */
enum { SURELY_SHORT = 8000 };

/* --- what Python sets at the start --- */

static PyObject *kernels;       /* dict: name or MicroKernel to the number of a row */
static int type_numbers[TYPES][3]; /* NumPy's, of A, B and C; -1: not offered by dtype */
static struct { /* backends/cpu/dispatch.py has their values and the reasons */
    int threads;         /* of large work, unless the call says how many */
    double thread_ns;    /* of work that is worth two threads, a half; if they are awake: see cost.h */
    double wake_ns;      /* work that is worth waking a thread */
    double gil_ns;       /* the GIL is released for longer work */
    double stream_bytes; /* larger results are written by non-temporal stores */
} limits;

static PyObject *not_implemented(void) { Py_RETURN_NOTIMPLEMENTED; }

/* The row of a kernel given as its name or as an object; 0 if there is none. None: *kernel is NULL. */
static int row_of(PyObject *given, const pysimd_kernel **kernel)
{
    *kernel = NULL;
    if (given == Py_None) return 1;
    PyObject *row = kernels ? PyDict_GetItemWithError(kernels, given) : NULL;
    if (!row) {
        PyErr_Clear(); /* not hashable: not a kernel */
        return 0;
    }
    *kernel = pysimd_kernels + PyLong_AsLong(row);
    return 1;
}

/* --- operands --- */

/* One matrix operand of a product. Strides are bytes; a dimension of length 1 has stride 0. */
typedef struct {
    PyArrayObject *array;
    char *data;
    int batch_dims;
    int64_t rows, cols, rs, cs;
    int size; /* of an element */
} operand;

typedef enum { MATRIX, TRANSPOSED, ROW_OR_MATRIX, COLUMN_OR_MATRIX } shape_kind;

static int read_operand(operand *x, PyObject *given, shape_kind kind)
{
    if (!PyArray_CheckExact(given)) return 0;
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
    for (int d = 0; d < nd; d++)
        if (strides[d] % x->size && shape[d] > 1) return 0;
    return 1;
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

static int overlap(PyArrayObject *x, PyArrayObject *y)
{
    const char *x_low, *x_high, *y_low, *y_high;
    extent(x, &x_low, &x_high), extent(y, &y_low, &y_high);
    return x_low < y_high && y_low < x_high && x_low < x_high && y_low < y_high;
}

static int same_memory(PyArrayObject *x, PyArrayObject *y)
{
    if (x == y) return 1;
    if (PyArray_BYTES(x) != PyArray_BYTES(y) || PyArray_NDIM(x) != PyArray_NDIM(y)) return 0;
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (PyArray_DIM(x, d) != PyArray_DIM(y, d) || PyArray_STRIDE(x, d) != PyArray_STRIDE(y, d)) return 0;
    return 1;
}

/* --- a call --- */

typedef struct {
    PyObject *a, *b, *c, *out; /* c and out: NULL if not given */
    shape_kind kind_a, kind_b;
    const pysimd_kernel *kernel; /* NULL: the one that dispatch takes */
    int tile;                    /* a and b have the kernel's own rows and columns */
    int threads;                 /* 0: by the estimate */
    int narrow;                  /* without `out`, the result of 16-bit operands has their type */
    pysimd_factors factors;
} request;

/* All that is derived from a request before anything is written. */
typedef struct {
    operand a, b, c, out;
    int types, result_type; /* its NumPy type number: that of C, or a 16-bit type, which `out` asks for */
    int batch_dims;
    int64_t batch[PYSIMD_MAX_DIMS], count;
    pysimd_product product;
} plan;

static int find_types(const request *r, plan *p)
{
    const int a = type_number(&p->a), b = type_number(&p->b);
    if (r->kernel) {
        const int types = r->kernel->types;
        const int *numbers = type_numbers[types];
        const int bits = types == BF16F32; /* uint16 may hold the bits of bfloat16 where a kernel is named */
        p->types = types;
        return (a == numbers[0] || (bits && a == NPY_USHORT)) && (b == numbers[1] || (bits && b == NPY_USHORT));
    }
    for (int types = 0; types < TYPES; types++)
        if (a == type_numbers[types][0] && b == type_numbers[types][1]) {
            p->types = types;
            return 1;
        }
    return 0;
}

/* `out` may ask for a result of the 16-bit type of a. Kernels add to float32, and so does a call of one. */
static int find_result_type(const request *r, const plan *p)
{
    const int bits = p->types == F16F32 || p->types == BF16F32, own = type_number(&p->a);
    const int by_out = r->out && !r->tile && PyArray_CheckExact(r->out) &&
                       PyArray_TYPE((PyArrayObject *)r->out) == own;
    return bits && (r->narrow || by_out) ? own : type_numbers[p->types][2];
}

static int is_narrow(const plan *p) { return p->result_type != type_numbers[p->types][2]; }

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

/* Bytes from product to product along batch dimension d; 0 where the operand broadcasts. */
static int64_t batch_stride(const plan *p, const operand *x, int d)
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
        const int64_t a = batch_stride(p, &p->a, d) / p->a.size, b = batch_stride(p, &p->b, d) / p->b.size,
                      c = batch_stride(p, &p->out, d) / p->out.size;
        const int last = q->ndim - 1;
        if (last >= 0 && q->batch_a[last] == n * a && q->batch_b[last] == n * b && q->batch_c[last] == n * c)
            q->shape[last] *= n;
        else
            q->shape[q->ndim++] = n;
        q->batch_a[q->ndim - 1] = a, q->batch_b[q->ndim - 1] = b, q->batch_c[q->ndim - 1] = c;
    }
}

static int integral(double x) { return x >= INT32_MIN && x <= INT32_MAX && x == (double)(int32_t)x; }

/* Reads the operands but for `out`; 0 unless the shapes and dtypes of a, b and c match. */
static int read_request(const request *r, plan *p)
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
        p->count = p->batch[d] && p->count > INT64_MAX / p->batch[d] ? INT64_MAX : p->count * p->batch[d];
    }
    return elements < 9e18; /* no array has more */
}

/* Dimensions of the result: those of the batch, then rows and columns unless a or b is a vector. */
static int result_shape(const request *r, const plan *p, npy_intp *shape)
{
    int nd = 0;
    for (int d = 0; d < p->batch_dims; d++) shape[nd++] = (npy_intp)p->batch[d];
    if (r->kind_a != ROW_OR_MATRIX || PyArray_NDIM(p->a.array) > 1) shape[nd++] = (npy_intp)p->a.rows;
    if (r->kind_b != COLUMN_OR_MATRIX || PyArray_NDIM(p->b.array) > 1) shape[nd++] = (npy_intp)p->b.cols;
    return nd;
}

/* The result as an operand: its last dimensions are rows and columns, or what vectors leave of them. */
static void result_operand(const request *r, const plan *p, PyArrayObject *array, operand *x)
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

/* Whether `out` is an array of this shape and dtype that kernels can store into, without overlap with their operands.
 */
static int usable(const request *r, plan *p, PyObject *given, const npy_intp *shape, int nd)
{
    if (!PyArray_CheckExact(given)) return 0;
    PyArrayObject *out = (PyArrayObject *)given;
    if (PyArray_NDIM(out) != nd || PyArray_TYPE(out) != p->result_type || !PyArray_ISNOTSWAPPED(out)) return 0;
    if ((PyArray_FLAGS(out) & (NPY_ARRAY_WRITEABLE | NPY_ARRAY_WRITEBACKIFCOPY)) != NPY_ARRAY_WRITEABLE) return 0;
    const npy_intp *strides = PyArray_STRIDES(out);
    const int size = (int)PyArray_ITEMSIZE(out);
    for (int d = 0; d < nd; d++)
        if (PyArray_DIM(out, d) != shape[d]) return 0;
    const int empty = PyArray_SIZE(out) == 0; /* its strides are arbitrary */
    for (int d = 0; d < nd && !empty; d++)
        if (shape[d] > 1 && (strides[d] == 0 || strides[d] % size)) return 0;
    result_operand(r, p, out, &p->out);
    if (!empty && p->out.cols > 1 && p->out.cs != size) return 0;
    if (overlap(out, p->a.array) || overlap(out, p->b.array)) return 0;
    return !r->c || same_memory(out, p->c.array) || !overlap(out, p->c.array);
}

/* Whether C is written by non-temporal stores: only where they are one ascending sequence that fills every cache line,
 * so rows as wide as the tile, one after the other. Lines of which a part is stored at another time, or in another way,
 * are written to memory more than once: 24x24 float products took 14 times as long. */
static int can_stream(const plan *p, const pysimd_kernel *kernel)
{
    const pysimd_product *q = &p->product;
    const int dense = q->rs_c == q->n && q->ndim <= 1 && (q->ndim == 0 || q->batch_c[0] == q->m * q->n);
    return dense && kernel->form == OUTER && q->n == kernel->nr && (uintptr_t)p->out.data % 16 == 0 &&
           (double)p->count * (double)q->m * (double)q->n * p->out.size >= limits.stream_bytes;
}

/* C^T = B^T A^T: a product of one row as one of one column. */
static void exchange_operands(pysimd_product *q)
{
    const pysimd_product old = *q;
    q->m = old.n, q->n = 1;
    q->a = old.b, q->rs_a = old.cs_b, q->cs_a = q->k == 1 ? 1 : old.rs_b;
    q->b = old.a, q->rs_b = q->k == 1 ? 1 : old.cs_a, q->cs_b = 1;
    q->rs_c = 1;
    for (int d = 0; d < q->ndim; d++) q->batch_a[d] = old.batch_b[d], q->batch_b[d] = old.batch_a[d];
    q->flags |= PYSIMD_EXCHANGED;
}

static void fill_product(plan *p, const pysimd_kernel *kernel, int flags)
{
    pysimd_product *q = &p->product;
    q->m = p->a.rows, q->n = p->b.cols, q->k = p->a.cols;
    q->a = p->a.data, q->rs_a = p->a.rs / p->a.size, q->cs_a = q->k == 1 ? 1 : p->a.cs / p->a.size;
    q->b = p->b.data, q->rs_b = q->k == 1 ? 1 : p->b.rs / p->b.size, q->cs_b = q->n == 1 ? 1 : p->b.cs / p->b.size;
    q->c = p->out.data, q->rs_c = p->out.rs / p->out.size;
    merge_batch(p);
    q->flags = flags | (flags & PYSIMD_ZERO && can_stream(p, kernel) ? PYSIMD_STREAM : 0);
    q->threads = q->woken = 1;
    q->interrupted = NULL;
    if (kernel->form == GEMV && q->m == 1 && q->n > 1) exchange_operands(q);
}

/* Estimated time on one thread; 0 where it is certainly short. */
static double estimate(const plan *p, const pysimd_kernel *kernel)
{
    const pysimd_product *q = &p->product;
    const double m = (double)q->m, n = (double)q->n, k = (double)q->k, count = (double)p->count;
    const double macs = m * n * k * count;
    const double bytes = count * (m * k * p->a.size + k * n * p->b.size + m * n * p->out.size);
    if (macs < SURELY_SHORT && bytes < 8 * SURELY_SHORT) return 0;
    return pysimd_estimate_ns(kernel, macs, bytes);
}

/* --- the calling thread --- */

/* A product of more than 50 milliseconds looks for signals ten times a second, so that Ctrl-C ends it. */
static const double LOOK_FOR_SIGNALS_NS = 50e6, SIGNALS_EVERY_NS = 100e6;

typedef struct {
    PyArrayObject *result, *c; /* c: NULL, or what is copied into the result before the product is added */
    int releases;              /* the GIL */
    PyThreadState *state;      /* of the released GIL */
    double next;               /* look for signals */
} caller;

/* Nothing is written before this: C is copied only where the product has its memory. */
static int begin(void *context)
{
    caller *x = context;
    if (x->c && PyArray_CopyInto(x->result, x->c)) return -1;
    if (x->releases) x->state = PyEval_SaveThread();
    return 0;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int interrupted(void *context)
{
    caller *x = context;
    const double now = now_ns();
    if (now < x->next) return 0;
    PyEval_RestoreThread(x->state);
    const int raised = PyErr_CheckSignals() != 0; /* in the main thread; 0 in others */
    x->state = PyEval_SaveThread();
    x->next = now_ns() + SIGNALS_EVERY_NS; /* handlers may have taken longer than that */
    return raised;
}

static int default_threads(double ns)
{
    return ns > 0 ? pysimd_threads_awake(ns, limits.thread_ns, limits.threads) : 1;
}

/* C copied into the result if there is a C, the multiplication, which takes about `ns`, and the scaling if there is one;
 * without the GIL if it takes longer than gil_ns. Nonzero: there was no memory, or a signal handler has raised an
 * exception. */
static int compute(const pysimd_kernel *kernel, pysimd_product *product, double ns, const pysimd_scaling *scaling,
                   PyArrayObject *result, PyArrayObject *c)
{
    caller x = {.result = result, .c = c, .releases = ns > limits.gil_ns};
    product->begin = begin, product->context = &x;
    if (ns > LOOK_FOR_SIGNALS_NS) {
        x.next = now_ns() + SIGNALS_EVERY_NS;
        product->interrupted = interrupted;
    }
    const int failed = pysimd_multiply(kernel, product);
    if (!failed && scaling) pysimd_scale(scaling);
    if (x.state) PyEval_RestoreThread(x.state);
    if (failed && failed != PYSIMD_INTERRUPTED) PyErr_SetString(PyExc_MemoryError, "no memory for the packed operands");
    return failed;
}

/* alpha * product + beta * C in `target`; the two may be the same array. */
static pysimd_scaling scaling_of(const request *r, const plan *p, const pysimd_kernel *kernel, const operand *product,
                                 const operand *target)
{
    const int adds = r->factors.adds, dims = p->batch_dims;
    pysimd_scaling s = {.types = p->types, .factors = r->factors, .ndim = dims + 2, .product = product->data,
                        .target = target->data, .c = adds ? p->c.data : NULL};
    if (is_narrow(p)) s.narrow = pysimd_narrowing(kernel), s.widen = pysimd_widening(kernel, 0);
    for (int d = 0; d < dims; d++) {
        s.shape[d] = p->batch[d];
        s.product_strides[d] = PyArray_STRIDE(product->array, d);
        s.target_strides[d] = PyArray_STRIDE(target->array, d);
        if (adds) s.c_strides[d] = batch_stride(p, &p->c, d);
    }
    s.shape[dims] = p->a.rows, s.shape[dims + 1] = p->b.cols;
    s.product_strides[dims] = product->rs, s.product_strides[dims + 1] = product->cs;
    s.target_strides[dims] = target->rs, s.target_strides[dims + 1] = target->cs;
    if (adds) s.c_strides[dims] = p->c.rs, s.c_strides[dims + 1] = p->c.cs;
    return s;
}

static PyArrayObject *new_array(npy_intp *shape, int nd, int type)
{
    return (PyArrayObject *)PyArray_SimpleNew(nd, shape, type);
}

/* The product is computed in the result or, where it is scaled or converted afterwards and C must not be overwritten by
 * then, in an array of its own. */
static PyObject *multiply(const request *r)
{
    plan p;
    npy_intp shape[PYSIMD_MAX_DIMS + 2];
    if (!read_request(r, &p)) return not_implemented();
    const int nd = result_shape(r, &p, shape);
    if (nd > PYSIMD_MAX_DIMS || (r->out && !usable(r, &p, r->out, shape, nd))) return not_implemented();
    const pysimd_kernel *kernel = r->kernel ? r->kernel : pysimd_choose(p.types, p.a.rows, p.b.cols, p.a.cols);

    PyArrayObject *result = (PyArrayObject *)r->out;
    if (result)
        Py_INCREF(result);
    else if (!(result = new_array(shape, nd, p.result_type)))
        return NULL;
    result_operand(r, &p, result, &p.out);
    if (p.count == 0 || p.a.rows == 0 || p.b.cols == 0) return (PyObject *)result;

    const pysimd_factors *f = &r->factors;
    const int plain = f->alpha == 1 && (!f->adds || f->beta == 1); /* by the kernel itself */
    const int in_place = !is_narrow(&p) && (plain || pysimd_gemm_takes(kernel, p.a.rows, p.b.cols, p.a.cols));
    const int accumulates = f->adds && in_place;
    const operand target = p.out;
    PyArrayObject *product = result;
    if (is_narrow(&p) || (!in_place && f->adds && overlap(result, p.c.array))) {
        if (!(product = new_array(shape, nd, type_numbers[p.types][2]))) goto failed;
        result_operand(r, &p, product, &p.out);
    }
    PyArrayObject *copied = accumulates && !same_memory(result, p.c.array) ? p.c.array : NULL;
    fill_product(&p, kernel, (accumulates ? 0 : PYSIMD_ZERO) | (in_place && !plain ? PYSIMD_FACTORS : 0));
    p.product.alpha = f->alpha, p.product.beta = f->beta;
    const pysimd_scaling scaling = in_place ? (pysimd_scaling){0} : scaling_of(r, &p, kernel, &p.out, &target);
    const double ns = estimate(&p, kernel);
    p.product.threads = r->threads ? r->threads : default_threads(ns);
    p.product.woken = r->threads ? 0 : pysimd_threads_for(ns, limits.wake_ns, limits.threads);
    if (compute(kernel, &p.product, ns, in_place ? NULL : &scaling, result, copied)) goto failed;
    if (product != result) Py_DECREF(product);
    return (PyObject *)result;
failed:
    if (product && product != result) Py_DECREF(product);
    Py_DECREF(result);
    return NULL;
}

/* `x` in place of an operand that is a tensor; 0 for one that is none, or that Python must look at. */
static int viewed(PyObject **x, PyObject **views)
{
    if (!*x) return 1;
    if (!pysimd_is_tensor(*x)) return 0;
    return (*x = *views = pysimd_tensor_view(*x)) != NULL;
}

/* The product of tensors, as one. */
static PyObject *multiply_tensors(const request *r)
{
    request of_views = *r;
    PyObject *views[4] = {NULL}, *result = NULL;
    if (viewed(&of_views.a, &views[0]) && viewed(&of_views.b, &views[1]) && viewed(&of_views.c, &views[2]) &&
        viewed(&of_views.out, &views[3]))
        result = multiply(&of_views);
    else
        result = not_implemented();
    if (result && result != Py_NotImplemented && r->out) {
        Py_DECREF(result); /* the view */
        Py_INCREF(r->out);
        result = r->out;
    } else if (result && result != Py_NotImplemented)
        result = pysimd_tensor_of(result);
    for (int i = 0; i < 4; i++) Py_XDECREF(views[i]);
    return result;
}

static PyObject *product_of(const request *r) { return pysimd_is_tensor(r->a) ? multiply_tensors(r) : multiply(r); }

/* --- the functions of the module --- */

static const pysimd_factors PLAIN_PRODUCT = {.alpha = 1};

/* 1 for None or a positive Python int, 0 for anything else. */
static int threads_of(PyObject *given, int *threads)
{
    *threads = 0;
    if (given == Py_None) return 1;
    if (!PyLong_CheckExact(given)) return 0;
    int overflow;
    const long value = PyLong_AsLongAndOverflow(given, &overflow);
    if (value < 1 && !overflow) return 0;
    *threads = overflow || value > 1 << 16 ? 1 << 16 : (int)value; /* the driver has a lower limit */
    return overflow >= 0;
}

static PyObject *door_matmul(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)count;
    request r = {.a = args[0], .b = args[1], .out = args[2] == Py_None ? NULL : args[2], .kind_a = ROW_OR_MATRIX,
                 .kind_b = COLUMN_OR_MATRIX, .factors = PLAIN_PRODUCT};
    if (!row_of(args[3], &r.kernel) || !threads_of(args[4], &r.threads)) return not_implemented();
    return product_of(&r);
}

/* --- torch's operator --- */

/* Whether one of the functions returns what is true; -1 with an exception. */
static int any_true(PyObject *functions)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(functions); i++) {
        PyObject *found = PyObject_CallNoArgs(PyTuple_GetItem(functions, i));
        const int is_true = found ? PyObject_IsTrue(found) : -1;
        Py_XDECREF(found);
        if (is_true) return is_true;
    }
    return 0;
}

static PyObject *operator_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *types = PyTuple_GetItem(self, 0), *observers = PyTuple_GetItem(self, 1),
             *plain = PyTuple_GetItem(self, 2), *dispatched = PyTuple_GetItem(self, 3);
    if (PyTuple_Size(args) != 2 || keywords) return PyObject_Call(dispatched, args, keywords);
    request r = {.a = PyTuple_GetItem(args, 0), .b = PyTuple_GetItem(args, 1), .kind_a = ROW_OR_MATRIX,
                 .kind_b = COLUMN_OR_MATRIX, .narrow = 1, .factors = PLAIN_PRODUCT};
    const int other = !pysimd_type_in(r.a, types) || !pysimd_type_in(r.b, types), seen = other ? 1 : any_true(observers);
    if (seen) return seen < 0 ? NULL : PyObject_CallObject(dispatched, args);
    PyObject *result = product_of(&r);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    return PyObject_CallObject(plain, args);
}

static PyMethodDef operator_definition = {"matmul", (PyCFunction)(void *)operator_call, METH_VARARGS | METH_KEYWORDS,
                                          "matmul(a, b, *, dtype=None)"};

static PyObject *door_operator(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *types, *observers, *plain, *dispatched;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyTuple_Type, &types, &PyTuple_Type, &observers, &plain, &dispatched))
        return NULL;
    return PyCFunction_NewEx(&operator_definition, args, NULL);
}

/* A factor: any Python float or int. */
static int factor_of(PyObject *given, double *value)
{
    if (PyFloat_CheckExact(given)) {
        *value = PyFloat_AsDouble(given);
        return 1;
    }
    if (!PyLong_CheckExact(given)) return 0;
    *value = PyLong_AsDouble(given);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* 1 for True (transposed) and False, 0 for anything else. */
static int kind_of(PyObject *given, shape_kind *kind)
{
    *kind = given == Py_True ? TRANSPOSED : MATRIX;
    return PyBool_Check(given);
}

static PyObject *door_gemm(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)count;
    request r = {.a = args[0], .b = args[1], .c = args[2] == Py_None ? NULL : args[2],
                 .out = args[7] == Py_None ? NULL : args[7]};
    pysimd_factors *f = &r.factors;
    if (!factor_of(args[3], &f->alpha) || !factor_of(args[4], &f->beta)) return not_implemented();
    f->adds = f->beta != 0;
    if (f->adds && !r.c) return not_implemented();
    if (!kind_of(args[5], &r.kind_a) || !kind_of(args[6], &r.kind_b)) return not_implemented();
    if (!row_of(args[8], &r.kernel) || !threads_of(args[9], &r.threads)) return not_implemented();
    return product_of(&r);
}

static PyObject *door_call(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)count;
    request r = {.a = args[1], .b = args[2], .c = args[3] == Py_None ? NULL : args[3],
                 .out = args[4] == Py_None ? NULL : args[4], .tile = 1};
    r.factors = (pysimd_factors){.alpha = 1, .beta = 1, .adds = r.c != NULL};
    if (!row_of(args[0], &r.kernel) || !r.kernel) return not_implemented();
    return multiply(&r);
}

/* --- bound calls --- */

typedef struct {
    PyObject ob_base;
    const pysimd_kernel *kernel;
    pysimd_product product;
    int one_tile;
    double ns; /* as estimated */
    PyObject *operands;
} bound;

static PyTypeObject *bound_type;

static PyObject *bound_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    bound *x = (bound *)self;
    if (PyTuple_Size(args) || (keywords && PyDict_Size(keywords))) {
        PyErr_SetString(PyExc_TypeError, "a bound kernel takes no arguments");
        return NULL;
    }
    const pysimd_kernel *kernel = x->kernel;
    const pysimd_product *p = &x->product;
    if (x->one_tile && x->ns <= limits.gil_ns) {
        kernel->run(p->k / kernel->k_group, p->a, p->rs_a, p->cs_a * kernel->k_group, p->b,
                    kernel->form == OUTER ? p->rs_b : p->cs_b, p->c, p->rs_c);
    } else {
        pysimd_product own = *p; /* threads may call one bound kernel at the same time */
        if (compute(kernel, &own, x->ns, NULL, NULL, NULL)) return NULL;
    }
    Py_RETURN_NONE;
}

static int bound_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)Py_TYPE(self));
    Py_VISIT(((bound *)self)->operands);
    return 0;
}

static int bound_clear(PyObject *self)
{
    Py_CLEAR(((bound *)self)->operands);
    return 0;
}

static void bound_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    bound_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *bound_repr(PyObject *self)
{
    const bound *x = (bound *)self;
    const pysimd_product *p = &x->product;
    return PyUnicode_FromFormat("<bound %s: c += a @ b, products of %lld x %lld x %lld (m, n, k)>", x->kernel->name,
                                (long long)p->m, (long long)p->n, (long long)p->k);
}

static PyMemberDef bound_members[] = {
    {"operands", T_OBJECT_EX, offsetof(bound, operands), READONLY, "what is kept alive: (a, b, c)"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot bound_slots[] = {
    {Py_tp_doc, (void *)"c += a @ b on fixed arrays, by one kernel; made by MicroKernel.bind."},
    {Py_tp_call, (void *)bound_call},
    {Py_tp_repr, (void *)bound_repr},
    {Py_tp_traverse, (void *)bound_traverse},
    {Py_tp_clear, (void *)bound_clear},
    {Py_tp_dealloc, (void *)bound_dealloc},
    {Py_tp_members, bound_members},
    {0, NULL},
};

static PyType_Spec bound_spec = {
    .name = "pysimd._door.Bound",
    .basicsize = sizeof(bound),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = bound_slots,
};

static PyObject *door_bind(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)count;
    request r = {.a = args[1], .b = args[2], .tile = 1, .factors = PLAIN_PRODUCT};
    plan p;
    npy_intp shape[PYSIMD_MAX_DIMS + 2];
    if (!row_of(args[0], &r.kernel) || !r.kernel || !read_request(&r, &p)) return not_implemented();
    const int nd = result_shape(&r, &p, shape);
    if (nd > PYSIMD_MAX_DIMS || !usable(&r, &p, args[3], shape, nd)) return not_implemented();
    fill_product(&p, r.kernel, 0);
    bound *x = PyObject_GC_New(bound, bound_type);
    if (!x) return NULL;
    const pysimd_product *q = &p.product;
    x->kernel = r.kernel, x->product = p.product, x->ns = estimate(&p, r.kernel);
    x->one_tile = q->ndim == 0 && !pysimd_gemm_takes(r.kernel, q->m, q->n, q->k) &&
                  pysimd_reads_a(r.kernel, q->k, q->rs_a, q->cs_a) && pysimd_reads_b(r.kernel, q->rs_b, q->cs_b);
    Py_INCREF(args[4]);
    x->operands = args[4];
    PyObject_GC_Track((PyObject *)x);
    return (PyObject *)x;
}

static PyObject *door_threads(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *given;
    const pysimd_kernel *kernel;
    plan p = {.a.size = 4, .b.size = 4, .out.size = 4};
    pysimd_product *q = &p.product;
    long long m, n, k, batch;
    if (!PyArg_ParseTuple(args, "OLLLL", &given, &m, &n, &k, &batch)) return NULL;
    if (!row_of(given, &kernel) || !kernel) return not_implemented();
    q->m = m, q->n = n, q->k = k, p.count = batch;
    const pysimd_sizes size = pysimd_element_sizes[kernel->types];
    p.a.size = size.a, p.b.size = size.b, p.out.size = size.c;
    const double ns = estimate(&p, kernel);
    return PyLong_FromLong(default_threads(ns));
}

/* Whether matmul would store the result in `out` by non-temporal stores. */
static PyObject *door_streams(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)count;
    request r = {.a = args[0], .b = args[1], .out = args[2], .kind_a = ROW_OR_MATRIX, .kind_b = COLUMN_OR_MATRIX,
                 .factors = PLAIN_PRODUCT};
    plan p;
    npy_intp shape[PYSIMD_MAX_DIMS + 2];
    if (!row_of(args[3], &r.kernel) || !read_request(&r, &p)) return not_implemented();
    if (!usable(&r, &p, r.out, shape, result_shape(&r, &p, shape))) return not_implemented();
    fill_product(&p, r.kernel ? r.kernel : pysimd_choose(p.types, p.a.rows, p.b.cols, p.a.cols), PYSIMD_ZERO);
    return PyBool_FromLong(p.product.flags & PYSIMD_STREAM);
}

static PyObject *door_start(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *table, *dtypes;
    if (!PyArg_ParseTuple(args, "O!O!", &PyDict_Type, &table, &PyTuple_Type, &dtypes)) return NULL;
    for (int types = 0; types < TYPES; types++)
        for (int i = 0; i < 3; i++) type_numbers[types][i] = -1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(dtypes); i++) {
        int types, a, b, c;
        if (!PyArg_ParseTuple(PyTuple_GetItem(dtypes, i), "iiii", &types, &a, &b, &c)) return NULL;
        type_numbers[types][0] = a, type_numbers[types][1] = b, type_numbers[types][2] = c;
    }
    Py_INCREF(table);
    PyObject *old = kernels;
    kernels = table;
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

static PyObject *door_set_limits(PyObject *self, PyObject *args)
{
    (void)self;
    if (!PyArg_ParseTuple(args, "idddd", &limits.threads, &limits.thread_ns, &limits.wake_ns, &limits.gil_ns,
                          &limits.stream_bytes))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *door_take_tensors(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *types, *capsule, *forward_mode;
    if (!PyArg_ParseTuple(args, "O!OO!", &PyTuple_Type, &types, &capsule, &PyDict_Type, &forward_mode)) return NULL;
    if (pysimd_tensors_take(types, capsule, forward_mode, type_numbers[BF16F32][0])) return NULL;
    Py_RETURN_NONE;
}

static PyObject *door_layouts(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)count;
    return pysimd_tensor_layouts(args);
}

pysimd_get_api_fn pysimd_get_api;

static PyObject *door_c_api(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyCapsule_New((void *)pysimd_get_api(), "pysimd._c_api", NULL);
}

static PyMethodDef functions[] = {
    {"matmul", (PyCFunction)(void *)door_matmul, METH_FASTCALL, "matmul(a, b, out, kernel, threads)"},
    {"gemm", (PyCFunction)(void *)door_gemm, METH_FASTCALL,
     "gemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, threads)"},
    {"call", (PyCFunction)(void *)door_call, METH_FASTCALL, "call(kernel, a, b, c, out)"},
    {"bind", (PyCFunction)(void *)door_bind, METH_FASTCALL, "bind(kernel, a, b, c, operands)"},
    {"threads", door_threads, METH_VARARGS, "threads(kernel, m, n, k, batch)"},
    {"streams", (PyCFunction)(void *)door_streams, METH_FASTCALL, "streams(a, b, out, kernel)"},
    {"start", door_start, METH_VARARGS, "start(kernels, dtypes)"},
    {"set_limits", door_set_limits, METH_VARARGS, "set_limits(threads, thread_ns, wake_ns, gil_ns, stream_bytes)"},
    {"take_tensors", door_take_tensors, METH_VARARGS, "take_tensors(types, exchange_api, forward_mode)"},
    {"layouts", (PyCFunction)(void *)door_layouts, METH_FASTCALL, "layouts(a, b, c, out, call)"},
    {"operator", door_operator, METH_VARARGS, "operator(types, observers, plain, dispatched)"},
    {"c_api", door_c_api, METH_NOARGS, "the capsule pysimd._c_api: see include/pysimd_api.h"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_door", "The entry points of the CPU kernels for Python; see door.h.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__door(void)
{
    import_array();
    bound_type = (PyTypeObject *)PyType_FromSpec(&bound_spec);
    if (!bound_type) return NULL;
    return PyModule_Create(&definition);
}
