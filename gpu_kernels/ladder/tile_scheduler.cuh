/* tile_scheduler.cuh: the tiles, and the part of their k loop, that a persistent block computes (stream-K).
 *
 * Tiles that do not fill the last wave of the grid would leave most of the device idle. So the first `split_tiles`
 * tiles are split along k: their panels, as one sequence, are divided among the blocks in equal shares. The other tiles
 * are distributed whole. A share begins and ends within a tile, so a block writes at most two partial tiles, to slots
 * of its own in the workspace; fixup() adds them. The same shape on the same device gives the same bits.
 */
#include "gemm.cuh"

struct Schedule {
    u32* workspace;       /* split_tiles + grid partial tiles */
    u32* barrier_counter; /* of the grid-wide barrier: one word, used by launches of one stream only */
    i64 tiles;            /* of the whole batch */
    i64 panels;           /* along k, of a tile */
    i64 split_tiles;      /* tiles split along k: the first ones */
    i64 share;            /* panels of a block in the split tiles */
    i64 longer;           /* blocks, the first ones, whose share has one panel more */
    i64 group;            /* rows of tiles taken together (grouped raster order): the L2 holds their panels of B */

    float one, zero; /* 1 as alpha holds it (gemm.cuh), opaque to the compiler (warp_specialized.cuh) */

    /* The first panel of a block's share, and the block whose share a panel is in. */
    __device__ int first_panel(u32 block) const { return (int)(block * (u32)share + min(block, (u32)longer)); }
    __device__ int block_of(u32 panel) const {
        u32 in_longer = (u32)longer * ((u32)share + 1);
        return (int)(panel < in_longer ? panel / ((u32)share + 1) : (u32)longer + (panel - in_longer) / (u32)share);
    }
    /* The blocks that compute partial tiles of a tile, and the slot of a partial tile in the workspace: those of one
     * tile are adjacent, in the order of k. */
    __device__ void partial_tiles(int tile, int& first, int& count) const {
        int begin = tile * (int)panels;
        first = block_of(begin), count = block_of(begin + (int)panels - 1) + 1 - first;
    }
    __device__ i64 slot(int block, int tile) const { return block + tile; }

    /* Grid-wide barrier, called by one thread of each block. Block 0 adds so much that the top bit of the counter flips
     * once all blocks have arrived, whatever its value was before, so it is never reset. All blocks of the grid must
     * run at the same time (a cooperative launch). */
    __device__ void grid_barrier() const {
        __threadfence();
        u32 before = atomicAdd(barrier_counter, blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1);
        while (!((*(volatile u32*)barrier_counter ^ before) & 0x80000000u)) {}
        __threadfence();
    }
};

/* Panels first ... first + count of a tile. The host checks that tiles, and panels of all split tiles, are fewer than
 * 2^31. */
struct WorkTile {
    int tile, first, count;
};

/* What this block computes, one WorkTile after the other: its share of the split tiles, then whole tiles. */
struct TileScheduler {
    int at, end, whole;

    __device__ TileScheduler(const Schedule& s) {
        at = s.first_panel(blockIdx.x), end = s.first_panel(blockIdx.x + 1);
        whole = (int)s.split_tiles + blockIdx.x;
    }

    __device__ bool next(const Schedule& s, WorkTile& work) {
        int panels = (int)s.panels;
        if (at < end) {
            int tile = at / panels, first = at - tile * panels;
            work = {tile, first, min(panels - first, end - at)};
            at += work.count;
            return true;
        }
        work = {whole, 0, panels};
        whole += gridDim.x;
        return work.tile < (int)s.tiles;
    }
};

/* Tiles in grouped raster order: s.group rows of tiles together, column by column. */
template <int BM, int BN>
__device__ inline TileCoordinates tile_coordinates(const Gemm& p, const Schedule& s, u32 tile) {
    u32 rows = (u32)((p.m + BM - 1) / BM), columns = (u32)((p.n + BN - 1) / BN), group = (u32)s.group;
    u32 product = tile < rows * columns ? 0 : tile / (rows * columns), in_product = tile - product * (rows * columns);
    u32 g = rows <= group ? 0 : in_product / (group * columns), in_group = in_product - g * group * columns;
    u32 height = min(group, rows - g * group), column = in_group / height;
    return {product, g * group + in_group - column * height, column};
}
