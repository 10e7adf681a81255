/* schedule.cuh: which tiles, and which part of k of them, a block of a persistent grid works on (stream-K).
 *
 * Tiles that do not fill the last round of the grid would leave most of the device idle. So the first `cut` tiles are
 * cut along k: their panels, as one sequence, are dealt to the blocks in equal shares. The other tiles are dealt whole.
 * A share begins and ends within a tile, so a block leaves two partial tiles at most, in places of their own in `work`;
 * fixup() adds them. The same shape on the same device gives the same bits.
 */
struct Schedule {
    u32* work;    /* cut + grid partial tiles */
    u32* barrier_counter; /* where blocks meet: a word of the stream's own */
    i64 tiles;    /* of the whole batch */
    i64 panels;   /* panels along k of a tile */
    i64 cut;      /* tiles cut along k: the first ones */
    i64 share;    /* panels of a block in the tiles that are cut */
    i64 longer;   /* blocks, the first ones, that have one more */
    i64 group;    /* rows of tiles that are walked together, so that their panels of B are found in the L2 */

    float one, zero; /* 1 as alpha holds it (gemm.cuh), where the compiler does not see it (producers.cuh) */

    /* The share of a block in the panels of all tiles that are cut, and whose a panel is. */
    __device__ int begin_of(u32 block) const { return (int)(block * (u32)share + min(block, (u32)longer)); }
    __device__ int block_of(u32 panel) const {
        u32 in_longer = (u32)longer * ((u32)share + 1);
        return (int)(panel < in_longer ? panel / ((u32)share + 1) : (u32)longer + (panel - in_longer) / (u32)share);
    }
    /* The blocks that have parts of a tile, and which place in `work` a part has: those of a tile lie in the order of
     * k. */
    __device__ void parts_of(int tile, int& first, int& count) const {
        int begin = tile * (int)panels;
        first = block_of(begin), count = block_of(begin + (int)panels - 1) + 1 - first;
    }
    __device__ i64 part(int block, int tile) const { return block + tile; }

    /* All blocks have come so far: called by one thread of each. The first block adds so much that the top bit of the
     * word turns once all have, whatever it was before, so nobody has to reset it. All blocks of the grid run at the
     * same time (a cooperative launch). */
    __device__ void grid_barrier() const {
        __threadfence();
        u32 before = atomicAdd(barrier_counter, blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1);
        while (!((*(volatile u32*)barrier_counter ^ before) & 0x80000000u)) {}
        __threadfence();
    }
};

/* Panels first ... first + count of a tile. Tiles, and panels of all that are cut, are fewer than 2^31: the host's
 * part. */
struct Span {
    int tile, first, count;
};

struct Share {
    int at, end, whole;

    __device__ Share(const Schedule& s) {
        at = s.begin_of(blockIdx.x), end = s.begin_of(blockIdx.x + 1);
        whole = (int)s.cut + blockIdx.x;
    }

    __device__ bool next(const Schedule& s, Span& span) {
        int panels = (int)s.panels;
        if (at < end) {
            int tile = at / panels, first = at - tile * panels;
            span = {tile, first, min(panels - first, end - at)};
            at += span.count;
            return true;
        }
        span = {whole, 0, panels};
        whole += gridDim.x;
        return span.tile < (int)s.tiles;
    }
};

/* Where a tile lies: which product, and its first row and column in tiles. */
struct Place {
    u32 product, row, column;
};

template <int BM, int BN>
__device__ inline Place place_of(const Gemm& p, const Schedule& s, u32 tile) {
    u32 down = (u32)((p.m + BM - 1) / BM), across = (u32)((p.n + BN - 1) / BN), group = (u32)s.group;
    u32 product = tile / (down * across), in_product = tile - product * (down * across);
    u32 g = in_product / (group * across), in_group = in_product - g * group * across;
    u32 height = min(group, down - g * group), column = in_group / height;
    return {product, g * group + in_group - column * height, column};
}
