/* features.c: what this CPU can execute, by CPUID and by XGETBV: the processor may have wide registers that the
 * operating system does not save. Compiled for the baseline processor. */
#include "registry.h"

const char *const pysimd_feature_names[] = {"sse2",     "avx",      "avx2",     "fma",         "avx512f",
                                            "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
                                            "f16c"};
const int pysimd_feature_count = sizeof pysimd_feature_names / sizeof *pysimd_feature_names;

#ifdef __x86_64__
#include <cpuid.h>

static uint64_t saved_registers(void)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

uint64_t pysimd_cpu_features(void)
{
    enum { OSXSAVE = 1 << 27, SAVES_YMM = 0x06, SAVES_ZMM = 0xe6 };
    unsigned eax, ebx, ecx, edx;
    uint64_t has = HAS_SSE2; /* part of x86-64 */
#define BIT(reg, bit, feature) ((reg) >> (bit)&1 ? (uint64_t)(feature) : 0)

    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & OSXSAVE)) return has;
    const uint64_t saved = saved_registers();
    if ((saved & SAVES_YMM) != SAVES_YMM) return has;
    has |= BIT(ecx, 28, HAS_AVX) | BIT(ecx, 12, HAS_FMA) | BIT(ecx, 29, HAS_F16C);
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return has;
    const unsigned last_subleaf = eax;
    has |= BIT(ebx, 5, HAS_AVX2);
    if ((saved & SAVES_ZMM) != SAVES_ZMM) return has;
    has |= BIT(ebx, 16, HAS_AVX512F) | BIT(ebx, 17, HAS_AVX512DQ) | BIT(ebx, 30, HAS_AVX512BW);
    has |= BIT(ebx, 31, HAS_AVX512VL) | BIT(ecx, 11, HAS_AVX512_VNNI);
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) has |= BIT(eax, 5, HAS_AVX512_BF16);
    return has;
}
#else
uint64_t pysimd_cpu_features(void) { return 0; }
#endif
