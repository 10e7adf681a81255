/* scalars.h: what the rungs that are compiled for each target are written with. <folder>/ladder_<target>.c sets TARGET
 * and VEC, and includes their files. */
#ifndef PYSIMD_SCALARS_H
#define PYSIMD_SCALARS_H

#include "../core/ladder.h"
#include "../templates/kernel.h"

#define RUNG(NAME) int PASTE(TARGET, rung_##NAME)(const pysimd_product *g)

INLINE void put_f32(void *p, float x) { memcpy(p, &x, sizeof x); }

/* An element of C = alpha * product + beta * C. */
INLINE void put_c(const pysimd_product *g, float *c, float product)
{
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    put_f32(c, beta == 0 ? alpha * product : alpha * product + beta * get_f32(c));
}

#endif
