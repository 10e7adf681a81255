/* tf32x3, T9: 3xTF32: f32 products on tensor cores, with an error like that of f32.
 *
 * step      an f32 as two numbers of 11 bits, high + low, and A B = high high + (high low + low high): three products
 *           on tensor cores, which read 11 bits, for one. A first kernel writes the parts, K-major, since wgmma
 *           transposes 16-bit operands only. Tensor cores truncate when they add: so they accumulate 32 k at a time,
 *           the small terms first, and registers add those results, rounding as f32 does. Opt-in: an element with |x|
 *           near 2^128 or infinity may give NaN; parts below 2^-126 may be lost.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout; error at most (k + 15) 2^-24 |A| |B|
 * tile      128 x 128 x 32, 64 x 128 a warpgroup
 * regs      168 at launch, 232 a consumer and 40 a producer: 64 accumulators, 2 x 64 for panels; local memory 0
 * per k     3/8 HGMMA.64x128x8, 576 tf32 from shared memory
 * ratio     64*128 / (64+128) = 42.67 for each of 3 products
 * rounding  parts to nearest; sums of 32 k by the tensor cores; those to nearest, k ascending; one for alpha, one for
 *           beta
 * needs     sm_90a
 * idea      H. Ootomo, R. Yokota, Recovering single precision accuracy from tensor cores (2022); CUTLASS, example 27
 * lanes     128
 * launch    384 threads a block, 128 of them producers; persistent grid, clusters of 2 or single blocks
 * smem      225 KiB dynamic and 48 bytes static
 */
#include "wgmma_gemm.cuh"
#include "tile_loop.cuh"

/* An operand and its two parts: products of `rows` rows of k elements, all high parts and then all low parts of a
 * product, `pitch` elements from row to row. */
struct Split {
    const float* x;
    float* parts;
    i64 rows, k, ld, batch, products, pitch;
};

/* The nearest TF32 number. */
__device__ inline float to_tf32(float x) {
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

/* Writes the parts of an operand, K-major; an MN-major operand is transposed in shared memory. */
template <Layout L>
__global__ void __launch_bounds__(256) tf32x3_split(const __grid_constant__ Split s) {
    constexpr int EDGE = 32;
    __shared__ float transposed[EDGE][EDGE + 1];
    i64 tile_rows = (s.rows + EDGE - 1) / EDGE, tile_columns = (s.k + EDGE - 1) / EDGE;
    int x = threadIdx.x % EDGE, y = threadIdx.x / EDGE;
    for (i64 tile = blockIdx.x; tile < s.products * tile_rows * tile_columns; tile += gridDim.x) {
        i64 product = tile / (tile_rows * tile_columns);
        i64 row = tile / tile_columns % tile_rows * EDGE, k = tile % tile_columns * EDGE;
        const float* from = s.x + product * s.batch;
        if constexpr (!k_major(L)) {
            __syncthreads();
            for (int i = y; i < EDGE; i += 8)
                if (row + x < s.rows && k + i < s.k) transposed[x][i] = from[row + x + (k + i) * s.ld];
            __syncthreads();
        }
        float* to = s.parts + 2 * product * s.rows * s.pitch + k + x;
#pragma unroll
        for (int i = y; i < EDGE; i += 8) {
            if (row + i >= s.rows || k + x >= s.k) continue;
            float value = k_major(L) ? from[(row + i) * s.ld + k + x] : transposed[i][x], high = to_tf32(value);
            to[(row + i) * s.pitch] = high;
            to[(row + i + s.rows) * s.pitch] = to_tf32(multiply_add(-1.0f, high, value));
        }
    }
}

/* A stage holds the high and the low part of a panel of A, then those of B. */
template <int BN_, int STAGES, class Shape_>
struct SplitTf32 {
    static constexpr int BN = BN_, K = 32;
    typedef Shape_ Shape;
    typedef float Acc;
    static constexpr int A_BYTES = BLOCK_M * K * 4, B_BYTES = BN * K * 4;
    typedef TmaPipeline<STAGES, 2 * (A_BYTES + B_BYTES), Shape> Pipeline;

    __device__ __forceinline__ static void load_panel(const PanelSource& source, int n, const Pipeline& pipeline) {
#pragma unroll
        for (int low = 0; low < 2; ++low) {
            u32 a = pipeline.panel() + low * A_BYTES;
            u32 b = pipeline.panel() + 2 * A_BYTES + low * B_BYTES + source.rank * (B_BYTES / Shape::M);
            tma_load(a, source.map_a, pipeline.full_barrier(), n * K, source.row, 2 * source.product_a + low);
            tma_load_cluster<Shape::M>(b, source.map_b, pipeline.full_barrier(), n * K, source.column,
                                       2 * source.product_b + low);
        }
    }

    /* Issues the three products of a panel into accumulators of its own, the small terms first. */
    __device__ __forceinline__ static void multiply_panel(u32 group, Pipeline& pipeline, float (&acc)[BN / 2]) {
        pipeline.consumer_wait();
        u64 a = matrix_descriptor(pipeline.panel() + group * (64 * K * 4));
        u64 b = matrix_descriptor(pipeline.panel() + 2 * A_BYTES);
        constexpr u64 LOW_A = A_BYTES >> 4, LOW_B = B_BYTES >> 4, K8_STEP = 32 >> 4;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < K / 8; ++k) {
            wgmma_tf32(acc, a + k * K8_STEP, b + k * K8_STEP + LOW_B, k);
            wgmma_tf32(acc, a + k * K8_STEP + LOW_A, b + k * K8_STEP, 1);
        }
#pragma unroll
        for (int k = 0; k < K / 8; ++k) wgmma_tf32(acc, a + k * K8_STEP, b + k * K8_STEP, 1);
        wgmma_commit();
        pipeline.advance();
    }

    /* Two panels an iteration, and no wgmma in flight from one iteration to the next: accumulators in flight must keep
     * their registers, or the compiler waits after every wgmma. Meanwhile the other warpgroup uses the tensor cores. */
    template <class Store>
    __device__ __forceinline__ static void consume(ClusterScheduler<Shape> scheduler, const Schedule& s, u32 group,
                                                   Pipeline& pipeline, const Store& store) {
        u32 oldest = 0;
        auto add = [&](float(&acc)[BN / 2], float(&panel_acc)[BN / 2]) {
            wgmma_completed(panel_acc);
            pipeline.consumer_release(oldest);
            if (++oldest == STAGES) oldest = 0;
            unrolled<0, BN / 2>([&](int i) { acc[i] = multiply_add(1.0f, panel_acc[i], acc[i]); });
        };
        WorkTile work;
        while (scheduler.next(s, work)) {
            float acc[BN / 2] = {}, even[BN / 2], odd[BN / 2];
#pragma unroll 1
            for (int n = 0; n < work.count; n += 2) {
                multiply_panel(group, pipeline, even);
                multiply_panel(group, pipeline, odd);
                wgmma_wait<1>();
                add(acc, even);
                wgmma_wait<0>();
                add(acc, odd);
            }
            store(work, acc);
        }
    }
};

template <int BN, int STAGES, int CLUSTER>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(384, 1)
    tf32x3(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s, const __grid_constant__ TensorMap map_a,
           const __grid_constant__ TensorMap map_b, const __grid_constant__ TensorMap map_c) {
    wgmma_gemm<SplitTf32<BN, STAGES, Cluster<CLUSTER>>, ToF32>(p, s, map_a, map_b, &map_c);
}
