/* vec_avx512bf16.h: pairs of bfloat16 and float accumulators in a zmm. vdpbf16ps takes denormals as zero and flushes
 * its result. */
#include "vec_avx512.h"

GROUP_LOADS(bf16x32, uint16_t, uint16_t)
FLOATS_OF_C(bf16x32)
enum { bf16x32_lanes = 16, bf16x32_k_group = 2, bf16x32_offset = 0 };
INLINE __m512 bf16x32_fma(__m512i a, __m512i b, __m512 c) { return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b); }
