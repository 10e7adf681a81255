/* word.cuh: 32-bit words that one instruction multiplies: one f32, two f16 or four int8 along k.
 *
 * With packed words the register tile is the same for the three types: a rank-1 update, word by word. GROUP is k per
 * word, Acc the type of an accumulator, Partial that of an accumulator reduced to one number (what a split tile leaves
 * in the workspace), Out the element type of C.
 */
#include <cuda_fp16.h>
#include "vector.cuh"

struct F32 {
    typedef u32 Elem;
    typedef float Acc, Partial, Out;
    static constexpr int GROUP = 1;
    static constexpr bool SERPENTINE = true;
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return multiply_add(__uint_as_float(a), __uint_as_float(b), c); }
    __device__ static Partial partial(Acc c) { return c; }
    __device__ static Partial add(Partial x, Partial y) { return multiply_add(1.0f, x, y); }
    __device__ static Partial scaled(float alpha, Partial x) { return multiply_add(alpha, x, -0.0f); }
    __device__ static Partial scaled(float alpha, Partial x, float beta, Out c0) {
        return multiply_add(beta, c0, scaled(alpha, x));
    }
    __device__ static Out out(Partial x) { return x; }
};

/* An accumulator is a pair: even k and odd k, added at the end. */
struct F16 {
    typedef u16 Elem, Out;
    typedef __half2 Acc;
    typedef float Partial;
    static constexpr int GROUP = 2;
    static constexpr bool SERPENTINE = false;
    __device__ static __half2 half2_of(u32 w) {
        __half2 h;
        *(u32*)&h = w;
        return h;
    }
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return __hfma2(half2_of(a), half2_of(b), c); }
    __device__ static Partial partial(Acc c) { return __half2float(__hadd_rn(__low2half(c), __high2half(c))); }
    __device__ static Partial add(Partial x, Partial y) { return multiply_add(1.0f, x, y); }
    __device__ static Partial scaled(float alpha, Partial x) { return multiply_add(alpha, x, -0.0f); }
    __device__ static Partial scaled(float alpha, Partial x, float beta, Out c0) {
        return multiply_add(beta, __half2float(__ushort_as_half(c0)), scaled(alpha, x));
    }
    __device__ static Out out(Partial x) { return __half_as_ushort(__float2half_rn(x)); }
};

/* The bits of alpha and beta are those of an int32 here; everything wraps around at 32 bits. */
struct I8 {
    typedef unsigned char Elem;
    typedef int Acc, Partial, Out;
    static constexpr int GROUP = 4;
    static constexpr bool SERPENTINE = true;
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return __dp4a((int)a, (int)b, c); }
    __device__ static Partial partial(Acc c) { return c; }
    __device__ static Partial add(Partial x, Partial y) { return (int)((u32)x + (u32)y); }
    __device__ static Partial scaled(float alpha, Partial x) { return (int)(__float_as_uint(alpha) * (u32)x); }
    __device__ static Partial scaled(float alpha, Partial x, float beta, Out c0) {
        return add(scaled(alpha, x), scaled(beta, c0));
    }
    __device__ static Out out(Partial x) { return x; }
};
