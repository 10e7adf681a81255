/* door.h: the entry points for Python: the module pysimd._door, whose functions take NumPy arrays. */
#ifndef PYSIMD_DOOR_H
#define PYSIMD_DOOR_H

/* The functions of the module. Each returns NotImplemented, without having written anything, unless all operands are
 * NumPy arrays, or tensors (tensors.h), of matching shapes and dtypes: Python then converts the operands, or raises the
 * error.
 *
 *   start(kernels, dtypes)   kernels: dict of names and MicroKernel objects to rows of the table; dtypes: tuples
 *                            (types, a, b, c) of NumPy's type numbers
 *   set_limits(threads, thread_ns, wake_ns, given_ns, gil_ns, stream_bytes)
 *   take_tensors(types, exchange_api, forward_mode)   matmul and gemm take tensors of these types from now on:
 *                            tensors.h; returns whether they do
 *   layouts(a, b, c, out, call)           key, device and addresses of a call with tensors on a GPU: tensors.h
 *   matmul(a, b, out, kernel, threads)
 *   operator(types, observers, plain, dispatched)   a function of (a, b): their product, which has the type of 16-bit
 *                            operands, where both are of these types and no function of `observers` is true;
 *                            plain(a, b) if matmul does not take them. dispatched(...) for all other calls
 *   gemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, threads)
 *   matmul_entry(...), gemm_entry(...)    Python's functions as builtins, which call the two first: entry.h
 *   call(kernel, a, b, c, out)            c + a @ b by one kernel
 *   bind(kernel, a, b, c, operands)       an object whose call does c += a @ b, unchecked; it keeps `operands` alive
 *   threads(kernel, m, n, k, batch)       threads that a product of this size takes by default
 *   streams(a, b, out, kernel)            whether matmul would write the result by non-temporal stores
 *
 * They read arrays by NumPy's C API under the GIL, and release it during the multiplication where that is estimated to
 * take longer than gil_ns. */

#endif
