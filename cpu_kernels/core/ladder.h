/* ladder.h: the rungs of the CPU ladder (ladder.inc). */
#ifndef PYSIMD_LADDER_H
#define PYSIMD_LADDER_H

#include "driver.h"

/* C = alpha A B + beta C, one product in float: of `product` the fields on the batch are not read. Any m, n, k >= 0,
 * strides and alignment; C is not read if beta is 0. Returns 0, or -1 if there is no memory for packed operands: parts
 * of C may then be written already. */
typedef int pysimd_rung_fn(const pysimd_product *product);

/* One line of ladder.inc. */
typedef struct {
    const char *name;
    const char *source; /* in cpu_kernels/ */
    const char *adds;   /* to the rung before */
    pysimd_form form;
    int mr, nr;     /* 0: those of the microkernel */
    int vectors;    /* nr counts vectors of the target */
    int reads_rows; /* the columns of B must be adjacent; pysimd_run_rung copies another B */
    int blocks;     /* it divides m, n and k into blocks, of pysimd_ladder_blocks */
    int threads;    /* it takes more threads than one */
    pysimd_rung_fn *run[TARGETS]; /* NULL where it is not compiled for the target; for all, of pysimd.gemm itself */
} pysimd_rung;

extern const pysimd_rung pysimd_rungs[];
extern const int pysimd_rung_count;

/* The highest target whose code can run here. */
int pysimd_rung_target(const pysimd_rung *rung);

/* Every product of the batch by one rung, compiled for pysimd_rung_target. Returns 0, or -1 if there is no memory. */
int pysimd_run_rung(const pysimd_rung *rung, const pysimd_product *product);

/* The microkernel of the rungs that are loops around one. */
const pysimd_kernel *pysimd_ladder_kernel(void);

/* Rows of a block of A, columns of a block of B, and columns of A and rows of B in both. */
typedef struct {
    int64_t mc, nc, kc;
} pysimd_ladder_block;
pysimd_ladder_block pysimd_ladder_blocks(void);

/* C = beta C, without reading C if beta is 0. */
void pysimd_ladder_scale_c(const pysimd_product *product);

#endif
