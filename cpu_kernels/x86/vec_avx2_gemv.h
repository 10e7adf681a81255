/* vec_avx2_gemv.h: what templates/gemv.h needs of the vector types of AVX2. Narrow types are widened while loading. */
#include "vec_avx2.h"

/* The first n <= 16 bytes at p, then zeros; no other byte is read. */
NOINLINE __m128i first_bytes(const void *p, int n)
{
    const char *from = p;
    uint64_t low = 0, high = 0;
    if (n >= 16) return _mm_loadu_si128(p);
    if (n >= 8) {
        memcpy(&low, from, 8);
        memcpy(&high, from + n - 8, 8);
        high = n == 8 ? 0 : high >> 8 * (16 - n);
    } else if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, from, 4);
        memcpy(&last, from + n - 4, 4);
        low = first | (uint64_t)last << 8 * (n - 4);
    } else {
        const uint8_t *byte = p; /* without a loop over n: the middle byte is the first or the last one where n < 3 */
        if (n > 0) low = byte[0] | (uint64_t)byte[n / 2] << n / 2 * 8 | (uint64_t)byte[n - 1] << (n - 1) * 8;
    }
    return _mm_set_epi64x((int64_t)high, (int64_t)low);
}

/* A part of 16 bytes: its length in bytes, and a mask for what can be loaded whole. */
typedef struct {
    int bytes;
    __m128i mask;
} part_of_bytes;
INLINE part_of_bytes part_of(int bytes)
{
    static const int64_t ones_and_zeros[4] = {-1, -1, 0, 0};
    const char *mask = (const char *)ones_and_zeros + 16 - bytes;
    return (part_of_bytes){bytes, _mm_loadu_si128((const __m128i *)mask)};
}
INLINE __m128i load_first_bytes(const void *p, part_of_bytes part)
{
    return _mm_and_si128(_mm_loadu_si128((const __m128i *)p), part.mask);
}

/* Lane i of the result is the sum of the lanes of acc[i], by halves. */
INLINE __m256 sums_of_rows_ps(const __m256 *acc)
{
    __m256 h[4], q[2];
    UNROLL for (int i = 0; i < 4; i++)
        h[i] = _mm256_add_ps(_mm256_permute2f128_ps(acc[i], acc[i + 4], 0x20),
                             _mm256_permute2f128_ps(acc[i], acc[i + 4], 0x31));
    UNROLL for (int i = 0; i < 2; i++)
        q[i] = _mm256_add_ps(_mm256_shuffle_ps(h[2 * i], h[2 * i + 1], 0x44),
                             _mm256_shuffle_ps(h[2 * i], h[2 * i + 1], 0xee));
    return _mm256_add_ps(_mm256_shuffle_ps(q[0], q[1], 0x88), _mm256_shuffle_ps(q[0], q[1], 0xdd));
}

INLINE __m256d sums_of_rows_pd(const __m256d *acc)
{
    __m256d h[2];
    UNROLL for (int i = 0; i < 2; i++)
        h[i] = _mm256_add_pd(_mm256_permute2f128_pd(acc[i], acc[i + 2], 0x20),
                             _mm256_permute2f128_pd(acc[i], acc[i + 2], 0x31));
    return _mm256_add_pd(_mm256_unpacklo_pd(h[0], h[1]), _mm256_unpackhi_pd(h[0], h[1]));
}

INLINE i16x16_acc sums_of_rows_epi32(const i16x16_acc *acc)
{
    __m256i h[4], q[2];
    UNROLL for (int i = 0; i < 4; i++) h[i] = _mm256_hadd_epi32((__m256i)acc[2 * i], (__m256i)acc[2 * i + 1]);
    UNROLL for (int i = 0; i < 2; i++) q[i] = _mm256_hadd_epi32(h[2 * i], h[2 * i + 1]);
    return (i16x16_acc)_mm256_add_epi32(_mm256_permute2x128_si256(q[0], q[1], 0x20),
                                        _mm256_permute2x128_si256(q[0], q[1], 0x31));
}

