/* tdp.h: the outer-product microkernel for the tile registers of AMX: C is 2 x 2 tiles of 16 x 16, and an instruction
 * adds the product of 16 rows of A and 16 columns of B, 16 groups of k, to one of them.
 *
 * A kernel file sets KERNEL and TDP, the instruction, and ELEM_A and ELEM_B, and includes this file, which defines its
 * two entry points. Edges are shapes of tiles: fewer rows, fewer columns, and for the groups of k past the last multiple
 * of 16 fewer groups. A new shape sets all tiles to zero, so those groups are a second pass over C. A configuration takes
 * as long as three steps: a call of the batch function has two at most, and none if the call before had the same shape
 * (PYSIMD_CONFIGURED).
 */

enum {
    MR = 2 * TILE_ROWS, NR = 2 * TILE_ROWS, ELEM_C_BYTES = 4, TILE_COLUMN_BYTES = TILE_ROWS * ELEM_C_BYTES,
    LINE = 64,
    SHORT = 8,               /* steps of a panel of A that stays in L1 */
    DEPTH = 4 * TILE_GROUPS, /* groups of A that are copied at a time where they are not adjacent */
};

/* Products as pysimd_call has them, strides in bytes; the groups of a row of A are adjacent. */
typedef struct {
    int64_t batch, m, n;
    const char *a;
    int64_t bs_a, rs_a;
    const char *b;
    int64_t bs_b, rs_b;
    char *c;
    int64_t bs_c, rs_c;
} operands;

/* Tiles 0 to 3 are C, 4 and 5 A, 6 and 7 B. Those that are not used have no rows. */
INLINE tile_config config_of(int64_t m, int64_t n, int64_t groups)
{
    tile_config config = {.palette = 1};
    for (int i = 0; i < 2; i++) {
        const int64_t left = m - i * TILE_ROWS, rows = left < 0 ? 0 : left < TILE_ROWS ? left : TILE_ROWS;
        config.rows[4 + i] = (uint8_t)rows, config.row_bytes[4 + i] = rows ? (uint16_t)(groups * GROUP_BYTES) : 0;
        const int64_t right = n - i * TILE_ROWS, columns = right < 0 ? 0 : right < TILE_ROWS ? right : TILE_ROWS;
        config.rows[6 + i] = columns ? (uint8_t)groups : 0, config.row_bytes[6 + i] = (uint16_t)(columns * GROUP_BYTES);
    }
    for (int i = 0; i < 4; i++) {
        const uint8_t rows = config.rows[4 + i / 2];
        const uint16_t bytes = config.row_bytes[6 + i % 2];
        config.rows[i] = bytes ? rows : 0, config.row_bytes[i] = rows ? bytes : 0;
    }
    return config;
}

#define LOAD_A(ONCE, TILE, FROM, STRIDE)                                                                               \
    do {                                                                                                               \
        if (ONCE)                                                                                                      \
            TILE_LOAD_ONCE(TILE, FROM, STRIDE);                                                                        \
        else                                                                                                           \
            TILE_LOAD(TILE, FROM, STRIDE);                                                                             \
    } while (0)

/* P x Q tiles of C, for each product of the batch; P, Q and `once` are constants. */
INLINE void multiply(const int P, const int Q, const int once, const operands *x, int64_t steps, int adds)
{
    const char *a = x->a, *b = x->b;
    char *c = x->c;
    const int64_t rs_a = x->rs_a, rs_b = x->rs_b, rs_c = x->rs_c, lower = TILE_ROWS * rs_c;
    for (int64_t i = 0; i < x->batch; i++, a += x->bs_a, b += x->bs_b, c += x->bs_c) {
        const char *a0 = a, *a1 = a + TILE_ROWS * rs_a, *p = b;
        if (adds) {
            TILE_LOAD(0, c, rs_c);
            if (Q > 1) TILE_LOAD(1, c + TILE_COLUMN_BYTES, rs_c);
            if (P > 1) TILE_LOAD(2, c + lower, rs_c);
            if (P > 1 && Q > 1) TILE_LOAD(3, c + lower + TILE_COLUMN_BYTES, rs_c);
        } else {
            TILE_ZERO(0);
            if (Q > 1) TILE_ZERO(1);
            if (P > 1) TILE_ZERO(2);
            if (P > 1 && Q > 1) TILE_ZERO(3);
        }
        for (int64_t s = steps; s > 0; s--) {
            LOAD_A(once, 4, a0, rs_a);
            TILE_LOAD(6, p, rs_b);
            TILE_MULTIPLY(TDP, 0, 4, 6);
            if (Q > 1) {
                TILE_LOAD(7, p + TILE_COLUMN_BYTES, rs_b);
                TILE_MULTIPLY(TDP, 1, 4, 7);
            }
            if (P > 1) {
                LOAD_A(once, 5, a1, rs_a);
                TILE_MULTIPLY(TDP, 2, 5, 6);
            }
            if (P > 1 && Q > 1) TILE_MULTIPLY(TDP, 3, 5, 7);
            a0 += TILE_ROW_BYTES, a1 += TILE_ROW_BYTES, p += TILE_GROUPS * rs_b;
        }
        TILE_STORE(0, c, rs_c);
        if (Q > 1) TILE_STORE(1, c + TILE_COLUMN_BYTES, rs_c);
        if (P > 1) TILE_STORE(2, c + lower, rs_c);
        if (P > 1 && Q > 1) TILE_STORE(3, c + lower + TILE_COLUMN_BYTES, rs_c);
    }
}

