/* peak_avx.c: the multiply-add chains of target avx. */
#include "vec_avx.h"

#define PEAK avx_f32_peak
#define VEC f32x8
#define CHAINS 12
#include "../templates/peak.h"
