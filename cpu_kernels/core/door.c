/* door.c: see door.h. Compiled for the baseline processor; stable ABI of Python 3.10, C API of NumPy 1.23.
 *
 * A NumPy gufunc would have broadcasting, `out` and overlap at no cost in code, but numpy.matmul is one, and its call
 * alone takes longer than a whole call of this module: docs/how_it_works.md has the figures. */
#include "door.h"

#include "numpy_api.h"

#include <structmember.h>
#include <time.h>

#include "../include/pysimd_api.h"
#include "blocks.h"
#include "caches.h"
#include "cost.h"
#include "direct.h"
#include "driver.h"
#include "entry.h"
#include "gemm.h"
#include "pack.h"
#include "request.h"
#include "tensors.h"

/* This many multiply-adds, and eight times as many bytes, take less time than any limit on every processor. */
enum { SURELY_SHORT = 8000 };

/* --- what Python sets at the start --- */

static PyObject *kernels; /* dict: name or MicroKernel to the number of a row */
static struct { /* backends/cpu/dispatch.py has their values and the reasons */
    int threads;         /* of large work, unless the call says how many */
    double thread_ns;    /* of work that is worth two threads, a half; if they are awake: see cost.h */
    double wake_ns;      /* work that is worth waking a thread */
    double given_ns;     /* work that is worth each of the threads that a call asks for */
    double gil_ns;       /* the GIL is released for longer work */
    double stream_bytes; /* larger results are written by non-temporal stores */
} limits;

static PyObject *not_implemented(void) { Py_RETURN_NOTIMPLEMENTED; }

