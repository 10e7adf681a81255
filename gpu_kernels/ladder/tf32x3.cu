/* tf32x3, T9: float products on tensor cores, with an error like that of float.
 *
 * step      a float as two numbers of 11 bits, high + low, and A B = high high + (high low + low high): three products
 *           of tensor cores, which take 11 bits, for one. A first kernel writes the parts, both along k, since a
 *           turned tile is only for 16 bits. Tensor cores drop what does not fit when they add, always towards 0:
 *           so they add 32 k at a time, the small terms first, and registers add those sums, rounding as float does.
 *           Opt-in: an element with |x| near 2^128 or that is infinite may give NaN; parts below 2^-126 may be lost.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout; error at most (k + 15) 2^-24 |A| |B|
 * tile      128 x 128 x 32, 64 x 128 a warpgroup
 * regs      232 a multiplying thread, of them 64 sums and twice 64 of 32 k; 40 in the warpgroup that brings; local
 *           memory 0
 * per k     3 wgmma m64n128k8 for 8 k, 64 + 128 elements a k
 * ratio     64*128 / (64+128) = 42.67
 * rounding  parts to nearest; sums of 32 k by the tensor cores; those to nearest, k ascending; one for alpha, one for
 *           beta
 * needs     sm_90a
 * idea      H. Ootomo, R. Yokota, Recovering single precision accuracy from tensor cores (2022); CUTLASS, example 27
 * lanes     128
 * launch    384 threads a block, 128 of them for one that brings; as many blocks as the device has multiprocessors, in
 *           clusters of two or alone
 * smem      225 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "schedule.cuh"
#include "async.cuh"
#include "tma.cuh"
#include "wgmma.cuh"
#include "ring.cuh"
#include "tile_loop.cuh"

/* An operand and its parts: products of `rows` rows of k elements, high parts then low parts, `pitch` from row to
 * row. */
struct Split {
    const float* x;
    float* parts;
    i64 rows, k, ld, batch, products, pitch;
};

__device__ inline float high_part(float x) {
    u32 high;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(x));
    return __uint_as_float(high);
}

template <Layout L>
__global__ void __launch_bounds__(256) tf32x3_split(const __grid_constant__ Split s) {
    constexpr int EDGE = 32;
    __shared__ float turned[EDGE][EDGE + 1];
    i64 down = (s.rows + EDGE - 1) / EDGE, across = (s.k + EDGE - 1) / EDGE;
    int x = threadIdx.x % EDGE, y = threadIdx.x / EDGE;
    for (i64 tile = blockIdx.x; tile < s.products * down * across; tile += gridDim.x) {
        i64 product = tile / (down * across), row = tile / across % down * EDGE, k = tile % across * EDGE;
        const float* from = s.x + product * s.batch;
        if constexpr (!k_major(L)) {
            __syncthreads();
            for (int i = y; i < EDGE; i += 8)
                if (row + x < s.rows && k + i < s.k) turned[x][i] = from[row + x + (k + i) * s.ld];
            __syncthreads();
        }
        float* to = s.parts + 2 * product * s.rows * s.pitch + k + x;
#pragma unroll
        for (int i = y; i < EDGE; i += 8) {
            if (row + i >= s.rows || k + x >= s.k) continue;
            float value = k_major(L) ? from[(row + i) * s.ld + k + x] : turned[i][x], high = high_part(value);
            to[(row + i) * s.pitch] = high;
            to[(row + i + s.rows) * s.pitch] = high_part(multiply_add(-1.0f, high, value));
        }
    }
}

template <int BN, int STAGES, int CLUSTER>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(384, 1)
    tf32x3(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s, const __grid_constant__ TensorMap map_a,
           const __grid_constant__ TensorMap map_b, const __grid_constant__ TensorMap map_c) {
    constexpr int K = 32, A_BYTES = BLOCK_M * K * 4, B_BYTES = BN * K * 4;
    extern __shared__ u32 memory[];
    __shared__ u64 barriers[2 * STAGES];
    Ring<STAGES, 2 * (A_BYTES + B_BYTES), CLUSTER> ring(memory, barriers);
    u32 boxes = ring.panels + STAGES * 2 * (A_BYTES + B_BYTES) + threadIdx.x / WARPGROUP * STORE_BOXES * STORE_BYTES;
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
#pragma unroll
                    for (int low = 0; low < 2; ++low) {
                        u32 a = ring.panel() + low * A_BYTES;
                        u32 b = ring.panel() + 2 * A_BYTES + low * B_BYTES + rank * (B_BYTES / CLUSTER);
                        tma_load(a, map_a, ring.arrival(), n * K, row, 2 * product_a + low);
                        bring<CLUSTER>(b, map_b, ring.arrival(), n * K, column, 2 * product_b + low);
                    }
                    ring.next();
                }
            }
        }
    } else {
        warpgroup_registers<false>();
        /* Asks for the products of the next panel. */
        auto multiply = [&](float(&part)[BN / 2]) {
            ring.wait_for_panel();
            u64 a = tile_descriptor(ring.panel() + group * (64 * K * 4));
            u64 b = tile_descriptor(ring.panel() + 2 * A_BYTES);
            constexpr u64 LOW_A = A_BYTES >> 4, LOW_B = B_BYTES >> 4, EIGHT = 32 >> 4;
            wgmma_begin();
#pragma unroll
            for (int k = 0; k < K / 8; ++k) {
                multiply_tf32(part, a + k * EIGHT, b + k * EIGHT + LOW_B, k);
                multiply_tf32(part, a + k * EIGHT + LOW_A, b + k * EIGHT, 1);
            }
#pragma unroll
            for (int k = 0; k < K / 8; ++k) multiply_tf32(part, a + k * EIGHT, b + k * EIGHT, 1);
            wgmma_end();
            ring.next();
        };
        u32 oldest = 0;
        auto add = [&](float(&sum)[BN / 2], float(&part)[BN / 2]) {
            wgmma_done(part);
            ring.release(oldest);
            if (++oldest == STAGES) oldest = 0;
            each<0, BN / 2>([&](int i) { sum[i] = multiply_add(1.0f, part[i], sum[i]); });
        };
        for (int tile = first; tile < (int)s.tiles; tile += step) {
            float sum[BN / 2] = {}, even[BN / 2], odd[BN / 2];
            /* Two at a time, and nothing under way from one turn to the next: sums in flight must keep their registers,
             * or the compiler waits after every wgmma. Meanwhile the other warpgroup has the tensor cores. */
#pragma unroll 1
            for (int n = 0; n < count; n += 2) {
                multiply(even);
                multiply(odd);
                wgmma_wait<1>();
                add(sum, even);
                wgmma_wait<0>();
                add(sum, odd);
            }
            Place t = place_of<BLOCK_M * CLUSTER, BN>(p, s, tile);
            i64 row = (i64)(t.row * CLUSTER + rank) * BLOCK_M + group * 64, column = (i64)t.column * BN;
            if (p.c_vector == BY_MAP) store_tile<BN>(p, map_c, boxes, t.product, row, column, sum);
            else store_tile<BN>(p, t.product, row, column, sum);
        }
        if (threadIdx.x % WARPGROUP == 0) tma_stores_wait<0>();
    }
    ring.close();
}
