/* every_other.h: copies of every other element, and to every other element, for processors with vectors of more than 16
 * bytes. */
#ifndef PYSIMD_EVERY_OTHER_H
#define PYSIMD_EVERY_OTHER_H

#include <stdint.h>

/* to[i*ld + j] = from[i*rs + 2*j], elements of `size` bytes, 1, 2, 4 or 8; a row has 16 bytes or more, so n*size >= 16.
 * What lies between two elements of a row is read; nothing else is read or written; no pointer needs any alignment. */
void avx2_every_other(int size, int64_t m, int64_t n, const char *from, int64_t rs, char *to, int64_t ld);

/* to[2*j] = from[j], n elements of `size` bytes, 2, 4 or 8. Nothing else is read or written; no pointer needs any
 * alignment. */
void avx512_to_every_other(int size, int64_t n, const char *from, char *to);

#endif
