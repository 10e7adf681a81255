/* avx512_f32_outer_4x4: C[4,4] += A[4,K] * B[K,4], float; all of C in one register.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4; row i of C is lane i of the accumulator
 * regs      1 accumulator * 4 sets + 1 for four columns of A + 1 of their elements + 1 row of B + 1 index of
 *           the transposition = 8 of 32 zmm
 * per 4 k   4 vfmadd231ps  4 vbroadcastf32x4 m128  4 vpermilps  1 vpermps m512
 * ratio     4*4 / (4+4) = 2.00 multiply-adds per element loaded; inner product 0.50;
 *           4 / 5 = 0.80 multiply-add instructions per load instruction
 * rounding  the first product rounded, then one fma per term, p ascending; from K = 8 on p = 4.. in four
 *           accumulators (p mod 4), added as a tree; then one add into C
 * needs     AVX-512 F BW DQ VL
 * bound     the permute and the fma share two ports on Intel: 8 operations, 4 cycles for K = 4
 * idea      the rank-1 update of Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008),
 *           with the tile folded into one wide register
 * tried     vmovddup/vmovsldup loads in place of the permutes: B then needs four shuffles; 11 operations instead of 8
 */

#include "vec_avx512.h"

/* Storage of A. */
typedef enum {
    ROWS,    /* cs_a = 1 */
    COLUMNS, /* rs_a = 1: a packed panel, or a transposed A */
    STRIDED, /* neither: one row of C at a time */
} a_layout;

/* What all products of a call share; constants where they are known. */
typedef struct {
    int m, n;
    int64_t k, rs_a, cs_a, rs_b, rs_c;
    int flags;
} shape;

INLINE __mmask8 first(int n) { return (__mmask8)((1 << n) - 1); }

/* Where lanes 1 to 3 are loaded from, of `count` lanes: further lanes repeat the last, so nothing else is accessed. */
typedef struct {
    int64_t at1, at2, at3;
} offsets;

INLINE offsets lane_offsets(int64_t stride, int count)
{
    const int64_t at1 = count > 1 ? stride : 0, at2 = count > 2 ? 2 * stride : at1;
    return (offsets){at1, at2, count > 3 ? 3 * stride : at2};
}

/* `each` <= 4 floats from p on, and from p + at.. on, in a lane each. */
INLINE __m512 lanes(const float *p, const offsets o, int each)
{
    if (each == 4 && o.at1 == 4 && o.at2 == 8 && o.at3 == 12) return _mm512_loadu_ps(p);
#define LANE(at) (each == 4 ? _mm_loadu_ps(p + (at)) : _mm_maskz_loadu_ps(first(each), p + (at)))
    __m512 v = _mm512_castps128_ps512(LANE(0));
    v = _mm512_mask_broadcast_f32x4(v, 0x00f0, LANE(o.at1));
    v = _mm512_mask_broadcast_f32x4(v, 0x0f00, LANE(o.at2));
    return _mm512_mask_broadcast_f32x4(v, 0xf000, LANE(o.at3));
#undef LANE
}

/* kk <= 4 columns of A: a[i,q] at place q of lane i; `rows`: the offsets of A's rows. */
INLINE __m512 columns_of_a(const a_layout layout, const shape s, const offsets rows, int kk, const float *a)
{
    if (layout == STRIDED) return _mm512_undefined_ps();
    if (layout == ROWS) return lanes(a, rows, kk);
    const __m512i transpose = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    return _mm512_permutexvar_ps(transpose, lanes(a, lane_offsets(s.cs_a, kk), 4));
}

/* Row q of B in every lane; STRIDED: in the first. */
INLINE __m512 row_of_b(const a_layout layout, const shape s, int q, const float *b)
{
    b += q * s.rs_b;
    const __m128 row = s.n == 4 ? _mm_loadu_ps(b) : _mm_maskz_loadu_ps(first(s.n), b);
    return layout == STRIDED ? _mm512_castps128_ps512(row) : _mm512_broadcast_f32x4(row);
}

