/* peak_avx512.c: the peaks of target avx512. */
#include "vec_avx512.h"

#define PEAK avx512_f32_peak
#define VEC f32x16
#define ACCUMULATORS 24
#include "../templates/peak.h"

#define PEAK avx512_f64_peak
#define VEC f64x8
#define ACCUMULATORS 24
#include "../templates/peak.h"
