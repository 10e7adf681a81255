/* wgmma_panels.cuh: panels of 128 bytes of k, as wgmma_gemm.cuh multiplies them: one wgmma for 32 bytes of k. The
 * elements, and the layouts that they may have, are a class Mma:
 *
 *     Acc                 type of an accumulator
 *     K                   k of a panel
 *     A, B                layouts of the operands
 *     issue(acc, a, b, accumulate)   a wgmma on two matrix descriptors
 */
#include "wgmma_gemm.cuh"

template <Layout LA, Layout LB>
struct MmaBf16 {
    typedef float Acc;
    static constexpr int K = 64;
    static constexpr Layout A = LA, B = LB;
    template <int N>
    __device__ __forceinline__ static void issue(float (&acc)[N], u64 a, u64 b, int accumulate) {
        wgmma_bf16<LA, LB>(acc, a, b, accumulate);
    }
};

template <Layout LA, Layout LB>
struct MmaF16 {
    typedef float Acc;
    static constexpr int K = 64;
    static constexpr Layout A = LA, B = LB;
    template <int N>
    __device__ __forceinline__ static void issue(float (&acc)[N], u64 a, u64 b, int accumulate) {
        wgmma_f16<LA, LB>(acc, a, b, accumulate);
    }
};

/* wgmma transposes 16-bit operands only. */
struct MmaS8 {
    typedef int Acc;
    static constexpr int K = 128;
    static constexpr Layout A = K_MAJOR, B = K_MAJOR;
    template <int N>
    __device__ __forceinline__ static void issue(int (&acc)[N], u64 a, u64 b, int accumulate) {
        wgmma_s8(acc, a, b, accumulate);
    }
};

/* The blocks of a cluster load parts of the columns of B each or, where those are no whole boxes, of k of all
 * columns. */
template <class Mma, int BN_, int STAGES, class Shape_>
struct Panels {
    static constexpr int BN = BN_;
    static constexpr int A_BYTES = BLOCK_M * 128, B_BYTES = BN * 128;
    static constexpr bool PARTS_ALONG_K = !k_major(Mma::B) && BN / Shape_::M % 64;
    static_assert(BN % 64 == 0 || k_major(Mma::B), "boxes of an MN-major B are 64 columns wide");
    typedef Shape_ Shape;
    typedef TmaPipeline<STAGES, A_BYTES + B_BYTES, Shape> Pipeline;
    typedef typename Mma::Acc Acc;

    __device__ __forceinline__ static void load_panel(const PanelSource& source, int n, const Pipeline& pipeline) {
        load_tile<Mma::A, BLOCK_M>(pipeline.panel(), source.row, n * Mma::K, [&](u32 to, int x, int y) {
            tma_load(to, source.map_a, pipeline.full_barrier(), x, y, source.product_a);
        });
        u32 b = pipeline.panel() + A_BYTES;
        auto load = [&](u32 to, int x, int y) {
            tma_load_cluster<Shape::M>(to, source.map_b, pipeline.full_barrier(), x, y, source.product_b);
        };
        if constexpr (PARTS_ALONG_K) {
            int k = source.rank * (Mma::K / Shape::M), column = source.column - source.rank * (BN / Shape::M);
            load_tile<Mma::B, BN>(b + k * 128, column, n * Mma::K + k, load);
        } else {
            load_tile<Mma::B, BN / Shape::M>(b + source.rank * (B_BYTES / Shape::M), source.column, n * Mma::K, load);
        }
    }

    /* The rows of A of a panel to L2. */
    __device__ __forceinline__ static void prefetch_a(const PanelSource& source, int n) {
        load_tile<Mma::A, BLOCK_M>(0, source.row, n * Mma::K, [&](u32, int x, int y) {
            tma_prefetch(source.map_a, x, y, source.product_a);
        });
    }

    /* The wgmma of a panel are issued before those of the panel before it are waited for, so that the tensor cores are
     * not idle between panels. */
    __device__ __forceinline__ static void multiply(int panels, u32 group, Pipeline& pipeline, Acc (&acc)[BN / 2]) {
        u32 previous = 0;
#pragma unroll 1
        for (int n = 0; n < panels; ++n) {
            pipeline.consumer_wait();
            u64 a = matrix_descriptor(pipeline.panel() + group * BOX_BYTES);
            u64 b = matrix_descriptor(pipeline.panel() + A_BYTES);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 128 / 32; ++k)
                Mma::issue(acc, a + k * k16_step(Mma::A), b + k * k16_step(Mma::B), n || k);
            wgmma_commit();
            wgmma_wait<1>();
            if (n) pipeline.consumer_release(previous);
            previous = pipeline.stage;
            pipeline.advance();
        }
        wgmma_wait<0>();
        pipeline.consumer_release(previous);
    }

    template <class Store>
    __device__ __forceinline__ static void consume(ClusterScheduler<Shape> scheduler, const Schedule& s, u32 group,
                                                   Pipeline& pipeline, const Store& store) {
        WorkTile work;
        while (scheduler.next(s, work)) {
            Acc acc[BN / 2];
            multiply(work.count, group, pipeline, acc);
            store(work, acc);
        }
    }
};
