/* stage.h: the operands of several products as a kernel reads them, one product after the other. */
#ifndef PYSIMD_STAGE_H
#define PYSIMD_STAGE_H

#include "registry.h"

/* One operand of `count` products: element (i, j) of product q at from + q*bs + i*rs + j*cs, in elements. */
typedef struct {
    int64_t count, rows, cols;
    const char *from;
    int64_t bs, rs, cs;
} pysimd_operand;

/* The operand in scratch memory: strides in elements as pysimd_call wants them. */
typedef struct {
    const void *data;
    int64_t bs, rs, cs;
} pysimd_staged;

/* All products, one behind the other, their rows without gaps: elements of `size` bytes. */
void pysimd_make_dense(const pysimd_operand *x, int size, char *to);

/* Bytes that one product takes; INT64_MAX if they cannot be counted. */
int64_t pysimd_staged_bytes_a(const pysimd_kernel *kernel, int64_t m, int64_t k);
int64_t pysimd_staged_bytes_b(const pysimd_kernel *kernel, int64_t k, int64_t n);

pysimd_staged pysimd_stage_a(const pysimd_kernel *kernel, const pysimd_operand *a, char *to);

/* One A stored by columns as one K-major micro-panel after the other, each of a tile's rows (rows_of_tiles): that from
 * row i on begins i * cols elements from `to`. For kernels without groups of k. */
void pysimd_stage_tiles_of_a(const pysimd_kernel *kernel, const pysimd_operand *a, char *to);

pysimd_staged pysimd_stage_b(const pysimd_kernel *kernel, const pysimd_operand *b, char *to);

/* One B as micro-panels of nr columns, panel_bytes apart; the last may have fewer columns. */
void pysimd_stage_panels(const pysimd_kernel *kernel, int64_t k, int64_t n, const char *b, int64_t rs, int64_t cs,
                         char *to, int64_t panel_bytes);

/* k rows of n adjacent uint8 as such micro-panels of pairs of int16. */
void pysimd_stage_unsigned_panels(int nr, int64_t k, int64_t n, const char *b, int64_t rs, char *to,
                                  int64_t panel_bytes);

#endif
