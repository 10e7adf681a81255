/* entry.h: matmul and gemm of Python as builtin functions, so that a call enters C without a frame of Python.
 *
 * A call of a Python function that passes its arguments on took 0.13 of 0.45 us of matmul of ten 1x1 (Zen 4). */
#ifndef PYSIMD_ENTRY_H
#define PYSIMD_ENTRY_H

#include "numpy_api.h"

/* All arguments in the order of the parameters; NotImplemented if Python must look at them. */
typedef PyObject *(*pysimd_in_c)(PyObject *self, PyObject *const *args, Py_ssize_t count);

enum { PYSIMD_ENTRIES = 2 };

/* args: (function, module, names, defaults, by_position, text). A builtin function of `module` whose result is that of
 * `in_c`, or of `function` where that is NotImplemented or the arguments are none of its parameters. names: tuple of the
 * interned names of the parameters; defaults: those of the last ones; by_position: how many may be given without a
 * name; text: the docstring, with the signature that `inspect` reads. `which`: below PYSIMD_ENTRIES; a process has one
 * function of each. */
PyObject *pysimd_entry(int which, pysimd_in_c in_c, PyObject *args);

#endif
