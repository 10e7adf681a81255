/* batched: C[i] = A[i] B[i] for a batch of products of one small shape, at the speed of memory.
 *
 * contract  gpu_kernels/micro/call.cuh without C0; m, n, k are those that the kernel was compiled for (m, n <= 32,
 *           k <= 64)
 * tile      M x N x K, cut into TM x TN per thread; P products a block
 * regs      TM*TN sums and the operands of KU steps of k; no scratch
 * per k     TM*TN fma (dot4 for 4 k of int8) for TM + TN elements from LDS
 * ratio     TM*TN / (TM + TN) in LDS; in device memory every element of A, B and C moves once, 16 bytes an access
 * rounding  one fma per term, k ascending from 0: bit-equal to hip_*_outer_* for any P and tile. Half results (F16) are
 *           summed in float and rounded once
 * needs     gfx900
 * idea      that of gpu_kernels/micro/batched.cu, whose source it is: the A of P products is one piece of memory. The
 *           pieces go through registers into LDS; the tilings were found on an NVIDIA GPU and not measured on AMD
 * lanes     ceil(M/TM) * ceil(N/TN)
 * launch    P * lanes threads, rounded up to 32; grid ceil(batch / P)
 * smem      A and B of P products; results take the same place
 */
#include "amd.h"
#include "../gpu_kernels/micro/batched.cu"
