/* wgmma, T4: a warpgroup multiplies tiles straight from shared memory, and one thread brings them.
 *
 * step      neither fragments nor their loads are left: the tensor cores read both tiles where the tensor memory
 *           accelerator put them. One panel at a time, brought, waited for, multiplied.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, at addresses and steps that are multiples of 16 bytes
 * tile      128 x 128 x 64, 64 x 128 a warpgroup, twice
 * regs      128 sums a thread; local memory 0
 * per k     2 wgmma m64n128k16 for 16 k, each of 64 + 128 elements a k
 * ratio     64*128 / (64+128) = 42.67
 * rounding  products exact, sums of 16 k and more in the tensor core's own order
 *           and rounding; one for alpha, one for beta
 * needs     sm_90a
 * idea      warpgroup products: PTX ISA; pranjalssh/fast.cu, matmul_3
 * lanes     128
 * launch    128 threads, a block a tile
 * smem      33 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "schedule.cuh"
#include "async.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(128)
    wgmma(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
          const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b) {
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[1];
    u32 at_a = shared_address(memory) + 1023 & ~1023, at_b = at_a + 2 * BOX_BYTES, here = shared_address(barriers);
    if (threadIdx.x == 0) {
        barrier_init(here, 1);
        barriers_are_ready();
    }
    __syncthreads();
    Place t = place_of<128, 128>(p, s, blockIdx.x);
    int row = t.row * 128, column = t.column * 128;
    float sum[2][64];
#pragma unroll 1
    for (int n = 0; n < s.panels; ++n) {
        if (threadIdx.x == 0) {
            barrier_expect(here, 4 * BOX_BYTES);
            load_tile<LA, 128>(at_a, row, n * TILE_K, [&](u32 to, int x, int y) {
                tma_load(to, map_a, here, x, y, p.a_batch ? t.product : 0);
            });
            load_tile<LB, 128>(at_b, column, n * TILE_K, [&](u32 to, int x, int y) {
                tma_load(to, map_b, here, x, y, p.b_batch ? t.product : 0);
            });
        }
        barrier_wait(here, n % 2);
        u64 a = tile_descriptor(at_a), below = tile_descriptor(at_a + BOX_BYTES), b = tile_descriptor(at_b);
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < TILE_K / 16; ++k) {
            multiply_bf16<LA, LB>(sum[0], a + k * step_of_16(LA), b + k * step_of_16(LB), n || k);
            multiply_bf16<LA, LB>(sum[1], below + k * step_of_16(LA), b + k * step_of_16(LB), n || k);
        }
        wgmma_end();
        wgmma_wait<0>();
        __syncthreads(); /* all warps have read the tiles */
    }
    store_tile<128>(p, t.product, row, column, sum[0]);
    store_tile<128>(p, t.product, row + 64, column, sum[1]);
}
