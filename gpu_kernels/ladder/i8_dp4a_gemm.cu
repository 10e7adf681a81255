/* i8_dp4a_gemm, I1: bytes without tensor cores, four steps of k to an instruction.
 *
 * step      streamk's block on words of four bytes along k (word.cuh). dp4a runs at half the rate of FFMA, so a tile of
 *           8 x 8 a thread is enough.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread, in warp tiles of 32 x 64
 * regs      168 at most: 64 sums, 2 x 16 words of fragments; local memory 0
 * per k     16 IDP.4A  16 bytes from shared memory, 1 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  exact; everything wraps around at 32 bits
 * needs     sm_80
 * idea      dp4a, k packed by four: A. Atluri, Musings on GEMM (2017)
 * lanes     1
 * launch    384 threads a block, 128 of them producers; a grid of as many blocks as the device has multiprocessors
 * smem      up to 99 KiB, dynamic
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
    i8_dp4a_gemm(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    products<I8, false, LA, LB, TILE...>(p, s);
}

template <int BM, int BN>
__global__ void __launch_bounds__(256)
    i8_dp4a_gemm_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<I8, BM, BN>(p, s);
}
