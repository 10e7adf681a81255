/* vec_avx512_gemv.h: what templates/gemv.h needs of the vector types of AVX-512. 16-bit floats are widened while
 * loading. */
#include "vec_avx512.h"

/* The lanes of four registers side by side: `to` is 4 times as many elements, those of lane 0 first. The quarters are
 * written out: with the sanitizers a counter is no immediate. */
#define STORE_QUARTERS(QUARTER, STORE, v, to, apart)                                                                   \
    STORE((to), QUARTER(v, 0)), STORE((to) + (apart), QUARTER(v, 1)), STORE((to) + 2 * (apart), QUARTER(v, 2)),        \
        STORE((to) + 3 * (apart), QUARTER(v, 3))

INLINE void interleave_pd(const __m512d *v, double *to)
{
    const __m512d low01 = _mm512_unpacklo_pd(v[0], v[1]), high01 = _mm512_unpackhi_pd(v[0], v[1]);
    const __m512d low23 = _mm512_unpacklo_pd(v[2], v[3]), high23 = _mm512_unpackhi_pd(v[2], v[3]);
    STORE_QUARTERS(_mm512_extractf64x2_pd, _mm_storeu_pd, low01, to, 8);
    STORE_QUARTERS(_mm512_extractf64x2_pd, _mm_storeu_pd, low23, to + 2, 8);
    STORE_QUARTERS(_mm512_extractf64x2_pd, _mm_storeu_pd, high01, to + 4, 8);
    STORE_QUARTERS(_mm512_extractf64x2_pd, _mm_storeu_pd, high23, to + 6, 8);
}

INLINE void interleave_ps(const __m512 *v, float *to)
{
    const __m512 low01 = _mm512_unpacklo_ps(v[0], v[1]), high01 = _mm512_unpackhi_ps(v[0], v[1]);
    const __m512 low23 = _mm512_unpacklo_ps(v[2], v[3]), high23 = _mm512_unpackhi_ps(v[2], v[3]);
    const __m512 lanes[4] = {_mm512_shuffle_ps(low01, low23, 0x44), _mm512_shuffle_ps(low01, low23, 0xee),
                             _mm512_shuffle_ps(high01, high23, 0x44), _mm512_shuffle_ps(high01, high23, 0xee)};
    UNROLL for (int i = 0; i < 4; i++)
        STORE_QUARTERS(_mm512_extractf32x4_ps, _mm_storeu_ps, lanes[i], to + 4 * i, 16);
}
#undef STORE_QUARTERS

/* The same of N registers, two to four, and N times as many elements. Of three, element e is lane e / 3 of register e % 3.
 */
INLINE void interleave_dense_ps(const int N, const __m512 *v, float *to)
{
    if (N == 4) {
        interleave_ps(v, to);
    } else if (N == 2) {
        const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        _mm512_storeu_ps(to, _mm512_permutex2var_ps(v[0], low, v[1]));
        _mm512_storeu_ps(to + 16, _mm512_permutex2var_ps(v[0], _mm512_add_epi32(low, _mm512_set1_epi32(8)), v[1]));
    } else {
        const __m512i lanes[3] = {
            _mm512_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5),
            _mm512_setr_epi32(5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10),
            _mm512_setr_epi32(10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15),
        };
        const __mmask16 of_1[3] = {0x2492, 0x9249, 0x4924};
        const __mmask16 of_2[3] = {0x4924, 0x2492, 0x9249};
        UNROLL for (int i = 0; i < 3; i++) {
            __m512 x = _mm512_permutexvar_ps(lanes[i], v[0]);
            x = _mm512_mask_permutexvar_ps(x, of_1[i], lanes[i], v[1]);
            _mm512_storeu_ps(to + 16 * i, _mm512_mask_permutexvar_ps(x, of_2[i], lanes[i], v[2]));
        }
    }
}

INLINE void interleave_dense_pd(const int N, const __m512d *v, double *to)
{
    if (N == 4) {
        interleave_pd(v, to);
    } else if (N == 2) {
        const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        _mm512_storeu_pd(to, _mm512_permutex2var_pd(v[0], low, v[1]));
        _mm512_storeu_pd(to + 8, _mm512_permutex2var_pd(v[0], _mm512_add_epi64(low, _mm512_set1_epi64(4)), v[1]));
    } else {
        const __m512i lanes[3] = {_mm512_setr_epi64(0, 0, 0, 1, 1, 1, 2, 2), _mm512_setr_epi64(2, 3, 3, 3, 4, 4, 4, 5),
                                  _mm512_setr_epi64(5, 5, 6, 6, 6, 7, 7, 7)};
        const __mmask8 of_1[3] = {0x92, 0x24, 0x49};
        const __mmask8 of_2[3] = {0x24, 0x49, 0x92};
        UNROLL for (int i = 0; i < 3; i++) {
            __m512d x = _mm512_permutexvar_pd(lanes[i], v[0]);
            x = _mm512_mask_permutexvar_pd(x, of_1[i], lanes[i], v[1]);
            _mm512_storeu_pd(to + 8 * i, _mm512_mask_permutexvar_pd(x, of_2[i], lanes[i], v[2]));
        }
    }
}

