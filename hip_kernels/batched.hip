/* batched: C[i] = A[i] B[i] for a batch of products of one small shape, bound by the memory bandwidth.
 *
 * contract  gpu_kernels/micro/call.cuh without C0; m, n, k are those that the kernel was compiled for (m, n <= 32,
 *           k <= 64)
 * tile      C of M x N in tiles of TM x TN, one a thread; PRODUCTS products a block
 * regs      TM*TN accumulators; no spills
 * per k     TM*TN multiply-adds; TM + TN elements from LDS
 * ratio     TM*TN / (TM + TN) in LDS; in global memory every element of A, B and C moves once, in vectors where the
 *           batch is contiguous
 * rounding  one fma per term, k ascending from 0: bit-equal to hip_*_outer_* for any PRODUCTS and tile. F16 accumulates
 *           in f32 and rounds once
 * needs     gfx900
 * idea      that of gpu_kernels/micro/batched.cu, whose source it is: the A of the products of a block are one
 *           contiguous range. Vectors go through registers into LDS; the tilings were found on an NVIDIA GPU and not
 *           measured on AMD
 * lanes     ceil(M/TM) * ceil(N/TN)
 * launch    32 * ceil(PRODUCTS*LANES/32) threads a block; grid ceil(batch / PRODUCTS)
 * smem      PRODUCTS*(M + N)*K*A_BYTES bytes; more only where a C staged in the same memory is larger
 */
#include "amd.h"
#include "../gpu_kernels/micro/batched.cu"
