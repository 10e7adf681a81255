/* vec_generic.h: 16-byte vectors in plain C with the vector extension of gcc and clang, for any processor.
 * The compiler lowers them to whatever there is (SSE2, NEON, RVV, scalars). */
#include <stdint.h>
#include <string.h>

#include "../templates/kernel.h"

/* Loads and stores by memcpy: no alignment needed, no aliasing rule broken. The masked forms access n elements only. */
#define GENERIC_MEMORY(VEC_, vector, elem)                                                                             \
    enum { VEC_##_lanes = sizeof(vector) / sizeof(elem), VEC_##_offset = 0 };                                          \
    typedef elem VEC_##_elem_c;                                                                                        \
    typedef vector VEC_##_vec, VEC_##_acc;                                                                             \
    typedef int VEC_##_mask;                                                                                           \
    INLINE int VEC_##_mask_of(int n) { return n; }                                                                     \
    INLINE vector VEC_##_zero(void) { return (vector){0}; }                                                            \
    INLINE vector VEC_##_add(vector a, vector b) { return a + b; }                                                     \
    INLINE vector VEC_##_fma(vector a, vector b, vector c) { return a * b + c; }                                       \
    INLINE vector VEC_##_load_c_masked(const elem *p, int n)                                                           \
    {                                                                                                                  \
        vector v = {0};                                                                                                \
        memcpy(&v, p, (size_t)n * sizeof *p);                                                                          \
        return v;                                                                                                      \
    }                                                                                                                  \
    INLINE vector VEC_##_load_c(const elem *p) { return VEC_##_load_c_masked(p, VEC_##_lanes); }                       \
    INLINE void VEC_##_store_masked(elem *p, int n, vector v) { memcpy(p, &v, (size_t)n * sizeof *p); }                \
    INLINE void VEC_##_store(elem *p, vector v) { VEC_##_store_masked(p, VEC_##_lanes, v); }                           \
    INLINE void VEC_##_stream(elem *p, vector v) { VEC_##_store(p, v); }                                               \
    INLINE vector VEC_##_broadcast_c(const void *p) { return VEC_##_load_c_masked(p, 1); }                             \
    INLINE elem VEC_##_reduce(vector v)                                                                                \
    {                                                                                                                  \
        elem sum = 0;                                                                                                  \
        for (int i = 0; i < VEC_##_lanes; i++) sum += (elem)v[i];                                                      \
        return sum;                                                                                                    \
    }

/* Loads of B and A. `widen` takes an array element to the accumulator's type, `widen_all` as many as a vector has. */
#define GENERIC_OPERANDS(VEC_, vector, type_a, type_b, widen, widen_all)                                               \
    typedef type_a VEC_##_elem_a;                                                                                      \
    typedef type_b VEC_##_elem_b;                                                                                      \
    typedef type_b VEC_##_row __attribute__((vector_size(VEC_##_lanes * sizeof(type_b))));                             \
    enum { VEC_##_k_group = 1 };                                                                                       \
    INLINE vector VEC_##_load_masked(const type_b *p, int n)                                                           \
    {                                                                                                                  \
        VEC_##_row row = {0};                                                                                          \
        memcpy(&row, p, (size_t)n * sizeof *p);                                                                        \
        return widen_all(row);                                                                                         \
    }                                                                                                                  \
    INLINE vector VEC_##_load(const type_b *p) { return VEC_##_load_masked(p, VEC_##_lanes); }                         \
    INLINE vector VEC_##_broadcast(const type_a *p)                                                                    \
    {                                                                                                                  \
        type_a x;                                                                                                      \
        vector v;                                                                                                      \
        memcpy(&x, p, sizeof x);                                                                                       \
        UNROLL for (int i = 0; i < VEC_##_lanes; i++) v[i] = widen(x);                                                 \
        return v;                                                                                                      \
    }

typedef float generic_f32 __attribute__((vector_size(16)));
typedef double generic_f64 __attribute__((vector_size(16)));
typedef uint32_t generic_i32 __attribute__((vector_size(16))); /* unsigned, so that additions wrap */

#define SAME(x) (x)
#define TO_I32(x) __builtin_convertvector(x, generic_i32)

GENERIC_MEMORY(f32x4, generic_f32, float)
GENERIC_OPERANDS(f32x4, generic_f32, float, float, SAME, SAME)
GENERIC_MEMORY(f64x2, generic_f64, double)
GENERIC_OPERANDS(f64x2, generic_f64, double, double, SAME, SAME)
GENERIC_MEMORY(i8x4, generic_i32, int32_t)
GENERIC_OPERANDS(i8x4, generic_i32, int8_t, int8_t, (uint32_t)(int32_t), TO_I32)
GENERIC_MEMORY(u8i8x4, generic_i32, int32_t)
GENERIC_OPERANDS(u8i8x4, generic_i32, uint8_t, int8_t, SAME, TO_I32)
