/* schedule.cuh: which tiles, and which part of k of them, a block of a persistent grid works on (stream-K).
 *
 * Tiles that do not fill the last round of the grid would leave most of the device idle. So the first `cut` tiles are
 * cut along k: their panels, as one sequence, are dealt to the blocks in equal shares. The other tiles are dealt whole.
 * A share begins and ends within a tile, so a block leaves two partial tiles at most, in places of its own in `work`;
 * sum_parts() adds the parts of a tile in the order of k. The same shape on the same device gives the same bits.
 */
struct Schedule {
    u32* work;  /* 2 * grid partial tiles */
    i64 tiles;  /* of the whole batch */
    i64 panels; /* panels along k of a tile */
    i64 cut;    /* tiles cut along k: the first ones */
    i64 blocks; /* the grid of the product */
    i64 group;  /* rows of tiles that are walked together, so that their panels of B are found in the L2 */

    float one, zero; /* 1, where the compiler does not see it (producers.cuh) */

    /* The share of a block in the panels of all tiles that are cut, and whose a panel is. */
    __device__ int begin_of(int block) const { return (int)(cut * panels * block / blocks); }
    __device__ int block_of(int panel) const {
        int block = (int)(panel * blocks / (cut * panels));
        while (begin_of(block + 1) <= panel) ++block;
        return block;
    }
    /* Which place in `work`: a block has one for the tile it begins, and ends within, and one for the tile it begins
     * within. */
    __device__ i64 part(int block, bool begins) const { return 2 * block + begins; }
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
