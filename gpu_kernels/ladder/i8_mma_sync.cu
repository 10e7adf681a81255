/* i8_mma_sync, T12: int8 on the tensor cores of sm_80 and newer.
 *
 * step      T3 for int8: an mma.sync takes 32 k instead of 16 in the same bytes. ldmatrix transposes 16-bit elements
 *           only, so a first kernel packs an operand that is not K-major, or whose rows do not start at multiples of 16
 *           bytes. Panels of 64 bytes of k, four of them, fit the 99 KiB that a block on sm_86 and sm_89 has.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 64, 64 x 64 a warp
 * regs      236 at most: 128 accumulators, 2 x 32 for fragments; local memory 0
 * per k     1 IMMA.16832, 128 i8 from shared memory, 1/4 LDSM
 * ratio     64*64 / (64+64) = 32.00
 * rounding  exact; int32 wraps around
 * needs     sm_80
 * idea      T3's, with two int8 as one 16-bit element: the fragments of mma have the same bytes
 * lanes     32
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      96 KiB dynamic
 */
#include "mma_warp.cuh"
#include "pack_rows.cuh"

template <Layout L>
__global__ void __launch_bounds__(256) i8_mma_sync_pack(const __grid_constant__ Pack s) {
    pack_rows<L>(s);
}

template <class PanelA, class PanelB>
using S8Warp = MmaWarp<MmaS8, PanelA, PanelB>;

template <int BK, int STAGES>
__global__ void __launch_bounds__(THREADS, 1) i8_mma_sync(const __grid_constant__ Gemm p) {
    f16_pipeline<Swizzled, S8Warp, K_MAJOR_VEC4, K_MAJOR_VEC4, BK / 2, STAGES, 2>(p);
}
