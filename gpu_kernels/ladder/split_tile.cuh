/* split_tile.cuh: the sum of the partial tiles of a tile that is split along k, in the launch that computes them.
 *
 * The blocks of a cluster exchange slices, 128 / K rows of a tile each, by bulk copies between their shared memories. A
 * tile may be split among several clusters: they leave partial slices in the workspace, and the block that arrives last
 * at the counter of a slice adds them. The order is that of k: the same shape on the same device gives the same bits.
 */
#include "store_row.cuh"
#include "tma_pipeline.cuh"
#include "wgmma.cuh"

/* Part `index` of `count` of a tile. */
struct TilePart {
    u32 index = 0, count = 1;
};

template <int K, int BN, class T>
struct SplitTile {
    typedef typename T::Partial Partial;
    static constexpr int ROW = BN / 4, SLICE = BLOCK_M * ROW / K; /* vectors of 4 elements */
    static constexpr u32 BYTES = SLICE * 16;
    static_assert(BLOCK_M % (8 * K) == 0, "slices have whole periods of the swizzle");

    /* One thread, before the blocks of the cluster meet. */
    __device__ static void init(u32 received) {
        mbarrier_init(received, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect_tx(received, (K - 1) * BYTES);
    }

    /* Shared address of 4 (2) adjacent elements of a partial tile: groups of 8 are permuted by the row, so that the
     * accumulators of a half warp are on different banks. */
    __device__ static u32 at(u32 tile, int row, int column) { return tile + (row * BN + (column ^ row % 8 * 8)) * 4; }

    __device__ static void add_to(Partial (&sum)[4], const uint4& x) {
#pragma unroll
        for (int w = 0; w < 4; ++w) sum[w] = T::add(sum[w], ((const Partial*)&x)[w]);
    }

    /* Epilogue of the consumers of a block. `panels` have been loaded and are overwritten, `buffer` is free. */
    __device__ __forceinline__ static void add(const Gemm& p, const Schedule& s, int tile, TilePart part, u32 panels,
                                               u32 buffer, u32 received, const Partial (&acc)[BN / 2]) {
        __shared__ u32 arrived;
        u32 rank = part.index % K, clusters = part.count / K;
        exchange(panels, buffer, received, rank, acc);
        TileCoordinates t = tile_coordinates<BLOCK_M, BN>(p, s, tile);
        u32 slice = tile * K + rank;
        uint4* partials = (uint4*)s.workspace + (i64)slice * clusters * SLICE;
#pragma unroll
        for (int v = threadIdx.x; v < SLICE; v += CONSUMERS) {
            Partial sum[4] = {};
            int row = v / ROW, column = v % ROW * 4;
#pragma unroll
            for (u32 k = 0; k < K; ++k) {
                u32 own = panels + rank * BYTES, other = buffer + (k - (k > rank)) * BYTES;
                add_to(sum, shared_load4(at(k == rank ? own : other, row, column)));
            }
            if (clusters == 1) store(p, t, rank * SLICE + v, sum);
            else __stcg(partials + part.index / K * SLICE + v, *(const uint4*)sum);
        }
        if (clusters > 1) {
            __threadfence();
            named_barrier<CONSUMERS>(CONSUMER_BARRIER);
            if (threadIdx.x == 0) arrived = atomicInc(s.barrier_counter + slice, clusters - 1); /* wraps around to 0 */
            named_barrier<CONSUMERS>(CONSUMER_BARRIER);
            if (arrived == clusters - 1) {
                __threadfence();
                add_clusters(p, t, partials, rank, clusters);
            }
        }
        __syncwarp();
        cluster_wait();
    }

    /* Sends slices of this partial tile to the blocks that add them, and waits for those of this block's slice. */
    __device__ __forceinline__ static void exchange(u32 panels, u32 buffer, u32 received, u32 rank,
                                                    const Partial (&acc)[BN / 2]) {
        int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
        named_barrier<CONSUMERS>(CONSUMER_BARRIER); /* both warpgroups have multiplied their panels */
#pragma unroll
        for (int x = 0; x < BN / 4; ++x)
            shared_store_pair(at(panels, row + x % 2 * 8, x / 2 * 8 + lane % 4 * 2), acc[2 * x], acc[2 * x + 1]);
        fence_proxy_async();
        cluster_wait(); /* the others have initialised their mbarriers */
        named_barrier<CONSUMERS>(CONSUMER_BARRIER);
        u32 to = threadIdx.x;
        if (to < K && to != rank)
            cluster_copy(buffer + (rank - (rank > to)) * BYTES, panels + to * BYTES, BYTES, received, to);
        __syncwarp();
        mbarrier_wait(received, 0);
        __syncwarp();
        cluster_arrive(); /* no block exits before its slices have been copied */
    }

    __device__ static void store(const Gemm& p, const TileCoordinates& t, int e, const Partial (&sum)[4]) {
        store_row4<T>(p, t.product, (i64)t.row * BLOCK_M + e / ROW, (i64)t.column * BN + e % ROW * 4, sum);
    }

    __device__ static void add_clusters(const Gemm& p, const TileCoordinates& t, const uint4* partials, u32 rank,
                                        int clusters) {
        constexpr int LOADS = 8;
#pragma unroll 1
        for (int v = threadIdx.x; v < SLICE; v += CONSUMERS) {
            Partial sum[4] = {};
#pragma unroll 1
            for (int done = 0; done < clusters; done += LOADS) {
                uint4 x[LOADS];
#pragma unroll
                for (int i = 0; i < LOADS; ++i)
                    x[i] = done + i < clusters ? __ldcg(partials + (done + i) * SLICE + v) : uint4{};
#pragma unroll
                for (int i = 0; i < LOADS; ++i) add_to(sum, x[i]);
            }
            store(p, t, rank * SLICE + v, sum);
        }
    }
};
