/* panel.cuh: the part of one operand that a block multiplies at a time, on its way from global to shared memory. */

/* R rows of A, or columns of B, by K steps of k, brought by THREADS threads. What lies outside the operand is 0 and is
 * not read. The way has two halves, so that a rung can do something else between them: load() to registers, store_*()
 * from there to shared memory. */
template <int R, int K, int THREADS, Layout L>
struct Panel {
    static constexpr int W = width(L), LINES = k_major(L) ? R : K, LINE = (k_major(L) ? K : R) / W;
    static constexpr int STEP = THREADS / LINE, PIECES = LINES / STEP;
    static_assert(THREADS % LINE == 0 && LINES % STEP == 0, "every thread brings the same number of pieces");

    /* Length of a row of R elements in shared memory. Where a panel is turned on its way, 4 more put the elements that
     * a warp stores at once on different banks, and keep rows aligned to 16 bytes. */
    static constexpr int PADDED = R + (k_major(L) ? 4 : 0);

    const float* from;
    i64 step, next;
    int line, along, r_left; /* rows (columns) that exist, from this thread's first on */
    float x[PIECES][W];

    /* Rows (columns) tile * R, ... of `count`. */
    __device__ Panel(const float* operand, i64 ld, u32 tile, i64 count)
        : step(STEP * ld), next(k_major(L) ? K : K * ld) {
        i64 first = (i64)tile * R;
        line = (int)threadIdx.x / LINE;
        along = (int)threadIdx.x % LINE * W;
        int rows = count - first < R ? (int)(count - first) : R;
        r_left = rows - (k_major(L) ? line : along);
        from = operand + (k_major(L) ? (first + line) * ld + along : line * ld + first + along);
    }

    /* The next K steps into registers; `left` steps are left. */
    __device__ void load(i64 left) {
#pragma unroll
        for (int p = 0; p < PIECES; ++p) {
            int k = k_major(L) ? along : line + p * STEP;
            bool inside = (k_major(L) ? p * STEP : 0) < r_left && k < left;
            if constexpr (W == 4) {
                if (inside)
                    load4(x[p], from + p * step);
                else
                    x[p][0] = x[p][1] = x[p][2] = x[p][3] = 0;
            } else {
                x[p][0] = inside ? __ldg(from + p * step) : 0;
            }
        }
        from += next;
    }

    /* Element (r, k) to to[k * LD + r]: what an outer product reads, adjacent along R. */
    template <int LD>
    __device__ void store_by_k(float* to) const {
        store<!k_major(L), LD>(to);
    }

    /* Element (r, k) to to[r * LD + k]. */
    template <int LD>
    __device__ void store_by_r(float* to) const {
        store<k_major(L), LD>(to);
    }

    template <bool AS_IT_LIES, int LD>
    __device__ void store(float* to) const {
#pragma unroll
        for (int p = 0; p < PIECES; ++p) {
            int here = line + p * STEP;
            if constexpr (AS_IT_LIES && W == 4) {
                write4(to + here * LD + along, x[p]);
            } else {
#pragma unroll
                for (int w = 0; w < W; ++w) to[AS_IT_LIES ? here * LD + along + w : (along + w) * LD + here] = x[p][w];
            }
        }
    }
};
