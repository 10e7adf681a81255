/* peak_avx512fp16.c: the peaks of target avx512fp16. */
#include "vec_avx512fp16.h"

#define RANDOM_LANE(bits) (0x2c002c00u | ((bits) & 0x03ff03ffu)) /* two halves in [1/16, 1/8) */

#define PEAK avx512fp16_f16_peak
#define VEC f16x32
#define ACCUMULATORS 24
#include "../templates/peak.h"
