/* numpy_api.h: the stable ABI of Python 3.10 and the C API of NumPy 1.23, included before other headers. Files but for
 * door.c, which imports that API, define NO_IMPORT_ARRAY first. */
#ifndef PYSIMD_NUMPY_API_H
#define PYSIMD_NUMPY_API_H

#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL pysimd_numpy

#include <Python.h>
#include <numpy/arrayobject.h>

#endif
