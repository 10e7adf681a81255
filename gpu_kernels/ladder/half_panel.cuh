/* half_panel.cuh: the part of one operand of 16-bit elements that a block multiplies at a time, on its way from global
 * to shared memory.
 *
 * A panel is R rows of A (columns of B) by K steps of k, in lines as they lie in memory: R lines of K elements K_MAJOR,
 * K lines of R elements MN_MAJOR. A line is made of pieces of 16 bytes, and Place says where they are. What lies outside
 * the operand is 0 and is not read.
 */

/* Lines one after the other, each with 16 bytes to spare: pieces below each other are on different banks. */
template <int PIECES>
struct Padded {
    static constexpr int PITCH = 16 * PIECES + 16;
    __device__ static u32 at(int line, int piece) { return (u32)(line * PITCH + piece * 16); }
};

/* Without room to spare: in every line the pieces are in another order, eight lines in eight orders. A step of eight
 * lines changes no order. */
template <int PIECES>
struct Swizzled {
    static_assert(PIECES % 8 == 0, "");
    static constexpr int PITCH = 16 * PIECES;
    __device__ static u32 at(int line, int piece) { return (u32)(line * PITCH + (piece ^ line % 8) * 16); }
};

/* A thread brings the same piece of every STEP-th line; what it asks for walks over them, panel after panel. */
template <Layout L, int R, int K, int THREADS, template <int> class Where>
struct HalfPanel {
    static constexpr Layout LAYOUT = L;
    static constexpr int LINES = k_major(L) ? R : K, PIECES = (k_major(L) ? K : R) / 8;
    static constexpr int STEP = THREADS / PIECES, TURNS = LINES / STEP;
    static_assert(THREADS % PIECES == 0 && LINES % STEP == 0 && STEP % 8 == 0, "every thread brings as many pieces");
    typedef Where<PIECES> Place;
    static constexpr int BYTES = LINES * Place::PITCH;

    const u16* from;
    i64 step, next;
    u32 to;
    int r_left, k_left; /* from this thread's first element on: rows (columns) of the tile, and k, that exist */

    __device__ HalfPanel(const void* operand, i64 ld, i64 first, i64 count, i64 k)
        : step(STEP * ld), next(k_major(L) ? K - R * ld : 0) {
        int line = (int)threadIdx.x / PIECES, along = (int)threadIdx.x % PIECES * 8;
        to = Place::at(line, along / 8);
        r_left = (int)(count - first < R ? count - first : R) - (k_major(L) ? line : along);
        k_left = (int)k - (k_major(L) ? along : line);
        from = (const u16*)operand + (k_major(L) ? (first + line) * ld + along : line * ld + first + along);
    }

    /* A part of the next K steps into the panel at this address. */
    __device__ void fill(u32 panel, int part, int parts) {
        int begin = part * TURNS / parts, end = (part + 1) * TURNS / parts;
        if constexpr (width(L) == 4) {
#pragma unroll
            for (int i = begin; i < end; ++i) {
                bool there = k_major(L) ? i * STEP < r_left && k_left > 0 : r_left > 0 && i * STEP < k_left;
                copy16(panel + to + i * STEP * Place::PITCH, from, there ? 16 : 0);
                from += step;
            }
        } else {
            int along = k_major(L) ? k_left : r_left, lines = k_major(L) ? r_left : k_left;
#pragma unroll 1
            for (int i = begin; i < end; ++i) {
                u32 at = panel + to + i * STEP * Place::PITCH;
#pragma unroll 1
                for (int w = 0; w < 8; w += 4) { /* four at a time: there are few registers to spare */
                    u32 x[4];
#pragma unroll
                    for (int v = 0; v < 4; ++v) x[v] = i * STEP < lines && w + v < along ? __ldg(from + w + v) : 0;
                    shared_store(at + 2 * w, x[0] | x[1] << 16);
                    shared_store(at + 2 * w + 4, x[2] | x[3] << 16);
                }
                from += step;
            }
        }
        if (part == parts - 1) from += next, k_left -= K;
    }
};
