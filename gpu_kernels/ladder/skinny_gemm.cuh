/* skinny_gemm.cuh: a C with a short side: nearly all bytes are those of the operand of the long side, and each of them
 * is read once.
 *
 * That operand is the A of wgmma, 128 rows of a panel, and the short side of the tile, BN, its N. Where C has few rows
 * (SWAPPED) the block computes a tile of C^T = B^T A^T, and transposes it on its way to shared memory
 * (split_tile.cuh). The blocks of a cluster split a tile along k.
 *
 * The launch after this one (dependent_launch.cuh) starts on multiprocessors that are free, or have room for two
 * blocks, and has L2 load its first panels while this one adds and stores its tiles. It need not wait for what this one
 * writes: L2 holds what others write to it, too.
 *
 * Tried at 64 x 4096 x 4096 (benchmarks/results/gemm_skinny_h200.json; 32 tiles, each split among 2 blocks here, 12.0
 * us): among 4, 17.6 to 19.4, as the device runs 30 clusters of 4 at a time, or 16.7 with two blocks a multiprocessor;
 * two clusters of 2, with partial tiles in memory, 15.6; without dependent launch 16.2; dependents that start with this
 * launch, 17.5; no prefetch, 12.4. With 5120 and more columns 0.8 to 1.0 times cuBLAS.
 */
#include "wgmma_panels.cuh"

constexpr int SKINNY_THREADS = CONSUMERS + 32; /* one producer warp; no registers are reallocated */

/* The producer's role: one thread. `large` and `small` are the maps of B and A where operands are swapped, else of A
 * and B. */
template <class C, bool SWAPPED>
__device__ __forceinline__ void produce_skinny(const TensorMap& large, const TensorMap& small, const TileCoordinates& t,
                                               const WorkTile& work, typename C::Pipeline& pipeline) {
    int row = (SWAPPED ? t.column : t.row) * BLOCK_M, column = (SWAPPED ? t.row : t.column) * C::BN;
    PanelSource source = {large, small, 0, 0, row, column, 0};
    int end = work.first + work.count, first_panels = min(end, work.first + C::Pipeline::STAGES);
#pragma unroll 1
    for (int n = work.first; n < first_panels; ++n) C::prefetch_a(source, n);
    grid_dependency_wait();
#pragma unroll 1
    for (int n = work.first; n < end; ++n) {
        pipeline.producer_acquire();
        C::load_panel(source, n, pipeline);
        pipeline.advance();
    }
    launch_dependents();
}

template <class C, class T, bool SWAPPED>
__device__ __forceinline__ void skinny_gemm(const Gemm& p, const Schedule& s, const TensorMap& large,
                                            const TensorMap& small) {
    typedef typename C::Shape Shape;
    typedef SplitTile<Shape::K, C::BN, T, SWAPPED, true> Split;
    constexpr u32 TILE = C::BN * BLOCK_M * 4;
    static_assert(TILE + (Shape::K - 1) * Split::BYTES <= C::Pipeline::STAGES * (C::A_BYTES + C::B_BYTES),
                  "the panels' memory holds a tile and what is received");
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[2 * C::Pipeline::STAGES + (Shape::K > 1)];
    u32 received = shared_address(barriers + 2 * C::Pipeline::STAGES);
    if (threadIdx.x == CONSUMERS) {
        prefetch_tensor_map(large);
        prefetch_tensor_map(small);
        if constexpr (Shape::K > 1) Split::init(received);
    }
    typename C::Pipeline pipeline(memory, barriers);
    ClusterScheduler<Shape> scheduler(s);
    WorkTile work;
    scheduler.next(s, work); /* the only one */
    TileCoordinates t = tile_coordinates<Split::ROWS, Split::COLUMNS>(p, s, work.tile);
    u32 group = threadIdx.x / WARPGROUP;
    if (group == CONSUMER_GROUPS) {
        if (threadIdx.x == CONSUMERS) produce_skinny<C, SWAPPED>(large, small, t, work, pipeline);
        __syncwarp();
        if constexpr (Shape::K > 1) cluster_arrive(), cluster_wait(), cluster_arrive(), cluster_wait();
    } else {
        grid_dependency_wait();
        typename C::Acc acc[C::BN / 2];
        C::multiply(work.count, group, pipeline, acc);
        Split::add_in_panels(p, t, scheduler.part.index % Shape::K, pipeline.panels, pipeline.panels + TILE, received,
                             acc);
    }
}
