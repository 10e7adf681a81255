/* peak.h: the multiply-add of VEC, CHAINS of them independent, nothing loaded or stored: defines PEAK(n). And the loads
 * of VEC from the first-level cache, nothing multiplied: defines PEAK_loads(n).
 * KEEP holds each sum in a register and makes the operand unknown, so that no step is left out or shared. */
#include "kernel.h"
#include "measure.h"

#ifndef PYSIMD_PEAK_FILL
#define PYSIMD_PEAK_FILL
static void fill(void *to, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i += 4) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t lane = 0x3f800000u | seed >> 9; /* as float in [1, 2), as double and bfloat16 near 1 */
        memcpy((char *)to + i, &lane, 4);
    }
}
#endif

void PEAK(int64_t n)
{
    V(vec) x, y;
    V(acc) sum[CHAINS];
    /* Random bits in the low half of every 32-bit lane, small or denormal-free values by the high half: zeros would
     * draw less power and so run at a higher clock than any real product. */
    fill(&x, sizeof x, 1), fill(&y, sizeof y, 2);
    UNROLL for (int i = 0; i < CHAINS; i++) sum[i] = V(zero)();
    KEEP(y);
    for (; n > 0; n--)
        UNROLL for (int i = 0; i < CHAINS; i++) {
            KEEP(x);
            sum[i] = V(fma)(x, y, sum[i]);
            KEEP(sum[i]);
        }
}

/* Returns the bytes of a step. */
int64_t PASTE(PEAK, loads)(int64_t n)
{
    enum { EACH = V(lanes) * V(k_group) };
    V(elem_b) from[PYSIMD_LOADS_A_STEP * EACH] __attribute__((aligned(64)));
    fill(from, sizeof from, 3);
    const V(elem_b) *p = from;
    for (; n > 0; n--) {
        __asm__ volatile("" : "+r"(p) : : "memory"); /* what lies there is unknown in every step */
        UNROLL for (int i = 0; i < PYSIMD_LOADS_A_STEP; i++) {
            V(vec) x = V(load)(p + i * EACH);
            KEEP(x);
        }
    }
    return sizeof from;
}
#undef PEAK
#undef VEC
#undef CHAINS
