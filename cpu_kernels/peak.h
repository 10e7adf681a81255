/* peak.h: the multiply-add of VEC, CHAINS of them independent, nothing loaded or stored: defines PEAK(n).
 * KEEP holds each sum in a register and makes the operand unknown, so that no step is left out or shared. */
#include "kernel.h"

void PEAK(int64_t n)
{
    V(vec) x, y;
    V(acc) sum[CHAINS];
    memset(&x, 0, sizeof x), memset(&y, 0, sizeof y);
    UNROLL for (int i = 0; i < CHAINS; i++) sum[i] = V(zero)();
    KEEP(y);
    for (; n > 0; n--)
        UNROLL for (int i = 0; i < CHAINS; i++) {
            KEEP(x);
            sum[i] = V(fma)(x, y, sum[i]);
            KEEP(sum[i]);
        }
}
#undef PEAK
#undef VEC
#undef CHAINS