/* The lanes of four registers side by side: `to` is 4 times as many elements, those of lane 0 first. */
INLINE void interleave_ps(const __m256 *v, float *to)
{
    const __m256 low01 = _mm256_unpacklo_ps(v[0], v[1]), high01 = _mm256_unpackhi_ps(v[0], v[1]);
    const __m256 low23 = _mm256_unpacklo_ps(v[2], v[3]), high23 = _mm256_unpackhi_ps(v[2], v[3]);
    const __m256 lanes[4] = {_mm256_shuffle_ps(low01, low23, 0x44), _mm256_shuffle_ps(low01, low23, 0xee),
                             _mm256_shuffle_ps(high01, high23, 0x44), _mm256_shuffle_ps(high01, high23, 0xee)};
    UNROLL for (int i = 0; i < 4; i++) {
        _mm_storeu_ps(to + 4 * i, _mm256_castps256_ps128(lanes[i]));
        _mm_storeu_ps(to + 4 * i + 16, _mm256_extractf128_ps(lanes[i], 1));
    }
}

INLINE void interleave_pd(const __m256d *v, double *to)
{
    const __m256d low01 = _mm256_unpacklo_pd(v[0], v[1]), high01 = _mm256_unpackhi_pd(v[0], v[1]);
    const __m256d low23 = _mm256_unpacklo_pd(v[2], v[3]), high23 = _mm256_unpackhi_pd(v[2], v[3]);
    _mm256_storeu_pd(to, _mm256_permute2f128_pd(low01, low23, 0x20));
    _mm256_storeu_pd(to + 4, _mm256_permute2f128_pd(high01, high23, 0x20));
    _mm256_storeu_pd(to + 8, _mm256_permute2f128_pd(low01, low23, 0x31));
    _mm256_storeu_pd(to + 12, _mm256_permute2f128_pd(high01, high23, 0x31));
}

/* The same of N registers, two to four, and N times as many elements. Of three, element e is lane e / 3 of register e % 3.
 */
INLINE void interleave_dense_ps(const int N, const __m256 *v, float *to)
{
    if (N == 4) {
        interleave_ps(v, to);
    } else if (N == 2) {
        const __m256 low = _mm256_unpacklo_ps(v[0], v[1]), high = _mm256_unpackhi_ps(v[0], v[1]);
        _mm256_storeu_ps(to, _mm256_permute2f128_ps(low, high, 0x20));
        _mm256_storeu_ps(to + 8, _mm256_permute2f128_ps(low, high, 0x31));
    } else {
#define OF_THREE(lanes, of_1, of_2)                                                                                    \
    _mm256_blend_ps(_mm256_blend_ps(_mm256_permutevar8x32_ps(v[0], lanes), _mm256_permutevar8x32_ps(v[1], lanes),      \
                                    of_1),                                                                             \
                    _mm256_permutevar8x32_ps(v[2], lanes), of_2)
        _mm256_storeu_ps(to + 0, OF_THREE(_mm256_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2), 0x92, 0x24));
        _mm256_storeu_ps(to + 8, OF_THREE(_mm256_setr_epi32(2, 3, 3, 3, 4, 4, 4, 5), 0x24, 0x49));
        _mm256_storeu_ps(to + 16, OF_THREE(_mm256_setr_epi32(5, 5, 6, 6, 6, 7, 7, 7), 0x49, 0x92));
#undef OF_THREE
    }
}

