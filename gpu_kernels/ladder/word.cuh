/* word.cuh: 32-bit words of shared memory that one instruction multiplies: a float, two halves or four bytes along k.
 *
 * With words the register tile is the same for all three: a rank-1 update of word by word. GROUP is k per word, Acc
 * what sums are kept in, Part what they are as one number, Out what C holds.
 */
#include <cuda_fp16.h>

struct F32 {
    typedef u32 Elem;
    typedef float Acc, Part, Out;
    static constexpr int GROUP = 1;
    static constexpr bool TURNS = true;
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return multiply_add(__uint_as_float(a), __uint_as_float(b), c); }
    __device__ static Part part(Acc c) { return c; }
    __device__ static Part add(Part x, Part y) { return multiply_add(1.0f, x, y); }
    __device__ static Part scaled(float alpha, Part x) { return multiply_add(alpha, x, -0.0f); }
    __device__ static Part scaled(float alpha, Part x, float beta, Out c0) {
        return multiply_add(beta, c0, scaled(alpha, x));
    }
    __device__ static Out out(Part x) { return x; }
};

/* Half sums: even k and odd k apart, added at the end. */
struct F16 {
    typedef u16 Elem, Out;
    typedef __half2 Acc;
    typedef float Part;
    static constexpr int GROUP = 2;
    static constexpr bool TURNS = false;
    __device__ static __half2 halves(u32 w) {
        __half2 h;
        *(u32*)&h = w;
        return h;
    }
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return __hfma2(halves(a), halves(b), c); }
    __device__ static Part part(Acc c) { return __half2float(__hadd_rn(__low2half(c), __high2half(c))); }
    __device__ static Part add(Part x, Part y) { return multiply_add(1.0f, x, y); }
    __device__ static Part scaled(float alpha, Part x) { return multiply_add(alpha, x, -0.0f); }
    __device__ static Part scaled(float alpha, Part x, float beta, Out c0) {
        return multiply_add(beta, __half2float(__ushort_as_half(c0)), scaled(alpha, x));
    }
    __device__ static Out out(Part x) { return __half_as_ushort(__float2half_rn(x)); }
};

/* The bits of alpha and beta are those of an int32 here; everything wraps around at 32 bits. */
struct I8 {
    typedef unsigned char Elem;
    typedef int Acc, Part, Out;
    static constexpr int GROUP = 4;
    static constexpr bool TURNS = true;
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return __dp4a((int)a, (int)b, c); }
    __device__ static Part part(Acc c) { return c; }
    __device__ static Part add(Part x, Part y) { return (int)((u32)x + (u32)y); }
    __device__ static Part scaled(float alpha, Part x) { return (int)(__float_as_uint(alpha) * (u32)x); }
    __device__ static Part scaled(float alpha, Part x, float beta, Out c0) {
        return add(scaled(alpha, x), scaled(beta, c0));
    }
    __device__ static Out out(Part x) { return x; }
};
