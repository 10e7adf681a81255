/* ladder_generic.c: the rungs of the CPU ladder that are compiled for each target. */
#include "vec_generic.h"

#define TARGET generic
#define VEC f32x4
#include "../ladder/ijk.c"
#include "../ladder/ikj.c"
#include "../ladder/scalar_tile.c"
#include "../ladder/simd.c"
