/* peak_sse.c: the multiply-add chains of target sse. */
#include "vec_sse.h"

#define PEAK sse_f32_peak
#define VEC f32x4
#define CHAINS 12
#include "../templates/peak.h"
