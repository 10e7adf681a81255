/* wgmma_gemm.cuh: blocks with warp specialisation, one producer thread that starts TMA loads and two consumer
 * warpgroups that multiply panels with wgmma (tma_pipeline.cuh).
 *
 * The blocks of a cluster compute tiles one below the other: each loads its own A, and its part of B for all of them
 * (multicast). With `map_c` tiles are stored by TMA, too. What a panel holds, and how it is multiplied, is a class C:
 *
 *     BN, CLUSTER, Pipeline, Acc columns of a tile, blocks of a cluster, a TmaPipeline, float or int accumulators
 *     load_panel(...)            starts the loads of a panel into the current stage
 *     consume(...)               loop of a consumer warpgroup over tiles: 64 x BN accumulators, then store(tile, acc)
 */
#include "tma_pipeline.cuh"
#include "wgmma.cuh"

/* The tiles of a cluster: tile blockIdx.x / CLUSTER and every `step`-th from there; that one only, where the grid has a
 * cluster for each. */
template <class C>
struct ClusterTiles {
    u32 rank = C::CLUSTER > 1 ? cluster_rank() : 0;
    int panels, first = blockIdx.x / C::CLUSTER, step = gridDim.x / C::CLUSTER;

    __device__ ClusterTiles(const Schedule& s) : panels((int)s.panels) {}
};

/* Where the boxes of a panel come from: the product and the first row of A, and of B the first column that this block
 * loads. */
struct PanelSource {
    const TensorMap &map_a, &map_b;
    int product_a, product_b, row, column;
    u32 rank;
};

/* The producer's role: one thread. */
template <class C>
__device__ __forceinline__ void produce(const Gemm& p, const Schedule& s, const TensorMap& map_a,
                                        const TensorMap& map_b, const ClusterTiles<C>& tiles,
                                        typename C::Pipeline& pipeline) {
    for (int tile = tiles.first; tile < (int)s.tiles; tile += tiles.step) {
        TileCoordinates t = tile_coordinates<BLOCK_M * C::CLUSTER, C::BN>(p, s, tile);
        int row = (t.row * C::CLUSTER + tiles.rank) * BLOCK_M;
        int column = t.column * C::BN + tiles.rank * (C::BN / C::CLUSTER);
        int product_a = p.a_batch ? t.product : 0, product_b = p.b_batch ? t.product : 0;
        PanelSource source = {map_a, map_b, product_a, product_b, row, column, tiles.rank};
#pragma unroll 1
        for (int n = 0; n < tiles.panels; ++n) {
            pipeline.producer_acquire();
            C::load_panel(source, n, pipeline);
            pipeline.advance();
        }
    }
}

/* Epilogue of a consumer warpgroup. */
template <class C>
__device__ __forceinline__ void store_tile(const Gemm& p, const Schedule& s, const TensorMap* map_c, u32 boxes,
                                           u32 group, const ClusterTiles<C>& tiles, int tile,
                                           const typename C::Acc (&acc)[C::BN / 2]) {
    TileCoordinates t = tile_coordinates<BLOCK_M * C::CLUSTER, C::BN>(p, s, tile);
    i64 row = (i64)(t.row * C::CLUSTER + tiles.rank) * BLOCK_M + group * 64, column = (i64)t.column * C::BN;
    if (map_c && p.c_vector == C_BY_TMA)
        store_warpgroup_tile_tma<C::BN>(p, *map_c, boxes, t.product, row, column, acc);
    else
        store_warpgroup_tile<C::BN>(p, t.product, row, column, acc);
}

template <class C>
__device__ __forceinline__ void wgmma_gemm(const Gemm& p, const Schedule& s, const TensorMap& map_a,
                                           const TensorMap& map_b, const TensorMap* map_c = nullptr) {
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[2 * C::Pipeline::STAGES];
    typename C::Pipeline pipeline(memory, barriers);
    u32 group = threadIdx.x / WARPGROUP, boxes = pipeline.end() + group * STORE_BOXES * STORE_BYTES;
    ClusterTiles<C> tiles(s);
    if (group == CONSUMER_GROUPS) {
        reallocate_registers<true>();
        if (threadIdx.x == CONSUMER_GROUPS * WARPGROUP) produce<C>(p, s, map_a, map_b, tiles, pipeline);
    } else {
        reallocate_registers<false>();
        C::consume(tiles, (int)s.tiles, group, pipeline, [&](int tile, const typename C::Acc(&acc)[C::BN / 2]) {
            store_tile<C>(p, s, map_c, boxes, group, tiles, tile, acc);
        });
        if (threadIdx.x % WARPGROUP == 0) tma_store_wait<0>();
    }
    pipeline.close();
}
