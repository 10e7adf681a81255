/* inner: C[MR,NR] += A[MR,K] * B[K,NR]; every element of C is a dot product of its own thread.
 *
 * contract  gpu_kernels/micro/call.cuh; any K, K = 0 gives C0 or zeros. An edge tile (EDGE) reads and writes the
 *           elements that exist.
 * tile      hip_f32_inner_4x4, hip_f32_inner_8x8
 * regs      1 accumulator; at most 24 registers; no spills
 * per k     1 v_fmac_f32, 1 v_fma_f32 for gfx900; 1 load of 8 bytes; K-major operands
 * ratio     1 / 2 = 0.50
 * rounding  one fma per term, k ascending from 0, then one add of C0: bit-equal to hip_f32_outer_*
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017): the form that the outer product is compared with
 * lanes     MR*NR
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) * MR*NR / 128)
 * smem      0 bytes
 */
#include "amd.h"
#include "../gpu_kernels/micro/inner.cu"
