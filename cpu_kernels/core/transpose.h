/* transpose.h: transpositions in registers, for processors with vectors of more than 16 bytes. */
#ifndef PYSIMD_TRANSPOSE_H
#define PYSIMD_TRANSPOSE_H

#include "pysimd.h"

/* to[i*ld + j] = from[i + j*cs], i < m, j < n; both m and n are 8 or more (double: 4 or more). Nothing else is read or
 * written; no pointer needs any alignment. */
typedef void pysimd_transpose_fn(int64_t m, int64_t n, const void *from, int64_t cs, void *to, int64_t ld);

/* The same of `count` matrices, bs elements apart, to dense ones: ld is n. */
typedef void pysimd_transpose_each_fn(int64_t count, int64_t m, int64_t n, const void *from, int64_t bs, int64_t cs,
                                      void *to);

pysimd_transpose_fn avx2_transpose_f32, avx2_transpose_f64;
pysimd_transpose_each_fn avx2_transpose_each_f32, avx2_transpose_each_f64;

#endif
