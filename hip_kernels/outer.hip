/* outer: C[MR,NR] += A[MR,K] * B[K,NR]; one rank-1 update per k, the whole tile in the registers of one thread.
 *
 * contract  gpu_kernels/micro/call.cuh; any K, K = 0 gives C0 or zeros. Tiles that stick out of C (EDGE) read and write
 *           what exists.
 * tile      hip_f32_outer_4x4, hip_f32_outer_8x8
 * regs      MR*NR sums, 2*(MR + NR)*2 elements: those of this turn and of the next, which are already being loaded; no
 *           scratch
 * per k     MR*NR v_fmac_f32 (v_fma_f32 on gfx900, which has no fused v_fmac; MR*NR/2 v_pk_fma_f32 on gfx90a and
 *           gfx942; in part two at once, v_dual_fmac_f32, from gfx11 on); (MR + NR)/2 8-byte loads of floats that lie
 *           along k, (MR + NR)/4 16-byte loads where they do not
 * ratio     MR*NR / (MR + NR): 2.00 for 4x4, 4.00 for 8x8 (inner product 0.50)
 * rounding  one fma per term, k ascending from 0, then one add of C0: bit-equal to cuda_f32_outer_*, but that denormals
 *           are flushed, which CuPy asks hiprtc for
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017): the outer product on AMD GPUs; the source is that of the CUDA kernel
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0
 */
#include "amd.h"
#include "../gpu_kernels/micro/outer.cu"