/* a[i,q] across lane i; STRIDED: a[0,q] everywhere. */
#define ELEMENT(q) (layout == STRIDED ? _mm512_set1_ps(get_f32(a + (q) * s.cs_a)) : _mm512_permute_ps(av, 0x55 * (q)))
#define FMA(q, acc) _mm512_fmadd_ps(ELEMENT(q), row_of_b(layout, s, q, b), acc)

/* A B: row i in lane i; STRIDED: the first row, in the first lane. */
INLINE __m512 product(const a_layout layout, const shape s, const float *a, const float *b)
{
    if (s.k == 0) return _mm512_setzero_ps();
    __m512 acc = _mm512_set1_ps(-0.0f), av; /* x*y - 0.0 is x*y, its sign too */
    const offsets rows = lane_offsets(s.rs_a, s.m);
    int64_t k = s.k;
    if (k >= 4) {
        av = columns_of_a(layout, s, rows, 4, a);
        acc = _mm512_mul_ps(ELEMENT(0), row_of_b(layout, s, 0, b));
        acc = FMA(3, FMA(2, FMA(1, acc)));
        a += 4 * s.cs_a, b += 4 * s.rs_b, k -= 4;
    }
    if (k >= 4) { /* four accumulators hide the latency of the fma; where K = 4, the next product of the batch does */
        __m512 odd[3] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        for (; k >= 4; k -= 4, a += 4 * s.cs_a, b += 4 * s.rs_b) {
            av = columns_of_a(layout, s, rows, 4, a);
            acc = FMA(0, acc);
            odd[0] = FMA(1, odd[0]);
            odd[1] = FMA(2, odd[1]);
            odd[2] = FMA(3, odd[2]);
        }
        acc = _mm512_add_ps(_mm512_add_ps(acc, odd[0]), _mm512_add_ps(odd[1], odd[2]));
    }
    if (k > 0) {
        av = columns_of_a(layout, s, rows, (int)k, a);
        acc = FMA(0, acc);
        if (k > 1) acc = FMA(1, acc);
        if (k > 2) acc = FMA(2, acc);
    }
    return acc;
}

INLINE void store(const shape s, float *c, __m512 v)
{
    if (s.m == 4 && s.n == 4 && s.rs_c == 4) {
        if (!(s.flags & PYSIMD_ZERO)) v = _mm512_add_ps(_mm512_loadu_ps(c), v);
        if (s.flags & PYSIMD_STREAM)
            f32x16_stream(c, v);
        else
            _mm512_storeu_ps(c, v);
        return;
    }
    for (int i = 0; i < s.m; i++, c += s.rs_c) {
        __m128 row = _mm512_castps512_ps128(v);
        if (!(s.flags & PYSIMD_ZERO)) row = _mm_add_ps(_mm_maskz_loadu_ps(first(s.n), c), row);
        _mm_mask_storeu_ps(c, first(s.n), row);
        v = _mm512_shuffle_f32x4(v, v, 0x39); /* the next row to the first lane */
    }
}

INLINE void tile(const a_layout layout, shape s, const float *a, const float *b, float *c)
{
    int rows = 1; /* that are computed one by one */
    if (layout == STRIDED) rows = s.m, s.m = 1;
    for (int i = 0; i < rows; i++, a += s.rs_a, c += s.rs_c) store(s, c, product(layout, s, a, b));
}

INLINE void loop(const pysimd_call *call, const a_layout layout, const shape s)
{
    const float *a = call->a, *b = call->b;
    float *c = call->c;
    for (int64_t i = 0; i < call->batch; i++, a += call->bs_a, b += call->bs_b, c += call->bs_c)
        tile(layout, s, a, b, c);
}

/* --- the loops of a batch: functions of their own, so that the registers of one are not spilled for another --- */

NOINLINE void loop_4x4x4(const pysimd_call *s) { loop(s, ROWS, (shape){4, 4, 4, 4, 1, 4, 4, s->flags}); }

