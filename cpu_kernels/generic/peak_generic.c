/* peak_generic.c: the peaks of target generic. */
#include "vec_generic.h"

#define PEAK generic_f32_peak
#define VEC f32x4
#define ACCUMULATORS 8
#include "../templates/peak.h"

#define PEAK generic_f64_peak
#define VEC f64x2
#define ACCUMULATORS 6
#include "../templates/peak.h"

#define PEAK generic_i8i32_peak
#define VEC i8x4
#define ACCUMULATORS 8
#include "../templates/peak.h"

#define PEAK generic_u8i8i32_peak
#define VEC u8i8x4
#define ACCUMULATORS 8
#include "../templates/peak.h"