INLINE void interleave_dense_pd(const int N, const __m256d *v, double *to)
{
    if (N == 4) {
        interleave_pd(v, to);
    } else if (N == 2) {
        const __m256d low = _mm256_unpacklo_pd(v[0], v[1]), high = _mm256_unpackhi_pd(v[0], v[1]);
        _mm256_storeu_pd(to, _mm256_permute2f128_pd(low, high, 0x20));
        _mm256_storeu_pd(to + 4, _mm256_permute2f128_pd(low, high, 0x31));
    } else {
#define OF_THREE(lanes, of_1, of_2)                                                                                    \
    _mm256_blend_pd(_mm256_blend_pd(_mm256_permute4x64_pd(v[0], lanes), _mm256_permute4x64_pd(v[1], lanes), of_1),     \
                    _mm256_permute4x64_pd(v[2], lanes), of_2)
        _mm256_storeu_pd(to + 0, OF_THREE(0x40, 0x2, 0x4));
        _mm256_storeu_pd(to + 4, OF_THREE(0xa5, 0x9, 0x2));
        _mm256_storeu_pd(to + 8, OF_THREE(0xfe, 0x4, 0x9));
#undef OF_THREE
    }
}

/* float and double: the operations of the outer product, and parts of a vector by mask */
#define GEMV_FLOATS(VEC_, elem, count)                                                                                 \
    enum { VEC_##_rows = count, VEC_##_depth = 1, VEC_##_widens = 0 };                                                 \
    typedef elem VEC_##_sum, VEC_##_wide;                                                                              \
    INLINE void VEC_##_store_wide(elem *p, VEC_##_vec v) { VEC_##_store(p, v); }                                       \
    INLINE VEC_##_vec VEC_##_broadcast_wide(const elem *p) { return VEC_##_broadcast(p); }                             \
    typedef first_of VEC_##_part;                                                                                      \
    INLINE first_of VEC_##_part_of(int n) { return VEC_##_mask_of(n); }                                                \
    INLINE VEC_##_vec VEC_##_load_part(const elem *p, first_of part) { return VEC_##_load_masked(p, part); }           \
    INLINE VEC_##_vec VEC_##_load_first(const elem *p, first_of part) { return VEC_##_load_masked(p, part); }          \
    INLINE VEC_##_vec VEC_##_load_x(const elem *p) { return VEC_##_load(p); }                                          \
    INLINE VEC_##_vec VEC_##_load_x_part(const elem *p, first_of part) { return VEC_##_load_masked(p, part); }         \
    INLINE VEC_##_vec VEC_##_columns(const elem *p, int64_t cs, int depth)                                             \
    {                                                                                                                  \
        (void)cs, (void)depth;                                                                                         \
        return VEC_##_load(p);                                                                                         \
    }                                                                                                                  \
    INLINE VEC_##_vec VEC_##_columns_part(const elem *p, int64_t cs, int depth, first_of part)                         \
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
    typedef __m256i VEC_##_index;                                                                                      \
    INLINE __m256i VEC_##_index_of(const uint8_t *of)                                                                  \
    {                                                                                                                  \
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)of));                                             \
    }                                                                                                                  \
    INLINE __m256 VEC_##_permuted(__m256 v, __m256i index) { return _mm256_permutevar8x32_ps(v, index); }

/* The first K <= 4 terms of eight elements, in the order of reduce_rows. */
INLINE __m256 sums_of_columns_ps(const int K, const __m256 *columns, const __m256 *x)
{
    __m256 acc[4];
    UNROLL for (int p = 0; p < 4; p++) acc[p] = _mm256_setzero_ps();
    UNROLL for (int p = 0; p < K; p++) acc[p] = f32x8_fma(columns[p], x[p], acc[p]);
    return _mm256_add_ps(_mm256_add_ps(acc[0], acc[2]), _mm256_add_ps(acc[1], acc[3]));
}

