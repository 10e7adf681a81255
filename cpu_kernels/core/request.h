/* request.h: what a call asks for, read from NumPy arrays, and the product that it is: shapes broadcast as NumPy does,
 * batch dimensions merged, addresses and strides. Nothing is computed or written here. */
#ifndef PYSIMD_REQUEST_H
#define PYSIMD_REQUEST_H

#include "numpy_api.h"
#include "registry.h"
#include "scale.h"

/* NumPy's type numbers of A, B and C; -1: not offered by dtype. */
extern int pysimd_type_numbers[TYPES][3];

/* The type of NumPy's masked arrays, which are no operands: kernels ignore masks. Other subclasses are read as plain
 * arrays. */
extern PyTypeObject *pysimd_masked_array;
int pysimd_is_array(PyObject *x);

/* Whether an array has a stride that is no multiple of its elements' size, such as a field of packed records. */
int pysimd_is_fractional(PyArrayObject *array);

/* One matrix operand of a product. Strides are bytes; a dimension of length 1 has stride 0. */
typedef struct {
    PyArrayObject *array;
    char *data;
    int batch_dims;
    int64_t rows, cols, rs, cs;
    int size; /* of an element */
} operand;

typedef enum { MATRIX, TRANSPOSED, ROW_OR_MATRIX, COLUMN_OR_MATRIX } shape_kind;

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

/* Reads the operands but for `out`; 0 unless the shapes and dtypes of a, b and c match. */
int pysimd_read_request(const request *r, plan *p);

/* Dimensions of the result: those of the batch, then rows and columns unless a or b is a vector. */
int pysimd_result_shape(const request *r, const plan *p, npy_intp *shape);

/* The result as an operand: its last dimensions are rows and columns, or what vectors leave of them. */
void pysimd_result_operand(const request *r, const plan *p, PyArrayObject *array, operand *x);

/* Whether `given` is an array for the result, of this shape and of its dtype, that can be written. It is p->out then. */
int pysimd_takes_out(const request *r, plan *p, PyObject *given, const npy_intp *shape, int nd);

/* How the result comes to p->out: kernels store it, which they do to adjacent columns; they store C^T = B^T A^T; an
 * epilogue stores it; or it is copied, as where `out` overlaps what they read. */
typedef enum { STORED, STORED_TRANSPOSED, STORED_APART, COPIED } way_to_out;
way_to_out pysimd_way_to_out(const request *r, const plan *p);

/* The plan as that of C^T = B^T A^T, or back. */
void pysimd_exchange_plan(const request *r, plan *p);

/* Whether an epilogue may store the products in p->out, which is not written before A and B have been read, one product
 * after the other; what is added is in the same memory. Not where rows of products are merged. */
int pysimd_may_store_apart(const request *r, const plan *p);

/* Turns a batch with one B into one product of all its rows where that is faster: for a plan whose operands and result
 * are known, without C. */
void pysimd_merge_rows(plan *p);

/* The product of a plan whose operands and result are known. Larger results than `stream_bytes` are written by
 * non-temporal stores where they can be. */
void pysimd_fill_product(plan *p, const pysimd_kernel *kernel, int flags, double stream_bytes);

/* The same of products that an epilogue stores. */
void pysimd_fill_stored_apart(plan *p, const pysimd_kernel *kernel, const pysimd_epilogue *epilogue);

/* How an operand is stored. */
pysimd_order pysimd_order_of(const operand *x);

/* Whether the result has a 16-bit type, to which the kernel's float32 is rounded. */
int pysimd_is_narrow(const plan *p);

/* Bytes from product to product along batch dimension d; 0 where the operand broadcasts. */
int64_t pysimd_batch_stride(const plan *p, const operand *x, int d);

int pysimd_overlap(PyArrayObject *x, PyArrayObject *y);
int pysimd_same_memory(PyArrayObject *x, PyArrayObject *y);

#endif
