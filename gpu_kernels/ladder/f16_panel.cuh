/* f16_panel.cuh: a panel of one operand of 16-bit elements, copied from global to shared memory by all threads of a
 * block.
 *
 * A panel is R rows of A (columns of B) by K steps of k, in lines that are contiguous in global memory: R lines of K
 * elements K_MAJOR, K lines of R elements MN_MAJOR. A line consists of 16-byte chunks, whose place in shared memory is
 * a class: Padded or Swizzled. Elements outside the operand are 0 and are not read.
 */
#include "gemm.cuh"
#include "cp_async.cuh"

/* Lines with 16 bytes of padding: chunks of the same column are on different banks. */
template <int CHUNKS>
struct Padded {
    static constexpr int PITCH = 16 * CHUNKS + 16;
    __device__ static u32 at(int line, int chunk) { return (u32)(line * PITCH + chunk * 16); }
};

/* XOR swizzle, no padding: chunk c of line l lies at c ^ (l % 8) or, where two lines share 128 bytes, at
 * c ^ (l / 2 % 4). Lines that are 8 apart have the same order. */
template <int CHUNKS>
struct Swizzled {
    static_assert(CHUNKS == 4 || CHUNKS % 8 == 0, "");
    static constexpr int PITCH = 16 * CHUNKS, TOGETHER = CHUNKS == 4 ? 2 : 1;
    __device__ static u32 at(int line, int chunk) {
        return (u32)(line * PITCH + (chunk ^ line / TOGETHER % (8 / TOGETHER)) * 16);
    }
};

/* A thread copies the same chunk of every LINE_STEP-th line; its source pointer advances from panel to panel. */
template <Layout L, int R, int K, int THREADS, template <int> class Placement>
struct F16Panel {
    static constexpr Layout LAYOUT = L;
    static constexpr int LINES = k_major(L) ? R : K, CHUNKS = (k_major(L) ? K : R) / 8;
    static constexpr int LINE_STEP = THREADS / CHUNKS, COPIES = LINES / LINE_STEP;
    static_assert(THREADS % CHUNKS == 0 && LINES % LINE_STEP == 0 && LINE_STEP % 8 == 0, "as many chunks a thread");
    typedef Placement<CHUNKS> Place;
    static constexpr int BYTES = LINES * Place::PITCH;

    const u16* from;
    i64 step, next;
    u32 to;
    int r_left, k_left; /* from this thread's first element on: rows (columns) of the tile, and k, that exist */

    __device__ F16Panel(const void* operand, i64 ld, i64 first, i64 count, i64 k)
        : step(LINE_STEP * ld), next(k_major(L) ? K - R * ld : 0) {
        int line = (int)threadIdx.x / CHUNKS, along = (int)threadIdx.x % CHUNKS * 8;
        to = Place::at(line, along / 8);
        r_left = (int)(count - first < R ? count - first : R) - (k_major(L) ? line : along);
        k_left = (int)k - (k_major(L) ? along : line);
        from = (const u16*)operand + (k_major(L) ? (first + line) * ld + along : line * ld + first + along);
    }

    /* Copies part `part` of `parts` of the next K steps into the panel at this address. */
    __device__ void copy(u32 panel, int part, int parts) {
        int begin = part * COPIES / parts, end = (part + 1) * COPIES / parts;
        if constexpr (width(L) == 4) {
#pragma unroll
            for (int i = begin; i < end; ++i) {
                bool exists = k_major(L) ? i * LINE_STEP < r_left && k_left > 0 : r_left > 0 && i * LINE_STEP < k_left;
                cp_async16(panel + to + i * LINE_STEP * Place::PITCH, from, exists ? 16 : 0);
                from += step;
            }
        } else {
            int along = k_major(L) ? k_left : r_left, lines = k_major(L) ? r_left : k_left;
#pragma unroll 1
            for (int i = begin; i < end; ++i) {
                u32 at = panel + to + i * LINE_STEP * Place::PITCH;
#pragma unroll 1
                for (int w = 0; w < 8; w += 4) { /* four at a time: few registers are free */
                    u32 x[4];
#pragma unroll
                    for (int v = 0; v < 4; ++v) x[v] = i * LINE_STEP < lines && w + v < along ? __ldg(from + w + v) : 0;
                    shared_store(at + 2 * w, x[0] | x[1] << 16);
                    shared_store(at + 2 * w + 4, x[2] | x[3] << 16);
                }
                from += step;
            }
        }
        if (part == parts - 1) from += next, k_left -= K;
    }
};
