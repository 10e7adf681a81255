/* panel_loader.cuh: copies panels of one operand into shared memory as packed words (word.cuh).
 *
 * A panel is BK words of k by R rows of A (columns of B); word (k, r) lies at k * PITCH + r. Rows that do not exist are
 * read from the last one that does, since their results are not stored; k that do not exist are 0 in both operands.
 *
 *     layout          one f32 a word               two f16 or four int8 a word
 *     K_MAJOR         cp.async of 4 bytes          element by element
 *     K_MAJOR_VEC4    cp.async of 4 bytes          cp.async of 4 bytes
 *     MN_MAJOR        cp.async of 4 bytes          element by element
 *     MN_MAJOR_VEC4   cp.async of 16 bytes         16-byte loads, transposed in registers
 */
#include "gemm.cuh"
#include "word.cuh"
#include "cp_async.cuh"

enum CopyMode { CP_ASYNC_K, CP_ASYNC_R, TRANSPOSE, GATHER };

template <class T>
__device__ constexpr CopyMode copy_mode(Layout l) {
    return T::GROUP == 1        ? (k_major(l) ? CP_ASYNC_K : CP_ASYNC_R)
           : l == K_MAJOR_VEC4  ? CP_ASYNC_K
           : l == MN_MAJOR_VEC4 ? TRANSPOSE
                                : GATHER;
}

template <class T, Layout L, int R, int BK, int THREADS>
struct PanelLoader {
    typedef typename T::Elem Elem;
    static constexpr CopyMode MODE = copy_mode<T>(L);
    static constexpr bool ASYNC = MODE == CP_ASYNC_K || MODE == CP_ASYNC_R;
    static constexpr int GROUP = T::GROUP, SIZE = sizeof(Elem), PITCH = R + (k_major(L) ? 4 : 0);
    /* Rows that a thread copies at a time; adjacent lanes copy adjacent k or adjacent rows. */
    static constexpr int WIDTH = MODE == TRANSPOSE ? 16 / SIZE : MODE == CP_ASYNC_R && width(L) == 4 ? 4 : 1;
    static constexpr bool LANES_ALONG_K = MODE == CP_ASYNC_K || (MODE == GATHER && k_major(L));
    static constexpr int COPIES = R * BK / WIDTH, ITERATIONS = (COPIES + THREADS - 1) / THREADS;
    static_assert(BK == 8 && R % WIDTH == 0 && (COPIES % THREADS == 0 || COPIES < THREADS), "");
    static constexpr int STRIDE = THREADS * WIDTH, OFFSETS = LANES_ALONG_K ? ITERATIONS : R > STRIDE ? R / STRIDE : 1;
    __device__ static constexpr int r_of(int i) { return LANES_ALONG_K ? i * (THREADS / BK) : i * STRIDE % R; }
    __device__ static constexpr int k_of(int i) { return LANES_ALONG_K ? 0 : i * STRIDE / R; }

    const char* from;                         /* the panel's first k, row 0 of the tile */
    i64 r_stride, k_stride;                   /* bytes */
    u32 offset[MODE == GATHER ? 1 : OFFSETS]; /* of this thread's copies, in bytes; the host checks that they fit */
    u32 to;
    int r, k, last;
    u32 staged[MODE == TRANSPOSE ? ITERATIONS * GROUP * 4 : 1];

    __device__ PanelLoader(const void* operand, i64 ld, i64 first_r, i64 count, i64 first_k) {
        int t = threadIdx.x % THREADS;
        r_stride = (k_major(L) ? ld : 1) * SIZE, k_stride = (k_major(L) ? 1 : ld) * SIZE;
        from = (const char*)operand + first_r * r_stride + first_k * k_stride;
        k = LANES_ALONG_K ? t % BK : t * WIDTH / R;
        r = LANES_ALONG_K ? t / BK : t * WIDTH % R;
        last = (int)(count - first_r < R ? count - first_r : R) - WIDTH;
#pragma unroll
        for (int i = 0; i < (MODE == GATHER ? 0 : OFFSETS); ++i)
            offset[i] = (u32)(min(r + r_of(i), last) * r_stride + k * GROUP * k_stride);
        to = (u32)(k * PITCH + r) * 4;
    }

    __device__ static constexpr u32 target(int i) { return (u32)(k_of(i) * PITCH + r_of(i)) * 4; }
    __device__ const char* source(int i) const { return from + k_of(i) * GROUP * k_stride + offset[i % OFFSETS]; }
    /* Small panels have fewer copies than there are threads. */
    __device__ bool has_copy() const { return COPIES >= THREADS || k < BK; }

    /* What is transposed in registers is loaded here, before its stage is free. TAIL: only k_left k exist. */
    template <bool TAIL>
    __device__ void prefetch(int k_left) {
        if constexpr (MODE == TRANSPOSE) {
#pragma unroll
            for (int i = 0; i < ITERATIONS; ++i)
#pragma unroll
                for (int g = 0; g < GROUP; ++g) {
                    uint4 v = make_uint4(0, 0, 0, 0);
                    if (has_copy() && (!TAIL || (k + k_of(i)) * GROUP + g < k_left))
                        v = __ldg((const uint4*)(source(i) + g * k_stride));
                    u32* x = staged + (i * GROUP + g) * 4;
                    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
                }
        }
    }

    /* Writes the panel to shared memory, or starts its asynchronous copies, and advances `from` to the next panel. */
    template <bool TAIL>
    __device__ void copy(u32 panel, int k_left) {
        u32 at = panel + to;
        if (!has_copy()) {
        } else if constexpr (MODE == GATHER) {
#pragma unroll 4
            for (int i = 0; i < ITERATIONS; ++i) {
                const char* x = from + min(r + r_of(i), last) * r_stride + (k + k_of(i)) * GROUP * k_stride;
                u32 word = 0;
#pragma unroll
                for (int g = 0; g < GROUP; ++g)
                    if (!TAIL || (k + k_of(i)) * GROUP + g < k_left)
                        word |= (u32)__ldg((const Elem*)(x + g * k_stride)) << (8 * SIZE * g);
                shared_store(at + target(i), word);
            }
        } else if constexpr (MODE == TRANSPOSE) {
#pragma unroll
            for (int i = 0; i < ITERATIONS; ++i) store_transposed(at + target(i), staged + i * GROUP * 4);
        } else {
#pragma unroll
            for (int i = 0; i < ITERATIONS; ++i) {
                bool exists = !TAIL || (k + k_of(i)) * GROUP < k_left;
                const char* x = exists ? source(i) : from;
                if constexpr (WIDTH == 4 && TAIL) cp_async16(at + target(i), x, exists ? 16 : 0);
                else if constexpr (WIDTH == 4) cp_async16(at + target(i), x);
                else if constexpr (TAIL) cp_async4(at + target(i), x, exists ? 4 : 0);
                else cp_async4(at + target(i), x);
            }
        }
        from += BK * GROUP * k_stride;
    }

    /* GROUP rows of 16 bytes: the elements of equal R become one word. */
    __device__ static void store_transposed(u32 to, const u32* x) {
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
