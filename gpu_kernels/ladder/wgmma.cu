/* wgmma, T4: a warpgroup multiplies tiles in shared memory; TMA loads them.
 *
 * step      no fragments are loaded: the tensor cores read both tiles from shared memory, where TMA wrote them. One
 *           panel at a time: load, wait, multiply.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout, rows at multiples of 16 bytes (others are copied first)
 * tile      128 x 128 x 64, 64 x 128 a warpgroup, twice
 * regs      160 at most: 128 accumulators; local memory 0
 * per k     1/16 HGMMA.64x128x16, 192 bf16 from shared memory
 * ratio     64*128 / (64+128) = 42.67
 * rounding  products exact, sums of 16 k and more in the tensor core's own order and rounding; one for alpha, one for
 *           beta
 * needs     sm_90a
 * idea      warpgroup products: PTX ISA; pranjalssh/fast.cu, matmul_3
 * lanes     128
 * launch    128 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      33 KiB dynamic and 16 bytes static
 */
#include "wgmma.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(128)
    wgmma(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s,
          const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b) {
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[1];
    u32 a_tile = shared_address(memory) + 1023 & ~1023, b_tile = a_tile + 2 * BOX_BYTES;
    u32 full = shared_address(barriers);
    if (threadIdx.x == 0) {
        mbarrier_init(full, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    TileCoordinates t = tile_coordinates<128, 128>(p, s, blockIdx.x);
    int row = t.row * 128, column = t.column * 128;
    float acc[2][64];
#pragma unroll 1
    for (int n = 0; n < s.panels; ++n) {
        if (threadIdx.x == 0) {
            mbarrier_arrive_expect_tx(full, 4 * BOX_BYTES);
            load_tile<LA, 128>(a_tile, row, n * TILE_K, [&](u32 to, int x, int y) {
                tma_load(to, map_a, full, x, y, p.a_batch ? t.product : 0);
            });
            load_tile<LB, 128>(b_tile, column, n * TILE_K, [&](u32 to, int x, int y) {
                tma_load(to, map_b, full, x, y, p.b_batch ? t.product : 0);
            });
        }
        mbarrier_wait(full, n % 2);
        u64 upper = matrix_descriptor(a_tile), lower = matrix_descriptor(a_tile + BOX_BYTES);
        u64 b = matrix_descriptor(b_tile);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < TILE_K / 16; ++k) {
            wgmma_bf16<LA, LB>(acc[0], upper + k * k16_step(LA), b + k * k16_step(LB), n || k);
            wgmma_bf16<LA, LB>(acc[1], lower + k * k16_step(LA), b + k * k16_step(LB), n || k);
        }
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads(); /* all warps have read the tiles */
    }
    store_warpgroup_tile<ToF32, 128>(p, t.product, row, column, acc[0]);
    store_warpgroup_tile<ToF32, 128>(p, t.product, row + 64, column, acc[1]);
}