/* Whether each cache line of A is loaded once, by rows that start on one, and they are so many that they would evict B
 * from L1. Of rows that do not, each line is loaded twice, and from L2 if the first load has left it there: that took twice
 * as long. */
INLINE int loads_once(const operands *x, int64_t steps)
{
    return steps > SHORT && ((uintptr_t)x->a | (uintptr_t)x->rs_a | (uintptr_t)x->bs_a) % LINE == 0;
}

INLINE void pass(const int P, const int Q, const operands *x, int64_t steps, int64_t groups, int adds, int configured)
{
    if (!configured) {
        const tile_config config = config_of(x->m, x->n, groups);
        TILE_CONFIGURE(config);
    }
    if (loads_once(x, steps))
        multiply(P, Q, 1, x, steps, adds);
    else
        multiply(P, Q, 0, x, steps, adds);
}

/* k > 0 groups. */
INLINE void passes(const int P, const int Q, operands x, int64_t k, int flags)
{
    const int64_t steps = k / TILE_GROUPS, rest = k % TILE_GROUPS;
    const int adds = !(flags & PYSIMD_ZERO), configured = flags & PYSIMD_CONFIGURED && !(steps && rest);
    if (steps) pass(P, Q, &x, steps, TILE_GROUPS, adds, configured);
    if (rest) {
        x.a += steps * TILE_ROW_BYTES, x.b += steps * TILE_GROUPS * x.rs_b;
        pass(P, Q, &x, 1, rest, adds || steps, configured);
    }
    if (!(flags & PYSIMD_KEEP)) TILE_RELEASE();
}

static void passes_of_any_shape(const operands *x, int64_t k, int flags)
{
    switch ((x->m > TILE_ROWS) * 2 + (x->n > TILE_ROWS)) {
    case 0: passes(1, 1, *x, k, flags); break;
    case 1: passes(1, 2, *x, k, flags); break;
    case 2: passes(2, 1, *x, k, flags); break;
    case 3: passes(2, 2, *x, k, flags); break;
    }
}

INLINE operands operands_of(const pysimd_call *s)
{
    const int64_t size_a = sizeof(ELEM_A), size_b = sizeof(ELEM_B), size_c = ELEM_C_BYTES;
    return (operands){s->batch, s->m, s->n, s->a, s->bs_a * size_a, s->rs_a * size_a,
                      s->b, s->bs_b * size_b, s->rs_b * size_b, s->c, s->bs_c * size_c, s->rs_c * size_c};
}

/* cs bytes from group to group of a row of A. */
NOINLINE void copied(const operands *x, int64_t cs, int64_t k, int flags)
{
    _Alignas(LINE) char rows[MR][DEPTH * GROUP_BYTES];
    for (int64_t i = 0; i < x->batch; i++)
        for (int64_t p = 0; p < k; p += DEPTH) {
            const int64_t depth = k - p < DEPTH ? k - p : DEPTH;
            operands part = {1, x->m, x->n, rows[0], 0, sizeof rows[0], x->b + i * x->bs_b + p * x->rs_b, 0, x->rs_b,
                             x->c + i * x->bs_c, 0, x->rs_c};
            for (int64_t r = 0; r < x->m; r++)
                for (int64_t q = 0; q < depth; q++)
                    memcpy(&rows[r][q * GROUP_BYTES], x->a + i * x->bs_a + r * x->rs_a + (p + q) * cs, GROUP_BYTES);
            passes_of_any_shape(&part, depth, p ? 0 : flags & PYSIMD_ZERO);
        }
}

INLINE int adjacent(int64_t k, int64_t cs_a) { return k == 1 || cs_a * (int64_t)sizeof(ELEM_A) == GROUP_BYTES; }

void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    const pysimd_call call = one_tile(MR, NR, k, a, rs_a, cs_a, b, rs_b, c, rs_c);
    const operands x = operands_of(&call);
    if (k == 0) return;
    if (adjacent(k, cs_a))
        passes(2, 2, x, k, 0);
    else
        copied(&x, cs_a * (int64_t)sizeof(ELEM_A), k, 0);
}

static void zero(const operands *x)
{
    for (int64_t i = 0; i < x->batch; i++)
        for (int64_t r = 0; r < x->m; r++)
            memset(x->c + i * x->bs_c + r * x->rs_c, 0, (size_t)(x->n * ELEM_C_BYTES));
}

void PASTE(KERNEL, batch)(const pysimd_call *s)
{
    const operands x = operands_of(s);
    if (s->k > 0 && adjacent(s->k, s->cs_a))
        passes_of_any_shape(&x, s->k, s->flags);
    else if (s->k > 0)
        copied(&x, s->cs_a * (int64_t)sizeof(ELEM_A), s->k, s->flags);
    else if (s->flags & PYSIMD_ZERO)
        zero(&x);
}