NOINLINE void loop_full(const pysimd_call *s)
{
    loop(s, ROWS, (shape){4, 4, s->k, s->rs_a, 1, s->rs_b, s->rs_c, s->flags});
}

NOINLINE void loop_rows(const pysimd_call *s)
{
    loop(s, ROWS, (shape){(int)s->m, (int)s->n, s->k, s->rs_a, 1, s->rs_b, s->rs_c, s->flags});
}

NOINLINE void loop_columns(const pysimd_call *s)
{
    loop(s, COLUMNS, (shape){4, 4, s->k, 1, s->cs_a, s->rs_b, s->rs_c, s->flags});
}

/* Fewer columns than four. */
NOINLINE void loop_columns_of_edge(const pysimd_call *s)
{
    loop(s, COLUMNS, (shape){4, (int)s->n, s->k, 1, s->cs_a, s->rs_b, s->rs_c, s->flags});
}

NOINLINE void loop_strided(const pysimd_call *s)
{
    loop(s, STRIDED, (shape){(int)s->m, (int)s->n, s->k, s->rs_a, s->cs_a, s->rs_b, s->rs_c, s->flags});
}

/* Contiguous 4x4 arrays: four products share their address arithmetic, which competes for the ports of permute and
 * fma. */
INLINE void loop_contiguous(const pysimd_call *s, const int flags)
{
    const shape dense = {4, 4, 4, 4, 1, 4, 4, flags};
    const float *a = s->a, *b = s->b;
    float *c = s->c;
    int64_t i = 0;
    enum { DISTANCE = PREFETCH_DISTANCE / 4 }; /* floats; 16 are a product */
    for (; i < s->batch - 3; i += 4, a += 64, b += 64, c += 64) {
        OPAQUE(c); /* else gcc keeps a pointer for each of the four streamed parts */
        if (flags & PYSIMD_STREAM && i < s->batch - 3 - DISTANCE / 16) {
            prefetch(a + DISTANCE, 256);
            prefetch(b + DISTANCE, 256);
        }
        tile(ROWS, dense, a, b, c);
        tile(ROWS, dense, a + 16, b + 16, c + 16);
        tile(ROWS, dense, a + 32, b + 32, c + 32);
        tile(ROWS, dense, a + 48, b + 48, c + 48);
    }
    for (; i < s->batch; i++, a += 16, b += 16, c += 16) tile(ROWS, dense, a, b, c);
}

NOINLINE void loop_contiguous_zero(const pysimd_call *s) { loop_contiguous(s, PYSIMD_ZERO); }
NOINLINE void loop_contiguous_stream(const pysimd_call *s) { loop_contiguous(s, PYSIMD_ZERO | PYSIMD_STREAM); }

void avx512_f32_outer_4x4_batch(const pysimd_call *s)
{
    const int full = s->m == 4 && s->n == 4;
    const int dense = full && s->k == 4 && s->cs_a == 1 && s->rs_a == 4 && s->rs_b == 4 && s->rs_c == 4;
    if (dense && s->bs_a == 16 && s->bs_b == 16 && s->bs_c == 16 && s->flags & PYSIMD_ZERO)
        (s->flags & PYSIMD_STREAM ? loop_contiguous_stream : loop_contiguous_zero)(s);
    else if (dense)
        loop_4x4x4(s);
    else if (s->cs_a == 1)
        (full ? loop_full : loop_rows)(s);
    else if (s->m == 4 && s->rs_a == 1)
        (full ? loop_columns : loop_columns_of_edge)(s);
    else
        loop_strided(s);
}

void avx512_f32_outer_4x4(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c,
                          int64_t rs_c)
{
    if (rs_a == 1 && cs_a == 4 && rs_b == 4) {
        tile(COLUMNS, (shape){4, 4, k, 1, 4, 4, rs_c, 0}, a, b, c);
    } else {
        const pysimd_call s = one_tile(4, 4, k, a, rs_a, cs_a, b, rs_b, c, rs_c);
        avx512_f32_outer_4x4_batch(&s);
    }
}
