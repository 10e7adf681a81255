/* interleave.h: rows of B as micro-panels of 32 columns whose groups of k are adjacent, and rows of A in whole cache
 * lines, by the vectors of a target. */
#ifndef PYSIMD_INTERLEAVE_H
#define PYSIMD_INTERLEAVE_H

#include <stdint.h>

/* to[j*panel_bytes + (g*32 + i)*4 ...] holds the four bytes of group g of column 32*j + i, for all g < groups; rows of
 * B are `row` bytes apart. Returns how many of the panels that is, from the first on: all, or an even number. */
typedef int64_t pysimd_interleave_fn(int64_t groups, int64_t panels, const char *b, int64_t row, char *to,
                                     int64_t panel_bytes);

/* Pairs of a matrix of 16-bit values of any size, k rows of n columns: to[(g*n + j)*4 ...] holds rows 2g and 2g + 1 of
 * column j, and zero for a row that is not there. */
void avx512_pair_words(int64_t k, int64_t n, const char *b, int64_t row, char *to);

/* Pairs of int8 rows as int16, of `count` products bs apart, K rows of n >= 8 columns: to[((q*pairs + g)*n + j)*4 ...]
 * holds rows 2g and 2g + 1 of column j of product q, and zero for a row that is not there. */
void avx2_pair_bytes(int64_t count, int64_t k, int64_t n, const char *b, int64_t bs, int64_t row, char *to);

/* The same of uint8 rows of one product. */
void avx2_pair_unsigned_bytes(int64_t k, int64_t n, const char *b, int64_t row, char *to);

/* m rows of `bytes` bytes, `row` bytes apart, as rows of whole cache lines, with zeros behind them. */
void avx512_copy_lines(int64_t m, int64_t bytes, const char *from, int64_t row, char *to);
/* The zeros alone, where the rows have been copied by other means. */
void avx512_clear_lines(int64_t m, int64_t bytes, char *to);

pysimd_interleave_fn avx512_interleave_words;        /* two values of 16 bits */
pysimd_interleave_fn avx512_interleave_bytes;        /* four bytes */
pysimd_interleave_fn avx512_interleave_offset_bytes; /* and 128 is added to each */

#endif
