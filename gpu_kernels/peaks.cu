/* peaks: the arithmetic peak of the device, measured by a dependency-free loop of one multiply-add instruction.
 *
 * contract  every thread runs `iterations` iterations of ACCUMULATORS * REPEAT instructions on registers; an
 *           instruction depends on the one ACCUMULATORS before it, which hides the latency. `in` holds 1 KiB of numbers
 *           below 1: loaded operands cannot be folded into constants, and no accumulator becomes infinite. A thread
 *           stores the sum of its accumulators.
 * tile      none: an Instruction defines its operands x and y and its accumulator
 * needs     sm_80 for HMMA and IMMA, the largest mma.sync of f16 (m16n8k16) and of int8 (m16n8k32)
 * launch    256 threads a block, any grid that fills the device
 */
#include <cuda_fp16.h>

constexpr int ACCUMULATORS = 16, REPEAT = 8;

struct FFMA {
    using X = float;
    using Y = float;
    using Acc = float;
    static __device__ void step(Acc& c, X x, Y y, int) { c = __fmaf_ieee_rn(c, x, y); }
    static __device__ Acc add(Acc a, Acc b) { return a + b; }
};

struct DFMA {
    using X = double;
    using Y = double;
    using Acc = double;
    static __device__ void step(Acc& c, X x, Y y, int) { c = __fma_rn(c, x, y); }
    static __device__ Acc add(Acc a, Acc b) { return a + b; }
};

struct HFMA2 {
    using X = __half2;
    using Y = __half2;
    using Acc = __half2;
    static __device__ void step(Acc& c, X x, Y y, int) { c = __hfma2(c, x, y); }
    static __device__ Acc add(Acc a, Acc b) { return __hadd2(a, b); }
};

/* One factor is an f16 of a register broadcast to both lanes (.H0_H0, .H1_H1), as an outer product has it. */
struct HFMA2_BROADCAST : HFMA2 {
    static __device__ void step(Acc& c, X x, Y y, int r) {
        c = __hfma2(r % 2 ? __high2half2(x) : __low2half2(x), y, c);
    }
};

struct DP4A {
    using X = int;
    using Y = int;
    using Acc = int;
    static __device__ void step(Acc& c, X x, Y y, int) { c = __dp4a(x, y, c); }
    static __device__ Acc add(Acc a, Acc b) { return a + b; }
};

/* The registers of a fragment of mma.sync. */
template <class T, int N>
struct Fragment {
    T reg[N];
};

struct HMMA {
    using X = Fragment<unsigned, 4>;
    using Y = Fragment<unsigned, 2>;
    using Acc = Fragment<float, 4>;
    static __device__ void step(Acc& c, X x, Y y, int) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c.reg[0]), "+f"(c.reg[1]), "+f"(c.reg[2]), "+f"(c.reg[3])
            : "r"(x.reg[0]), "r"(x.reg[1]), "r"(x.reg[2]), "r"(x.reg[3]), "r"(y.reg[0]), "r"(y.reg[1]));
    }
    static __device__ Acc add(Acc a, Acc b) {
        for (int i = 0; i < 4; ++i) a.reg[i] += b.reg[i];
        return a;
    }
};

struct IMMA {
    using X = Fragment<unsigned, 4>;
    using Y = Fragment<unsigned, 2>;
    using Acc = Fragment<int, 4>;
    static __device__ void step(Acc& c, X x, Y y, int) {
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+r"(c.reg[0]), "+r"(c.reg[1]), "+r"(c.reg[2]), "+r"(c.reg[3])
            : "r"(x.reg[0]), "r"(x.reg[1]), "r"(x.reg[2]), "r"(x.reg[3]), "r"(y.reg[0]), "r"(y.reg[1]));
    }
    static __device__ Acc add(Acc a, Acc b) {
        for (int i = 0; i < 4; ++i) a.reg[i] += b.reg[i];
        return a;
    }
};

template <class Instruction>
__global__ void __launch_bounds__(256) peak(const char* in, typename Instruction::Acc* out, int iterations) {
    using Acc = typename Instruction::Acc;
    auto x = ((const typename Instruction::X*)in)[threadIdx.x % 16];
    auto y = ((const typename Instruction::Y*)(in + 256))[threadIdx.x % 32];
    Acc c[ACCUMULATORS];
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; ++i) c[i] = ((const Acc*)(in + 512))[i];
#pragma unroll 1
    for (int n = 0; n < iterations; ++n)
#pragma unroll
        for (int r = 0; r < REPEAT; ++r)
#pragma unroll
            for (int i = 0; i < ACCUMULATORS; ++i) Instruction::step(c[i], x, y, r);
#pragma unroll
    for (int i = 1; i < ACCUMULATORS; ++i) c[0] = Instruction::add(c[0], c[i]);
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = c[0];
}
