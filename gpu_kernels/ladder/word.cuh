/* word.cuh: 32-bit words that one instruction multiplies: one f32, two f16 or four int8 along k.
 *
 * With packed words the register tile is the same for the three types: a rank-1 update, word by word. GROUP is k per
 * word, Acc the type of an accumulator, Partial that of an accumulator reduced to one number, Out the element type of C
 * (result.cuh).
 */
#include "result.cuh"

struct F32 : ToF32 {
    typedef u32 Elem;
    typedef float Acc;
    static constexpr int GROUP = 1;
    static constexpr bool SERPENTINE = true;
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return multiply_add(__uint_as_float(a), __uint_as_float(b), c); }
    __device__ static Partial partial(Acc c) { return c; }
};

/* An accumulator is a pair: even k and odd k, added at the end. */
struct F16 : ToF16 {
    typedef u16 Elem;
    typedef __half2 Acc;
    static constexpr int GROUP = 2;
    static constexpr bool SERPENTINE = false;
    __device__ static __half2 half2_of(u32 w) {
        __half2 h;
        *(u32*)&h = w;
        return h;
    }
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return __hfma2(half2_of(a), half2_of(b), c); }
    __device__ static Partial partial(Acc c) { return __half2float(__hadd_rn(__low2half(c), __high2half(c))); }
};

struct I8 : ToI32 {
    typedef unsigned char Elem;
    typedef int Acc;
    static constexpr int GROUP = 4;
    static constexpr bool SERPENTINE = true;
    __device__ static Acc mac(u32 a, u32 b, Acc c) { return __dp4a((int)a, (int)b, c); }
    __device__ static Partial partial(Acc c) { return c; }
};