/* float and double: the operations of the outer product, and parts of a vector by mask */
#define GEMV_FLOATS(VEC_, elem, count)                                                                                 \
    enum { VEC_##_rows = count, VEC_##_depth = 1, VEC_##_widens = 0 };                                                 \
    typedef elem VEC_##_sum, VEC_##_wide;                                                                              \
    typedef VEC_##_mask VEC_##_part;                                                                                   \
    INLINE void VEC_##_store_wide(elem *p, VEC_##_vec v) { VEC_##_store(p, v); }                                       \
    INLINE VEC_##_vec VEC_##_broadcast_wide(const elem *p) { return VEC_##_broadcast(p); }                             \
    INLINE VEC_##_mask VEC_##_part_of(int n) { return VEC_##_mask_of(n); }                                             \
    INLINE VEC_##_vec VEC_##_load_part(const elem *p, VEC_##_mask part) { return VEC_##_load_masked(p, part); }        \
    INLINE VEC_##_vec VEC_##_load_first(const elem *p, VEC_##_mask part) { return VEC_##_load_masked(p, part); }       \
    INLINE VEC_##_vec VEC_##_load_one(const elem *p) { return VEC_##_load_masked(p, 1); }                              \
    INLINE VEC_##_vec VEC_##_load_x_one(const elem *p) { return VEC_##_load_masked(p, 1); }                            \
    INLINE VEC_##_vec VEC_##_load_x(const elem *p) { return VEC_##_load(p); }                                          \
    INLINE VEC_##_vec VEC_##_load_x_part(const elem *p, VEC_##_mask part) { return VEC_##_load_masked(p, part); }      \
    INLINE VEC_##_vec VEC_##_columns(const elem *p, int64_t cs, int depth)                                             \
    {                                                                                                                  \
        (void)cs, (void)depth;                                                                                         \
        return VEC_##_load(p);                                                                                         \
    }                                                                                                                  \
    INLINE VEC_##_vec VEC_##_columns_part(const elem *p, int64_t cs, int depth, VEC_##_mask part)                      \
    {                                                                                                                  \
        (void)cs, (void)depth;                                                                                         \
        return VEC_##_load_masked(p, part);                                                                            \
    }                                                                                                                  \
    INLINE VEC_##_vec VEC_##_broadcast_x(const elem *p, int depth)                                                     \
    {                                                                                                                  \
        (void)depth;                                                                                                   \
        return VEC_##_broadcast(p);                                                                                    \
    }

/* Lane i of the result is lane `of[i]` of a vector. */
#define PERMUTED_PS(VEC_)                                                                                              \
    typedef __m512i VEC_##_index;                                                                                      \
    INLINE __m512i VEC_##_index_of(const uint8_t *of)                                                                  \
    {                                                                                                                  \
        return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)of));                                             \
    }                                                                                                                  \
    INLINE __m512 VEC_##_permuted(__m512 v, __m512i index) { return _mm512_permutexvar_ps(index, v); }

GEMV_FLOATS(f32x16, float, 16)
PERMUTED_PS(f32x16)
INLINE void f32x16_interleave(const __m512 *v, float *to) { interleave_ps(v, to); }
INLINE void f32x16_interleave_dense(const int N, const __m512 *v, float *to) { interleave_dense_ps(N, v, to); }
GEMV_FLOATS(f64x8, double, 8)
typedef __m512i f64x8_index;
INLINE __m512i f64x8_index_of(const uint8_t *of) { return _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)of)); }
INLINE __m512d f64x8_permuted(__m512d v, __m512i index) { return _mm512_permutexvar_pd(index, v); }
INLINE void f64x8_interleave(const __m512d *v, double *to) { interleave_pd(v, to); }
INLINE void f64x8_interleave_dense(const int N, const __m512d *v, double *to) { interleave_dense_pd(N, v, to); }

