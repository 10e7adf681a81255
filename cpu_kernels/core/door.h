/* door.h: NumPy arrays read where they are, for calls so small that asking for three buffers costs more than the
 * product (0.14 microseconds each, of 0.7 that numpy.matmul takes for a 4x4). */
#ifndef PYSIMD_DOOR_H
#define PYSIMD_DOOR_H

#include "driver.h"

/* Tells which object is which: the addresses of numpy.ndarray and of the dtypes of A, B and C for each types. */
void pysimd_fast_types(uintptr_t ndarray, int types, uintptr_t dtype_a, uintptr_t dtype_b, uintptr_t dtype_c);

/* What is small: multiply-adds of one product and of the whole batch, and bytes of all three arrays. */
void pysimd_fast_limits(int64_t product_macs, int64_t macs, int64_t bytes);

/* out = a @ b, given the addresses of three objects. Returns 1 if done; 0 if this is not the simplest case (three
 * C-contiguous arrays of known dtypes and equal batch shape, `out` writable and apart from a and b, all within the
 * limits): nothing is then touched, and the general path finds out what is asked or what is wrong. */
int pysimd_fast_matmul(uintptr_t a, uintptr_t b, uintptr_t out);

/* The data pointer, dimension count and byte size of the array at this address, for a self-test of the layout. */
typedef struct {
    uintptr_t data;
    int ndim;
    int64_t first_dimension, first_stride;
} pysimd_fast_view;
pysimd_fast_view pysimd_fast_look(uintptr_t array);

#endif
