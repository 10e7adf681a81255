/* split_tile.cuh: the sum of the partial tiles of a tile that is split along k, in the launch that computes them.
 *
 * The blocks of a cluster exchange slices, 1 / K of the rows of a tile each, by bulk copies between their shared
 * memories. A tile may be split among several clusters: they leave partial slices in the workspace, and the block that
 * arrives last at the counter of a slice adds them. The order is that of k: the same shape on the same device gives the
 * same bits.
 *
 * The tile is one of C, or of its transpose (skinny_gemm.cuh), which is transposed while it is written to shared
 * memory. What blocks receive has shared memory of its own or, with IN_PANELS, that of the panels, and then no block
 * sends before all have multiplied theirs.
 */
#include "store_row.cuh"
#include "tma_pipeline.cuh"
#include "wgmma.cuh"

/* Part `index` of `count` of a tile. */
struct TilePart {
    u32 index = 0, count = 1;
};

template <int K, int BN, class T, bool TRANSPOSED = false, bool IN_PANELS = false>
struct SplitTile {
    typedef typename T::Partial Partial;
    static constexpr int ROWS = TRANSPOSED ? BN : BLOCK_M, COLUMNS = TRANSPOSED ? BLOCK_M : BN; /* of C */
    static constexpr int ROW = COLUMNS / 4, SLICE = ROWS * ROW / K; /* vectors of 4 elements */
    static constexpr u32 BYTES = SLICE * 16;
    static_assert(ROWS % K == 0, "");

    /* One thread, before the blocks of the cluster meet. */
    __device__ static void init(u32 received) {
        mbarrier_init(received, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect_tx(received, (K - 1) * BYTES);
    }

    /* Shared address of 4 (2) adjacent elements of a partial tile, or of its rows from `first` on: groups of 8 are
     * permuted by the row, so that the accumulators of a half warp (warp) are on different banks. */
    __device__ static u32 at(u32 rows, int row, int column, int first = 0) {
        int permuted = TRANSPOSED ? row / 2 % 4 : row % 8;
        return rows + ((row - first) * COLUMNS + (column ^ permuted * 8 % COLUMNS)) * 4;
    }

    __device__ static void add_to(Partial (&sum)[4], const uint4& x) {
#pragma unroll
        for (int w = 0; w < 4; ++w) sum[w] = T::add(sum[w], ((const Partial*)&x)[w]);
    }

    /* Epilogue of the consumers of a block. `panels` have been loaded and are overwritten, `buffer` is free. */
    __device__ __forceinline__ static void add(const Gemm& p, const Schedule& s, int tile, TilePart part, u32 panels,
                                               u32 buffer, u32 received, const Partial (&acc)[BN / 2]) {
        __shared__ u32 arrived;
        u32 rank = part.index % K, clusters = part.count / K;
        write(panels, acc);
        exchange(panels, buffer, received, rank);
        TileCoordinates t = tile_coordinates<ROWS, COLUMNS>(p, s, tile);
        u32 slice = tile * K + rank;
        uint4* partials = (uint4*)s.workspace + (i64)slice * clusters * SLICE;
#pragma unroll
        for (int v = threadIdx.x; v < SLICE; v += CONSUMERS) {
            Partial sum[4] = {};
            add_slices(sum, panels, buffer, rank, v);
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

    /* The same where a tile is split within its cluster only, or not at all. Where all columns of the tile exist they
     * are stored without a look at the end of C. */
    __device__ __forceinline__ static void add_in_panels(const Gemm& p, const TileCoordinates& t, u32 rank, u32 panels,
                                                         u32 buffer, u32 received, const Partial (&acc)[BN / 2]) {
        typedef typename T::Out Out;
        constexpr int EACH = (SLICE + CONSUMERS - 1) / CONSUMERS; /* vectors of a thread */
        constexpr int STEP = CONSUMERS / ROW;                     /* rows between them */
        write(panels, acc);
        if constexpr (K > 1) exchange(panels, buffer, received, rank);
        else named_barrier<CONSUMERS>(CONSUMER_BARRIER);
        Partial sums[EACH][4] = {};
#pragma unroll
        for (int x = 0; x < EACH; ++x)
            if (SLICE % CONSUMERS == 0 || threadIdx.x < SLICE)
                add_slices(sums[x], panels, buffer, rank, threadIdx.x + x * CONSUMERS);
        int slice_row = threadIdx.x / ROW;
        i64 i = (i64)t.row * ROWS + rank * (ROWS / K) + slice_row, j = (i64)t.column * COLUMNS + threadIdx.x % ROW * 4;
        if (p.c_vector && !p.c0 && ((i64)t.column + 1) * COLUMNS <= p.n) {
            Out* c = (Out*)p.c + i * p.ldc + j;
#pragma unroll
            for (int x = 0; x < EACH; ++x, i += STEP, c += STEP * p.ldc)
                if (slice_row + x * STEP < ROWS / K && i < p.m) store_whole_row4<T>(p.alpha, c, sums[x]);
        } else {
#pragma unroll
            for (int x = 0; x < EACH; ++x, i += STEP)
                if (slice_row + x * STEP < ROWS / K) store_row4<T>(p, t.product, i, j, sums[x]);
        }
        if constexpr (K > 1) {
            __syncwarp();
            cluster_wait();
        }
    }

    /* Vector v of the slice of this block, from all blocks of the cluster, in the order of k. */
    __device__ __forceinline__ static void add_slices(Partial (&sum)[4], u32 panels, u32 buffer, u32 rank, int v) {
        int first = rank * (ROWS / K), row = first + v / ROW, column = v % ROW * 4;
#pragma unroll
        for (u32 k = 0; k < K; ++k) {
            u32 own = panels + rank * BYTES, other = buffer + (k - (k > rank)) * BYTES;
            add_to(sum, shared_load4(at(k == rank ? own : other, row, column, first)));
        }
    }

    /* The accumulators of this thread to the partial tile of the block. */
    __device__ __forceinline__ static void write(u32 tile, const Partial (&acc)[BN / 2]) {
        int lane = threadIdx.x % 32, i = threadIdx.x / 32 * 16 + lane / 4, j = lane % 4 * 2;
        named_barrier<CONSUMERS>(CONSUMER_BARRIER); /* both warpgroups have multiplied their panels */
#pragma unroll
        for (int x = 0; x < BN / 4; ++x) {
            if constexpr (TRANSPOSED) {
                shared_store(at(tile, x / 2 * 8 + j, i + x % 2 * 8), acc[2 * x]);
                shared_store(at(tile, x / 2 * 8 + j + 1, i + x % 2 * 8), acc[2 * x + 1]);
            } else {
                shared_store_pair(at(tile, i + x % 2 * 8, x / 2 * 8 + j), acc[2 * x], acc[2 * x + 1]);
            }
        }
    }

    /* Sends slices of this partial tile to the blocks that add them, and waits for those of this block's slice. */
    __device__ __forceinline__ static void exchange(u32 panels, u32 buffer, u32 received, u32 rank) {
        fence_proxy_async();
        if constexpr (IN_PANELS) cluster_arrive();
        cluster_wait(); /* the others have initialised their mbarriers, or multiplied their panels */
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
        store_row4<T>(p, t.product, (i64)t.row * ROWS + e / ROW, (i64)t.column * COLUMNS + e % ROW * 4, sum);
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
