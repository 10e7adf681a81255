/* peak.h: the peak of a vector type: the multiply-add of VEC on ACCUMULATORS independent accumulators, nothing loaded
 * or stored, as PEAK(n); and loads of VEC, nothing multiplied, as PEAK_loads(from, window, n), where the size of the
 * window decides which cache they come from. KEEP holds the accumulators in registers and makes the operand unknown,
 * so that the compiler neither drops nor shares a multiply-add. */
#include "kernel.h"
#include "../core/measure.h"

#ifndef PYSIMD_PEAK_FILL
#define PYSIMD_PEAK_FILL
#ifndef RANDOM_LANE
#define RANDOM_LANE(bits) (0x3f800000u | (bits)) /* as float in [1, 2), as double and bfloat16 near 1 */
#endif
static void fill(void *to, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i += 4) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t lane = RANDOM_LANE(seed >> 9);
        memcpy((char *)to + i, &lane, 4);
    }
}
#endif

void PEAK(int64_t n)
{
    V(vec) random[2];
    V(acc) acc[ACCUMULATORS];
    /* Random bits in the low half of every 32-bit lane, normal numbers by the high half: zeros would draw less power,
     * and so run at a higher clock than any real product. */
    fill(random, sizeof random, 1);
    V(vec) x = random[0], y = random[1]; /* no address is taken of these: they are registers */
    UNROLL for (int i = 0; i < ACCUMULATORS; i++) acc[i] = V(zero)();
    KEEP(y);
    for (; n > 0; n--)
        UNROLL for (int i = 0; i < ACCUMULATORS; i++) {
            KEEP(x);
            acc[i] = V(fma)(x, y, acc[i]);
            KEEP(acc[i]);
        }
}

int64_t PASTE(PEAK, loads)(const void *from, int64_t window, int64_t n)
{
    enum { EACH = V(lanes) * V(k_group), STEP = PYSIMD_LOADS_A_STEP * EACH };
    const V(elem_b) *p = from, *const end = p + window / (int64_t)sizeof *p;
    for (; n > 0; n--) {
        __asm__ volatile("" : "+r"(p) : : "memory"); /* the contents are unknown in every iteration */
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
#undef ACCUMULATORS
