/* avx512_f32_outer_4x4: C[4,4] += A[4,K] * B[K,4], float; all of C in one register.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is the i-th 128-bit lane of one zmm
 * regs      1 accumulator + 1 of A (four columns at once) + 1 of B, of 32 zmm
 * per k     1 vfmadd231ps  1 vbroadcastf32x4 (row p of B in every lane)  1 vpermilps (a[i,p] across lane i)
 *           and 1/4 of the load of A, which brings a[i,p..p+3] to lane i
 * ratio     16 FMA / 8 elements loaded = 2.00  (inner product 0.50); no horizontal reduction
 * rounding  the first product rounded, then one fma per term, p ascending; from K = 8 on p = 4.. in four chains
 *           (p mod 4), summed as a tree; then one add into C
 * needs     avx512f
 * bound     the permute and the fma share two ports on Intel: 8 operations, 4 cycles for K = 4
 * idea      the rank-1 update of Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008),
 *           with the tile folded into one wide register
 * tried     vmovddup/vmovsldup loads in place of the permutes: B then needs four shuffles; 11 operations instead of 8
 */

#include "vec_avx512.h"

/* n <= 4 floats at p, repeated in all four lanes; masked-off elements are not touched. */
INLINE __m512 row4(const float *p, int n)
{
    return n == 4 ? _mm512_broadcast_f32x4(_mm_loadu_ps(p))
                  : _mm512_maskz_broadcast_f32x4(0xffff, _mm_maskz_loadu_ps((__mmask8)((1 << n) - 1), p));
}

/* Four floats from each of four places rs apart, one place a lane. */
INLINE __m512 four_by_four(const float *p, int64_t rs)
{
    if (rs == 4) return _mm512_loadu_ps(p);
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(p));
    v = _mm512_mask_broadcast_f32x4(v, 0x00f0, _mm_loadu_ps(p + rs));
    v = _mm512_mask_broadcast_f32x4(v, 0x0f00, _mm_loadu_ps(p + 2 * rs));
    return _mm512_mask_broadcast_f32x4(v, 0xf000, _mm_loadu_ps(p + 3 * rs));
}

/* kk <= 4 columns of A: a[i, 0..kk) in lane i, zero elsewhere. */
INLINE __m512 columns(const float *a, int64_t rs, int64_t cs, int m, int kk)
{
    if (cs == 1 && m == 4 && kk == 4) return four_by_four(a, rs);
    if (rs == 1 && m == 4 && kk == 4) { /* a packed or transposed A */
        const __m512i across = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
        return _mm512_permutexvar_ps(across, four_by_four(a, cs));
    }
    if (cs == 1) {
        const __mmask8 some = (__mmask8)((1 << kk) - 1);
        __m512 v = _mm512_setzero_ps();
        for (int i = 0; i < m; i++)
            v = _mm512_mask_broadcast_f32x4(v, (__mmask16)(0xf << 4 * i), _mm_maskz_loadu_ps(some, a + i * rs));
        return v;
    }
    __attribute__((aligned(64))) float lane[16] = {0};
    for (int i = 0; i < m; i++)
        for (int p = 0; p < kk; p++) lane[4 * i + p] = get_f32(a + i * rs + p * cs);
    return _mm512_load_ps(lane);
}

/* `k` <= 4 steps with the columns at a and the rows at b; the first product of all is not added to anything. */
INLINE __m512 steps(__m512 acc, int first, int m, int n, int k, const float *a, int64_t rs_a, int64_t cs_a,
                    const float *b, int64_t rs_b)
{
    const __m512 av = columns(a, rs_a, cs_a, m, k);
    const __m512 a0 = _mm512_permute_ps(av, 0x00), b0 = row4(b, n);
    acc = first ? _mm512_mul_ps(a0, b0) : _mm512_fmadd_ps(a0, b0, acc);
    if (k > 1) acc = _mm512_fmadd_ps(_mm512_permute_ps(av, 0x55), row4(b + rs_b, n), acc);
    if (k > 2) acc = _mm512_fmadd_ps(_mm512_permute_ps(av, 0xaa), row4(b + 2 * rs_b, n), acc);
    if (k > 3) acc = _mm512_fmadd_ps(_mm512_permute_ps(av, 0xff), row4(b + 3 * rs_b, n), acc);
    return acc;
}

