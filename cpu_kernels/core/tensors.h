/* tensors.h: tensors of a library that has DLPack's exchange API, as torch from 2.10 on, as NumPy arrays and back, in C
 * alone: a call by Python's DLPack protocol takes longer than a small product. Compiled with Python's and NumPy's C
 * API. */
#ifndef PYSIMD_TENSORS_H
#define PYSIMD_TENSORS_H

#include <Python.h>

/* Take tensors of exactly these types (a tuple), whose exchange API is in the capsule; `bfloat16` is NumPy's type
 * number for it, or -1; `forward_mode` the dict of names of torch.autograd.forward_ad. 1; 0 for an API that is not
 * known, or another than before; -1 with a Python exception. */
int pysimd_tensors_take(PyObject *types, PyObject *capsule, PyObject *forward_mode, int bfloat16);

int pysimd_is_tensor(PyObject *x);

/* Whether the type of `x` is exactly one of a tuple. */
int pysimd_type_in(PyObject *x, PyObject *types);

/* A NumPy array on the memory of a tensor, which must outlive it. NULL without an exception for what Python must look
 * at: a tensor that requires gradients or may have a tangent, is a negated view, has another dtype, or is not in the
 * memory of the CPU. */
PyObject *pysimd_tensor_view(PyObject *tensor);

/* What the plan of a product on a GPU depends on: a tuple of its key, the number of the device, and a list of the
 * addresses of `given`: tensors A, B, C0 and the result, of which the last two may be None, and what is asked for, any
 * hashable object. The list has two words more, for scratch memory. The key, that object and bytes, has of each tensor
 * its device, dtype, shape, strides, and the last bits of its address. It is None where pysimd_tensor_view gives no
 * view, or a tensor is not on a GPU. NULL with an exception. */
PyObject *pysimd_tensor_layouts(PyObject *const *given);

/* A tensor on the memory of an array, which it keeps alive; takes the reference. NULL with an exception. */
PyObject *pysimd_tensor_of(PyObject *array);

#endif
