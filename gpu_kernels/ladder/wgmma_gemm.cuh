/* wgmma_gemm.cuh: blocks with warp specialisation, one producer thread that starts TMA loads and two consumer
 * warpgroups that multiply panels with wgmma (tma_pipeline.cuh).
 *
 * The blocks of a cluster compute tiles one below the other: each loads its own A, and its part of B for all of them
 * (multicast). With `map_c` tiles are stored by TMA, too. What a panel holds, and how it is multiplied, is a class C:
 *
 *     BN, Shape, Pipeline, Acc   columns of a tile, a Cluster, a TmaPipeline, float or int accumulators
 *     load_panel(...)            starts the loads of a panel into the current stage
 *     consume(...)               loop of a consumer warpgroup over tiles: 64 x BN accumulators, then store(tiles, acc)
 *
 * T is a type of result.cuh: how accumulators become elements of C. BOXES a warpgroup hold elements of C until TMA has
 * stored them, while the next tile is multiplied.
 *
 * Or a cluster splits a tile along k (Shape::K > 1), and its blocks add the partial tiles through distributed shared
 * memory, a slice of rows each (split_tile.cuh).
 */
#include "tma_pipeline.cuh"
#include "split_tile.cuh"

/* The tiles that this block computes, whole or a part of one. The M tiles of a cluster count as one. Where the next tile
 * lies is worked out before its panels are needed: its divisions would delay the first load and the epilogue. */
template <class C>
struct ClusterTiles {
    typedef typename C::Shape Shape;
    const Gemm& p;
    const Schedule& s;
    int tile, first, count; /* panels first ... first + count */
    u32 rank;
    TilePart part;
    u32 product;
    int row, column; /* of C, the first of the tile of this block */

    __device__ ClusterTiles(const Gemm& p, const Schedule& s) : p(p), s(s) {
        rank = Shape::M > 1 ? cluster_rank() : 0;
        tile = blockIdx.x / Shape::M, first = 0, count = (int)s.panels;
        if constexpr (Shape::K > 1) {
            part.count = gridDim.x / (u32)s.tiles, part.index = tile % part.count, tile /= part.count;
            u32 share = (u32)s.panels / part.count, longer = (u32)s.panels % part.count;
            first = part.index * share + min(part.index, longer), count = share + (part.index < longer);
        }
        locate();
    }
    __device__ bool left() const { return tile < (int)s.tiles; }
    __device__ void next() {
        tile = Shape::K > 1 ? (int)s.tiles : tile + gridDim.x / Shape::M;
        if (left()) locate();
    }
    __device__ void locate() {
        TileCoordinates t = tile_coordinates<BLOCK_M * Shape::M, C::BN>(p, s, tile);
        product = t.product, row = (t.row * Shape::M + rank) * BLOCK_M, column = t.column * C::BN;
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
__device__ __forceinline__ void produce(ClusterTiles<C> tiles, const TensorMap& map_a, const TensorMap& map_b,
                                        typename C::Pipeline& pipeline) {
    for (; tiles.left(); tiles.next()) {
        int product_a = tiles.p.a_batch ? tiles.product : 0, product_b = tiles.p.b_batch ? tiles.product : 0;
        int column = tiles.column + tiles.rank * (C::BN / C::Shape::M);
        PanelSource source = {map_a, map_b, product_a, product_b, tiles.row, column, tiles.rank};
#pragma unroll 1
        for (int n = tiles.first; n < tiles.first + tiles.count; ++n) {
            pipeline.producer_acquire();
            C::load_panel(source, n, pipeline);
            pipeline.advance();
        }
    }
}

/* Epilogue of a consumer warpgroup whose tile is whole. */
template <class C, class T, int BOXES>
__device__ __forceinline__ void store_tile(const ClusterTiles<C>& tiles, const TensorMap* map_c, u32 boxes, u32 group,
                                           const typename C::Acc (&acc)[C::BN / 2]) {
    const Gemm& p = tiles.p;
    int row = tiles.row + group * 64;
    if (!map_c)
        store_warpgroup_tile<T, C::BN>(p, tiles.product, row, tiles.column, acc);
    else if (p.c_vector == C_BY_TMA)
        store_warpgroup_tile_tma<T, C::BN, BOXES>(p, *map_c, boxes, tiles.product, row, tiles.column, acc);
    else
        store_warpgroup_tile_rows<T, C::BN>(p, boxes, tiles.product, row, tiles.column, acc);
}

template <class C, class T, int BOXES = 2>
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
    }
    typename C::Pipeline pipeline(memory, barriers);
    if (Shape::K > 1 && threadIdx.x == 0) Split::init(received);
    ClusterTiles<C> tiles(p, s);
    pipeline.open();
    u32 group = threadIdx.x / WARPGROUP;
    if (group == CONSUMER_GROUPS) {
        reallocate_registers<true>();
        if (threadIdx.x == CONSUMERS) produce<C>(tiles, map_a, map_b, pipeline);
        __syncwarp();
        if constexpr (Shape::K > 1) cluster_arrive(), cluster_wait(), cluster_arrive(), cluster_wait();
    } else {
        reallocate_registers<false>();
        if constexpr (Shape::K > 1) cluster_arrive();
        u32 boxes = pipeline.end() + group * BOXES * STORE_BYTES;
        C::consume(tiles, group, pipeline, [&](const ClusterTiles<C>& tiles, const typename C::Acc(&acc)[C::BN / 2]) {
            if constexpr (Shape::K > 1)
                Split::add(p, s, tiles.tile, tiles.product, tiles.row, tiles.column, tiles.part, pipeline.panels,
                           pipeline.end(), received, acc);
            else
                store_tile<C, T, BOXES>(tiles, map_c, boxes, group, acc);
        });
        if (Shape::K == 1 && threadIdx.x % WARPGROUP == 0) tma_store_wait<0>();
    }
    pipeline.close();
}
