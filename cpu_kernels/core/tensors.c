/* tensors.c: see tensors.h. Stable ABI of Python 3.10, C API of NumPy 1.23. */
#define NO_IMPORT_ARRAY
#include "numpy_api.h"
#include "tensors.h"

#include <stdlib.h>

#include "dlpack.h"
#include "driver.h"

static const dlpack_exchange *exchange;
static PyObject *types; /* a tuple */
static PyObject *forward_mode; /* a dict: the names in torch.autograd.forward_ad */
static PyObject *requires_grad, *is_neg, *current_level; /* the names of attributes */
static int bfloat16_number;

int pysimd_tensors_take(PyObject *given, PyObject *capsule, PyObject *forward, int bfloat16)
{
    const dlpack_exchange *found = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (!found) return -1;
    if (exchange) return exchange == found;
    if (found->version.major != DLPACK_MAJOR || !found->view_of_object) return 0; /* Python takes them */
    requires_grad = PyUnicode_InternFromString("requires_grad"), is_neg = PyUnicode_InternFromString("is_neg");
    current_level = PyUnicode_InternFromString("_current_level");
    if (!requires_grad || !is_neg || !current_level) return -1;
    Py_INCREF(given), Py_INCREF(forward);
    types = given, forward_mode = forward, bfloat16_number = bfloat16, exchange = found;
    return 1;
}

int pysimd_type_in(PyObject *x, PyObject *these)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(these); i++)
        if ((PyObject *)Py_TYPE(x) == PyTuple_GetItem(these, i)) return 1;
    return 0;
}

int pysimd_is_tensor(PyObject *x) { return exchange && pysimd_type_in(x, types); }

/* dtypes of DLPack and NumPy; bfloat16 has no fixed number. */
static const struct {
    uint8_t code, bits;
    int number;
} DTYPES[] = {
    {DLPACK_FLOAT, 32, NPY_FLOAT}, {DLPACK_FLOAT, 64, NPY_DOUBLE}, {DLPACK_FLOAT, 16, NPY_HALF},
    {DLPACK_BFLOAT, 16, -1},       {DLPACK_INT, 8, NPY_BYTE},      {DLPACK_UINT, 8, NPY_UBYTE},
    {DLPACK_INT, 32, NPY_INT},
};
enum { DTYPE_COUNT = sizeof DTYPES / sizeof *DTYPES };

static int number_of(int row) { return DTYPES[row].number < 0 ? bfloat16_number : DTYPES[row].number; }

/* NumPy's number of a dtype; -1: none. */
static int type_number(dlpack_dtype dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (dtype.code == DTYPES[i].code && dtype.bits == DTYPES[i].bits && dtype.lanes == 1) return number_of(i);
    return -1;
}

/* Whether the attribute, or what calling it gives, is False. */
static int is_false(PyObject *x, PyObject *name, int is_method)
{
    PyObject *found = is_method ? PyObject_CallMethodObjArgs(x, name, NULL) : PyObject_GetAttr(x, name);
    if (!found) PyErr_Clear();
    Py_XDECREF(found);
    return found == Py_False;
}

/* Whether no tensor has a tangent: the level of forward-mode differentiation is -1 outside of it. */
static int is_outside_forward_mode(void)
{
    PyObject *level = PyDict_GetItemWithError(forward_mode, current_level);
    return !level || PyLong_AsLong(level) < 0;
}

/* Whether the tensor is plain memory: without gradients, not negated. */
static int read_tensor(PyObject *tensor, dlpack_tensor *x)
{
    if (!is_false(tensor, requires_grad, 0) || !is_false(tensor, is_neg, 1)) return 0;
    const int failed = exchange->view_of_object(tensor, x);
    if (failed) PyErr_Clear();
    return !failed;
}

PyObject *pysimd_tensor_view(PyObject *tensor)
{
    dlpack_tensor x;
    if (!is_outside_forward_mode() || !read_tensor(tensor, &x)) return NULL;
    const int number = type_number(x.dtype), size = x.dtype.bits / 8;
    if (x.device.type != DLPACK_CPU || number < 0 || x.ndim > PYSIMD_MAX_DIMS || (x.ndim && !x.strides)) return NULL;
    npy_intp shape[PYSIMD_MAX_DIMS], strides[PYSIMD_MAX_DIMS], count = 1;
    for (int d = 0; d < x.ndim; d++) shape[d] = x.shape[d], strides[d] = x.strides[d] * size, count *= x.shape[d];
    if (count && !x.data) return NULL; /* no memory of its own */
    static char nothing[16];           /* NumPy would allocate for a NULL */
    char *data = count ? (char *)x.data + x.byte_offset : nothing;
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(number), x.ndim, shape, strides, data,
                                          NPY_ARRAY_WRITEABLE, NULL);
    if (!made) PyErr_Clear();
    return made;
}

