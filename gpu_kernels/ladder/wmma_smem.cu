/* wmma_smem, T2: panels of halves in shared memory, sixteen fragments of sums a warp.
 *
 * step      what S3 to S15 did for floats, at once: panels in shared memory serve eight warps, asynchronous copies
 *           bring the next ones meanwhile, a fragment once loaded is multiplied by four others, and blocks walk C in
 *           groups. Lines are padded by 16 bytes, so that the eight that are loaded together are on different banks.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 64, 64 x 64 a warp
 * regs      255 at most: 128 sums, 2 x 32 words of fragments; local memory 0
 * per k     1 wmma of 16 x 16 x 16 and half a fragment loaded, a warp
 * ratio     64*64 / (64+64) = 32.00
 * rounding  products exact, sums of 16 k in the tensor core's own order and rounding; one for alpha, one for beta
 * needs     sm_80
 * idea      warp matrix functions: NVIDIA, CUDA C++ Programming Guide, and its sample cudaTensorCoreGemm
 * lanes     32
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      153 KiB for a row-major call, 162 at most, dynamic
 */
#include <mma.h>
#include "vector.cuh"
#include "gemm.cuh"
#include "async.cuh"
#include "half_panel.cuh"
#include "half_pipeline.cuh"
#include "wmma.cuh"

template <class PanelA, class PanelB>
struct WmmaWarp {
    FragmentA<PanelA::LAYOUT> a[2][TM / 16];
    FragmentB<PanelB::LAYOUT> b[2][TN / 16];
    Sums sum[TM / 16][TN / 16];
    int row, column;

    __device__ WmmaWarp(int row, int column) : row(row), column(column) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
#pragma unroll
            for (int j = 0; j < TN / 16; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    }

    /* The first element of a fragment: 16 rows (columns) from r on, step k of 16. */
    template <class Panel>
    __device__ static const half* first(u32 panel, int r, int k) {
        constexpr bool ALONG = k_major(Panel::LAYOUT);
        return (const half*)((const char*)panels + panel + Panel::Place::at(ALONG ? r : 16 * k, ALONG ? 2 * k : r / 8));
    }

    __device__ void read(int set, u32 panel, int k) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
            wmma::load_matrix_sync(a[set][i], first<PanelA>(panel, row + 16 * i, k), PanelA::Place::PITCH / 2);
#pragma unroll
        for (int j = 0; j < TN / 16; ++j)
            wmma::load_matrix_sync(b[set][j], first<PanelB>(panel + PanelA::BYTES, column + 16 * j, k),
                                   PanelB::Place::PITCH / 2);
    }

    __device__ void multiply(int set) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
#pragma unroll
            for (int j = 0; j < TN / 16; ++j) wmma::mma_sync(sum[i][j], a[set][i], b[set][j], sum[i][j]);
    }

    /* Through shared memory, 16 rows of a warp at a time: where in a fragment an element is, mma.h does not say. */
    __device__ void store(const Gemm& p, u32 product, i64 i, i64 j) {
        constexpr int PITCH = TN + 4;
        int lane = threadIdx.x % 32;
        float* rows = (float*)panels + threadIdx.x / 32 * 16 * PITCH;
        copies_wait<0>();
        __syncthreads();
#pragma unroll
        for (int r = 0; r < TM / 16; ++r) {
            __syncwarp();
#pragma unroll
            for (int c = 0; c < TN / 16; ++c)
                wmma::store_matrix_sync(rows + 16 * c, sum[r][c], PITCH, wmma::mem_row_major);
            __syncwarp();
#pragma unroll 4
            for (int x = 4 * lane; x < 16 * TN; x += 128)
                store_row<4>(p, product, i + 16 * r + x / TN, j + x % TN, rows + x / TN * PITCH + x % TN);
        }
    }
};

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(THREADS, 1) wmma_smem(const __grid_constant__ Gemm p) {
    half_pipeline<Padded, WmmaWarp, LA, LB>(p);
}