GEMV_FLOATS(f32x8, float, 8)
PERMUTED_PS(f32x8)
INLINE __m256 f32x8_load_one(const float *p) { return _mm256_zextps128_ps256(_mm_set_ss(get_f32(p))); }
INLINE __m256 f32x8_load_x_one(const float *p) { return f32x8_load_one(p); }
INLINE __m256 f32x8_reduce_rows(const __m256 *acc) { return sums_of_rows_ps(acc); }
INLINE void f32x8_interleave(const __m256 *v, float *to) { interleave_ps(v, to); }
INLINE void f32x8_interleave_dense(const int N, const __m256 *v, float *to) { interleave_dense_ps(N, v, to); }
typedef struct {
    __m256 x[4];
} f32x8_short_x;
INLINE f32x8_short_x f32x8_short_x_of(const int K, const float *x)
{
    f32x8_short_x found;
    UNROLL for (int p = 0; p < K; p++) found.x[p] = f32x8_broadcast(x + p);
    return found;
}
INLINE __m256 f32x8_short_rows(const int K, const float *a, const f32x8_short_x *xs)
{
    __m256 v[4];
    UNROLL for (int r = 0; r < 4; r++)
        v[r] = _mm256_set_m128(_mm_loadu_ps(a + (r + 4) * K), _mm_loadu_ps(a + r * K));
    const __m256 low01 = _mm256_unpacklo_ps(v[0], v[1]), low23 = _mm256_unpacklo_ps(v[2], v[3]);
    const __m256 high01 = _mm256_unpackhi_ps(v[0], v[1]), high23 = _mm256_unpackhi_ps(v[2], v[3]);
    const __m256 columns[4] = {_mm256_shuffle_ps(low01, low23, 0x44), _mm256_shuffle_ps(low01, low23, 0xee),
                               _mm256_shuffle_ps(high01, high23, 0x44), _mm256_shuffle_ps(high01, high23, 0xee)};
    return sums_of_columns_ps(K, columns, xs->x);
}
GEMV_FLOATS(f64x4, double, 4)
typedef __m256i f64x4_index; /* of the two halves of each lane */
INLINE __m256i f64x4_index_of(const uint8_t *of)
{
    return _mm256_setr_epi32(2 * of[0], 2 * of[0] + 1, 2 * of[1], 2 * of[1] + 1, 2 * of[2], 2 * of[2] + 1, 2 * of[3],
                             2 * of[3] + 1);
}
INLINE __m256d f64x4_permuted(__m256d v, __m256i index)
{
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(v), index));
}
INLINE __m256d f64x4_load_one(const double *p) { return _mm256_zextpd128_pd256(_mm_set_sd(get_f64(p))); }
INLINE __m256d f64x4_load_x_one(const double *p) { return f64x4_load_one(p); }
INLINE __m256d f64x4_reduce_rows(const __m256d *acc) { return sums_of_rows_pd(acc); }
INLINE void f64x4_interleave(const __m256d *v, double *to) { interleave_pd(v, to); }
INLINE void f64x4_interleave_dense(const int N, const __m256d *v, double *to) { interleave_dense_pd(N, v, to); }

/* For a shuffle of a lane of 16 bytes that holds `rows` rows of K elements: the bytes of element p of row r, which go
 * to element p * step_p + r * step_r; zeros to the others. */
INLINE __m128i places_of_short_rows(const int K, const int size, const int rows, const int step_p, const int step_r)
{
    char to[16];
    UNROLL for (int i = 0; i < 16; i++) to[i] = -1;
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int p = 0; p < K; p++)
            UNROLL for (int b = 0; b < size; b++)
                to[(p * step_p + r * step_r) * size + b] = (char)((r * K + p) * size + b);
    return _mm_loadu_si128((const __m128i *)to);
}

typedef struct {
    __m128i places;
    __m256 x[4];
} short_x_of_halves;

