/* double_buffer.cuh: the main loop of rung smem_dbuf: a thread block's 128 x 128 tile of A B in registers. */
#pragma once
#include "panel.cuh"
#include "fragment.cuh"

/* 256 threads, 8 x 8 accumulators each: four groups of 4 x 4, GAP_M rows and GAP_N columns apart. The warp tile is
 * WM x WN. */
template <Layout LA, Layout LB, int WM, int WN>
struct DoubleBuffered {
    static constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = 256;
    static constexpr int GAP_M = WM / 2, GAP_N = WN / 2;
    typedef Panel<BM, BK, THREADS, LA, true> PanelA;
    typedef Panel<BN, BK, THREADS, LB, true> PanelB;
    static constexpr int SIZE_A = BK * PanelA::PITCH, STAGE = SIZE_A + BK * PanelB::PITCH;

    /* Of this thread's first accumulator, in the tile. */
    static __device__ __forceinline__ int row() {
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        return warp / (BN / WN) * WM + (lane / 16 * 2 + lane % 2) * 4;
    }
    static __device__ __forceinline__ int column() {
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        return warp % (BN / WN) * WN + lane / 2 % 8 * 4;
    }

    /* acc += the tile's rows of A times its columns of B; `shared` has 2 * STAGE elements. */
    static __device__ __forceinline__ void multiply(float (&acc)[TM][TN], PanelA& a, PanelB& b, i64 count,
                                                    float* shared) {
        int row = DoubleBuffered::row(), column = DoubleBuffered::column();
        float fa[2][TM], fb[2][TN];
        int stage = 0;
        auto store = [&](int to) {
            a.template store_mn_major<PanelA::PITCH>(shared + to);
            b.template store_mn_major<PanelB::PITCH>(shared + to + SIZE_A);
        };
        auto load_fragments = [&](int k) {
            load_fragment<TM, GAP_M>(fa[k % 2], shared + stage + k * PanelA::PITCH + row);
            load_fragment<TN, GAP_N>(fb[k % 2], shared + stage + SIZE_A + k * PanelB::PITCH + column);
        };
        if (count <= 0) return;
        a.load(count);
        b.load(count);
        store(0);
        __syncthreads();
        load_fragments(0);
#pragma unroll 2 /* the stage of each of two panels is a constant: no address arithmetic */
        for (i64 k_left = count - BK; k_left > 0; k_left -= BK) {
            a.load(k_left);
            b.load(k_left);
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                /* The other stage is free: all threads passed the last barrier after their last read of it. The stores
                 * are issued one k before the barrier, so that no thread waits for them there. */
                if (k + 2 == BK) store(stage ^ STAGE);
                if (k + 1 == BK) {
                    __syncthreads();
                    stage ^= STAGE;
                }
                load_fragments((k + 1) % BK);
                rank1_update(acc, fa[k % 2], fb[k % 2]);
            }
        }
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) load_fragments(k + 1);
            rank1_update(acc, fa[k % 2], fb[k % 2]);
        }
    }
};
