/* ceilings: chains of one arithmetic instruction on registers: what the device can do, to compare kernels with.
 *
 * contract  every thread runs `steps` turns of CHAINS * REPEAT instructions, CHAINS of them independent. Operands come
 *           from memory, so that they are registers and not constants: 1 KiB of numbers below 1, so that no sum becomes
 *           infinite. One result per thread is stored.
 * tile      none: an Instruction says what x, y and the sums are
 * needs     sm_80 for HMMA and IMMA, the largest mma.sync of halves (m16n8k16) and of bytes (m16n8k32)
 * launch    256 threads a block, any grid; enough blocks for a full device
 */
#include <cuda_fp16.h>

constexpr int CHAINS = 16, REPEAT = 8;

struct FFMA {
    using X = float;
    using Y = float;
    using Sum = float;
    static __device__ void step(Sum& c, X x, Y y, int) { c = __fmaf_ieee_rn(c, x, y); }
    static __device__ Sum add(Sum a, Sum b) { return a + b; }
};

struct DFMA {
    using X = double;
    using Y = double;
    using Sum = double;
    static __device__ void step(Sum& c, X x, Y y, int) { c = __fma_rn(c, x, y); }
    static __device__ Sum add(Sum a, Sum b) { return a + b; }
};

struct HFMA2 {
    using X = __half2;
    using Y = __half2;
    using Sum = __half2;
    static __device__ void step(Sum& c, X x, Y y, int) { c = __hfma2(c, x, y); }
    static __device__ Sum add(Sum a, Sum b) { return __hadd2(a, b); }
};

/* One factor taken twice from half a register, as an outer product does. */
struct HFMA2_BROADCAST : HFMA2 {
    static __device__ void step(Sum& c, X x, Y y, int r) { c = __hfma2(r % 2 ? __high2half2(x) : __low2half2(x), y, c); }
};

struct DP4A {
    using X = int;
    using Y = int;
    using Sum = int;
    static __device__ void step(Sum& c, X x, Y y, int) { c = __dp4a(x, y, c); }
    static __device__ Sum add(Sum a, Sum b) { return a + b; }
};

template <class T, int N>
struct Several {
    T part[N];
};

struct HMMA {
    using X = Several<unsigned, 4>;
    using Y = Several<unsigned, 2>;
    using Sum = Several<float, 4>;
    static __device__ void step(Sum& c, X x, Y y, int) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c.part[0]), "+f"(c.part[1]), "+f"(c.part[2]), "+f"(c.part[3])
            : "r"(x.part[0]), "r"(x.part[1]), "r"(x.part[2]), "r"(x.part[3]), "r"(y.part[0]), "r"(y.part[1]));
    }
    static __device__ Sum add(Sum a, Sum b) {
        for (int i = 0; i < 4; ++i) a.part[i] += b.part[i];
        return a;
    }
};

struct IMMA {
    using X = Several<unsigned, 4>;
    using Y = Several<unsigned, 2>;
    using Sum = Several<int, 4>;
    static __device__ void step(Sum& c, X x, Y y, int) {
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+r"(c.part[0]), "+r"(c.part[1]), "+r"(c.part[2]), "+r"(c.part[3])
            : "r"(x.part[0]), "r"(x.part[1]), "r"(x.part[2]), "r"(x.part[3]), "r"(y.part[0]), "r"(y.part[1]));
    }
    static __device__ Sum add(Sum a, Sum b) {
        for (int i = 0; i < 4; ++i) a.part[i] += b.part[i];
        return a;
    }
};

template <class Instruction>
__global__ void __launch_bounds__(256) chain(const char* in, typename Instruction::Sum* out, int steps) {
    using Sum = typename Instruction::Sum;
    auto x = ((const typename Instruction::X*)in)[threadIdx.x % 16];
    auto y = ((const typename Instruction::Y*)(in + 256))[threadIdx.x % 32];
    Sum c[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) c[i] = ((const Sum*)(in + 512))[i];
#pragma unroll 1
    for (int s = 0; s < steps; ++s)
#pragma unroll
        for (int r = 0; r < REPEAT; ++r)
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) Instruction::step(c[i], x, y, r);
#pragma unroll
    for (int i = 1; i < CHAINS; ++i) c[0] = Instruction::add(c[0], c[i]);
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = c[0];
}