/* Eight 16-bit floats, widened to float */
#define GEMV_HALVES(VEC_, widen)                                                                                       \
    typedef uint16_t VEC_##_elem_a, VEC_##_elem_b;                                                                     \
    typedef float VEC_##_elem_c, VEC_##_sum, VEC_##_wide;                                                              \
    typedef __m256 VEC_##_vec, VEC_##_acc;                                                                             \
    typedef first_of VEC_##_mask;                                                                                      \
    typedef part_of_bytes VEC_##_part;                                                                                 \
    enum { VEC_##_lanes = 8, VEC_##_rows = 8, VEC_##_depth = 1, VEC_##_widens = 1 };                                   \
    INLINE void VEC_##_store_wide(float *p, __m256 v) { _mm256_storeu_ps(p, v); }                                      \
    INLINE __m256 VEC_##_broadcast_wide(const float *p) { return f32x8_broadcast(p); }                                 \
    INLINE first_of VEC_##_mask_of(int n) { return f32x8_mask_of(n); }                                                 \
    INLINE part_of_bytes VEC_##_part_of(int n) { return part_of(2 * n); }                                              \
    INLINE __m256 VEC_##_zero(void) { return f32x8_zero(); }                                                           \
    INLINE __m256 VEC_##_fma(__m256 a, __m256 b, __m256 c) { return f32x8_fma(a, b, c); }                              \
    INLINE __m256 VEC_##_add(__m256 a, __m256 b) { return f32x8_add(a, b); }                                           \
    INLINE __m256 VEC_##_load_c(const float *p) { return f32x8_load_c(p); }                                            \
    INLINE __m256 VEC_##_load_c_masked(const float *p, first_of m) { return f32x8_load_c_masked(p, m); }               \
    INLINE void VEC_##_store(float *p, __m256 v) { f32x8_store(p, v); }                                                \
    INLINE void VEC_##_store_masked(float *p, first_of m, __m256 v) { f32x8_store_masked(p, m, v); }                   \
    INLINE __m256 VEC_##_reduce_rows(const __m256 *acc) { return sums_of_rows_ps(acc); }                               \
    INLINE void VEC_##_interleave(const __m256 *v, float *to) { interleave_ps(v, to); }                                \
    INLINE void VEC_##_interleave_dense(const int N, const __m256 *v, float *to) { interleave_dense_ps(N, v, to); }    \
    INLINE __m256 VEC_##_load(const uint16_t *p) { return widen(_mm_loadu_si128((const __m128i *)p)); }                \
    INLINE __m256 VEC_##_load_part(const uint16_t *p, part_of_bytes n) { return widen(first_bytes(p, n.bytes)); }      \
    INLINE __m256 VEC_##_load_first(const uint16_t *p, part_of_bytes n) { return widen(load_first_bytes(p, n)); }      \
    INLINE __m256 VEC_##_load_one(const uint16_t *p)                                                                   \
    {                                                                                                                  \
        uint16_t x;                                                                                                    \
        memcpy(&x, p, sizeof x);                                                                                       \
        return widen(_mm_cvtsi32_si128(x));                                                                            \
    }                                                                                                                  \
    INLINE __m256 VEC_##_load_x_one(const uint16_t *p) { return VEC_##_load_one(p); }                                  \
    INLINE __m256 VEC_##_load_x(const uint16_t *p) { return VEC_##_load(p); }                                          \
    INLINE __m256 VEC_##_load_x_part(const uint16_t *p, part_of_bytes n) { return VEC_##_load_part(p, n); }            \
    INLINE __m256 VEC_##_columns(const uint16_t *p, int64_t cs, int depth)                                             \
    {                                                                                                                  \
        (void)cs, (void)depth;                                                                                         \
        return VEC_##_load(p);                                                                                         \
    }                                                                                                                  \
    INLINE __m256 VEC_##_columns_part(const uint16_t *p, int64_t cs, int depth, part_of_bytes n)                       \
    {                                                                                                                  \
        (void)cs, (void)depth;                                                                                         \
        return VEC_##_load_part(p, n);                                                                                 \
    }                                                                                                                  \
    INLINE __m256 VEC_##_broadcast_x(const uint16_t *p, int depth)                                                     \
    {                                                                                                                  \
        uint16_t x;                                                                                                    \
        (void)depth;                                                                                                   \
        memcpy(&x, p, sizeof x);                                                                                       \
        return widen(_mm_set1_epi16((int16_t)x));                                                                      \
    }                                                                                                                  \
    typedef short_x_of_halves VEC_##_short_x;                                                                          \
    INLINE short_x_of_halves VEC_##_short_x_of(const int K, const uint16_t *x)                                         \
    {                                                                                                                  \
        short_x_of_halves found = {.places = places_of_short_rows(K, 2, 2, 2, 1)};                                     \
        UNROLL for (int p = 0; p < K; p++) found.x[p] = VEC_##_broadcast_x(x + p, 1);                                  \
        return found;                                                                                                  \
    }                                                                                                                  \
    INLINE __m256 VEC_##_short_rows(const int K, const uint16_t *a, const short_x_of_halves *xs)                       \
    {                                                                                                                  \
        __m128i v[4];                                                                                                  \
        UNROLL for (int q = 0; q < 4; q++)                                                                             \
            v[q] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(a + 2 * q * K)), xs->places);                    \
        const __m128i low01 = _mm_unpacklo_epi32(v[0], v[1]), low23 = _mm_unpacklo_epi32(v[2], v[3]);                  \
        const __m128i high01 = _mm_unpackhi_epi32(v[0], v[1]), high23 = _mm_unpackhi_epi32(v[2], v[3]);                \
        const __m128i columns[4] = {_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),                \
                                    _mm_unpacklo_epi64(high01, high23), _mm_unpackhi_epi64(high01, high23)};           \
        __m256 wide[4];                                                                                                \
        UNROLL for (int p = 0; p < K; p++) wide[p] = widen(columns[p]);                                                \
        return sums_of_columns_ps(K, wide, xs->x);                                                                     \
    }

