/* vec_sve.h: the vector types of the sve kernels, for outer_vla.h. Of longer registers the first
 * PYSIMD_MOST_VECTOR_BYTES are used. */
#include <arm_sve.h>

#include "../templates/kernel.h"

#define SVE_FLOAT(VEC_, vector, elem, suffix, bits)                                                                    \
    typedef elem VEC_##_elem_a, VEC_##_elem_b, VEC_##_elem_c;                                                          \
    typedef vector VEC_##_vec, VEC_##_acc, VEC_##_scalar;                                                              \
    typedef svbool_t VEC_##_part;                                                                                      \
    INLINE int64_t VEC_##_lanes(void)                                                                                  \
    {                                                                                                                  \
        const int64_t lanes = (int64_t)(svcntb() / sizeof(elem)), most = PYSIMD_MOST_VECTOR_BYTES / sizeof(elem);      \
        return lanes < most ? lanes : most;                                                                            \
    }                                                                                                                  \
    INLINE svbool_t VEC_##_part_of(int64_t n) { return svwhilelt_b##bits(INT64_C(0), n); }                             \
    INLINE vector VEC_##_zero(void) { return svdup_n_##suffix(0); }                                                    \
    INLINE vector VEC_##_broadcast(const elem *p)                                                                      \
    {                                                                                                                  \
        elem x;                                                                                                        \
        memcpy(&x, p, sizeof x);                                                                                       \
        return svdup_n_##suffix(x);                                                                                    \
    }                                                                                                                  \
    INLINE vector VEC_##_load(svbool_t part, const elem *p) { return svld1_##suffix(part, p); }                        \
    INLINE vector VEC_##_load_c(svbool_t part, const elem *p) { return svld1_##suffix(part, p); }                      \
    INLINE void VEC_##_store(svbool_t part, elem *p, vector v) { svst1_##suffix(part, p, v); }                         \
    /* Of all lanes, also those that the tile does not have: their values are never stored. */                         \
    INLINE vector VEC_##_fma(svbool_t part, vector c, vector a, vector b)                                              \
    {                                                                                                                  \
        (void)part;                                                                                                    \
        return svmla_##suffix##_x(svptrue_b##bits(), c, a, b);                                                         \
    }                                                                                                                  \
    INLINE vector VEC_##_add(svbool_t part, vector a, vector b) { return svadd_##suffix##_x(part, a, b); }

SVE_FLOAT(f32, svfloat32_t, float, f32, 32)
SVE_FLOAT(f64, svfloat64_t, double, f64, 64)
