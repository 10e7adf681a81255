/* outer_half.h: edge tiles of outer.h whose last columns fill at most half of a vector. Included by outer.h for kernels
 * that define HALVES; their vector type has the operations V(load_twice), V(blend), V(load_c_halves) and
 * V(store_halves).
 *
 * Half a vector costs a multiply-add of its own, as a whole one does. Here one register holds the last columns of two
 * rows: its multiplicand has element i of A in the lower half and element i + 1 in the upper half, and the last columns
 * of B are loaded into both halves. So six rows of 12 floats take 9 multiply-adds a step of k, not 12. The blend that
 * joins the two elements runs on more ports than the multiply-adds (Zen 3: four, Haswell and Skylake: three;
 * multiply-adds: two). Where the columns fill less than the half, it overlaps the vector before it. The terms and their
 * order are those of tile().
 */
enum { HALF = LANES / 2 };

/* The second row of the pair of row i. In an odd number of rows the last one is both, and is stored twice. */
#define SECOND(i) ((i) + 1 < M ? (i) + 1 : (i))

#define STEP_WITH_HALF STEP_WITH_HALF_BY(V(fma))
#define STEP_WITH_HALF_BY(FMA)                                                                                         \
    {                                                                                                                  \
        V(vec) row[NV_MAX];                                                                                            \
        UNROLL for (int j = 0; j < NV; j++) row[j] = V(load)(b + j * LANES * K_GROUP);                                 \
        const V(vec) twice = V(load_twice)(b + last * K_GROUP);                                                        \
        UNROLL for (int i = 0; i < M; i += 2) {                                                                        \
            const V(vec) x = V(broadcast)(ROW(i)), y = V(broadcast)(ROW(SECOND(i)));                                   \
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = FMA(x, row[j], acc[i][j]);                                 \
            if (i + 1 < M)                                                                                             \
                UNROLL for (int j = 0; j < NV; j++) acc[i + 1][j] = FMA(y, row[j], acc[i + 1][j]);                     \
            halves[i / 2] = FMA(V(blend)(x, y), twice, halves[i / 2]);                                                 \
        }                                                                                                              \
        b += rs_b;                                                                                                     \
        ADVANCE(cs_a);                                                                                                 \
    }

/* M rows, NV vectors, and half a vector that begins with column `last`. */
INLINE void tile_with_half(const int M, const int NV, int64_t last, int64_t k, const V(elem_a) *a, int64_t rs_a,
                           int64_t cs_a, const V(elem_b) *b, int64_t rs_b, V(elem_c) *c, int64_t rs_c, int flags)
{
    const int64_t rs = rs_a * (int64_t)sizeof *a;
    int64_t rs3 = 3 * rs;
    if (M > 3) OPAQUE(rs3);
    const char *base[BASES];
    UNROLL for (int g = 0; 5 * g < M; g++) {
        base[g] = (const char *)a + 5 * g * rs;
        OPAQUE(base[g]);
    }

    V(acc) acc[MR][NV_MAX], halves[(MR + 1) / 2];
    const int chained = flags & PYSIMD_CHAIN, adds = !(flags & (PYSIMD_ZERO | PYSIMD_CHAIN));
    UNROLL for (int i = 0; i < M; i++)
        UNROLL for (int j = 0; j < NV; j++) acc[i][j] = chained ? V(load_c)(c + i * rs_c + j * LANES) : V(zero)();
    UNROLL for (int i = 0; i < M; i += 2)
        halves[i / 2] = chained ? V(load_c_halves)(c + i * rs_c + last, c + SECOND(i) * rs_c + last) : V(zero)();

#ifdef FIRST_STEP_SETS
#define SET(x, y, before) V(product)(x, y)
    if (k > 0 && !chained) {
        STEP_WITH_HALF_BY(SET)
        k--;
    }
#undef SET
#endif
    for (; k > 0; k--) STEP_WITH_HALF

    if (adds) { /* before the first store: the half may overlap */
        UNROLL for (int i = 0; i < M; i++)
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = V(add)(V(load_c)(c + i * rs_c + j * LANES), acc[i][j]);
        UNROLL for (int i = 0; i < M; i += 2)
            halves[i / 2] = V(add)(V(load_c_halves)(c + i * rs_c + last, c + SECOND(i) * rs_c + last), halves[i / 2]);
    }
    UNROLL for (int i = 0; i < M; i++)
        UNROLL for (int j = 0; j < NV; j++) V(store)(c + i * rs_c + j * LANES, acc[i][j]);
    UNROLL for (int i = 0; i < M; i += 2)
        V(store_halves)(c + i * rs_c + last, c + SECOND(i) * rs_c + last, halves[i / 2]);
}

/* The batch: one such tile a product. */
INLINE void tiles_with_half(const int M, const int NV, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(elem_c) *c = s->c;
    for (int64_t i = 0; i < s->batch; i++) {
        tile_with_half(M, NV, s->n - HALF, s->k, a, s->rs_a, s->cs_a, b, s->rs_b, c, s->rs_c, s->flags);
        a += s->bs_a, b += s->bs_b, c += s->bs_c;
    }
}
