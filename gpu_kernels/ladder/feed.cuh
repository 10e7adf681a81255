/* feed.cuh: how the panels of one operand get into shared memory as words (word.cuh), by the threads that do only that.
 *
 * A panel is BK words of k by R rows of A (columns of B); word (k, r) lies at k * PITCH + r. Rows that do not exist are
 * read from the last one that does, since nobody stores what comes of them; k that do not exist are 0 on both sides.
 *
 *     layout      one float a word           two or four elements a word
 *     K_MAJOR     4-byte asynchronous copy   element by element
 *     K_MAJOR_VEC4    the same                   4-byte asynchronous copy
 *     MN_MAJOR     4-byte asynchronous copy   element by element
 *     MN_MAJOR_VEC4    16-byte                    16-byte loads, turned in registers
 */
enum Way { COPY_K, COPY_R, TURN, GATHER };

template <class T>
__device__ constexpr Way way(Layout l) {
    return T::GROUP == 1 ? (k_major(l) ? COPY_K : COPY_R) : l == K_MAJOR_VEC4 ? COPY_K : l == MN_MAJOR_VEC4 ? TURN : GATHER;
}

template <class T, Layout L, int R, int BK, int THREADS>
struct Feed {
    typedef typename T::Elem Elem;
    static constexpr Way WAY = way<T>(L);
    static constexpr int GROUP = T::GROUP, SIZE = sizeof(Elem), PITCH = R + (k_major(L) ? 4 : 0);
    /* R that a thread brings at a time, and what its neighbour in the warp brings: the next k, or the next R. */
    static constexpr int WIDE = WAY == TURN ? 16 / SIZE : WAY == COPY_R && width(L) == 4 ? 4 : 1;
    static constexpr bool NEXT_IS_K = WAY == COPY_K || (WAY == GATHER && k_major(L));
    static constexpr int PIECES = R * BK / WIDE, TURNS = (PIECES + THREADS - 1) / THREADS;
    static_assert(BK == 8 && R % WIDE == 0 && (PIECES % THREADS == 0 || PIECES < THREADS), "");
    static constexpr int STRIDE = THREADS * WIDE, ACROSS = NEXT_IS_K ? TURNS : R > STRIDE ? R / STRIDE : 1;
    __device__ static constexpr int r_of(int i) { return NEXT_IS_K ? i * (THREADS / BK) : i * STRIDE % R; }
    __device__ static constexpr int k_of(int i) { return NEXT_IS_K ? 0 : i * STRIDE / R; }

    const char* from;                       /* the panel's first k, row 0 of the tile */
    i64 r_stride, k_stride;                 /* bytes */
    u32 offset[WAY == GATHER ? 1 : ACROSS]; /* this thread's pieces, in bytes; the host sees to it that they fit */
    u32 to;
    int r, k, last;
    u32 held[WAY == TURN ? TURNS * GROUP * 4 : 1];

    __device__ Feed(const void* operand, i64 ld, i64 first_r, i64 count, i64 first_k) {
        int t = threadIdx.x % THREADS;
        r_stride = (k_major(L) ? ld : 1) * SIZE, k_stride = (k_major(L) ? 1 : ld) * SIZE;
        from = (const char*)operand + first_r * r_stride + first_k * k_stride;
        k = NEXT_IS_K ? t % BK : t * WIDE / R;
        r = NEXT_IS_K ? t / BK : t * WIDE % R;
        last = (int)(count - first_r < R ? count - first_r : R) - WIDE;
#pragma unroll
        for (int i = 0; i < (WAY == GATHER ? 0 : ACROSS); ++i)
            offset[i] = (u32)(min(r + r_of(i), last) * r_stride + k * GROUP * k_stride);
        to = (u32)(k * PITCH + r) * 4;
    }

    __device__ static constexpr u32 target(int i) { return (u32)(k_of(i) * PITCH + r_of(i)) * 4; }
    __device__ const char* source(int i) const { return from + k_of(i) * GROUP * k_stride + offset[i % ACROSS]; }
    /* Whether there is a piece for this thread. */
    __device__ bool mine() const { return PIECES >= THREADS || k < BK; }

    /* What goes through registers: loaded before there is room for it. */
    template <bool TAIL>
    __device__ void load(int k_left) {
        if constexpr (WAY == TURN) {
#pragma unroll
            for (int i = 0; i < TURNS; ++i)
#pragma unroll
                for (int g = 0; g < GROUP; ++g) {
                    uint4 v = make_uint4(0, 0, 0, 0);
                    if (mine() && (!TAIL || (k + k_of(i)) * GROUP + g < k_left))
                        v = __ldg((const uint4*)(source(i) + g * k_stride));
                    u32* x = held + (i * GROUP + g) * 4;
                    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
                }
        }
    }

    /* The panel into shared memory; then `from` is the next one's. TAIL: of its k only k_left exist. */
    template <bool TAIL>
    __device__ void fill(u32 panel, int k_left) {
        u32 at = panel + to;
        if (!mine()) {
        } else if constexpr (WAY == GATHER) {
#pragma unroll 4
            for (int i = 0; i < TURNS; ++i) {
                const char* x = from + min(r + r_of(i), last) * r_stride + (k + k_of(i)) * GROUP * k_stride;
                u32 word = 0;
#pragma unroll
                for (int g = 0; g < GROUP; ++g)
                    if (!TAIL || (k + k_of(i)) * GROUP + g < k_left)
                        word |= (u32)__ldg((const Elem*)(x + g * k_stride)) << (8 * SIZE * g);
                shared_store(at + target(i), word);
            }
        } else if constexpr (WAY == TURN) {
#pragma unroll
            for (int i = 0; i < TURNS; ++i) turn(at + target(i), held + i * GROUP * 4);
        } else {
#pragma unroll
            for (int i = 0; i < TURNS; ++i) {
                bool there = !TAIL || (k + k_of(i)) * GROUP < k_left;
                const char* x = there ? source(i) : from;
                if constexpr (WIDE == 4 && TAIL) copy16(at + target(i), x, there ? 16 : 0);
                else if constexpr (WIDE == 4) copy16(at + target(i), x);
                else if constexpr (TAIL) copy4(at + target(i), x, there ? 4 : 0);
                else copy4(at + target(i), x);
            }
        }
        from += BK * GROUP * k_stride;
    }

    /* GROUP rows of 16 bytes, elements of equal R into one word. */
    __device__ static void turn(u32 to, const u32* x) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            if constexpr (GROUP == 2) {
                u32 low = __byte_perm(x[q], x[4 + q], 0x5410), high = __byte_perm(x[q], x[4 + q], 0x7632);
                if (q % 2 == 0)
                    shared_store4(to + q * 8, low, high, __byte_perm(x[q + 1], x[5 + q], 0x5410),
                                  __byte_perm(x[q + 1], x[5 + q], 0x7632));
            } else {
                u32 a = __byte_perm(x[q], x[4 + q], 0x5140), b = __byte_perm(x[8 + q], x[12 + q], 0x5140);
                u32 c = __byte_perm(x[q], x[4 + q], 0x7362), d = __byte_perm(x[8 + q], x[12 + q], 0x7362);
                shared_store4(to + q * 16, __byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632),
                              __byte_perm(c, d, 0x5410), __byte_perm(c, d, 0x7632));
            }
        }
    }
};
