/* widen.c: see widen.h. Compiled for the baseline processor. */
#include "widen.h"

#include <string.h>

#include "../templates/kernel.h"

typedef uint16_t u16x4 __attribute__((vector_size(8)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));

/* Eight values at a time, then one by one. */
#define WIDEN(NAME, T, U, EIGHT, ONE)                                                                                  \
    void pysimd_widen_##NAME(int64_t n, const void *from, void *to)                                                    \
    {                                                                                                                  \
        const char *f = from;                                                                                          \
        char *t = to;                                                                                                  \
        for (; n >= 8; n -= 8, f += 8 * sizeof(T), t += 8 * sizeof(U)) EIGHT(f, t);                                    \
        for (; n > 0; n--, f += sizeof(T), t += sizeof(U)) {                                                           \
            T x;                                                                                                       \
            memcpy(&x, f, sizeof x);                                                                                   \
            const U wide = ONE(x);                                                                                     \
            memcpy(t, &wide, sizeof wide);                                                                             \
        }                                                                                                              \
    }

/* Sign extension of bytes that stand in the upper half of 16 bits, and zero extension. */
#define EIGHT_BYTES(T)                                                                                                 \
    typedef T T##_x8 __attribute__((vector_size(8)));                                                                  \
    typedef int16_t T##_i16x8 __attribute__((vector_size(16)));                                                        \
    INLINE void T##_eight(const char *from, char *to)                                                                  \
    {                                                                                                                  \
        T##_x8 x;                                                                                                      \
        memcpy(&x, from, sizeof x);                                                                                    \
        const T##_i16x8 wide = __builtin_convertvector(x, T##_i16x8);                                                  \
        memcpy(to, &wide, sizeof wide);                                                                                \
    }
EIGHT_BYTES(int8_t)
EIGHT_BYTES(uint8_t)

INLINE f32x4 bf16x4(u16x4 x) { return (f32x4)(__builtin_convertvector(x, u32x4) << 16); }

/* binary16 by shifting its fields into those of binary32 and scaling by 2^112: exact, denormals too. Infinity and NaN
 * have the largest exponent in both; a quiet NaN keeps its payload, a signalling one becomes quiet, as by F16C. */
INLINE f32x4 f16x4(u16x4 x)
{
    const u32x4 bits = __builtin_convertvector(x, u32x4), sign = (bits & 0x8000) << 16, rest = bits & 0x7fff;
    const f32x4 scaled = (f32x4)(rest << 13) * 0x1p112f;
    const u32x4 special = (u32x4)(rest >= 0x7c00), nan = (u32x4)(rest > 0x7c00) & 0x400000;
    return (f32x4)(sign | ((u32x4)scaled & ~special) | (((rest << 13) | 0x7f800000 | nan) & special));
}

#define HALVES(NAME)                                                                                                   \
    INLINE void NAME##_eight(const char *from, char *to)                                                               \
    {                                                                                                                  \
        u16x4 x, y;                                                                                                    \
        memcpy(&x, from, sizeof x), memcpy(&y, from + sizeof x, sizeof y);                                             \
        const f32x4 low = NAME##x4(x), high = NAME##x4(y);                                                             \
        memcpy(to, &low, sizeof low), memcpy(to + sizeof low, &high, sizeof high);                                     \
    }                                                                                                                  \
    INLINE float NAME##_one(uint16_t x) { return NAME##x4((u16x4){x})[0]; }
HALVES(bf16)
HALVES(f16)

#define SAME(x) (x)
WIDEN(i8, int8_t, int16_t, int8_t_eight, SAME)
WIDEN(u8, uint8_t, int16_t, uint8_t_eight, SAME)
WIDEN(bf16, uint16_t, float, bf16_eight, bf16_one)
WIDEN(f16, uint16_t, float, f16_eight, f16_one)

static pysimd_widen_fn *const plain[TYPES][2] = {
    [BF16F32] = {pysimd_widen_bf16, pysimd_widen_bf16}, [F16F32] = {pysimd_widen_f16, pysimd_widen_f16},
    [I8I32] = {pysimd_widen_i8, pysimd_widen_i8},       [U8I8I32] = {pysimd_widen_u8, pysimd_widen_i8}};

#ifdef __x86_64__
static pysimd_widen_fn *const of_avx2[TYPES][2] = {
    [BF16F32] = {avx2_widen_bf16, avx2_widen_bf16}, [F16F32] = {avx2_widen_f16, avx2_widen_f16},
    [I8I32] = {avx2_widen_i8, avx2_widen_i8},       [U8I8I32] = {avx2_widen_u8, avx2_widen_i8}};
static pysimd_widen_fn *const of_avx512[TYPES] = {[BF16F32] = avx512_widen_bf16, [F16F32] = avx512_widen_f16};
#endif

pysimd_widen_fn *pysimd_widening(const pysimd_kernel *kernel, int operand)
{
#ifdef __x86_64__
    if (kernel->target >= AVX512 && of_avx512[kernel->types]) return of_avx512[kernel->types];
    if (kernel->target >= AVX2) return of_avx2[kernel->types][operand];
#endif
    return plain[kernel->types][operand];
}

pysimd_widen_panels_fn *pysimd_widening_panels(const pysimd_kernel *kernel)
{
#ifdef __x86_64__
    if (kernel->types != BF16F32 && kernel->types != F16F32) return NULL;
    const int bf16 = kernel->types == BF16F32;
    if (kernel->target >= AVX512 && kernel->nr % 16 == 0)
        return bf16 ? avx512_widen_panels_bf16 : avx512_widen_panels_f16;
    if (kernel->target == AVX2 && kernel->nr % 8 == 0) return bf16 ? avx2_widen_panels_bf16 : avx2_widen_panels_f16;
#endif
    (void)kernel;
    return NULL;
}