INLINE __m256 widened_bf16(__m128i v) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16)); }
GEMV_HALVES(bf16x8, widened_bf16)
PERMUTED_PS(bf16x8)
#ifdef __F16C__
GEMV_HALVES(f16x8, _mm256_cvtph_ps)
PERMUTED_PS(f16x8)
#endif

/* Rows of K bytes, each spread to a group of four bytes, or of eight, by a shuffle of the rows that a lane holds. */
typedef struct {
    __m256i lanes, places, even, odd;
} short_x_of_bytes;

INLINE __m256i even_epi8(__m256i v) { return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8); }
INLINE __m256i odd_epi8(__m256i v) { return _mm256_srai_epi16(v, 8); }
INLINE __m256i even_epu8(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi16(0xff)); }
INLINE __m256i odd_epu8(__m256i v) { return _mm256_srli_epi16(v, 8); }

/* Eight rows of groups of four, of 8 * K <= 32 bytes that are loaded at once. */
INLINE __m256i groups_of_four(const void *a, const short_x_of_bytes *xs)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)a);
    return _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(bytes, xs->lanes), xs->places);
}

/* Four rows of groups of eight: two in each lane. */
INLINE __m256i groups_of_eight(const int K, const void *a, const short_x_of_bytes *xs)
{
    const __m128i *low = a, *high = (const __m128i *)((const char *)a + 2 * K);
    return _mm256_shuffle_epi8(_mm256_set_m128i(_mm_loadu_si128(high), _mm_loadu_si128(low)), xs->places);
}

/* Sums of pairs of int32: of those of x the first four, then those of y. */
INLINE i16x16_acc sums_of_pairs(i16x16_acc x, i16x16_acc y)
{
    const __m256i sums = _mm256_hadd_epi32((__m256i)x, (__m256i)y);
    return (i16x16_acc)_mm256_permute4x64_epi64(sums, 0xd8);
}

