/* wgmma_gemm.cuh: blocks with warp specialisation, one producer thread that starts TMA loads and two consumer
 * warpgroups that multiply panels with wgmma (tma_pipeline.cuh).
 *
 * The blocks of a cluster compute tiles one below the other: each loads its own A, and its part of B for all of them
 * (multicast). With `map_c` tiles are stored by TMA, too. What a panel holds, and how it is multiplied, is a class C:
 *
 *     BN, Shape, Pipeline, Acc   columns of a tile, a Cluster, a TmaPipeline, float or int accumulators
 *     load_panel(...)            starts the loads of a panel into the current stage
 *     consume(...)               loop of a consumer warpgroup over tiles: 64 x BN accumulators, then store(work, acc)
 *
 * T is a type of result.cuh: how accumulators become elements of C.
 *
 * Or a cluster splits a tile along k (Shape::K > 1), and its blocks add the partial tiles through distributed shared
 * memory, a slice of rows each (split_tile.cuh).
 *
 * Kernels are launched as dependents (dependent_launch.cuh): barriers are initialised and the first tile is located
 * before the grid ahead has ended. A queue of products of 1024 (bf16, an H200) takes 6.3 us each so, 8.7 without. Of
 * the 10650 cycles of a block there 1000 precede the first load, 1900 more the first panel; a panel takes 400, of which
 * a multiprocessor needs 384 to receive its 24 KiB; 1300 are the epilogue.
 *
 * Tried without gain: to let the dependents start at the beginning, not after the last load (24.5 us at 2048, 24.2); to
 * prefetch the first panels into L2 before the wait (7.4 us at 1024, 6.3 without); clusters of 2 x 2 tiles, of which
 * the device runs 30 and not 33; clusters that share A (9.0 us at 1024, single blocks 8.5, with a last barrier that
 * ordered memory); tiles of 128 x 128 split along k by clusters of 2 (8.5 us at 1024, 128 x 64 6.3); a lead of two
 * panels for one warpgroup, so that one stores while the other multiplies (26.1 us at 2048, without 26.0: they are
 * level again after a few panels); three stages and room for a whole tile of C (180.7 us at 4096, 180.6 with four). To
 * multiply the last panels by halves of the columns, and store the left half meanwhile, was not run: in most instances
 * of the forms tried the compiler waits after every wgmma.
 */
#include "dependent_launch.cuh"
#include "split_tile.cuh"
#include "tma_pipeline.cuh"

/* What this block computes, one WorkTile after the other: whole tiles, or a part of one. The M tiles of a cluster count
 * as one. */
template <class Shape>
struct ClusterScheduler {
    int tile;
    TilePart part;

    __device__ ClusterScheduler(const Schedule& s) {
        tile = blockIdx.x / Shape::M;
        if constexpr (Shape::K > 1) {
            part.count = gridDim.x / (u32)s.tiles, part.index = tile % part.count, tile /= part.count;
        }
    }

    __device__ bool next(const Schedule& s, WorkTile& work) {
        work = {tile, 0, (int)s.panels};
        if constexpr (Shape::K > 1) {
            u32 share = (u32)s.panels / part.count, longer = (u32)s.panels % part.count;
            work.first = part.index * share + min(part.index, longer), work.count = share + (part.index < longer);
            tile = (int)s.tiles;
        } else {
            tile += gridDim.x / Shape::M;
        }
        return work.tile < (int)s.tiles;
    }
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
                                        const TensorMap& map_b, ClusterScheduler<typename C::Shape> scheduler, u32 rank,
                                        typename C::Pipeline& pipeline) {
    constexpr int M = C::Shape::M;
    WorkTile work;
    while (scheduler.next(s, work)) {
        TileCoordinates t = tile_coordinates<BLOCK_M * M, C::BN>(p, s, work.tile);
        int row = (t.row * M + rank) * BLOCK_M, column = t.column * C::BN + rank * (C::BN / M);
        int product_a = p.a_batch ? t.product : 0, product_b = p.b_batch ? t.product : 0;
        PanelSource source = {map_a, map_b, product_a, product_b, row, column, rank};
        grid_dependency_wait();
#pragma unroll 1
        for (int n = work.first; n < work.first + work.count; ++n) {
            pipeline.producer_acquire();
            C::load_panel(source, n, pipeline);
            pipeline.advance();
        }
    }
    launch_dependents();
}

/* Epilogue of a consumer warpgroup whose tile is whole. */
template <class C, class T>
__device__ __forceinline__ void store_tile(const Gemm& p, const Schedule& s, const TensorMap* map_c, u32 boxes,
                                           u32 group, u32 rank, const WorkTile& work,
                                           const typename C::Acc (&acc)[C::BN / 2]) {
    TileCoordinates t = tile_coordinates<BLOCK_M * C::Shape::M, C::BN>(p, s, work.tile);
    i64 row = (i64)(t.row * C::Shape::M + rank) * BLOCK_M + group * 64, column = (i64)t.column * C::BN;
    if (!map_c)
        store_warpgroup_tile<T, C::BN>(p, t.product, row, column, acc);
    else if (p.c_vector == C_BY_TMA)
        store_warpgroup_tile_tma<T, C::BN>(p, *map_c, boxes, t.product, row, column, acc);
    else
        store_warpgroup_tile_rows<T, C::BN>(p, boxes, t.product, row, column, acc);
}

template <class C, class T>
__device__ __forceinline__ void wgmma_gemm(const Gemm& p, const Schedule& s, const TensorMap& map_a,
                                           const TensorMap& map_b, const TensorMap* map_c = nullptr) {
    typedef typename C::Shape Shape;
    typedef SplitTile<Shape::K, C::BN, T> Split;
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[2 * C::Pipeline::STAGES + (Shape::K > 1)];
    u32 received = shared_address(barriers + 2 * C::Pipeline::STAGES);
    if (threadIdx.x == CONSUMERS) {
        prefetch_tensor_map(map_a);
        prefetch_tensor_map(map_b);
        if constexpr (Shape::K > 1) Split::init(received);
    }
    typename C::Pipeline pipeline(memory, barriers);
    if constexpr (Shape::K > 1) cluster_arrive();
    u32 group = threadIdx.x / WARPGROUP, rank = Shape::M > 1 ? cluster_rank() : 0;
    ClusterScheduler<Shape> scheduler(s);
    if (group == CONSUMER_GROUPS) {
        reallocate_registers<true>();
        if (threadIdx.x == CONSUMERS) produce<C>(p, s, map_a, map_b, scheduler, rank, pipeline);
        __syncwarp();
        if constexpr (Shape::K > 1) cluster_wait(), cluster_arrive(), cluster_wait();
    } else {
        reallocate_registers<false>();
        grid_dependency_wait();
        u32 boxes = pipeline.end() + group * STORE_BOXES * STORE_BYTES;
        C::consume(scheduler, s, group, pipeline, [&](const WorkTile& work, const typename C::Acc(&acc)[C::BN / 2]) {
            if constexpr (Shape::K > 1)
                Split::add(p, s, work.tile, scheduler.part, pipeline.panels, pipeline.end(), received, acc);
            else
                store_tile<C, T>(p, s, map_c, boxes, group, rank, work, acc);
        });
        if (Shape::K == 1 && threadIdx.x % WARPGROUP == 0) tma_store_wait<0>();
    }
    pipeline.close();
}
