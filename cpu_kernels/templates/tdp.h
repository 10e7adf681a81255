/* tdp.h: the outer-product microkernel for the tile registers of AMX: C is 2 x 2 tiles of 16 x 16, and an instruction
 * adds the product of 16 rows of A and 16 columns of B, 16 groups of k, to one of them.
 *
 * A kernel file sets KERNEL and TDP, the instruction, SUM, the addition of two vectors of C, and ELEM_A and ELEM_B, and
 * includes this file, which defines its two entry points. PLANES is 2 for SPLIT panels (pysimd.h), whose upper and
 * lower parts are each multiplied by both; they have whole steps. Edges are shapes of tiles: fewer rows, fewer columns,
 * and of fewer than 16 groups of k fewer groups. A new shape sets all tiles to zero, so the groups past the last
 * multiple of 16 are copied, with zeros behind them, unless the panels have these (PYSIMD_PADDED), and are one more
 * step of the same shape: copies for each tile of 33 x 33 x 33 bfloat16 took a third of its time. A configuration takes
 * as long as three steps: a call of the batch function has one, and none if the call before had the same shape
 * (PYSIMD_CONFIGURED).
 *
 * The store of a tile takes as long as a multiply-add and delays those into its register. So each accumulator is
 * stored right before the next product's first multiply-add into it, while those of the other three run. C = A B is
 * stored to C itself, whose lines are prefetched to L1 during the product. C += A B is stored to a buffer, and vector
 * instructions add it to C between the later multiply-adds of the next product.
 *
 * Measured on a Xeon, one core: a line comes from L2 in 1.6 to 2 cycles, and a modified one takes 4 to 5. So the panel
 * of B and the part of C of 8 steps, 256 and 64 lines, take 670 to 830 cycles, the 32 multiply-adds 512: a row of tiles
 * reaches 71 % of those, 86 to 90 % if C is not written, and 96 % if besides all tiles take the same panel of B.
 *
 * Tried there: loading the tiles a step ahead, and other orders of the loads (no difference); panels stored as tiles of
 * 1 KiB (2 to 8 % more); prefetching the next panel, or the tiles two and four steps ahead, into L1 (0.7 to 1.04 times
 * as fast); two to eight panels of A for each of B (no difference). All four accumulators stored at the end of a
 * product, to the buffer, and from there to C: 256 x 256 x 256 took 1.17 times as long in bfloat16, 1.39 times in int8.
 */

#ifndef PLANES
#define PLANES 1
#endif

