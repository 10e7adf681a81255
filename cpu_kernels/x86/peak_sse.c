/* peak_sse.c: the peaks of target sse. */
#include "vec_sse.h"

#define PEAK sse_f32_peak
#define VEC f32x4
#define ACCUMULATORS 12
#include "../templates/peak.h"
