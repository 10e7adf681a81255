/* fixup.cuh: the fix-up of tiles that were split along k (tile_scheduler.cuh). T is a type of result.cuh.
 */
#include "store_row.cuh"
#include "tile_scheduler.cuh"

/* Fix-up: adds the partial tiles of every split tile and stores C. Where there are more threads than vectors of 4
 * elements, groups of lanes add partial tiles that are adjacent in k, then each other's results. */
template <class T, int BM, int BN, int LOADS>
__device__ __forceinline__ void fixup(const Gemm& p, const Schedule& s, int warp, int warps) {
    typedef typename T::Partial Partial;
    constexpr int VECTORS = BM * BN / 4;
    int vectors = (int)s.split_tiles * VECTORS, groups = 1;
    while (groups < 16 && 2 * groups * vectors <= 32 * warps) groups *= 2;
    int lane = threadIdx.x % 32, width = 32 / groups;
    for (int x = warp * width; x < vectors; x += warps * width) {
        int tile = x / VECTORS, e = (x % VECTORS + lane % width) * 4, first, count;
        s.partial_tiles(tile, first, count);
        if (count == 1) continue; /* one block computed the whole tile and stored it */
        int each = (count + groups - 1) / groups, skip = lane / width * each, left = min(each, count - skip);
        const u32* from = s.workspace + s.slot(first + skip, tile) * BM * BN + e;
        Partial acc[4] = {};
#pragma unroll 1
        for (int done = 0; done < each; done += LOADS) {
            uint4 v[LOADS];
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                v[i] = done + i < left ? __ldcg((const uint4*)(from + (i64)(done + i) * BM * BN)) : uint4{};
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
#pragma unroll
                for (int w = 0; w < 4; ++w) acc[w] = T::add(acc[w], ((const Partial*)&v[i])[w]);
        }
#pragma unroll
        for (int w = 0; w < 4; ++w)
            for (int far = width; far < 32; far *= 2) acc[w] = T::add(acc[w], __shfl_xor_sync(~0u, acc[w], far));
        TileCoordinates t = tile_coordinates<BM, BN>(p, s, tile);
        if (lane >= width) continue;
        store_row4<T>(p, t.product, (i64)t.row * BM + e / BN, (i64)t.column * BN + e % BN, acc);
    }
}

constexpr int FIXUP_WARPS = 8; /* of a block */

/* In a second launch, with a thread for each vector. */
template <class T, int BM, int BN>
__device__ __forceinline__ void fixup(const Gemm& p, const Schedule& s) {
    fixup<T, BM, BN, 8>(p, s, blockIdx.x * FIXUP_WARPS + threadIdx.x / 32, gridDim.x * FIXUP_WARPS);
}
