/* ladder_avx2.c: the rungs of the CPU ladder that are compiled for each target. */
#include "vec_avx2.h"

#define TARGET avx2
#define VEC f32x8
#include "../ladder/ijk.c"
#include "../ladder/ikj.c"
#include "../ladder/scalar_tile.c"
#include "../ladder/simd.c"
