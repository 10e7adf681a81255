/* wgmma_gemm.cuh: blocks with warp specialisation, one producer thread that starts TMA loads and two consumer
 * warpgroups that multiply panels with wgmma (tma_pipeline.cuh).
 *
 * The blocks of a cluster compute adjacent tiles: those in a row of tiles load a part of A each, for all of them
 * (multicast), those in a column a part of B. With `map_c` tiles are stored by TMA, too. What a panel holds, and how it
 * is multiplied, is a class C:
 *
 *     BN, Shape, Pipeline, Acc   columns of a tile, a Cluster, a TmaPipeline, float or int accumulators
 *     load_panel(...)            starts the loads of a panel into the current stage
 *     consume(...)               loop of a consumer warpgroup over tiles: 64 x BN accumulators, then store(work, acc)
 *
 * T is a type of result.cuh: how accumulators become elements of C.
 *
 * Where Shape::K > 1 a tile is split along k among the blocks of a cluster, or of several clusters. The blocks of a
 * cluster add their partial tiles through distributed shared memory, each a slice of the tile. Partial slices of several
 * clusters go to the workspace, where the block that arrives last adds them. The order is that of k: the same shape on
 * the same device gives the same bits.
 */
#include "tma_pipeline.cuh"
#include "wgmma.cuh"

/* What this block computes, one WorkTile after the other: whole tiles, or a part of one tile. A tile here is that of all
 * blocks of a cluster. */
template <class Shape>
struct ClusterScheduler {
    int tile, part = 0, parts = 1;

    __device__ ClusterScheduler(const Schedule& s) {
        tile = blockIdx.x / Shape::TILES;
        if constexpr (Shape::K > 1) {
            parts = gridDim.x / Shape::TILES / (u32)s.tiles;
            part = (u32)tile % parts, tile = (u32)tile / parts;
        }
    }

    __device__ bool next(const Schedule& s, WorkTile& work) {
        work = {tile, 0, (int)s.panels};
        if constexpr (Shape::K > 1) {
            int share = (u32)s.panels / parts, longer = (u32)s.panels % parts;
            work.first = part * share + min(part, longer), work.count = share + (part < longer);
            tile = (int)s.tiles;
        } else {
            tile += gridDim.x / Shape::TILES;
        }
        return work.tile < (int)s.tiles;
    }
};

/* Where the boxes of a panel come from: the product, the first row of A and the first column of B. */
template <class Shape>
struct PanelSource {
    const TensorMap &map_a, &map_b;
    int product_a, product_b, row, column;
    ClusterPlace<Shape> place;
    u16 blocks_a, blocks_b; /* that a box is loaded to */
};

/* The tile of this block in that of its cluster: its first row and column. */
template <class C>
__device__ __forceinline__ TileCoordinates block_tile(const Gemm& p, const Schedule& s,
                                                      const ClusterPlace<typename C::Shape>& place, u32 tile) {
    typedef typename C::Shape Shape;
    TileCoordinates t = tile_coordinates<BLOCK_M * Shape::M, C::BN * Shape::N>(p, s, tile);
    return {t.product, (t.row * Shape::M + place.m) * BLOCK_M, (t.column * Shape::N + place.n) * C::BN};
}

/* The producer's role: one thread. */
template <class C>
__device__ __forceinline__ void produce(const Gemm& p, const Schedule& s, const TensorMap& map_a,
                                        const TensorMap& map_b, ClusterScheduler<typename C::Shape> scheduler,
                                        typename C::Pipeline& pipeline) {
    ClusterPlace<typename C::Shape> place = pipeline.place;
    WorkTile work;
    while (scheduler.next(s, work)) {
        TileCoordinates t = block_tile<C>(p, s, place, work.tile);
        int product_a = p.a_batch ? t.product : 0, product_b = p.b_batch ? t.product : 0;
        PanelSource<typename C::Shape> source = {map_a,         map_b, product_a,   product_b,     (int)t.row,
                                                 (int)t.column, place, place.row(), place.column()};
#pragma unroll 1
        for (int n = work.first; n < work.first + work.count; ++n) {
            pipeline.producer_acquire();
            C::load_panel(source, n, pipeline);
            pipeline.advance();
        }
    }
}

/* Adds `count` vectors of four partial results, the next one `step` vectors further. */
template <class T>
__device__ __forceinline__ void add_partials(const uint4* from, i64 step, int count, typename T::Partial (&acc)[4]) {
    constexpr int LOADS = 8;
#pragma unroll 1
    for (int done = 0; done < count; done += LOADS) {
        uint4 v[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i) v[i] = done + i < count ? __ldcg(from + (done + i) * step) : uint4{};
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
#pragma unroll
            for (int w = 0; w < 4; ++w) acc[w] = T::add(acc[w], ((const typename T::Partial*)&v[i])[w]);
    }
}

