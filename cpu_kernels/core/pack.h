/* pack.h: operands packed into panels, as the kernel's row says. Only this and the kernels know a panel's layout. */
#ifndef PYSIMD_PACK_H
#define PYSIMD_PACK_H

#include "registry.h"

/* A packed operand: its bytes, and its strides in elements as pysimd_call wants them. A's panel is row-major, K groups
 * long, and of an OFFSET panel each row ends in an int32. B's panel has one row of n groups for each K group; for the
 * inner form it is one column after the other. */
typedef struct {
    int64_t bytes, rs, cs;
} pysimd_panel_shape;

pysimd_panel_shape pysimd_panel_of_a(const pysimd_kernel *kernel, int64_t m, int64_t k);
pysimd_panel_shape pysimd_panel_of_b(const pysimd_kernel *kernel, int64_t k, int64_t n);

/* Bytes of one element as the kernel reads it: those of the array, but for WIDE and SPLIT panels, which have twice as
 * many. Inlined: a struct of three ints that is returned is stored by parts and loaded as one, which waits for the
 * stores; all calls of it were 5 % of the samples of products of 8 x 8 x 8. */
static inline pysimd_sizes pysimd_sizes_in_kernel(const pysimd_kernel *kernel)
{
    const pysimd_sizes *size = &pysimd_element_sizes[kernel->types];
    const int values = kernel->panel == WIDE || kernel->panel == SPLIT ? 2 : 1;
    return (pysimd_sizes){values * size->a, values * size->b, size->c};
}

/* From a column of a panel of B to the next, in elements. */
static inline int pysimd_column_step(const pysimd_kernel *kernel)
{
    return kernel->panel == SPLIT ? 1 : kernel->k_group;
}

/* Not of a WIDE or SPLIT panel, whose values stage.c converts. */
void pysimd_pack_a(const pysimd_kernel *kernel, int64_t m, int64_t k, const void *a, int64_t rs, int64_t cs, void *to);
/* A whose columns are adjacent values (rs = 1), not of a WIDE panel: laid out as a panel of B, so rs = k_group and
 * cs = m * k_group; the int32 of an OFFSET panel are a last row. The size is that of A's panel. */
void pysimd_pack_columns_of_a(const pysimd_kernel *kernel, int64_t m, int64_t k, const void *a, int64_t cs, void *to);
void pysimd_pack_b(const pysimd_kernel *kernel, int64_t k, int64_t n, const void *b, int64_t rs, int64_t cs, void *to);

/* to[i*ld + j] = from[i*rs + j*cs], elements of `size` bytes: transposition included. */
void pysimd_copy_matrix(int64_t m, int64_t n, int size, const char *from, int64_t rs, int64_t cs, char *to, int64_t ld);
/* The n columns of B as micro-panels of nr columns (the last one of the rest), panel_bytes from one to the next. */
void pysimd_pack_panels(const pysimd_kernel *kernel, int64_t k, int64_t n, const void *b, int64_t rs, int64_t cs,
                        void *to, int64_t panel_bytes);

/* Whether the kernel can read the operand unpacked. */
int pysimd_reads_a(const pysimd_kernel *kernel, int64_t k, int64_t rs, int64_t cs);
int pysimd_reads_b(const pysimd_kernel *kernel, int64_t rs, int64_t cs);

#endif