/* Sixteen bytes, widened to int16: two adjacent terms at a time, added in int32 (vpmaddwd) */
#define GEMV_BYTES(VEC_, type_a, widen_a, bytes_a, type_x, widen_x)                                                    \
    typedef type_a VEC_##_elem_a;                                                                                      \
    typedef type_x VEC_##_elem_b;                                                                                      \
    typedef int32_t VEC_##_elem_c;                                                                                     \
    typedef uint32_t VEC_##_sum;                                                                                       \
    typedef first_of VEC_##_mask;                                                                                      \
    typedef __m256i VEC_##_vec;                                                                                        \
    typedef i16x16_acc VEC_##_acc;                                                                                     \
    typedef part_of_bytes VEC_##_part;                                                                                 \
    typedef int16_t VEC_##_wide;                                                                                       \
    enum { VEC_##_lanes = 16, VEC_##_rows = 8, VEC_##_depth = 2, VEC_##_widens = 1 };                                  \
    INLINE void VEC_##_store_wide(int16_t *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }                     \
    INLINE __m256i VEC_##_broadcast_wide(const int16_t *p) { return i16x16_broadcast(p); }                             \
    INLINE first_of VEC_##_mask_of(int n) { return i16x16_mask_of(n); }                                                \
    INLINE part_of_bytes VEC_##_part_of(int n) { return part_of(n); }                                                  \
    INLINE i16x16_acc VEC_##_zero(void) { return i16x16_zero(); }                                                      \
    INLINE i16x16_acc VEC_##_fma(__m256i a, __m256i b, i16x16_acc c) { return i16x16_fma(a, b, c); }                   \
    INLINE i16x16_acc VEC_##_add(i16x16_acc a, i16x16_acc b) { return a + b; }                                         \
    INLINE i16x16_acc VEC_##_load_c(const int32_t *p) { return i16x16_load_c(p); }                                     \
    INLINE i16x16_acc VEC_##_load_c_masked(const int32_t *p, first_of m) { return i16x16_load_c_masked(p, m); }        \
    INLINE void VEC_##_store(int32_t *p, i16x16_acc v) { i16x16_store(p, v); }                                         \
    INLINE void VEC_##_store_masked(int32_t *p, first_of m, i16x16_acc v) { i16x16_store_masked(p, m, v); }            \
    INLINE i16x16_acc VEC_##_reduce_rows(const i16x16_acc *acc) { return sums_of_rows_epi32(acc); }                    \
    INLINE void VEC_##_interleave(const i16x16_acc *v, VEC_##_sum *to)                                                 \
    {                                                                                                                  \
        interleave_ps((const __m256 *)v, (float *)to);                                                                 \
    }                                                                                                                  \
    INLINE void VEC_##_interleave_dense(const int N, const i16x16_acc *v, VEC_##_sum *to)                              \
    {                                                                                                                  \
        interleave_dense_ps(N, (const __m256 *)v, (float *)to);                                                        \
    }                                                                                                                  \
    INLINE __m256i VEC_##_load(const type_a *p) { return widen_a(_mm_loadu_si128((const __m128i *)p)); }               \
    INLINE __m256i VEC_##_load_part(const type_a *p, part_of_bytes n) { return widen_a(first_bytes(p, n.bytes)); }     \
    INLINE __m256i VEC_##_load_first(const type_a *p, part_of_bytes n) { return widen_a(load_first_bytes(p, n)); }     \
    INLINE __m256i VEC_##_load_one(const type_a *p)                                                                    \
    {                                                                                                                  \
        return _mm256_zextsi128_si256(_mm_cvtsi32_si128((uint16_t)*p));                                                \
    }                                                                                                                  \
    INLINE __m256i VEC_##_load_x_one(const type_x *p)                                                                  \
    {                                                                                                                  \
        return _mm256_zextsi128_si256(_mm_cvtsi32_si128((uint16_t)*p));                                                \
    }                                                                                                                  \
    INLINE __m256i VEC_##_load_x(const type_x *p) { return widen_x(_mm_loadu_si128((const __m128i *)p)); }             \
    INLINE __m256i VEC_##_load_x_part(const type_x *p, part_of_bytes n) { return widen_x(first_bytes(p, n.bytes)); }   \
    INLINE __m256i VEC_##_columns(const type_a *p, int64_t cs, int depth)                                              \
    {                                                                                                                  \
        const __m128i x = _mm_loadl_epi64((const __m128i *)p);                                                         \
        const __m128i y = depth == 2 ? _mm_loadl_epi64((const __m128i *)(p + cs)) : _mm_setzero_si128();               \
        return widen_a(_mm_unpacklo_epi8(x, y));                                                                       \
    }                                                                                                                  \
    INLINE __m256i VEC_##_columns_part(const type_a *p, int64_t cs, int depth, part_of_bytes n)                        \
    {                                                                                                                  \
        const __m128i x = first_bytes(p, n.bytes);                                                                     \
        const __m128i y = depth == 2 ? first_bytes(p + cs, n.bytes) : _mm_setzero_si128();                             \
        return widen_a(_mm_unpacklo_epi8(x, y));                                                                       \
    }                                                                                                                  \
    INLINE __m256i VEC_##_broadcast_x(const type_x *p, int depth)                                                      \
    {                                                                                                                  \
        const int32_t second = depth == 2 ? p[1] : 0;                                                                  \
        return _mm256_set1_epi32((int32_t)((uint32_t)second << 16 | (uint16_t)p[0]));                                  \
    }                                                                                                                  \
    typedef short_x_of_bytes VEC_##_short_x;                                                                           \
    INLINE short_x_of_bytes VEC_##_short_x_of(const int K, const type_x *x)                                            \
    {                                                                                                                  \
        const int rows = K > 4 ? 2 : 4;                                                                                \
        int16_t even[4] = {0, 0, 0, 0}, odd[4] = {0, 0, 0, 0};                                                         \
        UNROLL for (int p = 0; p < K; p++) (p % 2 ? odd : even)[p / 2] = x[p];                                         \
        if (K <= 4) memcpy(even + 2, even, 4), memcpy(odd + 2, odd, 4);                                                \
        return (short_x_of_bytes){                                                                                     \
            .lanes = _mm256_set_epi32(K + 3, K + 2, K + 1, K, 3, 2, 1, 0),                                             \
            .places = _mm256_broadcastsi128_si256(places_of_short_rows(K, 1, rows, 1, 16 / rows)),                     \
            .even = _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)even)),                                   \
            .odd = _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)odd)),                                     \
        };                                                                                                             \
    }                                                                                                                  \
    INLINE i16x16_acc VEC_##_sums_of_groups(__m256i v, const short_x_of_bytes *xs)                                     \
    {                                                                                                                  \
        return i16x16_fma(odd_##bytes_a(v), xs->odd, i16x16_fma(even_##bytes_a(v), xs->even, i16x16_zero()));          \
    }                                                                                                                  \
    INLINE i16x16_acc VEC_##_short_rows(const int K, const type_a *a, const short_x_of_bytes *xs)                      \
    {                                                                                                                  \
        if (K <= 4) return VEC_##_sums_of_groups(groups_of_four(a, xs), xs);                                           \
        return sums_of_pairs(VEC_##_sums_of_groups(groups_of_eight(K, a, xs), xs),                                     \
                             VEC_##_sums_of_groups(groups_of_eight(K, a + 4 * K, xs), xs));                            \
    }

GEMV_BYTES(i8x16, int8_t, _mm256_cvtepi8_epi16, epi8, int8_t, _mm256_cvtepi8_epi16)
GEMV_BYTES(u8i8x16, uint8_t, _mm256_cvtepu8_epi16, epu8, int8_t, _mm256_cvtepi8_epi16)
GEMV_BYTES(i8u8x16, int8_t, _mm256_cvtepi8_epi16, epi8, uint8_t, _mm256_cvtepu8_epi16)
