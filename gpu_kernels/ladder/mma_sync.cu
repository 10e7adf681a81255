/* mma_sync, T3: mma.sync and ldmatrix in PTX, swizzled panels.
 *
 * step      mma.sync instead of wmma: the addresses of fragments differ by constants, which wmma.load hides from the
 *           compiler, and the accumulators are stored to C from registers. The 16-byte chunks of a line are
 *           swizzled (XOR with the line) instead of padded: ldmatrix reads eight lines from 32 different banks,
 *           transposed or not.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 64, 64 x 64 a warp
 * regs      234 at most: 128 accumulators, 2 x 32 for fragments; local memory 0
 * per k     2 HMMA.16816, 128 f16 from shared memory, 1/2 LDSM
 * ratio     64*64 / (64+64) = 32.00
 * rounding  products exact, sums of 16 k in the tensor core's own order and rounding; one for alpha, one for beta
 * needs     sm_80
 * idea      ldmatrix and XOR swizzle: CUTLASS, sgemm_sm80 of its CuTe tutorial
 * lanes     32
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      144 KiB dynamic
 */
#include "mma_warp.cuh"

template <class PanelA, class PanelB>
using F16Warp = MmaWarp<MmaF16, PanelA, PanelB>;

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(THREADS, 1) mma_sync(const __grid_constant__ Gemm p) {
    f16_pipeline<Swizzled, F16Warp, LA, LB>(p);
}
