/* peak_avx2.c: the peaks of target avx2. */
#include "vec_avx2.h"

#define PEAK avx2_f32_peak
#define VEC f32x8
#define ACCUMULATORS 12
#include "../templates/peak.h"

#define PEAK avx2_f64_peak
#define VEC f64x4
#define ACCUMULATORS 12
#include "../templates/peak.h"

#define PEAK avx2_i8i32_peak
#define VEC i16x16
#define ACCUMULATORS 12
#include "../templates/peak.h"

#define PEAK avx2_u8i8i32_peak
#define VEC i16x16
#define ACCUMULATORS 12
#include "../templates/peak.h"
