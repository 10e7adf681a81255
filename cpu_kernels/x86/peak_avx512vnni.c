/* peak_avx512vnni.c: the peaks of target avx512vnni. */
#include "vec_avx512vnni.h"

#define PEAK avx512vnni_i8i32_peak
#define VEC i8x64
#define ACCUMULATORS 24
#include "../templates/peak.h"

#define PEAK avx512vnni_u8i8i32_peak
#define VEC u8i8x64
#define ACCUMULATORS 24
#include "../templates/peak.h"
