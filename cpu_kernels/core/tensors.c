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
    if (found->version.major != DLPACK_MAJOR || !found->view_of_object || exchange) return 0; /* Python takes them */
    requires_grad = PyUnicode_InternFromString("requires_grad"), is_neg = PyUnicode_InternFromString("is_neg");
    current_level = PyUnicode_InternFromString("_current_level");
    if (!requires_grad || !is_neg || !current_level) return -1;
    Py_INCREF(given), Py_INCREF(forward);
    types = given, forward_mode = forward, bfloat16_number = bfloat16, exchange = found;
    return 0;
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

PyObject *pysimd_tensor_view(PyObject *tensor)
{
    dlpack_tensor x;
    if (!is_outside_forward_mode()) return NULL;
    if (!is_false(tensor, requires_grad, 0) || !is_false(tensor, is_neg, 1)) return NULL;
    if (exchange->view_of_object(tensor, &x)) {
        PyErr_Clear();
        return NULL;
    }
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
