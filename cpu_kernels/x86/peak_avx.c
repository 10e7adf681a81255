/* peak_avx.c: the peaks of target avx. */
#include "vec_avx.h"

#define PEAK avx_f32_peak
#define VEC f32x8
#define ACCUMULATORS 12
#include "../templates/peak.h"