/* Sixteen 16-bit floats, widened to float */
#define GEMV_HALVES(VEC_, widen)                                                                                       \
    typedef uint16_t VEC_##_elem_a, VEC_##_elem_b;                                                                     \
    typedef float VEC_##_elem_c, VEC_##_sum, VEC_##_wide;                                                              \
    typedef __m512 VEC_##_vec, VEC_##_acc;                                                                             \
    typedef __mmask16 VEC_##_mask, VEC_##_part;                                                                        \
    enum { VEC_##_lanes = 16, VEC_##_rows = 16, VEC_##_depth = 1, VEC_##_widens = 1 };                                 \
    INLINE void VEC_##_store_wide(float *p, __m512 v) { _mm512_storeu_ps(p, v); }                                      \
    INLINE __m512 VEC_##_broadcast_wide(const float *p) { return f32x16_broadcast(p); }                                \
    INLINE __mmask16 VEC_##_mask_of(int n) { return f32x16_mask_of(n); }                                               \
    INLINE __mmask16 VEC_##_part_of(int n) { return f32x16_mask_of(n); }                                               \
    INLINE __m512 VEC_##_zero(void) { return f32x16_zero(); }                                                          \
    INLINE __m512 VEC_##_fma(__m512 a, __m512 b, __m512 c) { return f32x16_fma(a, b, c); }                             \
    INLINE __m512 VEC_##_add(__m512 a, __m512 b) { return f32x16_add(a, b); }                                          \
    INLINE __m512 VEC_##_load_c(const float *p) { return f32x16_load_c(p); }                                           \
    INLINE __m512 VEC_##_load_c_masked(const float *p, __mmask16 m) { return f32x16_load_c_masked(p, m); }             \
    INLINE void VEC_##_store(float *p, __m512 v) { f32x16_store(p, v); }                                               \
    INLINE void VEC_##_store_masked(float *p, __mmask16 m, __m512 v) { f32x16_store_masked(p, m, v); }                 \
    INLINE __m512 VEC_##_reduce_rows(const __m512 *acc) { return sums_of_rows_ps(acc); }                               \
    INLINE void VEC_##_interleave(const __m512 *v, float *to) { interleave_ps(v, to); }                                \
    INLINE void VEC_##_interleave_dense(const int N, const __m512 *v, float *to) { interleave_dense_ps(N, v, to); }    \
    INLINE __m512 VEC_##_load(const uint16_t *p) { return widen(_mm256_loadu_si256((const __m256i *)p)); }             \
    INLINE __m512 VEC_##_load_part(const uint16_t *p, __mmask16 part)                                                  \
    {                                                                                                                  \
        return widen(_mm256_maskz_loadu_epi16(part, p));                                                               \
    }                                                                                                                  \
    INLINE __m512 VEC_##_load_first(const uint16_t *p, __mmask16 part) { return VEC_##_load_part(p, part); }           \
    INLINE __m512 VEC_##_load_one(const uint16_t *p) { return VEC_##_load_part(p, 1); }                                \
    INLINE __m512 VEC_##_load_x_one(const uint16_t *p) { return VEC_##_load_part(p, 1); }                              \
    INLINE __m512 VEC_##_load_x(const uint16_t *p) { return VEC_##_load(p); }                                          \
    INLINE __m512 VEC_##_load_x_part(const uint16_t *p, __mmask16 part) { return VEC_##_load_part(p, part); }          \
    INLINE __m512 VEC_##_columns(const uint16_t *p, int64_t cs, int depth)                                             \
    {                                                                                                                  \
        (void)cs, (void)depth;                                                                                         \
        return VEC_##_load(p);                                                                                         \
    }                                                                                                                  \
    INLINE __m512 VEC_##_columns_part(const uint16_t *p, int64_t cs, int depth, __mmask16 part)                        \
    {                                                                                                                  \
        (void)cs, (void)depth;                                                                                         \
        return VEC_##_load_part(p, part);                                                                              \
    }                                                                                                                  \
    INLINE __m512 VEC_##_broadcast_x(const uint16_t *p, int depth)                                                     \
    {                                                                                                                  \
        uint16_t x;                                                                                                    \
        (void)depth;                                                                                                   \
        memcpy(&x, p, sizeof x);                                                                                       \
        return widen(_mm256_set1_epi16((int16_t)x));                                                                   \
    }

INLINE __m512 widened_bf16(__m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
GEMV_HALVES(bf16x16, widened_bf16)
PERMUTED_PS(bf16x16)
GEMV_HALVES(f16x16, _mm512_cvtph_ps)
PERMUTED_PS(f16x16)
