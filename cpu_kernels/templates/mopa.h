/* mopa.h: the outer-product microkernel for the outer-product instruction of SME, at any length of a vector: one
 * instruction is a rank-1 update (of k_group k) of a tile of ZA, vl x vl elements of C, two of which are side by side.
 *
 * A kernel file sets KERNEL, MOPA, the instruction, SUFFIX, that of its operands (s, h), ELEM_A, ELEM_B and ELEM_C, and
 * includes this file, which defines its two entry points. A group of k_group elements has 32 bits. ZA must not be in
 * use by the caller. Elements of A whose rows are not adjacent are copied first: SME has no gather in streaming mode.
 */
#include "kernel.h"

enum { GROUP_BYTES = 4, MOST_LANES = PYSIMD_MOST_VECTOR_BYTES / GROUP_BYTES, DEPTH = 64 };

/* ZA += A B for k groups: A in adjacent columns of m groups, cs bytes apart, B in rows, rs bytes apart. */
INLINE void multiply(int64_t m, int64_t n, int64_t lanes, int64_t k, const char *a, int64_t cs, const char *b,
                     int64_t rs)
{
    const int64_t n0 = n < lanes ? n : lanes, n1 = n - n0;
    const char *b1 = b + lanes * GROUP_BYTES;
    if (k > 0)
        __asm__ volatile(SME("smstart sm\n"
                             "whilelt p0.s, xzr, %[m]\n whilelt p1.s, xzr, %[n0]\n whilelt p2.s, xzr, %[n1]\n"
                             "ptrue p3.b\n"
                             "0:\n"
                             "ld1w {z0.s}, p0/z, [%[a]]\n"
                             "ld1w {z1.s}, p1/z, [%[b]]\n"
                             "ld1w {z2.s}, p2/z, [%[b1]]\n"
                             MOPA " za0.s, p3/m, p3/m, z0." SUFFIX ", z1." SUFFIX "\n"
                             MOPA " za1.s, p3/m, p3/m, z0." SUFFIX ", z2." SUFFIX "\n"
                             "add %[a], %[a], %[cs]\n add %[b], %[b], %[rs]\n add %[b1], %[b1], %[rs]\n"
                             "subs %[k], %[k], #1\n"
                             "b.ne 0b\n"
                             "smstop sm")
                         : [a] "+r"(a), [b] "+r"(b), [b1] "+r"(b1), [k] "+r"(k)
                         : [m] "r"(m), [n0] "r"(n0), [n1] "r"(n1), [cs] "r"(cs), [rs] "r"(rs)
                         : SME_REGISTERS);
}

/* The first m rows of both tiles, MOST_LANES elements apart. */
INLINE void store(int64_t m, ELEM_C (*to)[2 * MOST_LANES])
{
    ELEM_C *at = to[0];
    const int64_t row = sizeof *to, half = MOST_LANES;
    int64_t i = 0;
    __asm__ volatile(SME("smstart sm\n"
                         "whilelt p1.s, xzr, %[half]\n"
                         "0:\n"
                         "mov w12, %w[i]\n"
                         "st1w {za0h.s[w12, 0]}, p1, [%[at]]\n"
                         "st1w {za1h.s[w12, 0]}, p1, [%[at], %[half], lsl #2]\n"
                         "add %[at], %[at], %[row]\n"
                         "add %[i], %[i], #1\n"
                         "cmp %[i], %[m]\n"
                         "b.lt 0b\n"
                         "smstop sm")
                     : [at] "+r"(at), [i] "+r"(i)
                     : [half] "r"(half), [row] "r"(row), [m] "r"(m)
                     : "x12", SME_REGISTERS);
}

INLINE void tile(int64_t m, int64_t n, int64_t k, const char *a, int64_t rs_a, int64_t cs_a, const char *b,
                 int64_t rs_b, ELEM_C *c, int64_t rs_c, int adds)
{
    const int64_t lanes = sme_lanes();
    ELEM_C found[MOST_LANES][2 * MOST_LANES];
    __asm__ volatile(SME("smstart za\n zero {za}") : : : "memory");
    if (rs_a == GROUP_BYTES) {
        multiply(m, n, lanes, k, a, cs_a, b, rs_b);
    } else {
        char columns[DEPTH][MOST_LANES][GROUP_BYTES];
        for (int64_t p = 0; p < k; p += DEPTH) {
            const int64_t depth = k - p < DEPTH ? k - p : DEPTH;
            for (int64_t q = 0; q < depth; q++)
                for (int64_t i = 0; i < m; i++) memcpy(columns[q][i], a + i * rs_a + (p + q) * cs_a, GROUP_BYTES);
            multiply(m, n, lanes, depth, (const char *)columns, sizeof columns[0], b + p * rs_b, rs_b);
        }
    }
    store(m, found);
    __asm__ volatile(SME("smstop za") : : : "memory");
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            ELEM_C *cij = c + i * rs_c + j, old;
            ELEM_C value = found[i][j < lanes ? j : MOST_LANES + j - lanes];
            if (adds) {
                memcpy(&old, cij, sizeof old);
                value = old + value;
            }
            memcpy(cij, &value, sizeof value);
        }
}

void KERNEL(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c, int64_t rs_c)
{
    const int64_t lanes = sme_lanes(), size_a = sizeof(ELEM_A), size_b = sizeof(ELEM_B);
    tile(lanes, 2 * lanes, k, a, rs_a * size_a, cs_a * size_a, b, rs_b * size_b, c, rs_c, 1);
}

void PASTE(KERNEL, batch)(const pysimd_call *s)
{
    const int64_t size_a = sizeof(ELEM_A), size_b = sizeof(ELEM_B);
    for (int64_t i = 0; i < s->batch; i++)
        tile(s->m, s->n, s->k, (const char *)s->a + i * s->bs_a * size_a, s->rs_a * size_a, s->cs_a * size_a,
             (const char *)s->b + i * s->bs_b * size_b, s->rs_b * size_b, (ELEM_C *)s->c + i * s->bs_c, s->rs_c,
             !(s->flags & PYSIMD_ZERO));
}
