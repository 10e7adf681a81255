/* narrow.c: see narrow.h. Compiled for the baseline processor. */
#include "narrow.h"

#include <string.h>

#include "../templates/kernel.h"

typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef uint16_t u16x4 __attribute__((vector_size(8)));

/* The masks of a comparison are all ones where it holds. */
INLINE u32x4 chosen(u32x4 mask, u32x4 x, u32x4 otherwise) { return (x & mask) | (otherwise & ~mask); }

INLINE u32x4 bf16(u32x4 x)
{
    const u32x4 nan = (u32x4)((x & 0x7fffffff) > 0x7f800000);
    return chosen(nan, x >> 16 | 0x40, (x + 0x7fff + (x >> 16 & 1)) >> 16);
}

/* A number that is normal in binary16 gets its bias, and is rounded by an addition whose carry goes to the exponent:
 * from 65520 on it arrives at infinity. What is smaller is added to 0.5, whose unit in the last place is the smallest
 * denormal of binary16: the processor rounds. */
INLINE u32x4 f16(u32x4 x)
{
    const u32x4 sign = x & 0x80000000, rest = x & 0x7fffffff;
    const u32x4 normal = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    const u32x4 denormal = (u32x4)((f32x4)rest + 0.5f) - 0x3f000000;
    const u32x4 nan = (rest >> 13 & 0x3ff) | 0x7e00;
    u32x4 found = chosen((u32x4)(rest < 113u << 23), denormal, normal);
    found = chosen((u32x4)(rest >= 143u << 23), (u32x4){0x7c00, 0x7c00, 0x7c00, 0x7c00}, found);
    return chosen((u32x4)(rest > 0x7f800000), nan, found) | sign >> 16;
}

#define NARROW(NAME)                                                                                                   \
    void pysimd_narrow_##NAME(int64_t n, const float *from, void *to)                                                  \
    {                                                                                                                  \
        char *t = to;                                                                                                  \
        for (int64_t i = 0, count; i < n; i += count) {                                                                \
            u32x4 x = {0};                                                                                             \
            count = n - i < 4 ? n - i : 4;                                                                             \
            memcpy(&x, from + i, (size_t)count * sizeof *from);                                                        \
            const u16x4 narrow = __builtin_convertvector(NAME(x), u16x4);                                              \
            memcpy(t + 2 * i, &narrow, (size_t)count * 2);                                                             \
        }                                                                                                              \
    }
NARROW(bf16)
NARROW(f16)

pysimd_narrow_fn *pysimd_narrowing(const pysimd_kernel *kernel)
{
    const int half = kernel->types == F16F32;
#ifdef __x86_64__
    if (kernel->target >= AVX2) return half ? avx2_narrow_f16 : avx2_narrow_bf16;
#endif
    return half ? pysimd_narrow_f16 : pysimd_narrow_bf16;
}
