/* vec_neon.h: the vector types of the neon kernels: registers of 16 bytes. */
#include <arm_neon.h>

#include "../templates/kernel.h"

/* Loads and stores of C, and of B where it has C's type. The masked forms access n elements only. */
#define NEON_MEMORY(VEC_, vector, elem)                                                                                \
    typedef elem VEC_##_elem_c;                                                                                        \
    typedef vector VEC_##_acc;                                                                                         \
    typedef int VEC_##_mask;                                                                                           \
    enum { VEC_##_lanes = 16 / sizeof(elem), VEC_##_offset = 0 };                                                      \
    INLINE int VEC_##_mask_of(int n) { return n; }                                                                     \
    INLINE vector VEC_##_load_c(const elem *p)                                                                         \
    {                                                                                                                  \
        vector v;                                                                                                      \
        memcpy(&v, p, sizeof v);                                                                                       \
        return v;                                                                                                      \
    }                                                                                                                  \
    INLINE vector VEC_##_load_c_masked(const elem *p, int n)                                                           \
    {                                                                                                                  \
        elem t[VEC_##_lanes] = {0};                                                                                    \
        for (int i = 0; i < n; i++) memcpy(t + i, p + i, sizeof *t);                                                   \
        return VEC_##_load_c(t);                                                                                       \
    }                                                                                                                  \
    INLINE void VEC_##_store(elem *p, vector v) { memcpy(p, &v, sizeof v); }                                           \
    INLINE void VEC_##_store_masked(elem *p, int n, vector v)                                                          \
    {                                                                                                                  \
        elem t[VEC_##_lanes];                                                                                          \
        VEC_##_store(t, v);                                                                                            \
        for (int i = 0; i < n; i++) memcpy(p + i, t + i, sizeof *t);                                                   \
    }                                                                                                                  \
    INLINE void VEC_##_stream(elem *p, vector v) { VEC_##_store(p, v); }

/* An element of A is loaded into lane 0 of a register (ldr), and every fma names that lane. KEEP makes the element
 * unknown to the compiler, which otherwise loads it into all lanes (ld1r): that takes an issue slot of the units that
 * multiply as well. */
#define NEON_FLOAT(VEC_, vector, elem, suffix)                                                                         \
    NEON_MEMORY(VEC_, vector, elem)                                                                                    \
    typedef elem VEC_##_elem_a, VEC_##_elem_b;                                                                         \
    typedef vector VEC_##_vec;                                                                                         \
    enum { VEC_##_k_group = 1 };                                                                                       \
    INLINE vector VEC_##_zero(void) { return vdupq_n_##suffix(0); }                                                    \
    INLINE vector VEC_##_load(const elem *p) { return VEC_##_load_c(p); }                                              \
    INLINE vector VEC_##_load_masked(const elem *p, int n) { return VEC_##_load_c_masked(p, n); }                      \
    INLINE vector VEC_##_broadcast(const elem *p)                                                                      \
    {                                                                                                                  \
        elem x;                                                                                                        \
        memcpy(&x, p, sizeof x);                                                                                       \
        KEEP(x);                                                                                                       \
        return vdupq_n_##suffix(x);                                                                                    \
    }                                                                                                                  \
    INLINE vector VEC_##_fma(vector a, vector b, vector c) { return vfmaq_##suffix(c, b, a); }                         \
    INLINE vector VEC_##_add(vector a, vector b) { return vaddq_##suffix(a, b); }                                      \
    INLINE vector VEC_##_broadcast_c(const void *p) { return VEC_##_broadcast(p); }                                    \
    INLINE elem VEC_##_reduce(vector v) { return vaddvq_##suffix(v); }

NEON_FLOAT(f32x4, float32x4_t, float, f32)
NEON_FLOAT(f64x2, float64x2_t, double, f64)
