/* peak.h: the multiply-add of VEC, CHAINS of them independent, nothing loaded or stored: defines PEAK(n). And loads of
 * VEC, nothing multiplied: defines PEAK_loads(from, window, n); the size of the window says which cache they come from.
 * KEEP holds each sum in a register and makes the operand unknown, so that no step is left out or shared. */
#include "kernel.h"
#include "../core/measure.h"

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
    V(vec) made[2];
    V(acc) sum[CHAINS];
    /* Random bits in the low half of every 32-bit lane, small or denormal-free values by the high half: zeros would
     * draw less power and so run at a higher clock than any real product. */
    fill(made, sizeof made, 1);
    V(vec) x = made[0], y = made[1]; /* of which nobody has the address: they stay in registers */
    UNROLL for (int i = 0; i < CHAINS; i++) sum[i] = V(zero)();
    KEEP(y);
    for (; n > 0; n--)
        UNROLL for (int i = 0; i < CHAINS; i++) {
            KEEP(x);
            sum[i] = V(fma)(x, y, sum[i]);
            KEEP(sum[i]);
        }
}

int64_t PASTE(PEAK, loads)(const void *from, int64_t window, int64_t n)
{
    enum { EACH = V(lanes) * V(k_group), STEP = PYSIMD_LOADS_A_STEP * EACH };
    const V(elem_b) *p = from, *const end = p + window / (int64_t)sizeof *p;
    for (; n > 0; n--) {
        __asm__ volatile("" : "+r"(p) : : "memory"); /* what lies there is unknown in every step */
        UNROLL for (int i = 0; i < PYSIMD_LOADS_A_STEP; i++) {
            V(vec) x = V(load)(p + i * EACH);
            KEEP(x);
        }
        p += STEP;
        if (p == end) p = from;
    }
    return STEP * sizeof *p;
}
#undef PEAK
#undef VEC
#undef CHAINS
