/* outer: C[MR,NR] += A[MR,K] * B[K,NR]; one rank-1 update per k, the whole tile in the registers of one thread.
 *
 * contract  gpu_kernels/micro/call.cuh; any K, K = 0 gives C0 or zeros. An edge tile (EDGE) reads and writes the
 *           elements that exist.
 * tile      hip_f32_outer_4x4, hip_f32_outer_8x8
 * regs      MR*NR accumulators; at most 112 registers, at most 212 registers for 8x8; no spills; operands are
 *           double-buffered: those of the next iteration are loaded before this one multiplies
 * per k     MR*NR v_fmac_f32, MR*NR v_fma_f32 for gfx900, MR*NR/2 v_pk_fma_f32 for gfx90a and gfx942; (MR + NR)/4 loads
 *           of 16 bytes; K-major operands; gfx900 has no v_fmac_f32; gfx11 and gfx12 issue some as v_dual_fmac_f32
 * ratio     MR*NR / (MR + NR) = 2.00 for 4x4, 4.00 for 8x8
 * rounding  one fma per term, k ascending from 0, then one add of C0: bit-equal to cuda_f32_outer_*, except that
 *           denormals are flushed, which CuPy asks hiprtc for
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017): the outer product on AMD GPUs; the source is that of the CUDA kernel
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0 bytes
 */
#include "amd.h"
#include "../gpu_kernels/micro/outer.cu"
