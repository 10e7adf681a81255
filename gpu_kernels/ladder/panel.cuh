/* panel.cuh: a panel of one operand, from global memory through registers to shared memory. */
#pragma once
#include "gemm.cuh"

/* R rows of A, or columns of B, by K steps of k, loaded by THREADS threads. Elements outside the operand are 0 and are
 * not read. load() reads global memory into registers, store_*() writes them to shared memory: a rung can multiply
 * between the two. RECOMPUTES: the thread's place is computed again from its index wherever it is needed, and takes no
 * registers in between. */
template <int R, int K, int THREADS, Layout L, bool RECOMPUTES = false>
struct Panel {
    /* A line is contiguous in global memory; a thread loads a vector of W elements of every LINE_STEP-th line. */
    static constexpr int W = width(L), LINES = k_major(L) ? R : K, LINE_VECTORS = (k_major(L) ? K : R) / W;
    static constexpr int LINE_STEP = THREADS / LINE_VECTORS, VECTORS = LINES / LINE_STEP;
    static_assert(THREADS % LINE_VECTORS == 0 && LINES % LINE_STEP == 0, "every thread loads as many vectors");

    /* Pitch of a row of R elements in shared memory. A panel that is transposed while storing gets 4 elements of
     * padding: the elements that a warp stores together are then on different banks, and rows stay aligned to 16
     * bytes. */
    static constexpr int PITCH = R + (k_major(L) ? 4 : 0);

    const float* from;
    i64 step;
    int rows_left; /* rows (columns) that exist, from this thread's first on */
    float x[VECTORS][W];

    /* This thread's first line, and its first element in a line. */
    static __device__ int thread() { return RECOMPUTES ? thread_in_block() : (int)threadIdx.x; }
    static __device__ int line() { return thread() / LINE_VECTORS; }
    static __device__ int along() { return thread() % LINE_VECTORS * W; }

    /* Rows (columns) tile * R, ... of `count`. */
    __device__ Panel(const float* operand, i64 ld, u32 tile, i64 count)
        : step(LINE_STEP * ld) {
        i64 first = (i64)tile * R;
        int line = Panel::line(), along = Panel::along();
        int rows = count - first < R ? (int)(count - first) : R;
        rows_left = rows - (k_major(L) ? line : along);
        from = operand + (k_major(L) ? (first + line) * ld + along : line * ld + first + along);
    }

    /* The next K steps into registers; steps_left exist. One address that advances, and 32-bit comparisons: with
     * an address a vector, NVRTC 13.0 spills where a thread has 128 registers. */
    __device__ void load(i64 steps_left) {
        int line = Panel::line(), along = Panel::along();
        int k_left = steps_left < K ? (int)steps_left : K;
        const float* vector = from;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v, vector += step) {
            int k = k_major(L) ? along : line + v * LINE_STEP;
            bool inside = (k_major(L) ? v * LINE_STEP : 0) < rows_left && k < k_left;
            if constexpr (W == 4) {
                if (inside)
                    load4(x[v], vector);
                else
                    x[v][0] = x[v][1] = x[v][2] = x[v][3] = 0;
            } else {
                x[v][0] = inside ? __ldg(vector) : 0;
            }
        }
        from += k_major(L) ? K : VECTORS * step;
    }

    /* Element (r, k) to to[k * LD + r]: the elements of an outer product are contiguous. */
    template <int LD>
    __device__ void store_mn_major(float* to) const {
        store<!k_major(L), LD>(to);
    }

    /* Element (r, k) to to[r * LD + k]. */
    template <int LD>
    __device__ void store_k_major(float* to) const {
        store<k_major(L), LD>(to);
    }

    /* SAME_ORDER: as in global memory; else transposed. */
    template <bool SAME_ORDER, int LD>
    __device__ void store(float* to) const {
        int line = Panel::line(), along = Panel::along();
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            int here = line + v * LINE_STEP;
            if constexpr (SAME_ORDER && W == 4) {
                write4(to + here * LD + along, x[v]);
            } else {
#pragma unroll
                for (int w = 0; w < W; ++w) to[SAME_ORDER ? here * LD + along + w : (along + w) * LD + here] = x[v][w];
            }
        }
    }
};