INLINE __m512 product(int m, int n, int64_t k, const float *a, int64_t rs_a, int64_t cs_a, const float *b, int64_t rs_b)
{
    if (k == 0) return _mm512_setzero_ps();
    if (k < 4) return steps(_mm512_setzero_ps(), 1, m, n, (int)k, a, rs_a, cs_a, b, rs_b);
    __m512 acc = steps(_mm512_setzero_ps(), 1, m, n, 4, a, rs_a, cs_a, b, rs_b);
    a += 4 * cs_a, b += 4 * rs_b, k -= 4;
    if (k >= 4) { /* four chains: one would wait for its own sums. In a batch of K = 4 the next product fills the gap */
        __m512 chain[4] = {acc, _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        for (; k >= 4; k -= 4, a += 4 * cs_a, b += 4 * rs_b) {
            const __m512 av = columns(a, rs_a, cs_a, m, 4);
            chain[0] = _mm512_fmadd_ps(_mm512_permute_ps(av, 0x00), row4(b, n), chain[0]);
            chain[1] = _mm512_fmadd_ps(_mm512_permute_ps(av, 0x55), row4(b + rs_b, n), chain[1]);
            chain[2] = _mm512_fmadd_ps(_mm512_permute_ps(av, 0xaa), row4(b + 2 * rs_b, n), chain[2]);
            chain[3] = _mm512_fmadd_ps(_mm512_permute_ps(av, 0xff), row4(b + 3 * rs_b, n), chain[3]);
        }
        acc = _mm512_add_ps(_mm512_add_ps(chain[0], chain[1]), _mm512_add_ps(chain[2], chain[3]));
    }
    return k ? steps(acc, 0, m, n, (int)k, a, rs_a, cs_a, b, rs_b) : acc;
}

INLINE void put(float *c, int64_t rs, int m, int n, int flags, __m512 v)
{
    if (m == 4 && n == 4 && rs == 4) {
        if (!(flags & PYSIMD_ZERO)) v = _mm512_add_ps(_mm512_loadu_ps(c), v);
        if (flags & PYSIMD_STREAM)
            f32x16_stream(c, v);
        else
            _mm512_storeu_ps(c, v);
        return;
    }
    const __mmask8 some = (__mmask8)((1 << n) - 1);
    for (int i = 0; i < m; i++, c += rs) {
        __m128 row = _mm512_castps512_ps128(v);
        if (!(flags & PYSIMD_ZERO)) row = _mm_add_ps(_mm_maskz_loadu_ps(some, c), row);
        _mm_mask_storeu_ps(c, some, row);
        v = _mm512_shuffle_f32x4(v, v, 0x39); /* the next row to the front */
    }
}

void avx512_f32_outer_4x4(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c,
                          int64_t rs_c)
{
    put(c, rs_c, 4, 4, 0, product(4, 4, k, a, rs_a, cs_a, b, rs_b));
}

INLINE void loop(const pysimd_call *s, int m, int n, int64_t k, int64_t rs_a, int64_t cs_a, int64_t rs_b, int64_t rs_c,
                 int flags)
{
    const float *a = s->a, *b = s->b;
    float *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c)
        put(c, rs_c, m, n, flags, product(m, n, k, a, rs_a, cs_a, b, rs_b));
}

/* 4x4 arrays one behind the other: four products share their address arithmetic, which competes for the ports of
 * permute and fma. */
INLINE void loop_dense(const pysimd_call *s, int flags)
{
    const float *a = s->a, *b = s->b;
    float *c = s->c;
#define DENSE(at) put(c + (at), 4, 4, 4, flags, product(4, 4, 4, a + (at), 4, 1, b + (at), 4))
    int64_t i = 0;
    enum { AHEAD = AHEAD_BYTES / 4 };
    for (; i + 4 <= s->batch; i += 4, a += 64, b += 64, c += 64) {
        if (flags & PYSIMD_STREAM && i + 4 + AHEAD / 16 <= s->batch) {
            prefetch(a + AHEAD, 256);
            prefetch(b + AHEAD, 256);
        }
        DENSE(0);
        DENSE(16);
        DENSE(32);
        DENSE(48);
    }
    for (; i < s->batch; i++, a += 16, b += 16, c += 16) DENSE(0);
}

void avx512_f32_outer_4x4_batch(const pysimd_call *s)
{
    const int tile =
        s->m == 4 && s->n == 4 && s->k == 4 && s->cs_a == 1 && s->rs_a == 4 && s->rs_b == 4 && s->rs_c == 4;
    if (tile && s->bs_a == 16 && s->bs_b == 16 && s->bs_c == 16 && s->flags & PYSIMD_ZERO) {
        if (s->flags & PYSIMD_STREAM)
            loop_dense(s, PYSIMD_ZERO | PYSIMD_STREAM);
        else
            loop_dense(s, PYSIMD_ZERO);
    } else if (tile) {
        loop(s, 4, 4, 4, 4, 1, 4, 4, s->flags);
    } else if (s->m == 4 && s->n == 4 && s->cs_a == 1) {
        loop(s, 4, 4, s->k, s->rs_a, 1, s->rs_b, s->rs_c, s->flags);
    } else {
        loop(s, (int)s->m, (int)s->n, s->k, s->rs_a, s->cs_a, s->rs_b, s->rs_c, s->flags);
    }
}
