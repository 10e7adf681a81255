/* f16.h: fragments of f16 operands, packed two to a register, and the main loop of their outer product. A policy
 * multiplies the fragments of a step of k (outer_packed.hip, outer_mixed.hip).
 *
 * A register holds what memory holds: two steps of k of a K-major operand, two rows (columns) of any other. Nothing is
 * unpacked: instructions of AMD GPUs take the low or the high f16 of a register as an operand (op_sel).
 */
#include "amd.h"
#include "../gpu_kernels/micro/call.cuh"
#include "../gpu_kernels/micro/types.cuh"
#include "../gpu_kernels/micro/memory.cuh"

#if defined(__HIP__)
typedef _Float16 f16;
typedef _Float16 Pair __attribute__((ext_vector_type(2)));

__device__ inline Pair multiply_add(Pair a, Pair b, Pair c) {
#if __has_builtin(__builtin_elementwise_fma)
#pragma clang fp contract(off) /* nothing but the fma itself */
    return __builtin_elementwise_fma(a, b, c);
#else
#pragma clang fp contract(fast) /* clang 15 and older: product and sum are fused into the same instruction */
    return a * b + c;
#endif
}
__device__ inline Pair as_pair(u32 w) { return amd::bits<Pair>(w); }
__device__ inline f16 element(Pair x, int e) { return e ? x.y : x.x; }
__device__ inline Pair broadcast(Pair x, int e) { return e ? x.yy : x.xx; }
__device__ inline Pair pair_of(Pair x, Pair y, int e) { return e ? Pair{x.y, y.y} : Pair{x.x, y.x}; }
__device__ inline float to_f32(f16 x) { return (float)x; }
#else
typedef __half f16;
typedef __half2 Pair;

__device__ inline Pair multiply_add(Pair a, Pair b, Pair c) { return __hfma2(a, b, c); }
__device__ inline f16 element(Pair x, int e) { return e ? __high2half(x) : __low2half(x); }
__device__ inline Pair broadcast(Pair x, int e) { return e ? __high2half2(x) : __low2half2(x); }
__device__ inline Pair pair_of(Pair x, Pair y, int e) { return e ? __highs2half2(x, y) : __lows2half2(x, y); }
__device__ inline Pair as_pair(u32 w) {
    Pair x;
    *(u32*)&x = w;
    return x;
}
__device__ inline float to_f32(f16 x) { return __half2float(x); }
#endif

/* f16 throughout. */
struct F16Only {
    typedef u16 Elem, Out;
    typedef f16 Acc;
    __device__ static Acc word(const u32* w, int e) { return __ushort_as_half((u16)(w[e / 2] >> e % 2 * 16)); }
    __device__ static Acc value(Elem x) { return __ushort_as_half(x); }
    __device__ static Acc add(Out c0, Acc x) { return __ushort_as_half(c0) + x; }
    __device__ static Out result(Acc x) { return __half_as_ushort(x); }
    __device__ static u32 bits(const Out* x, int w) { return (u32)x[2 * w] | (u32)x[2 * w + 1] << 16; }
};

/* Elements (r, u) of U steps of k, r < R. */
template <int R, int U, Layout L>
struct F16Fragment {
    static constexpr bool K_INNER = L == K_MAJOR;
    u32 words[R * U / 2];

    /* Keeps two f16 in a register across iterations: the compiler would keep each in a register of its own. */
    __device__ void keep_packed() {
#if defined(__HIP__)
#pragma unroll
        for (int i = 0; i < R * U / 2; ++i) asm volatile("" : "+v"(words[i]));
#endif
    }

    __device__ static constexpr int index(int r, int u) { return K_INNER ? r * U + u : u * R + r; }
    __device__ Pair word(int r, int u) const { return as_pair(words[index(r, u) / 2]); }
    __device__ f16 one(int r, int u) const { return F16Only::word(words, index(r, u)); }
    __device__ Pair broadcast(int r, int u) const { return ::broadcast(word(r, u), index(r, u) % 2); }
    /* Elements r and r + 1, r even. */
    __device__ Pair pair(int r, int u) const {
        return K_INNER ? pair_of(word(r, u), word(r + 1, u), u % 2) : word(r, u);
    }

    /* With EDGE only the first `count` of R exist; the others are 0. */
    template <bool EDGE>
    __device__ void load(const u16* from, i64 r_stride, i64 k_stride, int count) {
        if constexpr (L == ANY) {
            r_stride = opaque(r_stride), k_stride = opaque(k_stride);
#pragma unroll
            for (int u = 0; u < U; ++u)
#pragma unroll
                for (int r = 0; r < R; r += 2) {
                    u32 low = !EDGE || r < count ? __ldg(from + r * r_stride + u * k_stride) : 0;
                    u32 high = !EDGE || r + 1 < count ? __ldg(from + (r + 1) * r_stride + u * k_stride) : 0;
                    words[(u * R + r) / 2] = low | high << 16;
                }
        } else {
            constexpr int LINES = K_INNER ? R : U, LENGTH = K_INNER ? U : R;
#pragma unroll
            for (int x = 0; x < LINES; ++x) {
                i64 at = K_INNER ? x * r_stride : L == PACKED ? (i64)(x * R) : x * k_stride;
                load_words<2 * LENGTH>(words + x * LENGTH / 2, from + at);
            }
        }
    }
};

/* The main loop of gpu_kernels/micro/outer.cu over such fragments. Form::Accumulators<MR, NR> is the tile: add() adds
 * the U steps of k of two fragments, store() stores it. */
template <class Form, int MR, int NR, Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128, 1) outer_f16(const __grid_constant__ Call p) {
    constexpr int U = LA != ANY && LB != ANY ? steps<u16>(LA, LB) : LA == ANY && LB == ANY ? 1 : 2;
    Tile t = tile_of<MR, NR, EDGE>(p, group_index<1>());
    if (!t.inside) return;
    const u16* a = (const u16*)p.a + t.offsets.a + t.i * p.a_rs;
    const u16* b = (const u16*)p.b + t.offsets.b + t.j * p.b_cs;
    typename Form::template Accumulators<MR, NR> acc = {};
    u32 k = (u32)(p.k / U);
    if (k > 0) {
        F16Fragment<MR, U, LA> fa[2];
        F16Fragment<NR, U, LB> fb[2];
        auto fetch = [&](F16Fragment<MR, U, LA>& x, F16Fragment<NR, U, LB>& y) {
            x.template load<EDGE>(a, p.a_rs, p.a_cs, t.rows);
            y.template load<EDGE>(b, p.b_cs, p.b_rs, t.cols);
            a += LA == PACKED ? (i64)(U * MR) : LA == K_MAJOR ? (i64)U : U * p.a_cs;
            b += LB == PACKED ? (i64)(U * NR) : LB == K_MAJOR ? (i64)U : U * p.b_rs;
        };
        auto update = [&](F16Fragment<MR, U, LA>& x, F16Fragment<NR, U, LB>& y) {
            x.keep_packed();
            y.keep_packed();
            acc.add(x, y);
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
    for (int left = (int)(p.k % U); left > 0; --left) {
        F16Fragment<MR, 1, ANY> fa;
        F16Fragment<NR, 1, ANY> fb;
        fa.template load<EDGE>(a, p.a_rs, p.a_cs, t.rows);
        fb.template load<EDGE>(b, p.b_cs, p.b_rs, t.cols);
        a += p.a_cs;
        b += p.b_rs;
        acc.add(fa, fb);
    }
    acc.template store<EDGE>(p, t);
}