/* The row of a kernel given as its name or as an object; 0 if there is none, or before `start`. None: *kernel is NULL. */
static int row_of(PyObject *given, const pysimd_kernel **kernel)
{
    *kernel = NULL;
    if (!kernels) return 0;
    if (given == Py_None) return 1;
    PyObject *row = PyDict_GetItemWithError(kernels, given);
    if (!row) {
        PyErr_Clear(); /* not hashable: not a kernel */
        return 0;
    }
    *kernel = pysimd_kernels + PyLong_AsLong(row);
    return 1;
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

/* `most`: that the call asks for, or 0. */
static int threads_worth(double ns, int most)
{
    if (most) return pysimd_threads_for(ns, limits.given_ns, most);
    return ns > 0 ? pysimd_threads_awake(ns, limits.thread_ns, limits.threads) : 1;
}

/* C copied into the result if there is a C, the multiplication, which takes about `ns`, and the scaling if there is
 * one; without the GIL if it takes longer than gil_ns. Nonzero: there was no memory, or a signal handler has raised an
 * exception. */
static int compute(const pysimd_kernel *kernel, pysimd_product *product, double ns, pysimd_scaling *scaling,
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

/* alpha * product + beta * C in `target`; the two may be the same array. Most of the struct is lengths and strides that
 * are not used, and it is neither cleared nor copied. */
static void set_scaling(pysimd_scaling *s, const request *r, const plan *p, const pysimd_kernel *kernel,
                        const operand *product, const operand *target)
{
    const int adds = r->factors.adds, dims = p->batch_dims, narrow = pysimd_is_narrow(p);
    s->types = p->types, s->factors = r->factors, s->ndim = dims + 2;
    s->narrow = narrow ? pysimd_narrowing(kernel) : NULL, s->widen = narrow ? pysimd_widening(kernel, 0) : NULL;
    s->product = product->data, s->target = target->data, s->c = adds ? p->c.data : NULL;
    for (int d = 0; d < dims; d++) {
        s->shape[d] = p->batch[d];
        s->product_strides[d] = PyArray_STRIDE(product->array, d);
        s->target_strides[d] = PyArray_STRIDE(target->array, d);
        s->c_strides[d] = adds ? pysimd_batch_stride(p, &p->c, d) : 0;
    }
    s->shape[dims] = p->a.rows, s->shape[dims + 1] = p->b.cols;
    s->product_strides[dims] = product->rs, s->product_strides[dims + 1] = product->cs;
    s->target_strides[dims] = target->rs, s->target_strides[dims + 1] = target->cs;
    s->c_strides[dims] = adds ? p->c.rs : 0, s->c_strides[dims + 1] = adds ? p->c.cs : 0;
}

static const pysimd_kernel *choice(int types, int64_t m, int64_t n, int64_t k, pysimd_order a, pysimd_order b)
{
    if (pysimd_looks_at_order(m, n, k)) return pysimd_choose_ordered(types, m, n, k, a, b);
    const pysimd_kernel *kernel = pysimd_choose(types, m, n, k);
    return kernel && kernel->dispatch_macs_otherwise ? pysimd_of_order(kernel, m, n, k, a, b) : kernel;
}

/* The last choices are kept: one took 0.08 of 0.38 us of matmul of ten 4x4 float (Zen 4), and most programs have few
 * shapes of small products. Under the GIL. */
static const pysimd_kernel *chosen(const plan *p)
{
    enum { SLOTS = 64, LONGEST = 1 << 16 };
    static struct {
        uint64_t key; /* 0: none */
        const pysimd_kernel *kernel;
    } known[SLOTS];
    const int64_t m = p->a.rows, n = p->b.cols, k = p->a.cols;
    const pysimd_order a = pysimd_order_of(&p->a), b = pysimd_order_of(&p->b);
    if ((m | n | k) >= LONGEST) return choice(p->types, m, n, k, a, b);
    const uint64_t key = (uint64_t)m << 48 | (uint64_t)n << 32 | (uint64_t)k << 16 | (uint64_t)a << 12 |
                         (uint64_t)b << 8 | (uint64_t)p->types << 1 | 1;
    const int slot = (int)(key * 0x9E3779B97F4A7C15u >> 58);
    if (known[slot].key != key) {
        known[slot].key = key;
        known[slot].kernel = choice(p->types, m, n, k, a, b);
    }
    return known[slot].kernel;
}

/* Whether alpha and beta are applied while the product is computed. */
static int scales_in_place(const plan *p, const pysimd_kernel *kernel)
{
    const int64_t m = p->a.rows, n = p->b.cols, k = p->a.cols;
    if (!pysimd_gemm_takes(kernel, m, n, k)) return 0;
    return pysimd_order_of(&p->a) != PYSIMD_BY_COLUMNS || !pysimd_exchanges_columns(kernel, m, n, k);
}

static PyArrayObject *new_array(npy_intp *shape, int nd, int type)
{
    return (PyArrayObject *)PyArray_SimpleNew(nd, shape, type);
}

/* A new array for the products of a plan, as its `out`; NULL with an exception. */
static PyArrayObject *new_product(plan *p)
{
    npy_intp shape[PYSIMD_MAX_DIMS + 2];
    for (int d = 0; d < p->batch_dims; d++) shape[d] = (npy_intp)p->batch[d];
    const int64_t rows = p->a.rows, cols = p->b.cols;
    shape[p->batch_dims] = (npy_intp)rows, shape[p->batch_dims + 1] = (npy_intp)cols;
    PyArrayObject *array = new_array(shape, p->batch_dims + 2, pysimd_type_numbers[p->types][2]);
    if (!array) return NULL;
    const int size = (int)PyArray_ITEMSIZE(array);
    p->out = (operand){.array = array, .data = PyArray_BYTES(array), .batch_dims = p->batch_dims, .rows = rows,
                       .cols = cols, .rs = rows == 1 ? 0 : cols * size, .cs = cols == 1 ? 0 : size, .size = size};
    return array;
}

/* Whether C is added after the product, which is then computed by routes that only store; the bits are those of
 * kernels, which add C at the end of a block of K. By ratios of time, batches of 10 to 300 whose C is in a part of L2:
 * where the result is not C, 2 to 16 columns, of double up to 8, 0.5 to 0.9 in the means of types (Xeon with AMX; before
 * tiles read all rows of C first) and 0.85 to 1.05 (Zen 4), more columns with a function for small products 0.6 to 1.0.
 * Where it is C, up to eight columns of four bytes with K up to 7 0.8 to 1.0, some 0.3, but nine and more, and double,
 * 1.2 to 1.7 in the means, with a longer K 1.0 to 1.1 (Zen 4 and Xeon with AMX). */
static int adds_afterwards(const request *r, plan *p, const pysimd_kernel *kernel, PyArrayObject *result)
{
    enum { COLUMN_BYTES = 64, COLUMNS_OF_C = 8, SHORT_K = 8 };
    const int64_t m = p->a.rows, n = p->b.cols, k = p->a.cols;
    if (!r->factors.adds || r->kernel || p->count == 1 || n == 1 || n > PYSIMD_SMALL_COLUMNS) return 0;
    if ((double)p->count * (double)m * (double)n * p->out.size > (double)pysimd_caches().l2 / 4) return 0;
    if (k > pysimd_longest_block(kernel, pysimd_element_sizes[kernel->types])) return 0;
    if (pysimd_overlap(result, p->c.array)) return n <= COLUMNS_OF_C && p->types != F64 && k < SHORT_K;
    if (n * p->out.size <= COLUMN_BYTES) return 1;
    pysimd_fill_product(p, kernel, PYSIMD_ZERO, limits.stream_bytes);
    return pysimd_has_small(kernel, &p->product);
}

/* The number of threads, and what the driver asks for beside it. */
static double plan_threads(const request *r, plan *p, const pysimd_kernel *kernel)
{
    const double ns = estimate(p, kernel);
    p->product.threads = threads_worth(ns, r->threads);
    p->product.ns = ns;
    p->product.woken = r->threads ? 0 : pysimd_threads_for(ns, limits.wake_ns, limits.threads);
    return ns;
}

typedef enum { FAILED, DONE, NOT_TAKEN } outcome; /* FAILED: with an exception */

/* The products of a batch, stored in p->out by an epilogue. */
static outcome multiply_to_epilogue(const request *r, plan *p, const pysimd_kernel *kernel)
{
    const int64_t longest = pysimd_longest_block(kernel, pysimd_element_sizes[kernel->types]);
    if (!pysimd_may_store_apart(r, p) || (r->factors.adds && p->a.cols > longest)) return NOT_TAKEN;
    const operand *out = &p->out;
    pysimd_epilogue e = {.types = p->types, .factors = r->factors, .m = out->rows, .n = out->cols, .rs = out->rs,
                         .cs = out->cs, .size = out->size};
    if (pysimd_is_narrow(p)) e.narrow = pysimd_narrowing(kernel), e.widen = pysimd_widening(kernel, 0);
    pysimd_fill_stored_apart(p, kernel, &e);
    p->product.chosen = !r->kernel;
    if (!pysimd_takes_epilogue(kernel, &p->product)) return NOT_TAKEN;
    const double ns = plan_threads(r, p, kernel);
    return compute(kernel, &p->product, ns, NULL, NULL, NULL) ? FAILED : DONE;
}

/* Whether the result would need an array of its own, or is large, and scaled row by row: adjacent rows, which are
 * scaled where they are, took 0.95 times as long. */
static int gains_by_epilogue(const request *r, const plan *p)
{
    enum { SOME = 1 << 10 };
    const operand *out = &p->out;
    if (pysimd_is_narrow(p) || r->factors.adds) return 1;
    if (out->rows <= 1 || out->cols <= 1 || out->rs == out->cols * out->size) return 0;
    return (double)p->count * (double)out->rows * (double)out->cols >= SOME;
}

/* The product in `result`, which the plan has as its `out`, or in an array of its own, where it is scaled or converted
 * afterwards and C must not be overwritten by then. 0: with an exception. */
static int multiply_into(const request *r, plan *p, PyArrayObject *result)
{
    const pysimd_factors *f = &r->factors;
    const int narrow = pysimd_is_narrow(p), plain = f->alpha == 1 && (!f->adds || f->beta == 1); /* by the kernel */
    if (!r->kernel && plain && !f->adds && !narrow) pysimd_merge_rows(p);
    const pysimd_kernel *kernel = r->kernel ? r->kernel : chosen(p);
    const int in_place = !narrow && (plain ? !adds_afterwards(r, p, kernel, result) : scales_in_place(p, kernel));
    const outcome stored = !in_place && gains_by_epilogue(r, p) ? multiply_to_epilogue(r, p, kernel) : NOT_TAKEN;
    if (stored != NOT_TAKEN) return stored == DONE;
    const int accumulates = f->adds && in_place;
    const operand target = p->out;
    PyArrayObject *product = result;
    const int own = narrow || (!in_place && f->adds && pysimd_overlap(result, p->c.array));
    if (own && !(product = new_product(p))) return 0;
    PyArrayObject *copied = accumulates && !pysimd_same_memory(result, p->c.array) ? p->c.array : NULL;
    const int flags = (accumulates ? 0 : PYSIMD_ZERO) | (in_place && !plain ? PYSIMD_FACTORS : 0);
    pysimd_fill_product(p, kernel, flags, limits.stream_bytes);
    p->product.chosen = !r->kernel;
    p->product.alpha = f->alpha, p->product.beta = f->beta;
    pysimd_scaling scaling;
    if (!in_place) set_scaling(&scaling, r, p, kernel, &p->out, &target);
    const double ns = plan_threads(r, p, kernel);
    const int failed = compute(kernel, &p->product, ns, in_place ? NULL : &scaling, result, copied);
    if (product != result) Py_DECREF(product);
    return !failed;
}

/* The product in p->out, or in an array of its own, which is then copied there. */
static PyObject *multiply_apart(const request *r, plan *p, npy_intp *shape, int nd, way_to_out way)
{
    const operand target = p->out;
    const request copy = {.factors = {.alpha = 1}};
    if (way == STORED_APART) {
        const outcome stored = multiply_to_epilogue(r, p, r->kernel ? r->kernel : chosen(p));
        if (stored == DONE) Py_INCREF(target.array);
        if (stored != NOT_TAKEN) return stored == DONE ? (PyObject *)target.array : NULL;
    }
    PyArrayObject *result = new_array(shape, nd, p->result_type);
    if (!result) return NULL;
    pysimd_result_operand(r, p, result, &p->out);
    const int narrow = pysimd_is_narrow(p);
    pysimd_scaling copied;
    if (!narrow) set_scaling(&copied, &copy, p, NULL, &p->out, &target);
    int done = multiply_into(r, p, result);
    if (done && narrow)
        done = !PyArray_CopyInto(target.array, result);
    else if (done)
        pysimd_scale(&copied);
    Py_DECREF(result);
    if (!done) return NULL;
    Py_INCREF(target.array);
    return (PyObject *)target.array;
}

static PyObject *multiply(const request *r)
{
    plan p;
    npy_intp shape[PYSIMD_MAX_DIMS + 2];
    if (!pysimd_read_request(r, &p)) return not_implemented();
    const int nd = pysimd_result_shape(r, &p, shape);
    if (nd > PYSIMD_MAX_DIMS || (r->out && !pysimd_takes_out(r, &p, r->out, shape, nd))) return not_implemented();
    const int empty = p.count == 0 || p.a.rows == 0 || p.b.cols == 0;
    const way_to_out way = r->out && !empty ? pysimd_way_to_out(r, &p) : STORED;
    if (way == COPIED || way == STORED_APART) return multiply_apart(r, &p, shape, nd, way);
    PyArrayObject *result = (PyArrayObject *)r->out;
    if (result)
        Py_INCREF(result);
    else if (!(result = new_array(shape, nd, p.result_type)))
        return NULL;
    else
        pysimd_result_operand(r, &p, result, &p.out);
    if (way == STORED_TRANSPOSED) pysimd_exchange_plan(r, &p);
    if (empty || multiply_into(r, &p, result)) return (PyObject *)result;
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

/* A copy in C order, in place of an array with fractional strides; 0 without memory. */
static int made_whole(PyObject **x, PyObject **copy)
{
    if (!*x || !pysimd_is_array(*x) || !pysimd_is_fractional((PyArrayObject *)*x)) return 1;
    PyArrayObject *array = (PyArrayObject *)*x;
    if (!PyArray_ISNOTSWAPPED(array)) return 1; /* Python refuses it */
    *x = *copy = (PyObject *)new_array(PyArray_DIMS(array), PyArray_NDIM(array), PyArray_TYPE(array));
    return *copy && !PyArray_CopyInto((PyArrayObject *)*copy, array);
}

/* multiply, of copies where strides are fractional. */
static PyObject *multiply_arrays(const request *r)
{
    PyObject *result = multiply(r);
    if (result != Py_NotImplemented) return result;
    request of_copies = *r;
    PyObject *copies[3] = {NULL};
    const int made = made_whole(&of_copies.a, &copies[0]) && made_whole(&of_copies.b, &copies[1]) &&
                     made_whole(&of_copies.c, &copies[2]);
    if (!made || copies[0] || copies[1] || copies[2]) {
        Py_DECREF(result);
        result = made ? multiply(&of_copies) : NULL;
    }
    for (int i = 0; i < 3; i++) Py_XDECREF(copies[i]);
    return result;
}

static PyObject *product_of(const request *r)
{
    return pysimd_is_tensor(r->a) ? multiply_tensors(r) : multiply_arrays(r);
}

/* --- the functions of the module --- */

static const pysimd_factors PLAIN_PRODUCT = {.alpha = 1};

/* 1 for None or a positive integer of Python or NumPy, 0 for anything else. */
static int threads_of(PyObject *given, int *threads)
{
    *threads = 0;
    if (given == Py_None) return 1;
    if (!PyLong_Check(given) && !PyArray_IsScalar(given, Integer)) return 0;
    const Py_ssize_t value = PyNumber_AsSsize_t(given, NULL); /* clipped */
    if (value == -1 && PyErr_Occurred()) PyErr_Clear();
    *threads = value > 1 << 16 ? 1 << 16 : (int)value; /* the driver has a lower limit */
    return value >= 1;
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
    const int other = !pysimd_type_in(r.a, types) || !pysimd_type_in(r.b, types);
    const int seen = other ? 1 : any_true(observers);
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

/* A factor: any float or integer of Python or NumPy. */
static int factor_of(PyObject *given, double *value)
{
    const int real = PyFloat_Check(given) || PyLong_Check(given) || PyArray_IsScalar(given, Floating) ||
                     PyArray_IsScalar(given, Integer);
    if (!real) return 0;
    *value = PyFloat_AsDouble(given);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* 1 for True (transposed) and False, of Python or NumPy, 0 for anything else. */
static int kind_of(PyObject *given, shape_kind *kind)
{
    const int is_bool = PyBool_Check(given) || PyArray_IsScalar(given, Bool);
    *kind = is_bool && PyObject_IsTrue(given) ? TRANSPOSED : MATRIX;
    return is_bool;
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
    return multiply_arrays(&r);
}

static PyObject *door_matmul_entry(PyObject *self, PyObject *args)
{
    (void)self;
    return pysimd_entry(0, door_matmul, args);
}

static PyObject *door_gemm_entry(PyObject *self, PyObject *args)
{
    (void)self;
    return pysimd_entry(1, door_gemm, args);
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
    if (!row_of(args[0], &r.kernel) || !r.kernel || !pysimd_read_request(&r, &p)) return not_implemented();
    const int nd = pysimd_result_shape(&r, &p, shape);
    if (nd > PYSIMD_MAX_DIMS || !pysimd_takes_out(&r, &p, args[3], shape, nd)) return not_implemented();
    if (pysimd_way_to_out(&r, &p) != STORED) return not_implemented();
    pysimd_fill_product(&p, r.kernel, 0, limits.stream_bytes);
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
    return PyLong_FromLong(threads_worth(ns, 0));
}

/* Whether matmul would store the result in `out` by non-temporal stores. */
static PyObject *door_streams(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)count;
    request r = {.a = args[0], .b = args[1], .out = args[2], .kind_a = ROW_OR_MATRIX, .kind_b = COLUMN_OR_MATRIX,
                 .factors = PLAIN_PRODUCT};
    plan p;
    npy_intp shape[PYSIMD_MAX_DIMS + 2];
    if (!row_of(args[3], &r.kernel) || !pysimd_read_request(&r, &p)) return not_implemented();
    if (!pysimd_takes_out(&r, &p, r.out, shape, pysimd_result_shape(&r, &p, shape))) return not_implemented();
    if (pysimd_way_to_out(&r, &p) != STORED) return PyBool_FromLong(0);
    const pysimd_kernel *kernel = r.kernel ? r.kernel : chosen(&p);
    pysimd_fill_product(&p, kernel, PYSIMD_ZERO, limits.stream_bytes);
    return PyBool_FromLong(p.product.flags & PYSIMD_STREAM);
}

static PyObject *door_start(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *table, *dtypes, *masked;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyDict_Type, &table, &PyTuple_Type, &dtypes, &PyType_Type, &masked))
        return NULL;
    for (int types = 0; types < TYPES; types++)
        for (int i = 0; i < 3; i++) pysimd_type_numbers[types][i] = -1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(dtypes); i++) {
        int types, a, b, c;
        if (!PyArg_ParseTuple(PyTuple_GetItem(dtypes, i), "iiii", &types, &a, &b, &c)) return NULL;
        pysimd_type_numbers[types][0] = a, pysimd_type_numbers[types][1] = b, pysimd_type_numbers[types][2] = c;
    }
    Py_INCREF(table), Py_INCREF(masked);
    PyObject *old = kernels, *old_masked = (PyObject *)pysimd_masked_array;
    kernels = table, pysimd_masked_array = (PyTypeObject *)masked;
    Py_XDECREF(old), Py_XDECREF(old_masked);
    Py_RETURN_NONE;
}

static PyObject *door_set_limits(PyObject *self, PyObject *args)
{
    (void)self;
    if (!PyArg_ParseTuple(args, "iddddd", &limits.threads, &limits.thread_ns, &limits.wake_ns, &limits.given_ns,
                          &limits.gil_ns, &limits.stream_bytes))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *door_take_tensors(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *types, *capsule, *forward_mode;
    if (!PyArg_ParseTuple(args, "O!OO!", &PyTuple_Type, &types, &capsule, &PyDict_Type, &forward_mode)) return NULL;
    const int taken = pysimd_tensors_take(types, capsule, forward_mode, pysimd_type_numbers[BF16F32][0]);
    return taken < 0 ? NULL : PyBool_FromLong(taken);
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
    {"matmul_entry", door_matmul_entry, METH_VARARGS,
     "matmul_entry(function, module, names, defaults, by_position, text)"},
    {"gemm_entry", door_gemm_entry, METH_VARARGS, "gemm_entry(function, module, names, defaults, by_position, text)"},
    {"call", (PyCFunction)(void *)door_call, METH_FASTCALL, "call(kernel, a, b, c, out)"},
    {"bind", (PyCFunction)(void *)door_bind, METH_FASTCALL, "bind(kernel, a, b, c, operands)"},
    {"threads", door_threads, METH_VARARGS, "threads(kernel, m, n, k, batch)"},
    {"streams", (PyCFunction)(void *)door_streams, METH_FASTCALL, "streams(a, b, out, kernel)"},
    {"start", door_start, METH_VARARGS, "start(kernels, dtypes, masked_array)"},
    {"set_limits", door_set_limits, METH_VARARGS,
     "set_limits(threads, thread_ns, wake_ns, given_ns, gil_ns, stream_bytes)"},
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
