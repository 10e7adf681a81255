/* planes.h: float16 as the sum of two bfloat16, of SPLIT panels, by the vectors of a target.
 *
 * The upper bfloat16 h is x cut to eight bits, the lower one l the other three; where these are zero both are x / 2,
 * and so is infinity. Neither is zero where x is not, and both have its sign: so infinity times any x' is infinity in
 * each of the four products of parts, as infinity times x' is, and no product is NaN but where x x' is. Products of
 * parts are multiples of a fourth of the last bits of x and x': sums of integers are exact up to 2^22 (in float up to
 * 2^24). */
#ifndef PYSIMD_PLANES_H
#define PYSIMD_PLANES_H

#include <stdint.h>

enum { PYSIMD_PLANE_K = 32, PYSIMD_PLANE_BYTES = 2 * PYSIMD_PLANE_K }; /* of a row of A */

/* m rows of k values, `row` bytes apart, as rows of `to_row` bytes: of each 32 values the upper parts, then the lower;
 * zeros behind the last. */
void avx512_planes_of_a(int64_t m, int64_t k, const char *from, int64_t row, char *to, int64_t to_row);

/* k rows of B, `row` bytes apart, as `panels` panels of n columns each, panel_bytes apart; several are of 32 columns.
 * Pairs of rows are interleaved: to[(p/2)*2*plane + 4*j + 2*(p%2)] is the upper part of row p, column j, and `plane`
 * bytes behind it the lower; zeros for rows that are not there, up to a multiple of 32. */
void avx512_planes_of_b(int64_t k, int64_t n, int64_t panels, const char *from, int64_t row, char *to, int64_t plane,
                        int64_t panel_bytes);

#endif
