/* vec_sme.h: what the sme kernels are written with: the instructions that add the outer product of two vectors to a
 * tile of ZA (fmopa, bfmopa). An element of a vector is a group of k in 32 bits, whatever the types. (smopa and usmopa
 * fit the template as well, but under QEMU 7.2, which the tests run, their results were wrong: no int8 kernel.)
 *
 * Assembly, and no intrinsics: they call routines of the compiler's library that many systems do not have, and in the
 * functions that use them the compiler may take instructions that only processors with SVE outside of streaming mode
 * have. */
#include "../templates/kernel.h"

#define SME(TEXT) ".arch_extension sme\n .arch_extension bf16\n" TEXT
#define SME_REGISTERS                                                                                                  \
    "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8", "z9", "z10", "z11", "z12", "z13", "z14", "z15",              \
    "z16", "z17", "z18", "z19", "z20", "z21", "z22", "z23", "z24", "z25", "z26", "z27", "z28", "z29",                  \
    "z30", "z31", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13",              \
    "p14", "p15", "memory", "cc"

/* Groups in a vector. */
INLINE int64_t sme_lanes(void)
{
    int64_t bytes;
    __asm__(SME("rdsvl %0, #1") : "=r"(bytes));
    return (bytes < PYSIMD_MOST_VECTOR_BYTES ? bytes : PYSIMD_MOST_VECTOR_BYTES) / 4;
}
