/* mfma: C[SIDE,SIDE] += A[SIDE,K] * B[K,SIDE] on the matrix cores of CDNA, one tile a wave of 64.
 *
 * contract  gpu_kernels/micro/call.cuh; any K: the last step is filled with zeros in registers. K = 0 gives C0 or
 *           zeros. An edge tile (EDGE) reads and writes the elements that exist.
 * tile      hip_f16f32_mfma_16x16, hip_f16f32_mfma_32x32, hip_f32_mfma_16x16, hip_f32_mfma_32x32; k_group 16 for
 *           f16f32 16x16, 8 for f16f32 32x32, 4 for f32 16x16, 2 for f32 32x32
 * regs      MR*NR/64 accumulators; at most 40 registers, at most 52 registers for 32x32; no spills
 * per k     1/16 v_mfma_f32_16x16x16_f16 for f16f32 16x16, 1/8 v_mfma_f32_32x32x8_f16 for f16f32 32x32,
 *           1/4 v_mfma_f32_16x16x4_f32 for f32 16x16, 1/2 v_mfma_f32_32x32x2_f32 for f32 32x32;
 *           (MR + NR)*A_BYTES/1024 loads of 16 bytes; K-major operands; a lane loads one row of A and one column of B
 * ratio     MR*NR / (MR + NR) = 8.00 for 16x16, 16.00 for 32x32
 * rounding  products of f16 are exact, those of f32 are fused into the accumulator; the matrix core adds the steps of k
 *           of an instruction in an order of its own, then one add of C0. gfx90a flushes f16 denormals
 * needs     mfma: gfx908, gfx90a, gfx942, gfx950
 * idea      AMD, CDNA instruction set: lane l holds row (column) l % SIDE at the steps of k of group l / SIDE. Which
 *           steps those are is free as long as A and B agree: U adjacent ones, so that a lane loads 16 bytes for
 *           several instructions. Written here
 * lanes     64
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 2)
 * smem      0 bytes
 */
#include "f16.h"

#if !defined(__gfx908__) && !defined(__gfx90a__) && !defined(__gfx942__) && !defined(__gfx950__)
#error "MFMA: gfx908, gfx90a, gfx942 and gfx950 have it, this target does not"
#endif

typedef float F32x4 __attribute__((ext_vector_type(4)));
typedef float F32x16 __attribute__((ext_vector_type(16)));
typedef f16 F16x4 __attribute__((ext_vector_type(4)));

/* One instruction: STEPS elements of A and of B in a lane. */
struct FromF32 {
    typedef F32 In;
    static constexpr int STEPS = 1;
    __device__ static F32x4 multiply(const float* a, const float* b, F32x4 c) {
        return __builtin_amdgcn_mfma_f32_16x16x4f32(*a, *b, c, 0, 0, 0);
    }
    __device__ static F32x16 multiply(const float* a, const float* b, F32x16 c) {
        return __builtin_amdgcn_mfma_f32_32x32x2f32(*a, *b, c, 0, 0, 0);
    }
};
struct FromF16 {
    typedef F16Only In;
    static constexpr int STEPS = 4;
    __device__ static F16x4 four(const f16* x) { return F16x4{x[0], x[1], x[2], x[3]}; }
    __device__ static F32x4 multiply(const f16* a, const f16* b, F32x4 c) {
        return __builtin_amdgcn_mfma_f32_16x16x16f16(four(a), four(b), c, 0, 0, 0);
    }
    __device__ static F32x16 multiply(const f16* a, const f16* b, F32x16 c) {
        return __builtin_amdgcn_mfma_f32_32x32x8f16(four(a), four(b), c, 0, 0, 0);
    }
};
template <int SIDE>
struct AccumulatorsOf {
    typedef F32x4 Type;
};
template <>
struct AccumulatorsOf<32> {
    typedef F32x16 Type;
};

template <class Form, int SIDE, Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128) mfma_tile(const __grid_constant__ Call p) {
    typedef typename Form::In In;
    typedef typename In::Elem Elem;
    constexpr int GROUPS = 64 / SIDE, U = 16 / sizeof(Elem);
    Tile t = tile_of<SIDE, SIDE, EDGE>(p, group_index<64>());
    if (!t.inside) return;
    int lane = threadIdx.x % 64, line = lane % SIDE, group = lane / SIDE;
    /* Lanes outside of C read its last row or column again; their accumulators are not stored. */
    int row = EDGE ? min(line, t.rows - 1) : line, col = EDGE ? min(line, t.cols - 1) : line;
    const Elem* a = (const Elem*)p.a + t.offsets.a + (t.i + row) * p.a_rs + group * U * p.a_cs;
    const Elem* b = (const Elem*)p.b + t.offsets.b + (t.j + col) * p.b_cs + group * U * p.b_rs;
    typename AccumulatorsOf<SIDE>::Type acc = {};
    auto multiply = [&](const typename In::Acc(&x)[1][U], const typename In::Acc(&y)[1][U]) {
#pragma unroll
        for (int u = 0; u < U; u += Form::STEPS) acc = Form::multiply(&x[0][u], &y[0][u], acc);
    };
    i64 k = p.k;
#pragma unroll 1
    for (; k >= GROUPS * U; k -= GROUPS * U) {
        typename In::Acc fa[1][U], fb[1][U];
        load_fragment<In, 1, U, LA, false>(fa, a, 0, p.a_cs, 1);
        load_fragment<In, 1, U, LB, false>(fb, b, 0, p.b_rs, 1);
        a += GROUPS * U * p.a_cs;
        b += GROUPS * U * p.b_rs;
        multiply(fa, fb);
    }
    if (k > 0) { /* the remainder of K: past its end the last element is read again and replaced by zero */
        int left = (int)k - group * U;
        typename In::Acc fa[1][U], fb[1][U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            int at = min(u, left - 1);
            typename In::Acc x = In::value(__ldg(a + at * p.a_cs)), y = In::value(__ldg(b + at * p.b_rs));
            fa[0][u] = u < left ? x : typename In::Acc(0);
            fb[0][u] = u < left ? y : typename In::Acc(0);
        }
        multiply(fa, fb);
    }
    t.j += line;
#pragma unroll
    for (int r = 0; r < SIDE * SIDE / 64; ++r) {
        Tile one = t;
        int i = r / 4 * (4 * GROUPS) + 4 * group + r % 4;
        one.i += i;
        if (!EDGE || (i < t.rows && line < t.cols)) store_element<F32>(p, one, acc[r]);
    }
}