enum {
    MR = 2 * TILE_ROWS, NR = 2 * TILE_ROWS, ELEM_C_BYTES = 4, TILE_COLUMN_BYTES = TILE_ROWS * ELEM_C_BYTES,
    LINE = 64,
    STEP_OF_A = PLANES * TILE_ROW_BYTES,   /* of each row */
    STEPS_IN_L1 = 11 / PLANES,             /* whose tiles are in L1 together, 4 KiB for each plane */
    WRITTEN_BEHIND = 4,      /* steps of a product, at least, between which that before is written to C */
    DEPTH = 4 * TILE_GROUPS, /* groups of A that are copied at a time where they are not adjacent: whole steps */
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

typedef enum { NEITHER, OF_A, OF_B } operand;
enum { TO_L2 = 2, TO_L1 = 3 };

/* Tiles 0 to 3 are C, 4 and 5 A, 6 and 7 B. Those that are not used have no rows, but where those that are are whole:
 * then a call for half of the rows or columns has the configuration of one for all. */
INLINE tile_config config_of(int64_t m, int64_t n, int64_t groups)
{
    tile_config config = {.palette = 1};
    if (m == TILE_ROWS) m = MR;
    if (n == TILE_ROWS) n = NR;
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

#define LOAD(ONCE, TILE, FROM, STRIDE)                                                                               \
    do {                                                                                                               \
        if (ONCE)                                                                                                      \
            TILE_LOAD_ONCE(TILE, FROM, STRIDE);                                                                        \
        else                                                                                                           \
            TILE_LOAD(TILE, FROM, STRIDE);                                                                             \
    } while (0)

INLINE unsigned first_columns(int64_t n) { return n <= 0 ? 0 : n < TILE_ROWS ? (1u << n) - 1 : (1u << TILE_ROWS) - 1; }

/* The groups of k past the last whole step of a product, and zeros behind them: a step of their own. */
typedef struct {
    _Alignas(LINE) char a[MR][TILE_ROW_BYTES];
    char b[TILE_GROUPS][NR * GROUP_BYTES];
} last_step;

INLINE void copy_last_of_a(last_step *s, int64_t m, int64_t groups, const char *a, int64_t rs_a)
{
    const __mmask16 some = (__mmask16)first_columns(groups);
    for (int64_t i = 0; i < m; i++) _mm512_store_si512(s->a[i], _mm512_maskz_loadu_epi32(some, a + i * rs_a));
}

INLINE void copy_last_of_b(last_step *s, int64_t n, int64_t groups, const char *b, int64_t rs_b)
{
    const __mmask16 left = (__mmask16)first_columns(n), right = (__mmask16)first_columns(n - TILE_ROWS);
    for (int64_t q = 0; q < TILE_GROUPS; q++) {
        const int there = q < groups;
        const char *from = there ? b + q * rs_b : b;
        _mm512_store_si512(s->b[q], _mm512_maskz_loadu_epi32(there ? left : 0, from));
        _mm512_store_si512(s->b[q] + LINE, _mm512_maskz_loadu_epi32(there ? right : 0, from + LINE));
    }
}

/* `a` and `b` are at the first of these groups of product `i`; an operand that the batch shares is copied once. */
INLINE void copy_last(last_step *s, const operands *x, int64_t i, int64_t groups, const char *a, const char *b)
{
    if (i == 0 || x->bs_a != 0) copy_last_of_a(s, x->m, groups, a, x->rs_a);
    if (i == 0 || x->bs_b != 0) copy_last_of_b(s, x->n, groups, b, x->rs_b);
}

/* A product whose accumulators are not in C yet; c is NULL if there is none. */
typedef struct {
    char *c;
    int64_t rs_c;
} unstored;

/* The first step of a product zeroes the accumulators. Those of the product before are stored first: each right before
 * the multiply-add that needs its register, while the others still run. */
#define RENEW(TILE, ROW, COLUMN)                                                                                       \
    do {                                                                                                               \
        if (!first) break;                                                                                             \
        const int64_t offset = (ROW) * TILE_ROWS * before.rs_c + (COLUMN) * TILE_COLUMN_BYTES;                         \
        if (before.c) TILE_STORE(TILE, before.c + offset, before.rs_c);                                                \
        TILE_ZERO(TILE);                                                                                               \
    } while (0)

INLINE void load_a(const int P, const int once, const char *a, int64_t rs_a)
{
    LOAD(once, 4, a, rs_a);
    if (P > 1) LOAD(once, 5, a + TILE_ROWS * rs_a, rs_a);
}

INLINE void load_b(const int Q, const int once, const char *b, int64_t rs_b)
{
    LOAD(once, 6, b, rs_b);
    if (Q > 1) LOAD(once, 7, b + TILE_COLUMN_BYTES, rs_b);
}

INLINE void multiply_loaded(const int P, const int Q)
{
    TILE_MULTIPLY(TDP, 0, 4, 6);
    if (Q > 1) TILE_MULTIPLY(TDP, 1, 4, 7);
    if (P > 1) TILE_MULTIPLY(TDP, 2, 5, 6);
    if (P > 1 && Q > 1) TILE_MULTIPLY(TDP, 3, 5, 7);
}

/* A step of P x Q tiles, the `first` of a product or not; `once`: the operand whose tiles are not loaded again.
 *
 * Of two planes the product of the upper parts is the last: it is 2^7 times as large as the others, so that of a short
 * K they add little to the rounding. Each tile of B is loaded once, the upper one of A twice. */
INLINE void step(const int P, const int Q, const operand once, const int first, unstored before, const char *a,
                 int64_t rs_a, const char *b, int64_t rs_b)
{
    const char *of_b = PLANES > 1 ? b + rs_b / PLANES : b; /* what is multiplied first */
    LOAD(once == OF_A && PLANES == 1, 4, a, rs_a);
    LOAD(once == OF_B, 6, of_b, rs_b);
    RENEW(0, 0, 0);
    TILE_MULTIPLY(TDP, 0, 4, 6);
    if (Q > 1) {
        LOAD(once == OF_B, 7, of_b + TILE_COLUMN_BYTES, rs_b);
        RENEW(1, 0, 1);
        TILE_MULTIPLY(TDP, 1, 4, 7);
    }
    if (P > 1) {
        LOAD(once == OF_A && PLANES == 1, 5, a + TILE_ROWS * rs_a, rs_a);
        RENEW(2, 1, 0);
        TILE_MULTIPLY(TDP, 2, 5, 6);
    }
    if (P > 1 && Q > 1) {
        RENEW(3, 1, 1);
        TILE_MULTIPLY(TDP, 3, 5, 7);
    }
    if (PLANES == 1) return;
    load_a(P, once == OF_A, a + TILE_ROW_BYTES, rs_a);
    multiply_loaded(P, Q);
    load_b(Q, once == OF_B, b, rs_b);
    multiply_loaded(P, Q);
    load_a(P, once == OF_A, a, rs_a);
    multiply_loaded(P, Q);
}

/* The accumulators of a product, and what of them is not in C yet: rows from `row` on.
 *
 * A store to two cache lines takes as long as two. So where the products of a batch are next to each other in C, and
 * their rows start `shift` bytes past a line, whole lines are stored: each row of `sums` has the last line of the
 * product before in front of its own two. Products of 256 to 2048 rows took 0.88 to 0.99 times as long. */
typedef struct {
    _Alignas(LINE) char sums[MR][LINE + NR * ELEM_C_BYTES];
    int64_t row, rows, rs_c, shift;
    char *c;               /* `shift` bytes before the product's first element */
    __mmask16 left, right; /* columns of C */
} unwritten;

INLINE int64_t shift_of(const operands *x)
{
    const int64_t shift = (intptr_t)x->c & (LINE - 1);
    const int adjacent = x->n == NR && x->bs_c == NR * ELEM_C_BYTES && x->rs_c % LINE == 0;
    return adjacent && shift % ELEM_C_BYTES == 0 ? shift : 0;
}

/* Nothing is unwritten. */
INLINE void start_unwritten(unwritten *u, const operands *x, int64_t shift)
{
    u->row = u->rows = 0, u->rs_c = x->rs_c, u->shift = shift;
    u->left = (__mmask16)(first_columns(x->n) & -1u << shift / ELEM_C_BYTES);
    u->right = (__mmask16)first_columns(x->n - TILE_ROWS);
}

/* The next `count` rows. */
INLINE void write_rows(unwritten *u, int64_t count, int adds)
{
    const int64_t end = u->rows - u->row < count ? u->rows : u->row + count;
    char *c = u->c + u->row * u->rs_c;
    for (int64_t i = u->row; i < end; i++, c += u->rs_c) {
        const char *sums = u->sums[i] + LINE - u->shift;
        __m512i left = _mm512_loadu_si512(sums), right = _mm512_loadu_si512(sums + LINE);
        if (adds) {
            left = SUM(_mm512_maskz_loadu_epi32(u->left, c), left);
            right = SUM(_mm512_maskz_loadu_epi32(u->right, c + LINE), right);
        }
        _mm512_mask_storeu_epi32(c, u->left, left);
        _mm512_mask_storeu_epi32(c + LINE, u->right, right);
        if (u->shift) _mm512_store_si512(u->sums[i], _mm512_load_si512(u->sums[i] + 2 * LINE));
    }
    u->row = end;
}

/* The end of each row of the last product, `shift` bytes in the line behind its whole ones. */
INLINE void write_ends(unwritten *u)
{
    if (!u->shift) return;
    u->row = 0, u->c += 2 * LINE;
    u->left = (__mmask16)first_columns(u->shift / ELEM_C_BYTES), u->right = 0;
    write_rows(u, MR, 1);
}

INLINE void store_tiles(const int P, const int Q, char *c, int64_t rs_c)
{
    char *lower = c + TILE_ROWS * rs_c;
    TILE_STORE(0, c, rs_c);
    if (Q > 1) TILE_STORE(1, c + TILE_COLUMN_BYTES, rs_c);
    if (P > 1) TILE_STORE(2, lower, rs_c);
    if (P > 1 && Q > 1) TILE_STORE(3, lower + TILE_COLUMN_BYTES, rs_c);
}

/* The rows of C of a product, `count` a step, to L1 or L2. */
INLINE const char *prefetch_rows(const int locality, const char *c, int64_t rs_c, int64_t count)
{
    for (; count > 0; count--, c += rs_c) {
        __builtin_prefetch(c, 0, locality);
        __builtin_prefetch(c + LINE, 0, locality);
        if (locality == TO_L2) __builtin_prefetch(c + NR * ELEM_C_BYTES - 1, 0, locality); /* of rows within a line */
    }
    return c;
}

/* C = A B: P x Q tiles for each product of the batch; P, Q and `once` are constants. `rest` groups follow the steps. */
INLINE void multiply(const int P, const int Q, const operand once, const operands *x, int64_t steps, int64_t rest)
{
    last_step last;
    const char *a = x->a, *b = x->b;
    const int64_t rs_a = x->rs_a, rs_b = x->rs_b, rs_c = x->rs_c, rows_a_step = (MR + steps - 1) / steps;
    unstored before = {NULL, rs_c};
    for (int64_t i = 0; i < x->batch; i++, a += x->bs_a, b += x->bs_b) {
        const char *a0 = a, *p = b, *ahead = x->c + i * x->bs_c;
        step(P, Q, once, 1, before, a0, rs_a, p, rs_b);
        for (int64_t s = 1;; s++) {
            if (P > 1 && Q > 1) ahead = prefetch_rows(TO_L1, ahead, rs_c, rows_a_step);
            if (s == steps) break;
            a0 += STEP_OF_A, p += TILE_GROUPS * rs_b;
            step(P, Q, once, 0, before, a0, rs_a, p, rs_b);
        }
        if (rest) {
            copy_last(&last, x, i, rest, a0 + STEP_OF_A, p + TILE_GROUPS * rs_b);
            step(P, Q, NEITHER, 0, before, last.a[0], sizeof last.a[0], last.b[0], sizeof last.b[0]);
        }
        before.c = x->c + i * x->bs_c;
    }
    store_tiles(P, Q, before.c, rs_c);
}

/* What is in the buffer now: the sums of product `i`. */
INLINE void take(unwritten *u, const operands *x, int64_t i)
{
    u->row = 0, u->rows = x->m, u->c = x->c + i * x->bs_c - u->shift;
    if (u->shift && i > 0) u->left = (__mmask16)first_columns(TILE_ROWS);
}

/* C += A B. `behind`, a constant: each product is added to C while the next is multiplied. The sums start from 0 and
 * are added to C, in every shape and by every route: so the bits of an element depend on its row, its column and k
 * alone. */
INLINE void multiply_and_add(const int P, const int Q, const operand once, const int behind, const operands *x,
                             int64_t steps, int64_t rest)
{
    last_step last;
    const char *a = x->a, *b = x->b;
    const int64_t rs_a = x->rs_a, rs_b = x->rs_b, rs_c = x->rs_c;
    const int64_t rows_a_step = behind ? (MR + steps - 2) / (steps - 1) : MR;
    unwritten u;
    start_unwritten(&u, x, behind ? shift_of(x) : 0);
    const unstored none = {NULL, 0}, buffer = {u.sums[0] + LINE, sizeof u.sums[0]};
    for (int64_t i = 0; i < x->batch; i++, a += x->bs_a, b += x->bs_b) {
        const char *a0 = a, *p = b, *ahead = x->c + i * x->bs_c;
        step(P, Q, once, 1, behind && i > 0 ? buffer : none, a0, rs_a, p, rs_b);
        if (behind && i > 0) take(&u, x, i - 1);
        for (int64_t s = 1; s < steps; s++) {
            a0 += STEP_OF_A, p += TILE_GROUPS * rs_b;
            step(P, Q, once, 0, none, a0, rs_a, p, rs_b);
            if (behind) {
                write_rows(&u, rows_a_step, 1);
                ahead = prefetch_rows(TO_L2, ahead, rs_c, rows_a_step);
            }
        }
        if (rest) {
            copy_last(&last, x, i, rest, a0 + STEP_OF_A, p + TILE_GROUPS * rs_b);
            step(P, Q, NEITHER, 0, none, last.a[0], sizeof last.a[0], last.b[0], sizeof last.b[0]);
        }
        if (behind && i + 1 < x->batch) continue;
        store_tiles(P, Q, buffer.c, buffer.rs_c);
        take(&u, x, i);
        write_rows(&u, MR, 1);
    }
    if (behind) write_ends(&u);
}

/* Whether each cache line of an operand is loaded once before it leaves L1, by rows that start on one: it would evict
 * the other operand. Of rows that do not, each line is loaded twice, and from L2 if the first load has left it there:
 * that took twice as long. */
INLINE int loads_once(const void *from, int64_t rs, int64_t bs, int64_t steps)
{
    return (bs != 0 || steps > STEPS_IN_L1) && ((uintptr_t)from | (uintptr_t)rs | (uintptr_t)bs) % LINE == 0;
}

INLINE void pass(const int P, const int Q, const int behind, const operands *x, int64_t steps, int64_t groups,
                 int64_t rest, int adds, int configured)
{
    if (!configured) {
        const tile_config config = config_of(x->m, x->n, groups);
        TILE_CONFIGURE(config);
    }
    const operand once = !behind                                     ? NEITHER
                         : loads_once(x->b, x->rs_b / PLANES, x->bs_b, steps) ? OF_B
                         : loads_once(x->a, x->rs_a, x->bs_a, steps) ? OF_A
                                                                     : NEITHER;
#define BY(ONCE) adds ? multiply_and_add(P, Q, ONCE, behind, x, steps, rest) : multiply(P, Q, ONCE, x, steps, rest)
    if (once == OF_B)
        BY(OF_B);
    else if (once == OF_A)
        BY(OF_A);
    else
        BY(NEITHER);
#undef BY
}

/* k > 0 groups; `single`: the batch has one product. */
INLINE void passes(const int P, const int Q, const int single, operands x, int64_t k, int flags)
{
    const int padded = (PLANES > 1 || flags & PYSIMD_PADDED) && k > TILE_GROUPS;
    const int64_t steps = padded ? (k + TILE_GROUPS - 1) / TILE_GROUPS : k / TILE_GROUPS;
    const int64_t rest = padded ? 0 : k % TILE_GROUPS;
    const int adds = !(flags & PYSIMD_ZERO), configured = flags & PYSIMD_CONFIGURED;
    if (P == 2 && Q == 2 && !single && x.batch > 1 && steps >= WRITTEN_BEHIND)
        pass(P, Q, 1, &x, steps, TILE_GROUPS, rest, adds, configured);
    else if (steps)
        pass(P, Q, 0, &x, steps, TILE_GROUPS, rest, adds, configured);
    else
        pass(P, Q, 0, &x, 1, rest, 0, adds, configured);
    if (!(flags & PYSIMD_KEEP)) TILE_RELEASE();
}

static void passes_of_any_shape(const operands *x, int64_t k, int flags)
{
    switch ((x->m > TILE_ROWS) * 2 + (x->n > TILE_ROWS)) {
    case 0: passes(1, 1, 0, *x, k, flags); break;
    case 1: passes(1, 2, 0, *x, k, flags); break;
    case 2: passes(2, 1, 0, *x, k, flags); break;
    case 3: passes(2, 2, 0, *x, k, flags); break;
    }
}

INLINE operands operands_of(const pysimd_call *s)
{
    const int64_t size_a = sizeof(ELEM_A), size_b = sizeof(ELEM_B), size_c = ELEM_C_BYTES;
    return (operands){s->batch, s->m, s->n, s->a, s->bs_a * size_a, s->rs_a * size_a,
                      s->b, s->bs_b * size_b, s->rs_b * size_b, s->c, s->bs_c * size_c, s->rs_c * size_c};
}

/* Product i, k groups of an A whose rows have cs bytes from group to group. */
static void multiply_copies(const operands *x, int64_t i, int64_t cs, int64_t k, int adds)
{
    _Alignas(LINE) char rows[MR][DEPTH * GROUP_BYTES];
    last_step last;
    const unstored none = {NULL, 0};
    unwritten u;
    const char *a = x->a + i * x->bs_a, *b = x->b + i * x->bs_b;
    const int64_t groups = k < TILE_GROUPS ? k : TILE_GROUPS;
    const tile_config config = config_of(MR, x->n, groups);
    TILE_CONFIGURE(config);
    for (int64_t p = 0; p < k; p += DEPTH) {
        const int64_t depth = k - p < DEPTH ? k - p : DEPTH;
        if (p == 0 || depth < DEPTH) memset(rows, 0, sizeof rows);
        for (int64_t r = 0; r < x->m; r++)
            for (int64_t q = 0; q < depth; q++)
                memcpy(&rows[r][q * GROUP_BYTES], a + r * x->rs_a + (p + q) * cs, GROUP_BYTES);
        for (int64_t q = 0; q < depth; q += TILE_GROUPS, b += TILE_GROUPS * x->rs_b) {
            const int whole = depth - q >= groups;
            if (!whole) copy_last_of_b(&last, x->n, depth - q, b, x->rs_b);
            const char *from = whole ? b : last.b[0];
            const int64_t rs_b = whole ? x->rs_b : (int64_t)sizeof last.b[0];
            if (x->n > TILE_ROWS)
                step(2, 2, NEITHER, 0, none, rows[0] + q * GROUP_BYTES, sizeof rows[0], from, rs_b);
            else
                step(2, 1, NEITHER, 0, none, rows[0] + q * GROUP_BYTES, sizeof rows[0], from, rs_b);
        }
    }
    start_unwritten(&u, x, 0);
    if (x->n > TILE_ROWS)
        store_tiles(2, 2, u.sums[0] + LINE, sizeof u.sums[0]);
    else
        store_tiles(2, 1, u.sums[0] + LINE, sizeof u.sums[0]);
    u.rows = x->m, u.c = x->c + i * x->bs_c;
    write_rows(&u, MR, adds);
}

NOINLINE void copied(const operands *x, int64_t cs, int64_t k, int flags)
{
    const int adds = !(flags & PYSIMD_ZERO);
    for (int64_t i = 0; i < x->batch; i++) multiply_copies(x, i, cs, k, adds);
    TILE_RELEASE();
}

INLINE int adjacent(int64_t k, int64_t cs_a)
{
    return PLANES > 1 || k == 1 || cs_a * (int64_t)sizeof(ELEM_A) == GROUP_BYTES;
}

void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    const pysimd_call call = one_tile(MR, NR, k, a, rs_a, cs_a, b, rs_b, c, rs_c);
    const operands x = operands_of(&call);
    if (k == 0) return;
    if (adjacent(k, cs_a))
        passes(2, 2, 1, x, k, 0);
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
