/* door.h: NumPy's array structures read directly, for calls so small that three calls of the buffer protocol cost more
 * than the product (0.14 microseconds each, of 0.7 that numpy.matmul takes for a 4x4). */
#ifndef PYSIMD_DOOR_H
#define PYSIMD_DOOR_H

#include "driver.h"

/* Sets the addresses of numpy.ndarray and, for each types, of the dtypes of A, B and C. */
void pysimd_fast_types(uintptr_t ndarray, int types, uintptr_t dtype_a, uintptr_t dtype_b, uintptr_t dtype_c);

/* Sets the limits of a small call: multiply-adds of one product and of the batch, bytes of the three arrays. */
void pysimd_fast_limits(int64_t product_macs, int64_t macs, int64_t bytes);

/* out = a @ b, given the addresses of three objects. Returns 1 if done; 0 if this is not the simplest case (three
 * C-contiguous arrays of known dtypes and equal batch shape, `out` writable and without overlap with a and b, all
 * within the limits): then nothing was written, and the general path does the product or raises the error. */
int pysimd_fast_matmul(uintptr_t a, uintptr_t b, uintptr_t out);

/* What this file reads of the array at an address, to compare with what NumPy says of it. */
typedef struct {
    uintptr_t data;
    int ndim;
    int64_t first_dimension, first_stride;
} pysimd_fast_view;
pysimd_fast_view pysimd_fast_look(uintptr_t array);

#endif
