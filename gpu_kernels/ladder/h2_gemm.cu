/* h2_gemm, H1: half precision without tensor cores, two steps of k to an instruction.
 *
 * step      streamk's block on words of two halves along k (word.cuh): plain registers, since a half taken twice for
 *           two columns would run on one of two pipes. An operand that lies along its rows is turned by the producers.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 8 x 16 a thread, in warp tiles of 32 x 128
 * regs      208 a multiplying thread (sm_90a): 128 pairs of sums, 2 x 24 words of fragments; local memory 0
 * per k     64 HFMA2  24 halves from shared memory, 3 LDS.128
 * ratio     8*16 / (8+16) = 5.33
 * rounding  one half fma per term, even and odd k apart, each ascending; added in half; then float, and once to half
 * needs     sm_80
 * idea      the packed half of A. Atluri, Musings on GEMM (2017), as an outer product
 * lanes     1
 * launch    384 threads a block, 128 of them producers; a grid of as many blocks as the device has multiprocessors
 * smem      up to 147 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "word.cuh"
#include "async.cuh"
#include "feed.cuh"
#include "schedule.cuh"
#include "tile_loop.cuh"
#include "producers.cuh"

template <Layout LA, Layout LB, int... TILE>
__global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    h2_gemm(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    products<F16, false, LA, LB, TILE...>(p, s);
}

template <int BM, int BN>
__global__ void __launch_bounds__(256)
    h2_gemm_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<F16, BM, BN>(p, s);
}
