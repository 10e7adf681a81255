/* halves.h: fragments of A and B as words of two halves, and the outer product of them; what one step of k does with
 * the fragments is the policy's (outer_packed.hip, outer_mixed.hip).
 *
 * A word is what memory holds: two steps of k of an operand that lies along k, two rows (columns) of one that does not.
 * Nothing is unpacked: instructions of AMD GPUs take either half of a register as an operand (op_sel).
 */
#include "amd.h"
#include "../gpu_kernels/micro/call.cuh"
#include "../gpu_kernels/micro/types.cuh"
#include "../gpu_kernels/micro/memory.cuh"

#if defined(__HIP__)
typedef _Float16 half_t;
typedef _Float16 Pair __attribute__((ext_vector_type(2)));

__device__ inline Pair multiply_add(Pair a, Pair b, Pair c) {
#if __has_builtin(__builtin_elementwise_fma)
#pragma clang fp contract(off) /* nothing but the fma itself */
    return __builtin_elementwise_fma(a, b, c);
#else
#pragma clang fp contract(fast) /* clang 15 and older: the sum is fused with the product all the same */
    return a * b + c;
#endif
}
__device__ inline Pair as_pair(u32 w) { return amd::bits<Pair>(w); }
__device__ inline half_t half_of(Pair x, int e) { return e ? x.y : x.x; }
__device__ inline Pair both(Pair x, int e) { return e ? x.yy : x.xx; }
__device__ inline Pair halves_of(Pair x, Pair y, int e) { return e ? Pair{x.y, y.y} : Pair{x.x, y.x}; }
__device__ inline float wide(half_t x) { return (float)x; }
#else
typedef __half half_t;
typedef __half2 Pair;

__device__ inline Pair multiply_add(Pair a, Pair b, Pair c) { return __hfma2(a, b, c); }
__device__ inline half_t half_of(Pair x, int e) { return e ? __high2half(x) : __low2half(x); }
__device__ inline Pair both(Pair x, int e) { return e ? __high2half2(x) : __low2half2(x); }
__device__ inline Pair halves_of(Pair x, Pair y, int e) { return e ? __highs2half2(x, y) : __lows2half2(x, y); }
__device__ inline Pair as_pair(u32 w) {
    Pair x;
    *(u32*)&x = w;
    return x;
}
__device__ inline float wide(half_t x) { return __half2float(x); }
#endif

/* Half in, half out, summed in half. */
struct Half {
    typedef u16 Elem, Out;
    typedef half_t Acc;
    __device__ static Acc word(const u32* w, int e) { return __ushort_as_half((u16)(w[e / 2] >> e % 2 * 16)); }
    __device__ static Acc value(Elem x) { return __ushort_as_half(x); }
    __device__ static Acc sum(Out c0, Acc x) { return __ushort_as_half(c0) + x; }
    __device__ static Out result(Acc x) { return __half_as_ushort(x); }
    __device__ static u32 bits(const Out* x, int w) { return (u32)x[2 * w] | (u32)x[2 * w + 1] << 16; }
};

/* Elements (r, u) of U steps of k, r < R. */
template <int R, int U, Layout L>
struct Halves {
    static constexpr bool BY_K = L == K_MAJOR;
    u32 words[R * U / 2];

    /* Words they stay: else the compiler carries halves from turn to turn in registers of their own. */
    __device__ void keep_words() {
#if defined(__HIP__)
#pragma unroll
        for (int i = 0; i < R * U / 2; ++i) asm volatile("" : "+v"(words[i]));
#endif
    }

    __device__ static constexpr int place(int r, int u) { return BY_K ? r * U + u : u * R + r; }
    __device__ Pair word(int r, int u) const { return as_pair(words[place(r, u) / 2]); }
    __device__ half_t one(int r, int u) const { return Half::word(words, place(r, u)); }
    __device__ Pair twice(int r, int u) const { return both(word(r, u), place(r, u) % 2); }
    /* Elements r and r + 1; r is even. */
    __device__ Pair two(int r, int u) const {
        return BY_K ? halves_of(word(r, u), word(r + 1, u), u % 2) : word(r, u);
    }

