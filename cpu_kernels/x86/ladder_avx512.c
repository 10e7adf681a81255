/* ladder_avx512.c: the rungs of the CPU ladder that are compiled for each target. */
#include "vec_avx512.h"

#define TARGET avx512
#define VEC f32x16
#include "../ladder/ijk.c"
#include "../ladder/ikj.c"
#include "../ladder/scalar_tile.c"
#include "../ladder/simd.c"
