/* wgmma_gemm.cuh: blocks with warp specialisation, one producer thread that starts TMA loads and two consumer
 * warpgroups that multiply panels with wgmma (tma_pipeline.cuh).
 *
 * The blocks of a cluster compute tiles one below the other: each loads its own A, and its part of B for all of them
 * (multicast). With `map_c` tiles are stored by TMA, too. What a panel holds, and how it is multiplied, is a class C:
 *
 *     BN, CLUSTER, Pipeline, Acc columns of a tile, blocks of a cluster, a TmaPipeline, float or int accumulators
 *     load_panel(...)            starts the loads of a panel into the current stage
 *     consume(...)               loop of a consumer warpgroup over tiles: 64 x BN accumulators, then store(work, acc)
 *
 * T is a type of result.cuh: how accumulators become elements of C. With SPLIT_K, tiles may be split along k
 * (tile_scheduler.cuh); a second launch adds the partial tiles.
 */
#include "tma_pipeline.cuh"
#include "wgmma.cuh"

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
                                        const TensorMap& map_b, ClusterTileScheduler<C::CLUSTER> scheduler, u32 rank,
                                        typename C::Pipeline& pipeline) {
    WorkTile work;
    while (scheduler.next(s, work)) {
        TileCoordinates t = tile_coordinates<BLOCK_M * C::CLUSTER, C::BN>(p, s, work.tile);
        int row = (t.row * C::CLUSTER + rank) * BLOCK_M;
        int column = t.column * C::BN + rank * (C::BN / C::CLUSTER);
        int product_a = p.a_batch ? t.product : 0, product_b = p.b_batch ? t.product : 0;
        PanelSource source = {map_a, map_b, product_a, product_b, row, column, rank};
#pragma unroll 1
        for (int n = work.first; n < work.first + work.count; ++n) {
            pipeline.producer_acquire();
            C::load_panel(source, n, pipeline);
            pipeline.advance();
        }
    }
}

/* Epilogue of a consumer warpgroup. */
template <class C, class T, bool SPLIT_K>
__device__ __forceinline__ void store_tile(const Gemm& p, const Schedule& s, const TensorMap* map_c, u32 boxes,
                                           u32 group, u32 rank, const WorkTile& work,
                                           const typename C::Acc (&acc)[C::BN / 2]) {
    if (SPLIT_K && work.count < (int)s.panels) {
        i64 slot = s.slot(blockIdx.x, work.tile);
        store_warpgroup_partial_tile<C::BN>(s.workspace + (slot * CONSUMER_GROUPS + group) * 64 * C::BN, acc);
        return;
    }
    TileCoordinates t = tile_coordinates<BLOCK_M * C::CLUSTER, C::BN>(p, s, work.tile);
    i64 row = (i64)(t.row * C::CLUSTER + rank) * BLOCK_M + group * 64, column = (i64)t.column * C::BN;
    if (!map_c)
        store_warpgroup_tile<T, C::BN>(p, t.product, row, column, acc);
    else if (p.c_vector == C_BY_TMA)
        store_warpgroup_tile_tma<T, C::BN>(p, *map_c, boxes, t.product, row, column, acc);
    else
        store_warpgroup_tile_rows<T, C::BN>(p, boxes, t.product, row, column, acc);
}

template <class C, class T, bool SPLIT_K = false>
__device__ __forceinline__ void wgmma_gemm(const Gemm& p, const Schedule& s, const TensorMap& map_a,
                                           const TensorMap& map_b, const TensorMap* map_c = nullptr) {
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[2 * C::Pipeline::STAGES];
    if (threadIdx.x == 0) {
        prefetch_tensor_map(map_a);
        prefetch_tensor_map(map_b);
    }
    typename C::Pipeline pipeline(memory, barriers);
    u32 group = threadIdx.x / WARPGROUP, boxes = pipeline.end() + group * STORE_BOXES * STORE_BYTES;
    u32 rank = C::CLUSTER > 1 ? cluster_rank() : 0;
    ClusterTileScheduler<C::CLUSTER> scheduler(s);
    if (group == CONSUMER_GROUPS) {
        reallocate_registers<true>();
        if (threadIdx.x == CONSUMER_GROUPS * WARPGROUP) produce<C>(p, s, map_a, map_b, scheduler, rank, pipeline);
    } else {
        reallocate_registers<false>();
        C::consume(scheduler, s, group, pipeline, [&](const WorkTile& work, const typename C::Acc(&acc)[C::BN / 2]) {
            store_tile<C, T, SPLIT_K>(p, s, map_c, boxes, group, rank, work, acc);
        });
        if (threadIdx.x % WARPGROUP == 0) tma_store_wait<0>();
    }
    pipeline.close();
}
