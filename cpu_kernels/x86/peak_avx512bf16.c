/* peak_avx512bf16.c: the peaks of target avx512bf16. */
#include "vec_avx512bf16.h"

#define PEAK avx512bf16_bf16f32_peak
#define VEC bf16x32
#define ACCUMULATORS 24
#include "../templates/peak.h"
