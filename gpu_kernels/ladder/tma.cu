/* tma, S19: panels loaded by TMA.
 *
 * step      the block of f32_best with one producer thread that starts two box copies a panel: no addresses, no bounds
 *           checks, no copies that compete with the consumers' loads for the shared-memory pipe. Boxes keep the order
 *           of global memory, so both operands must be MN-major: a K-major one is transposed by a copy first. With the
 *           time of that copy, row-major operands gain nothing on an H200 (54.1 TFLOP/s at 4096 and 56.5 at 8192;
 *           f32_best 56.1 and 57.3).
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 8 x 16 a thread, warp tile 32 x 128
 * regs      168 at launch, 216 a consumer and 72 a producer: 128 accumulators, 2 x 24 for fragments; local memory 0
 * per k     128 FFMA, 24 f32 from shared memory, 6 LDS.128
 * ratio     8*16 / (8+16) = 5.33
 * rounding  one fma per term, k ascending, the partial tiles of a split tile added in the order of k; then one for
 *           alpha and one for beta; denormals are kept
 * needs     sm_90a
 * idea      TMA for kernels without tensor cores: cloudrift-ai/emmy
 * lanes     1
 * launch    384 threads a block, 128 of them producers; persistent grid, one block a multiprocessor
 * smem      144 KiB dynamic and 256 bytes static
 */
#include "tma.cuh"
#include "warp_specialized.cuh"

/* The producers' role: one thread, which loads each panel of A and B as one box. */
template <class C>
struct TmaProducer {
    static constexpr int ARRIVALS = 1;
    const TensorMap &map_a, &map_b;

    __device__ void load_panel(const Gemm& p, const TileCoordinates& t, int k, u32 panel, u32 full) const {
        mbarrier_arrive_expect_tx(full, C::STAGE_BYTES);
        tma_load(panel, map_a, full, t.row * C::Tile::BM, k, p.a_batch ? t.product : 0);
        tma_load(panel + C::A_BYTES, map_b, full, t.column * C::Tile::BN, k, p.b_batch ? t.product : 0);
    }

    __device__ __forceinline__ void run(const Gemm& p, const Schedule& s, TileScheduler scheduler,
                                        const PanelRing& ring) const {
        typedef typename C::Tile Tile;
        u32 parity = 1, stage = 0;
        if (threadIdx.x > CONSUMERS) return;
        WorkTile work;
        while (scheduler.next(s, work)) {
            TileCoordinates t = tile_coordinates<Tile::BM, Tile::BN>(p, s, work.tile);
#pragma unroll 1
            for (int n = 0; n < work.count; ++n) {
                mbarrier_wait(ring.empty + 8 * stage, parity);
                load_panel(p, t, (work.first + n) * Tile::BK, ring.panels + stage * C::STAGE_BYTES,
                           ring.full + 8 * stage);
                if (++stage == Tile::STAGES) stage = 0, parity ^= 1;
            }
        }
        mbarrier_wait(ring.empty + 8 * stage, parity);
        mbarrier_arrive(ring.full + 8 * stage);
    }
};

template <Layout LA, Layout LB, int... TILE>
__global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    tma(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s, const __grid_constant__ TensorMap map_a,
        const __grid_constant__ TensorMap map_b) {
    typedef Config<F32, LA, LB, BlockTile<TILE...>> C;
    warp_specialized_gemm<C>(p, s, TmaProducer<C>{map_a, map_b});
}

template <int BM, int BN>
__global__ void __launch_bounds__(256) tma_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<F32, BM, BN>(p, s);
}
