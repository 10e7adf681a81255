/* inner: C[MR,NR] += A[MR,K] * B[K,NR]; every element of C its own dot product, one thread for each.
 *
 * contract  gpu_kernels/micro/call.cuh; any K, K = 0 gives C0 or zeros. Tiles that stick out of C (EDGE) read and write
 *           what exists.
 * tile      hip_f32_inner_4x4, hip_f32_inner_8x8
 * regs      1 sum, 2 elements of A and of B in flight; no scratch
 * per k     1 v_fmac_f32 a thread (v_fma_f32 on gfx900); 2/2 8-byte loads where both operands lie along k
 * ratio     1 / 2 = 0.50 for any tile: two elements loaded for every multiply-add
 * rounding  one fma per term, k ascending from 0, then one add of C0: bit-equal to hip_f32_outer_*
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017): the form that the outer product is compared with
 * lanes     MR*NR
 * launch    MR*NR threads a tile, 128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) * MR*NR / 128)
 * smem      0
 */
#include "amd.h"
#include "../gpu_kernels/micro/inner.cu"
