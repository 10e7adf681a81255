/* wmma_smem, T2: f16 panels in shared memory, 4 x 4 accumulator fragments a warp.
 *
 * step      what S3 to S15 did for f32, in one step: panels in shared memory serve eight warps, a cp.async multistage
 *           pipeline copies the next ones, a fragment is used four times, and blocks take tiles in grouped raster
 *           order. Lines are padded by 16 bytes, so that the eight that are loaded together are on different banks.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 64, 64 x 64 a warp
 * regs      255 at most: 128 accumulators, 2 x 32 for fragments; local memory 0
 * per k     2 HMMA.16816, 128 f16 from shared memory, 1/2 LDSM
 * ratio     64*64 / (64+64) = 32.00
 * rounding  products exact, sums of 16 k in the tensor core's own order and rounding; one for alpha, one for beta
 * needs     sm_80
 * idea      warp-level matrix instructions (wmma): NVIDIA, PTX ISA, and the CUDA sample cudaTensorCoreGemm
 * lanes     32
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      153 KiB dynamic; at most 162 KiB dynamic for other layouts
 */
#include "f16_pipeline.cuh"
#include "wmma.cuh"

template <class PanelA, class PanelB>
struct WmmaWarp {
    FragmentA<PanelA::LAYOUT> a[2][TM / 16];
    FragmentB<PanelB::LAYOUT> b[2][TN / 16];
    Accumulator acc[TM / 16][TN / 16];
    int row, column;

    __device__ WmmaWarp(int row, int column) : row(row), column(column) {}

    /* Address of the first element of a fragment: 16 rows (columns) from r on, the 16 k from 16 * k on. */
    template <class Panel>
    __device__ static u32 first(u32 panel, int r, int k) {
        constexpr bool K_LINES = k_major(Panel::LAYOUT);
        return shared_address(panels) + panel + Panel::Place::at(K_LINES ? r : 16 * k, K_LINES ? 2 * k : r / 8);
    }

    __device__ void load(int set, u32 panel, int k) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
            warp_matrix::load<warp_matrix::Shared>(a[set][i], first<PanelA>(panel, row + 16 * i, k),
                                                   PanelA::Place::PITCH / 2);
#pragma unroll
        for (int j = 0; j < TN / 16; ++j)
            warp_matrix::load<warp_matrix::Shared>(
                b[set][j], first<PanelB>(panel + PanelA::BYTES, column + 16 * j, k), PanelB::Place::PITCH / 2);
    }

    __device__ void multiply(int set) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
#pragma unroll
            for (int j = 0; j < TN / 16; ++j) warp_matrix::multiply(acc[i][j], a[set][i], b[set][j]);
    }

    /* Through shared memory, 16 rows of a warp at a time: which element a lane holds is not specified. */
    __device__ void store(const Gemm& p, u32 product, i64 i, i64 j) {
        constexpr int PITCH = TN + 4;
        int lane = threadIdx.x % 32;
        float* rows = (float*)panels + threadIdx.x / 32 * 16 * PITCH;
        cp_async_wait<0>();
        __syncthreads();
#pragma unroll
        for (int r = 0; r < TM / 16; ++r) {
            __syncwarp();
#pragma unroll
            for (int c = 0; c < TN / 16; ++c) warp_matrix::store(rows + 16 * c, acc[r][c], PITCH);
            __syncwarp();
#pragma unroll 4
            for (int x = 4 * lane; x < 16 * TN; x += 128)
                store_row<4>(p, product, i + 16 * r + x / TN, j + x % TN, rows + x / TN * PITCH + x % TN);
        }
    }
};

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(THREADS, 1) wmma_smem(const __grid_constant__ Gemm p) {
    f16_pipeline<Padded, WmmaWarp, LA, LB>(p);
}
