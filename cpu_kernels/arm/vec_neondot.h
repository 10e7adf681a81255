/* vec_neondot.h: groups of four bytes and int32 accumulators, for sdot. */
#include "vec_neon.h"

/* Four bytes at p in lane 0 of a register; see NEON_FLOAT. */
INLINE int8x16_t load_group(const void *p)
{
    float x = get_f32(p);
    KEEP(x);
    return vreinterpretq_s8_f32(vdupq_n_f32(x));
}

/* Rows of B in groups: `bytes` of each column are adjacent. */
INLINE int8x16_t load_bytes(const void *p, int bytes)
{
    int8x16_t v = vdupq_n_s8(0);
    memcpy(&v, p, (size_t)bytes);
    return v;
}

#define NEON_INT32(VEC_)                                                                                               \
    NEON_MEMORY(VEC_, int32x4_t, int32_t)                                                                              \
    typedef int8x16_t VEC_##_vec;                                                                                      \
    enum { VEC_##_k_group = 4 };                                                                                       \
    INLINE int32x4_t VEC_##_zero(void) { return vdupq_n_s32(0); }                                                      \
    INLINE int32x4_t VEC_##_add(int32x4_t a, int32x4_t b) { return vaddq_s32(a, b); }                                  \
    INLINE int32x4_t VEC_##_broadcast_c(const void *p) { return vdupq_n_s32(get_i32(p)); }                             \
    INLINE int8x16_t VEC_##_load(const void *p) { return load_bytes(p, 16); }                                          \
    INLINE int8x16_t VEC_##_load_masked(const void *p, int n) { return load_bytes(p, 4 * n); }                         \
    INLINE int8x16_t VEC_##_broadcast(const void *p) { return load_group(p); }

NEON_INT32(i8x16)
typedef int8_t i8x16_elem_a, i8x16_elem_b;
INLINE int32x4_t i8x16_fma(int8x16_t a, int8x16_t b, int32x4_t c) { return vdotq_laneq_s32(c, b, a, 0); }
