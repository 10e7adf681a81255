/* vector.cuh: integer types, and loads and stores of one and four floats. Only intrinsics that hip_kernels/amd.h
 * defines too are used here. */
#pragma once
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

/* CuPy compiles with -ftz=true; this form ignores it, so denormals are kept. */
__device__ inline float multiply_add(float a, float b, float c) { return __fmaf_ieee_rn(a, b, c); }

__device__ inline void unpack(float* x, uint4 v) {
    x[0] = __uint_as_float(v.x), x[1] = __uint_as_float(v.y), x[2] = __uint_as_float(v.z), x[3] = __uint_as_float(v.w);
}

__device__ inline uint4 pack(const float* x) {
    return make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3]));
}

/* From global memory that nobody writes during the launch. */
__device__ inline void load4(float* x, const float* from) { unpack(x, __ldg((const uint4*)from)); }

/* Any memory. */
__device__ inline void read4(float* x, const float* from) { unpack(x, *(const uint4*)from); }
__device__ inline void write4(float* to, const float* x) { *(uint4*)to = pack(x); }

/* To global memory; an intrinsic, because the compiler may split a plain 16-byte store. */
__device__ inline void store4(float* to, const float* x) { __stwb((uint4*)to, pack(x)); }

/* threadIdx.x, read again at each call: the compiler keeps neither it nor what follows from it in registers. */
__device__ inline int thread_in_block() {
#ifdef __CUDA_ARCH__
    int x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
#else
    return (int)threadIdx.x;
#endif
}
