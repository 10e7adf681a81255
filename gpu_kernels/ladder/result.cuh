/* result.cuh: from an accumulator, reduced to one number, to an element of C.
 *
 * Partial is the type of that number (what a split tile leaves in the workspace), Out the element type of C, both 16 or
 * 32 bits; 16-bit floats are rounded once, to nearest even.
 */
#include <cuda_fp16.h>
#include "vector.cuh"

struct FloatPartial {
    typedef float Partial;
    __device__ static Partial add(Partial x, Partial y) { return multiply_add(1.0f, x, y); }
    __device__ static Partial scaled(float alpha, Partial x) { return multiply_add(alpha, x, -0.0f); }
};

struct ToF32 : FloatPartial {
    typedef float Out;
    using FloatPartial::scaled;
    __device__ static Partial scaled(float alpha, Partial x, float beta, Out c0) {
        return multiply_add(beta, c0, scaled(alpha, x));
    }
    __device__ static Out out(Partial x) { return x; }
};

struct ToF16 : FloatPartial {
    typedef u16 Out;
    using FloatPartial::scaled;
    __device__ static Partial scaled(float alpha, Partial x, float beta, Out c0) {
        return multiply_add(beta, __half2float(__ushort_as_half(c0)), scaled(alpha, x));
    }
    __device__ static Out out(Partial x) { return __half_as_ushort(__float2half_rn(x)); }
    __device__ static u32 out_pair(Partial x, Partial y) { /* sm_80 */
        u32 bits;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
        return bits;
    }
};

struct ToBf16 : FloatPartial {
    typedef u16 Out;
    using FloatPartial::scaled;
    __device__ static Partial scaled(float alpha, Partial x, float beta, Out c0) {
        return multiply_add(beta, __uint_as_float((u32)c0 << 16), scaled(alpha, x));
    }
    __device__ static Out out(Partial x) {
        Out bits;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
        return bits;
    }
    __device__ static u32 out_pair(Partial x, Partial y) {
        u32 bits;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
        return bits;
    }
};

/* The bits of alpha and beta are those of an int32 here; everything wraps around at 32 bits. */
struct ToI32 {
    typedef int Partial, Out;
    __device__ static Partial add(Partial x, Partial y) { return (int)((u32)x + (u32)y); }
    __device__ static Partial scaled(float alpha, Partial x) { return (int)(__float_as_uint(alpha) * (u32)x); }
    __device__ static Partial scaled(float alpha, Partial x, float beta, Out c0) {
        return add(scaled(alpha, x), scaled(beta, c0));
    }
    __device__ static Out out(Partial x) { return x; }
};
