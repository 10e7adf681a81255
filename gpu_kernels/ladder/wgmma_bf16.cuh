/* wgmma_bf16.cuh: panels of 64 k of bf16 operands in either layout, as wgmma_gemm.cuh multiplies them. */
#include "wgmma_gemm.cuh"

template <Layout LA, Layout LB, int BN_, int STAGES, int CLUSTER_>
struct Bf16 {
    static constexpr int BN = BN_, CLUSTER = CLUSTER_;
    static constexpr int A_BYTES = BLOCK_M * TILE_K * 2, B_BYTES = BN * TILE_K * 2;
    typedef TmaPipeline<STAGES, A_BYTES + B_BYTES, CLUSTER> Pipeline;

    __device__ __forceinline__ static void load_panel(const PanelSource& source, int n, const Pipeline& pipeline) {
        load_tile<LA, BLOCK_M>(pipeline.panel(), source.row, n * TILE_K, [&](u32 to, int x, int y) {
            tma_load(to, source.map_a, pipeline.full_barrier(), x, y, source.product_a);
        });
        u32 b = pipeline.panel() + A_BYTES + source.rank * (B_BYTES / CLUSTER);
        load_tile<LB, BN / CLUSTER>(b, source.column, n * TILE_K, [&](u32 to, int x, int y) {
            tma_load_cluster<CLUSTER>(to, source.map_b, pipeline.full_barrier(), x, y, source.product_b);
        });
    }

    /* The wgmma of a panel are issued before those of the panel before it are waited for, so that the tensor cores are
     * not idle between panels. */
    __device__ __forceinline__ static void multiply(int panels, u32 group, Pipeline& pipeline, float (&acc)[BN / 2]) {
        u32 previous = 0;
#pragma unroll 1
        for (int n = 0; n < panels; ++n) {
            pipeline.consumer_wait();
            u64 a = matrix_descriptor(pipeline.panel() + group * BOX_BYTES);
            u64 b = matrix_descriptor(pipeline.panel() + A_BYTES);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < TILE_K / 16; ++k)
                wgmma_bf16<LA, LB>(acc, a + k * k16_step(LA), b + k * k16_step(LB), n || k);
            wgmma_commit();
            wgmma_wait<1>();
            if (n) pipeline.consumer_release(previous);
            previous = pipeline.stage;
            pipeline.advance();
        }
        wgmma_wait<0>();
        pipeline.consumer_release(previous);
    }

    template <class Store>
    __device__ __forceinline__ static void consume(const ClusterTiles<Bf16>& tiles, int count, u32 group,
                                                   Pipeline& pipeline, const Store& store) {
        for (int tile = tiles.first; tile < count; tile += tiles.step) {
            float acc[BN / 2];
            multiply(tiles.panels, group, pipeline, acc);
            store(tile, acc);
        }
    }
};
