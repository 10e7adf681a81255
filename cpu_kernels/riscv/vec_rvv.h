/* vec_rvv.h: the vector types of the rvv kernels, for outer_vla.h: a row of C is a group of four registers (LMUL 4). Of
 * longer registers the first PYSIMD_MOST_VECTOR_BYTES are used. */
#include <riscv_vector.h>

#include "../templates/kernel.h"

/* Elements of A, B and C, the vectors of B and C, and the names of the intrinsics. */
#define RVV_TYPE(VEC_, elem, vector_b, elem_c, vector_c, bits, load_b, load_c, store_c, dup, add, fma)                 \
    typedef elem VEC_##_elem_a, VEC_##_elem_b, VEC_##_scalar;                                                          \
    typedef elem_c VEC_##_elem_c;                                                                                      \
    typedef vector_b VEC_##_vec;                                                                                       \
    typedef vector_c VEC_##_acc;                                                                                       \
    typedef size_t VEC_##_part;                                                                                        \
    INLINE int64_t VEC_##_lanes(void)                                                                                  \
    {                                                                                                                  \
        const size_t most = 4 * PYSIMD_MOST_VECTOR_BYTES / sizeof(elem_c), lanes = __riscv_vsetvlmax_e##bits##m4();    \
        return (int64_t)(lanes < most ? lanes : most);                                                                 \
    }                                                                                                                  \
    INLINE size_t VEC_##_part_of(int64_t n) { return __riscv_vsetvl_e##bits##m4((size_t)n); }                          \
    INLINE vector_c VEC_##_zero(void) { return dup(0, __riscv_vsetvlmax_e##bits##m4()); }                              \
    INLINE elem VEC_##_broadcast(const elem *p)                                                                        \
    {                                                                                                                  \
        elem x;                                                                                                        \
        memcpy(&x, p, sizeof x);                                                                                       \
        return x;                                                                                                      \
    }                                                                                                                  \
    INLINE vector_b VEC_##_load(size_t vl, const elem *p) { return load_b(p, vl); }                                    \
    INLINE vector_c VEC_##_load_c(size_t vl, const elem_c *p) { return load_c(p, vl); }                                \
    INLINE void VEC_##_store(size_t vl, elem_c *p, vector_c v) { store_c(p, v, vl); }                                  \
    INLINE vector_c VEC_##_add(size_t vl, vector_c a, vector_c b) { return add(a, b, vl); }                            \
    INLINE vector_c VEC_##_fma(size_t vl, vector_c c, elem a, vector_b b) { return fma(c, a, b, vl); }

RVV_TYPE(f32, float, vfloat32m4_t, float, vfloat32m4_t, 32, __riscv_vle32_v_f32m4, __riscv_vle32_v_f32m4,
         __riscv_vse32_v_f32m4, __riscv_vfmv_v_f_f32m4, __riscv_vfadd_vv_f32m4, __riscv_vfmacc_vf_f32m4)
RVV_TYPE(f64, double, vfloat64m4_t, double, vfloat64m4_t, 64, __riscv_vle64_v_f64m4, __riscv_vle64_v_f64m4,
         __riscv_vse64_v_f64m4, __riscv_vfmv_v_f_f64m4, __riscv_vfadd_vv_f64m4, __riscv_vfmacc_vf_f64m4)
/* int8 and uint8 come widened to int16; the product is as wide as the accumulator. */
RVV_TYPE(i16, int16_t, vint16m2_t, int32_t, vint32m4_t, 32, __riscv_vle16_v_i16m2, __riscv_vle32_v_i32m4,
         __riscv_vse32_v_i32m4, __riscv_vmv_v_x_i32m4, __riscv_vadd_vv_i32m4, __riscv_vwmacc_vx_i32m4)
