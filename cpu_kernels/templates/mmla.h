/* mmla.h: the outer-product microkernel for instructions that multiply two rows of A by two columns of B (AArch64's
 * smmla, usmmla and bfmmla): a group of k is eight bytes of a row or column, and a register holds two of them.
 *
 * A kernel file sets KERNEL, VEC, MR and NR (even, at most 8), and includes this file, which defines its two
 * entry points. An accumulator is a 2 x 2 block of C. (8x12 has 24 of them, and 8 registers for operands; clang 19
 * loads too many operands ahead and spills.) Of an odd number of rows or columns the last is read twice, and
 * what is computed from the second copy is not stored.
 */
#include <arm_neon.h>

#include "kernel.h"

enum { PAIRS = MR / 2, BLOCKS = NR / 2, K_GROUP = V(k_group), GROUP_BYTES = 8 };

INLINE uint8x16_t load_pair(const char *x, const char *y)
{
    return vcombine_u8(vld1_u8((const void *)x), vld1_u8((const void *)y));
}

/* The 2 x 2 block at c, or the part of it that C has. */
INLINE void finish(V(acc) acc, V(elem_c) *c, int64_t rs_c, int64_t rows, int64_t columns, int adds)
{
    V(sum) found[4], old;
    memcpy(found, &acc, sizeof found);
    UNROLL for (int i = 0; i < 2; i++)
        UNROLL for (int j = 0; j < 2; j++) {
            if (i >= rows || j >= columns) continue;
            V(elem_c) *cij = c + i * rs_c + j;
            if (adds) {
                memcpy(&old, cij, sizeof old);
                found[2 * i + j] = old + found[2 * i + j];
            }
            memcpy(cij, &found[2 * i + j], sizeof old);
        }
}

/* P pairs of rows, Q pairs of columns, of which the last may be one; P and Q are constants; so are the strides if
 * `fixed`, where the rows of a pair are adjacent. */
INLINE void tile(const int P, const int Q, const int fixed, int64_t m, int64_t n, int64_t k, const V(elem_a) *a_,
                 int64_t rs_a, int64_t cs_a, const V(elem_b) *b_, int64_t rs_b, V(elem_c) *c, int64_t rs_c, int adds)
{
    const char *a = (const char *)a_, *b = (const char *)b_;
    const int64_t rs = rs_a * (int64_t)sizeof *a_, second_of_last = m % 2 ? 0 : rs, odd_column = n % 2;
    V(acc) acc[PAIRS][BLOCKS];
    UNROLL for (int i = 0; i < P; i++)
        UNROLL for (int j = 0; j < Q; j++) acc[i][j] = V(zero)();
    for (; k > 0; k--) {
        uint8x16_t row[BLOCKS];
        UNROLL for (int j = 0; j < Q; j++) {
            const char *bj = b + 2 * j * GROUP_BYTES;
            row[j] = j == Q - 1 && odd_column ? load_pair(bj, bj) : vld1q_u8((const void *)bj);
        }
        UNROLL for (int i = 0; i < P; i++) {
            const char *ai = a + 2 * i * rs;
            const char *second = ai + (i == P - 1 ? second_of_last : rs);
            const uint8x16_t pair = fixed ? vld1q_u8((const void *)ai) : load_pair(ai, second);
            UNROLL for (int j = 0; j < Q; j++) acc[i][j] = V(fma)(pair, row[j], acc[i][j]);
        }
        a += cs_a * (int64_t)sizeof *a_;
        b += rs_b * (int64_t)sizeof *b_;
    }
    UNROLL for (int i = 0; i < P; i++)
        UNROLL for (int j = 0; j < Q; j++)
            finish(acc[i][j], c + 2 * i * rs_c + 2 * j, rs_c, i == P - 1 ? m - 2 * i : 2, j == Q - 1 ? n - 2 * j : 2,
                   adds);
}

void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    if (rs_a == K_GROUP && cs_a == MR * K_GROUP && rs_b == NR * K_GROUP)
        tile(PAIRS, BLOCKS, 1, MR, NR, k, a, K_GROUP, MR * K_GROUP, b, NR * K_GROUP, c, rs_c, 1);
    else
        tile(PAIRS, BLOCKS, 0, MR, NR, k, a, rs_a, cs_a, b, rs_b, c, rs_c, 1);
}

INLINE void tiles(const int P, const int Q, const pysimd_call *s)
{
    const V(elem_a) *a = s->a;
    const V(elem_b) *b = s->b;
    V(elem_c) *c = s->c;
    for (int64_t i = 0; i < s->batch; i++, a += s->bs_a, b += s->bs_b, c += s->bs_c)
        tile(P, Q, 0, s->m, s->n, s->k, a, s->rs_a, s->cs_a, b, s->rs_b, c, s->rs_c, !(s->flags & PYSIMD_ZERO));
}

/* The pairs of rows and of columns are constants in each case. */
INLINE void tiles_of_pairs(const int P, const pysimd_call *s)
{
    switch ((s->n + 1) / 2) {
#define CASE(Q) case Q: tiles(P, Q <= BLOCKS ? Q : BLOCKS, s); break;
        CASE(1) CASE(2) CASE(3) CASE(4)
#undef CASE
    }
}

void PASTE(KERNEL, batch)(const pysimd_call *s)
{
    switch ((s->m + 1) / 2) {
#define CASE(P) case P: tiles_of_pairs(P <= PAIRS ? P : PAIRS, s); break;
        CASE(1) CASE(2) CASE(3) CASE(4)
#undef CASE
    }
}
