/* peaks_fma: multiply-add loops that benchmarks/peaks.py compares the package's peaks with; nothing of the package is
 * used.
 *
 * contract  each function runs n steps of CHAINS independent multiply-adds, sum = x * y + sum, enough of them to hide
 *           their latency, and returns a number that depends on all of them. x and y come from memory whose
 *           contents the compiler cannot know, and x may change from step to step. NAME_macs: multiply-adds of a step.
 * build     cc -O2 -shared -fPIC; every function has its own target attribute
 */
#include <immintrin.h>
#include <stdint.h>

volatile float scale = 0.9990234375f, offset = 0.001953125f;
volatile int32_t bytes = 0x03fd02fe;

#define UNROLLED _Pragma("GCC unroll 32")

/* ISA: what the function may use. V: vector type. N: its elements. SET: a vector of one value. STEP: the
 * multiply-add. */
#define LOOP(NAME, ISA, V, N, CHAINS, X, Y, SET, STEP)                                                                 \
    const int64_t NAME##_macs = (int64_t)(CHAINS) * (N);                                                               \
    __attribute__((target(ISA))) double NAME(int64_t n)                                                                \
    {                                                                                                                  \
        V x = SET(X), sum[CHAINS];                                                                                     \
        const V y = SET(Y);                                                                                            \
        UNROLLED for (int i = 0; i < CHAINS; i++) sum[i] = SET(Y);                                                     \
        for (int64_t step = 0; step < n; step++)                                                                       \
            UNROLLED for (int i = 0; i < CHAINS; i++) {                                                                \
                __asm__("" : "+x"(x));                                                                                 \
                sum[i] = STEP(x, y, sum[i]);                                                                           \
            }                                                                                                          \
        union {                                                                                                        \
            V v[CHAINS];                                                                                               \
            char each[sizeof(V) * CHAINS];                                                                             \
        } all;                                                                                                         \
        UNROLLED for (int i = 0; i < CHAINS; i++) all.v[i] = sum[i];                                                   \
        double found = 0;                                                                                              \
        for (unsigned i = 0; i < sizeof all.each; i++) found += all.each[i];                                           \
        return found;                                                                                                  \
    }

#define MUL_ADD_128(x, y, sum) _mm_add_ps(_mm_mul_ps(x, y), sum)
#define MUL_ADD_256(x, y, sum) _mm256_add_ps(_mm256_mul_ps(x, y), sum)
#define MADD_256(x, y, sum) _mm256_add_epi32(_mm256_madd_epi16(x, y), sum)
#define DOT_BYTES(x, y, sum) _mm512_dpbusd_epi32(sum, x, y)
#define DOT_BF16(x, y, sum) _mm512_dpbf16_ps(sum, (__m512bh)(x), (__m512bh)(y))

LOOP(sse_f32, "sse2", __m128, 4, 12, scale, offset, _mm_set1_ps, MUL_ADD_128)
LOOP(avx_f32, "avx", __m256, 8, 12, scale, offset, _mm256_set1_ps, MUL_ADD_256)
LOOP(avx2_f32, "avx2,fma", __m256, 8, 12, scale, offset, _mm256_set1_ps, _mm256_fmadd_ps)
LOOP(avx2_f64, "avx2,fma", __m256d, 4, 12, scale, offset, _mm256_set1_pd, _mm256_fmadd_pd)
LOOP(avx2_i8i32, "avx2", __m256i, 16, 12, bytes, bytes, _mm256_set1_epi32, MADD_256)
LOOP(avx512_f32, "avx512f", __m512, 16, 20, scale, offset, _mm512_set1_ps, _mm512_fmadd_ps)
LOOP(avx512_f64, "avx512f", __m512d, 8, 20, scale, offset, _mm512_set1_pd, _mm512_fmadd_pd)
LOOP(avx512vnni_i8i32, "avx512f,avx512vnni", __m512i, 64, 20, bytes, bytes, _mm512_set1_epi32, DOT_BYTES)
LOOP(avx512bf16_bf16f32, "avx512f,avx512bf16", __m512, 32, 20, scale, offset, _mm512_set1_ps, DOT_BF16)