    /* With EDGE only the first `count` of R exist; the others are 0. */
    template <bool EDGE>
    __device__ void load(const u16* from, i64 r_stride, i64 k_stride, int count) {
        if constexpr (L == ANY) {
            r_stride = fresh(r_stride), k_stride = fresh(k_stride);
#pragma unroll
            for (int u = 0; u < U; ++u)
#pragma unroll
                for (int r = 0; r < R; r += 2) {
                    u32 low = !EDGE || r < count ? __ldg(from + r * r_stride + u * k_stride) : 0;
                    u32 high = !EDGE || r + 1 < count ? __ldg(from + (r + 1) * r_stride + u * k_stride) : 0;
                    words[(u * R + r) / 2] = low | high << 16;
                }
        } else {
            constexpr int LINES = BY_K ? R : U, LENGTH = BY_K ? U : R;
#pragma unroll
            for (int x = 0; x < LINES; ++x) {
                i64 at = BY_K ? x * r_stride : L == PACKED ? (i64)(x * R) : x * k_stride;
                load_words<2 * LENGTH>(words + x * LENGTH / 2, from + at);
            }
        }
    }
};

/* The loop of gpu_kernels/micro/outer.cu over such fragments. Form::Sums<MR, NR> holds the tile: add() does the U steps
 * of k of two fragments, store() writes it. */
template <class Form, int MR, int NR, Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128, 1) outer_halves(const __grid_constant__ Call p) {
    constexpr int U = LA != ANY && LB != ANY ? steps<u16>(LA, LB) : LA == ANY && LB == ANY ? 1 : 2;
    Tile t = tile_of<MR, NR, EDGE>(p, group_index<1>());
    if (!t.inside) return;
    const u16* a = (const u16*)p.a + t.at.a + t.i * p.a_rs;
    const u16* b = (const u16*)p.b + t.at.b + t.j * p.b_cs;
    typename Form::template Sums<MR, NR> sums = {};
    int k = (int)(p.k / U);
    if (k > 0) {
        Halves<MR, U, LA> fa[2];
        Halves<NR, U, LB> fb[2];
        auto fetch = [&](Halves<MR, U, LA>& x, Halves<NR, U, LB>& y) {
            x.template load<EDGE>(a, p.a_rs, p.a_cs, t.rows);
            y.template load<EDGE>(b, p.b_cs, p.b_rs, t.cols);
            a += LA == PACKED ? (i64)(U * MR) : LA == K_MAJOR ? (i64)U : U * p.a_cs;
            b += LB == PACKED ? (i64)(U * NR) : LB == K_MAJOR ? (i64)U : U * p.b_rs;
        };
        auto update = [&](Halves<MR, U, LA>& x, Halves<NR, U, LB>& y) {
            x.keep_words();
            y.keep_words();
            sums.add(x, y);
        };
        fetch(fa[0], fb[0]);
#pragma unroll 1
        for (; k > 2; k -= 2) {
            fetch(fa[1], fb[1]);
            update(fa[0], fb[0]);
            fetch(fa[0], fb[0]);
            update(fa[1], fb[1]);
        }
        if (k == 2) fetch(fa[1], fb[1]);
        update(fa[0], fb[0]);
        if (k == 2) update(fa[1], fb[1]);
    }
#pragma unroll 1
    for (k = (int)(p.k % U); k > 0; --k) {
        Halves<MR, 1, ANY> fa;
        Halves<NR, 1, ANY> fb;
        fa.template load<EDGE>(a, p.a_rs, p.a_cs, t.rows);
        fb.template load<EDGE>(b, p.b_cs, p.b_rs, t.cols);
        a += p.a_cs;
        b += p.b_rs;
        sums.add(fa, fb);
    }
    sums.template store<EDGE>(p, t);
}
