/* wgmma_pipeline.cuh: blocks that stay, in which one thread brings panels and two warpgroups multiply them (ring.cuh).
 *
 * The products of a panel are asked for before those of the panel before it are waited for, so that the tensor cores
 * have no pause. A cluster of blocks computes tiles one below the other: each brings its A, and its part of B to all of
 * them. With `map_c` the accelerator stores tiles, too.
 */
template <Layout LA, Layout LB, int BN, int STAGES, int CLUSTER>
__device__ __forceinline__ void tensor_products(const Gemm& p, const Schedule& s, const TensorMap& map_a,
                                                const TensorMap& map_b, const TensorMap* map_c = nullptr) {
    constexpr int A_BYTES = BLOCK_M * TILE_K * 2, B_BYTES = BN * TILE_K * 2;
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[2 * STAGES];
    Ring<STAGES, A_BYTES + B_BYTES, CLUSTER> ring(memory, barriers);
    u32 boxes = ring.panels + STAGES * (A_BYTES + B_BYTES) + threadIdx.x / WARPGROUP * STORE_BOXES * STORE_BYTES;
    u32 group = threadIdx.x / WARPGROUP, rank = CLUSTER > 1 ? block_of_cluster() : 0;
    int count = (int)s.panels, first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;

    if (group == GROUPS) {
        warpgroup_registers<true>();
        if (threadIdx.x == GROUPS * WARPGROUP) {
            for (int tile = first; tile < (int)s.tiles; tile += step) {
                Place t = place_of<BLOCK_M * CLUSTER, BN>(p, s, tile);
                int row = (t.row * CLUSTER + rank) * BLOCK_M, column = t.column * BN + rank * (BN / CLUSTER);
                int product_a = p.a_batch ? t.product : 0, product_b = p.b_batch ? t.product : 0;
#pragma unroll 1
                for (int n = 0; n < count; ++n) {
                    ring.wait_for_place();
                    load_tile<LA, BLOCK_M>(ring.panel(), row, n * TILE_K, [&](u32 to, int x, int y) {
                        tma_load(to, map_a, ring.arrival(), x, y, product_a);
                    });
                    u32 b = ring.panel() + A_BYTES + rank * (B_BYTES / CLUSTER);
                    load_tile<LB, BN / CLUSTER>(b, column, n * TILE_K, [&](u32 to, int x, int y) {
                        bring<CLUSTER>(to, map_b, ring.arrival(), x, y, product_b);
                    });
                    ring.next();
                }
            }
        }
    } else {
        warpgroup_registers<false>();
        for (int tile = first; tile < (int)s.tiles; tile += step) {
            float sum[BN / 2];
            u32 before = 0;
#pragma unroll 1
            for (int n = 0; n < count; ++n) {
                ring.wait_for_panel();
                u64 a = tile_descriptor(ring.panel() + group * BOX_BYTES);
                u64 b = tile_descriptor(ring.panel() + A_BYTES);
                wgmma_begin();
#pragma unroll
                for (int k = 0; k < TILE_K / 16; ++k)
                    multiply_bf16<LA, LB>(sum, a + k * step_of_16(LA), b + k * step_of_16(LB), n || k);
                wgmma_end();
                wgmma_wait<1>();
                if (n) ring.release(before);
                before = ring.stage;
                ring.next();
            }
            wgmma_wait<0>();
            ring.release(before);
            Place t = place_of<BLOCK_M * CLUSTER, BN>(p, s, tile);
            i64 row = (i64)(t.row * CLUSTER + rank) * BLOCK_M + group * 64, column = (i64)t.column * BN;
            if (map_c && p.c_vector == BY_MAP) store_tile<BN>(p, *map_c, boxes, t.product, row, column, sum);
            else store_tile<BN>(p, t.product, row, column, sum);
        }
        if (threadIdx.x % WARPGROUP == 0) tma_stores_wait<0>();
    }
    ring.close();
}