/* Epilogue of a block whose tile is split along k. */
template <class C, class T>
__device__ __forceinline__ void reduce_tile(const Gemm& p, const Schedule& s,
                                            const ClusterPlace<typename C::Shape>& place, u32 memory, u32 group,
                                            const WorkTile& work, int part, int parts,
                                            const typename C::Acc (&acc)[C::BN / 2]) {
    typedef typename C::Shape Shape;
    typedef typename T::Out Out;
    constexpr int PITCH = C::BN + 8, ROW = C::BN / 4; /* words; vectors of a row */
    constexpr int SLICE = BLOCK_M * ROW / Shape::K, EACH = (SLICE + CONSUMERS - 1) / CONSUMERS;
    static_assert(BLOCK_M * ROW % Shape::K == 0, "");
    __shared__ u32 arrived;
    int thread = threadIdx.x % WARPGROUP, lane = thread % 32;
    u32 to = memory + ((group * 64 + thread / 32 * 16 + lane / 4) * PITCH + lane % 4 * 2) * 4;
    named_barrier<CONSUMERS>(CONSUMER_BARRIER); /* the panels, which lay there, have been multiplied */
#pragma unroll
    for (int x = 0; x < C::BN / 4; ++x)
        shared_store_pair(to + (x % 2 * 8 * PITCH + x / 2 * 8) * 4, acc[2 * x], acc[2 * x + 1]);
    cluster_sync();
    TileCoordinates t = block_tile<C>(p, s, place, work.tile);
    auto store = [&](int e, const typename T::Partial(&sum)[4]) {
        i64 i = t.row + e / ROW, j = t.column + e % ROW * 4;
        if (i >= p.m || j >= p.n) return;
        Out* c = (Out*)p.c + t.product * p.c_batch + i * p.ldc + j;
        const Out* c0 = p.c0 ? (const Out*)p.c0 + t.product * p.c0_batch + i * p.c0_rs + j * p.c0_cs : nullptr;
        store_row4<T>(p, c, c0, p.n - j, sum);
    };
    int clusters = parts / Shape::K;
    u32 tile = (u32)work.tile * Shape::TILES + place.rank(place.m, place.n, 0), slice = tile * Shape::K + place.k;
    uint4* partials = (uint4*)s.workspace + (i64)slice * clusters * SLICE;
#pragma unroll
    for (int x = 0; x < EACH; ++x) {
        int v = x * CONSUMERS + threadIdx.x, e = place.k * SLICE + v;
        if (SLICE % CONSUMERS != 0 && v >= SLICE) break;
        u32 at = memory + (e / ROW * PITCH + e % ROW * 4) * 4;
        uint4 parts_of_cluster[Shape::K];
#pragma unroll
        for (int k = 0; k < Shape::K; ++k)
            parts_of_cluster[k] = cluster_load4(cluster_address(at, place.rank(place.m, place.n, k)));
        typename T::Partial sum[4] = {};
#pragma unroll
        for (int k = 0; k < Shape::K; ++k)
#pragma unroll
            for (int w = 0; w < 4; ++w) sum[w] = T::add(sum[w], ((const typename T::Partial*)&parts_of_cluster[k])[w]);
        if (clusters == 1) store(e, sum);
        else __stcg(partials + part / Shape::K * SLICE + v, *(const uint4*)sum);
    }
    if (clusters == 1) return;
    __threadfence();
    named_barrier<CONSUMERS>(CONSUMER_BARRIER);
    if (threadIdx.x == 0) arrived = atomicInc(s.barrier_counter + slice, clusters - 1); /* 0 again after the last */
    named_barrier<CONSUMERS>(CONSUMER_BARRIER);
    if (arrived != clusters - 1) return;
    __threadfence();
#pragma unroll 1
    for (int v = threadIdx.x; v < SLICE; v += CONSUMERS) {
        typename T::Partial sum[4] = {};
        add_partials<T>(partials + v, SLICE, clusters, sum);
        store(place.k * SLICE + v, sum);
    }
}

/* Epilogue of a consumer warpgroup whose tile is whole. */
template <class C, class T>
__device__ __forceinline__ void store_tile(const Gemm& p, const Schedule& s, const TensorMap* map_c, u32 boxes,
                                           u32 group, const ClusterPlace<typename C::Shape>& place,
                                           const WorkTile& work, const typename C::Acc (&acc)[C::BN / 2]) {
    TileCoordinates t = block_tile<C>(p, s, place, work.tile);
    i64 row = (i64)t.row + group * 64, column = t.column;
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
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[2 * C::Pipeline::STAGES];
    if (threadIdx.x == CONSUMERS) {
        prefetch_tensor_map(map_a);
        prefetch_tensor_map(map_b);
    }
    typename C::Pipeline pipeline(memory, barriers);
    u32 group = threadIdx.x / WARPGROUP, boxes = pipeline.end() + group * STORE_BOXES * STORE_BYTES;
    ClusterScheduler<Shape> scheduler(s);
    if (group == CONSUMER_GROUPS) {
        reallocate_registers<true>();
        if (threadIdx.x == CONSUMERS) produce<C>(p, s, map_a, map_b, scheduler, pipeline);
        __syncwarp();
        if constexpr (Shape::K > 1) cluster_sync();
    } else {
        reallocate_registers<false>();
        C::consume(scheduler, s, group, pipeline, [&](const WorkTile& work, const typename C::Acc(&acc)[C::BN / 2]) {
            if constexpr (Shape::K > 1)
                reduce_tile<C, T>(p, s, pipeline.place, pipeline.panels, group, work, scheduler.part, scheduler.parts, acc);
            else
                store_tile<C, T>(p, s, map_c, boxes, group, pipeline.place, work, acc);
        });
        if (Shape::K == 1 && threadIdx.x % WARPGROUP == 0) tma_store_wait<0>();
    }
    pipeline.close();
}
