/* types.cuh: the number types: their elements in 32-bit words, and their multiply-add.
 *
 * CuPy compiles with -ftz=true. The f32 multiply-add used here ignores it, so denormals are kept.
 */
#if !defined(__HIP__)
#include <cuda_fp16.h>
#endif

__device__ inline float multiply_add(float a, float b, float c) { return __fmaf_ieee_rn(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }

__device__ inline float f16_value(u32 bits) { return __half2float(__ushort_as_half((u16)bits)); }

/* Elem is the type of an array's elements, Acc of accumulators, Out of results. word() is element e of consecutive
 * words, value() one element, add() adds C0 to an accumulator, bits() is word w of consecutive results. */
struct F32 {
    typedef float Elem, Acc, Out;
    __device__ static Acc word(const u32* w, int e) { return __uint_as_float(w[e]); }
    __device__ static Acc value(Elem x) { return x; }
    __device__ static Acc add(Out c0, Acc x) { return __fmaf_ieee_rn(1.0f, c0, x); }
    __device__ static Out result(Acc x) { return x; }
    __device__ static u32 bits(const Out* x, int w) { return __float_as_uint(x[w]); }
};

struct F64 {
    typedef double Elem, Acc, Out;
    __device__ static Acc word(const u32* w, int e) { return __hiloint2double((int)w[2 * e + 1], (int)w[2 * e]); }
    __device__ static Acc value(Elem x) { return x; }
    __device__ static Acc add(Out c0, Acc x) { return c0 + x; }
    __device__ static Out result(Acc x) { return x; }
    __device__ static u32 bits(const Out* x, int w) {
        return (u32)(w & 1 ? __double2hiint(x[w / 2]) : __double2loint(x[w / 2]));
    }
};

struct F16F32 {
    typedef u16 Elem;
    typedef float Acc, Out;
    __device__ static Acc word(const u32* w, int e) { return f16_value(e & 1 ? w[e / 2] >> 16 : w[e / 2]); }
    __device__ static Acc value(Elem x) { return f16_value(x); }
    __device__ static Acc add(Out c0, Acc x) { return __fmaf_ieee_rn(1.0f, c0, x); }
    __device__ static Out result(Acc x) { return x; }
    __device__ static u32 bits(const Out* x, int w) { return __float_as_uint(x[w]); }
};

/* f16 in, f16 out, accumulated in f32 and rounded once. */
struct F16 {
    typedef u16 Elem, Out;
    typedef float Acc;
    __device__ static Acc word(const u32* w, int e) { return F16F32::word(w, e); }
    __device__ static Acc value(Elem x) { return f16_value(x); }
    __device__ static Acc add(Out c0, Acc x) { return __fmaf_ieee_rn(1.0f, f16_value(c0), x); }
    __device__ static Out result(Acc x) { return __half_as_ushort(__float2half_rn(x)); }
    __device__ static u32 bits(const Out* x, int w) { return (u32)x[2 * w] | (u32)x[2 * w + 1] << 16; }
};

struct BF16F32 {
    typedef u16 Elem;
    typedef float Acc, Out;
    __device__ static Acc word(const u32* w, int e) {
        return __uint_as_float(e & 1 ? w[e / 2] & 0xffff0000u : w[e / 2] << 16);
    }
    __device__ static Acc value(Elem x) { return __uint_as_float((u32)x << 16); }
    __device__ static Acc add(Out c0, Acc x) { return __fmaf_ieee_rn(1.0f, c0, x); }
    __device__ static Out result(Acc x) { return x; }
    __device__ static u32 bits(const Out* x, int w) { return __float_as_uint(x[w]); }
};

/* To nearest even; of a NaN the one that cvt.rn.bf16.f32 gives. */
__device__ inline u16 bf16_bits(float x) {
#if __CUDA_ARCH__ >= 800
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    u32 bits = __float_as_uint(x), nearest = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (u16)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : nearest);
#endif
}

/* bf16 in, bf16 out, accumulated in f32 and rounded once. */
struct BF16 {
    typedef u16 Elem, Out;
    typedef float Acc;
    __device__ static Acc word(const u32* w, int e) { return BF16F32::word(w, e); }
    __device__ static Acc value(Elem x) { return BF16F32::value(x); }
    __device__ static Acc add(Out c0, Acc x) { return __fmaf_ieee_rn(1.0f, value(c0), x); }
    __device__ static Out result(Acc x) { return bf16_bits(x); }
    __device__ static u32 bits(const Out* x, int w) { return (u32)x[2 * w] | (u32)x[2 * w + 1] << 16; }
};

struct I8I32 {
    typedef signed char Elem;
    typedef int Acc, Out;
    __device__ static Acc add(Out c0, Acc x) { return (int)((u32)c0 + (u32)x); }
    __device__ static Out result(Acc x) { return x; }
    __device__ static u32 bits(const Out* x, int w) { return (u32)x[w]; }
};
