/* door.h: the way in from Python: the module pysimd._door, whose functions take NumPy arrays. */
#ifndef PYSIMD_DOOR_H
#define PYSIMD_DOOR_H

/* The functions of the module. Each returns NotImplemented, and has then touched nothing, where a call is not one of
 * plain arrays that fit: the caller finds out in Python what is wrong, or makes plain arrays of what was given.
 *
 *   start(kernels, dtypes)   kernels: dict of names and MicroKernel objects to rows of the table; dtypes: tuples
 *                            (types, a, b, c) of NumPy's type numbers
 *   set_limits(threads, thread_ns, gil_ns, stream_bytes, blas_macs)
 *   matmul(a, b, out, kernel, threads)
 *   gemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, threads)
 *   call(kernel, a, b, c, out)            c + a @ b by one kernel
 *   bind(kernel, a, b, c, operands)       an object whose call does c += a @ b, unchecked; it keeps `operands` alive
 *   threads(kernel, m, n, k, batch)       threads that a product of this size takes by default
 *
 * They read arrays by NumPy's C API under the GIL, and release it while they multiply if that takes long enough for
 * another thread to gain by it. */

#endif
