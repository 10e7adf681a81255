/* ceilings: chains of one arithmetic instruction on registers: what the device can do, to compare kernels with.
 *
 * contract  ffma, hfma2, dp4a: every thread runs `steps` turns of CHAINS * REPEAT independent instructions; operands come
 *           from memory, so that they are registers and not constants. One result per thread is stored.
 * launch    any grid; enough blocks for a full device
 */
#include <cuda_fp16.h>

constexpr int CHAINS = 16, REPEAT = 8;

extern "C" __global__ void __launch_bounds__(256) ffma(const float* in, float* out, int steps) {
    float x = in[threadIdx.x % 32], y = in[32 + threadIdx.x % 32], c[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) c[i] = in[64 + i];
#pragma unroll 1
    for (int s = 0; s < steps; ++s)
#pragma unroll
        for (int r = 0; r < REPEAT; ++r)
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) c[i] = __fmaf_ieee_rn(c[i], x, y);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum += c[i];
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256) hfma2(const __half2* in, __half2* out, int steps) {
    __half2 x = in[threadIdx.x % 32], y = in[32 + threadIdx.x % 32], c[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) c[i] = in[64 + i];
#pragma unroll 1
    for (int s = 0; s < steps; ++s)
#pragma unroll
        for (int r = 0; r < REPEAT; ++r)
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) c[i] = __hfma2(c[i], x, y);
    __half2 sum = c[0];
#pragma unroll
    for (int i = 1; i < CHAINS; ++i) sum = __hadd2(sum, c[i]);
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* As hfma2, one factor taken twice from half a register, as an outer product does. */
extern "C" __global__ void __launch_bounds__(256) hfma2_broadcast(const __half2* in, __half2* out, int steps) {
    __half2 x = in[threadIdx.x % 32], y = in[32 + threadIdx.x % 32], c[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) c[i] = in[64 + i];
#pragma unroll 1
    for (int s = 0; s < steps; ++s)
#pragma unroll
        for (int r = 0; r < REPEAT; ++r)
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) c[i] = __hfma2(r % 2 ? __high2half2(x) : __low2half2(x), y, c[i]);
    __half2 sum = c[0];
#pragma unroll
    for (int i = 1; i < CHAINS; ++i) sum = __hadd2(sum, c[i]);
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256) dp4a(const int* in, int* out, int steps) {
    int x = in[threadIdx.x % 32], y = in[32 + threadIdx.x % 32], c[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) c[i] = in[64 + i];
#pragma unroll 1
    for (int s = 0; s < steps; ++s)
#pragma unroll
        for (int r = 0; r < REPEAT; ++r)
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) c[i] = __dp4a(x, y, c[i]);
    int sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum += c[i];
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
