/* wgmma_pipeline.cuh: blocks that stay, in which one thread brings panels and two warpgroups multiply them.
 *
 * The roles meet at barriers, two a stage, as in producers.cuh: `full` counts the bytes of the panel, at `empty` the
 * warpgroups arrive when their products of it are done. The next panel's are asked for before those are waited for.
 * A cluster of blocks computes tiles one below the other: each brings its A, and its part of B to all of them, so that
 * a part of B leaves the L2 once a cluster. A stage is then free when both blocks are done with it.
 */
constexpr int WARPGROUP = 128, GROUPS = 2, BLOCK_M = 64 * GROUPS;

/* Of 504 registers for three threads, one of each warpgroup: the sums are 128. */
template <bool GIVES>
__device__ inline void warpgroup_registers() {
    if constexpr (GIVES) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}

template <Layout LA, Layout LB, int BN, int STAGES, int CLUSTER>
__device__ __forceinline__ void tensor_products(const Gemm& p, const Schedule& s, const TensorMap& map_a,
                                                const TensorMap& map_b) {
    constexpr int A_BYTES = BLOCK_M * TILE_K * 2, B_BYTES = BN * TILE_K * 2, STAGE = A_BYTES + B_BYTES;
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[2 * STAGES];
    u32 panels = shared_address(memory) + 1023 & ~1023, full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, GROUPS * CLUSTER);
        }
        barriers_are_ready();
    }
    u32 rank = 0;
    if constexpr (CLUSTER > 1) {
        rank = block_of_cluster();
        cluster_sync();
    } else {
        __syncthreads();
    }
    u32 group = threadIdx.x / WARPGROUP, stage = 0, phase = 0;
    int panels_of_tile = (int)s.panels, first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;

    if (group == GROUPS) {
        warpgroup_registers<true>();
        if (threadIdx.x == GROUPS * WARPGROUP) {
            for (int tile = first; tile < (int)s.tiles; tile += step) {
                Place t = place_of<BLOCK_M * CLUSTER, BN>(p, s, tile);
                int row = (t.row * CLUSTER + rank) * BLOCK_M, column = t.column * BN + rank * (BN / CLUSTER);
                int a_product = p.a_batch ? t.product : 0, b_product = p.b_batch ? t.product : 0;
#pragma unroll 1
                for (int n = 0; n < panels_of_tile; ++n) {
                    barrier_wait(empty + 8 * stage, phase ^ 1);
                    u32 there = full + 8 * stage, to = panels + stage * STAGE;
                    barrier_expect(there, STAGE);
                    load_tile<LA, BLOCK_M>(to, row, n * TILE_K, [&](u32 to, int x, int y) {
                        tma_load(to, map_a, there, x, y, a_product);
                    });
                    to += A_BYTES + rank * (B_BYTES / CLUSTER);
                    load_tile<LB, BN / CLUSTER>(to, column, n * TILE_K, [&](u32 to, int x, int y) {
                        if constexpr (CLUSTER > 1)
                            tma_load_for((1 << CLUSTER) - 1, to, map_b, there, x, y, b_product);
                        else
                            tma_load(to, map_b, there, x, y, b_product);
                    });
                    if (++stage == STAGES) stage = 0, phase ^= 1;
                }
            }
        }
    } else {
        warpgroup_registers<false>();
        auto release = [&](u32 stage) {
            u32 thread = threadIdx.x % WARPGROUP;
            if constexpr (CLUSTER > 1) {
                if (thread < CLUSTER) barrier_arrive_at(empty + 8 * stage, thread);
            } else {
                if (thread == 0) barrier_arrive(empty + 8 * stage);
            }
        };
        for (int tile = first; tile < (int)s.tiles; tile += step) {
            float sum[BN / 2];
            u32 before = 0;
#pragma unroll 1
            for (int n = 0; n < panels_of_tile; ++n) {
                barrier_wait(full + 8 * stage, phase);
                u32 at = panels + stage * STAGE;
                u64 a = tile_descriptor(at + group * BOX_BYTES), b = tile_descriptor(at + A_BYTES);
                wgmma_begin();
#pragma unroll
                for (int k = 0; k < TILE_K / 16; ++k)
                    multiply_bf16<LA, LB>(sum, a + k * step_of_16(LA), b + k * step_of_16(LB), n || k);
                wgmma_end();
                wgmma_wait<1>();
                if (n) release(before);
                before = stage;
                if (++stage == STAGES) stage = 0, phase ^= 1;
            }
            wgmma_wait<0>();
            release(before);
            Place t = place_of<BLOCK_M * CLUSTER, BN>(p, s, tile);
            store_tile<BN>(p, t.product, (i64)(t.row * CLUSTER + rank) * BLOCK_M + group * 64, (i64)t.column * BN, sum);
        }
    }
    if constexpr (CLUSTER > 1) cluster_sync(); /* nobody leaves while others arrive at its barriers */
}
