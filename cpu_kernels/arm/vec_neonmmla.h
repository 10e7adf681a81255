/* vec_neonmmla.h: groups of eight bytes, or of four bfloat16, of two rows of A and of two columns of B; an instruction
 * adds their products to a 2 x 2 block of C. For mmla.h. bfmmla takes denormals as zero and rounds to odd. */
#include "vec_neondot.h"

#define MMLA(VEC_, elem_a_, elem_b_, group, acc_, elem_c_, sum_, zero_, fma_)                                          \
    typedef elem_a_ VEC_##_elem_a;                                                                                     \
    typedef elem_b_ VEC_##_elem_b;                                                                                     \
    typedef elem_c_ VEC_##_elem_c;                                                                                     \
    typedef sum_ VEC_##_sum; /* additions of integers wrap */                                                          \
    typedef acc_ VEC_##_acc;                                                                                           \
    enum { VEC_##_k_group = group };                                                                                   \
    INLINE acc_ VEC_##_zero(void) { return zero_; }                                                                    \
    INLINE acc_ VEC_##_fma(uint8x16_t a, uint8x16_t b, acc_ c) { return fma_; }

#define S8(x) vreinterpretq_s8_u8(x)
MMLA(i8x8, int8_t, int8_t, 8, int32x4_t, int32_t, uint32_t, vdupq_n_s32(0), vmmlaq_s32(c, S8(a), S8(b)))
MMLA(u8i8x8, uint8_t, int8_t, 8, int32x4_t, int32_t, uint32_t, vdupq_n_s32(0), vusmmlaq_s32(c, a, S8(b)))
#define BF16(x) vreinterpretq_bf16_u8(x)
MMLA(bf16x4, uint16_t, uint16_t, 4, float32x4_t, float, float, vdupq_n_f32(0), vbfmmlaq_f32(c, BF16(a), BF16(b)))
