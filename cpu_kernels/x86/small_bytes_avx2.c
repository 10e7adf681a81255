/* small_bytes_avx2.c: small products of int8 and uint8 by vpmaddwd, which is exact: |sum| <= 2 * 255 * 128. */
#include <immintrin.h>
#include <stdint.h>

/* Unsigned lanes of 32 bits wrap. */
typedef uint32_t u32x8 __attribute__((vector_size(32)));
#define ADD_PAIRS(acc, a, b) ((__m256i)((u32x8)(acc) + (u32x8)_mm256_madd_epi16(a, b)))
#define PREFIX avx2_small
#include "../templates/small_bytes.h"
