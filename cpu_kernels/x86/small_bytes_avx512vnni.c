/* small_bytes_avx512vnni.c: small products of int8 and uint8 by vpdpwssd, which multiplies int16 and does not saturate:
 * no offset of an operand, as vpdpbusd asks for. */
#include <immintrin.h>
#include <stdint.h>

#define ADD_PAIRS(acc, a, b) _mm256_dpwssd_epi32(acc, a, b)
#define PREFIX avx512vnni_few
#include "../templates/small_bytes.h"