enum { TENSORS = 4, ADDRESSES = 6, ADDRESS_BITS = 31, LAYOUT_WORDS = 2 + 2 * PYSIMD_MAX_DIMS };

/* Appends the layout of a tensor to the words of a key; 0 for one that has no plan. */
static int append_layout(const dlpack_tensor *x, uint64_t address, int64_t *words, int *count)
{
    if (x->device.type != DLPACK_CUDA && x->device.type != DLPACK_ROCM) return 0;
    if (x->ndim > PYSIMD_MAX_DIMS || (x->ndim && !x->strides)) return 0;
    const uint64_t dtype = x->dtype.code | x->dtype.bits << 8 | (uint64_t)x->dtype.lanes << 16;
    words[(*count)++] = (int64_t)(dtype << 32 | (uint32_t)x->device.id);
    words[(*count)++] = (int64_t)((uint64_t)x->ndim << 32 | (address & ADDRESS_BITS));
    for (int d = 0; d < x->ndim; d++) words[(*count)++] = x->shape[d];
    for (int d = 0; d < x->ndim; d++) words[(*count)++] = x->strides[d];
    return 1;
}

/* The words of a key; 0 where there is no plan. */
static int read_layouts(PyObject *const *given, int64_t *words, int *count, int *device, uint64_t *addresses)
{
    if (!exchange || !is_outside_forward_mode()) return 0;
    for (int i = 0; i < TENSORS; i++) {
        if (given[i] == Py_None) {
            words[(*count)++] = -1;
            continue;
        }
        dlpack_tensor x;
        if (!pysimd_is_tensor(given[i]) || !read_tensor(given[i], &x)) return 0;
        addresses[i] = (uint64_t)(uintptr_t)x.data + x.byte_offset;
        if (!append_layout(&x, addresses[i], words, count)) return 0;
        if (i == 0) *device = x.device.id;
    }
    return 1;
}

PyObject *pysimd_tensor_layouts(PyObject *const *given)
{
    int64_t words[TENSORS * LAYOUT_WORDS];
    uint64_t addresses[ADDRESSES] = {0};
    int count = 0, device = -1;
    PyObject *key = NULL;
    if (read_layouts(given, words, &count, &device, addresses)) {
        PyObject *layouts = PyBytes_FromStringAndSize((const char *)words, count * (Py_ssize_t)sizeof *words);
        key = layouts ? PyTuple_Pack(2, given[TENSORS], layouts) : NULL;
        Py_XDECREF(layouts);
        if (!key) return NULL;
    } else {
        Py_INCREF(Py_None);
        key = Py_None;
    }
    PyObject *found = PyTuple_New(3), *list = PyList_New(ADDRESSES), *number = PyLong_FromLong(device);
    for (int i = 0; list && i < ADDRESSES; i++) PyList_SetItem(list, i, PyLong_FromUnsignedLongLong(addresses[i]));
    if (!found || !list || !number || PyErr_Occurred()) {
        Py_XDECREF(found), Py_XDECREF(list), Py_XDECREF(number), Py_DECREF(key);
        return NULL;
    }
    PyTuple_SetItem(found, 0, key), PyTuple_SetItem(found, 1, number), PyTuple_SetItem(found, 2, list);
    return found;
}

typedef struct {
    dlpack_managed managed;
    int64_t lengths[]; /* the shape, then the strides */
} made_tensor;

static void deleted(dlpack_managed *self)
{
    if (Py_IsInitialized()) { /* else Python's memory is gone */
        const PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF((PyObject *)self->manager_ctx);
        PyGILState_Release(state);
    }
    free(self);
}

PyObject *pysimd_tensor_of(PyObject *given)
{
    PyArrayObject *array = (PyArrayObject *)given;
    int row = 0;
    while (row < DTYPE_COUNT && number_of(row) != PyArray_TYPE(array)) row++;
    const int nd = PyArray_NDIM(array);
    made_tensor *x = row < DTYPE_COUNT ? malloc(sizeof *x + 2 * (size_t)nd * sizeof *x->lengths) : NULL;
    if (!x) {
        Py_DECREF(given);
        return PyErr_NoMemory();
    }
    const int size = DTYPES[row].bits / 8;
    x->managed = (dlpack_managed){.version = {DLPACK_MAJOR, 0}, .manager_ctx = given, .deleter = deleted};
    x->managed.tensor = (dlpack_tensor){.data = PyArray_DATA(array), .device = {DLPACK_CPU, 0},
                                        .ndim = nd, .dtype = {DTYPES[row].code, DTYPES[row].bits, 1},
                                        .shape = x->lengths, .strides = x->lengths + nd};
    for (int d = 0; d < nd; d++)
        x->lengths[d] = PyArray_DIM(array, d), x->lengths[nd + d] = PyArray_STRIDE(array, d) / size;
    void *object = NULL;
    if (exchange->object_from_managed(&x->managed, &object)) {
        deleted(&x->managed);
        return NULL;
    }
    return object;
}
