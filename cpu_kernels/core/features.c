/* features.c: what this CPU can execute, and the lengths of its vectors. x86-64: by CPUID and by XGETBV, because the
 * processor may have wide registers that the operating system does not save. Arm and RISC-V: what the operating system
 * says. Compiled for the baseline processor. */
#include "registry.h"

const char *const pysimd_feature_names[] = {"sse2",     "avx",      "avx2",     "fma",         "avx512f",
                                            "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
                                            "f16c",     "neon",     "dotprod",  "i8mm",        "bf16",
                                            "sve",      "sme",      "rvv",      "amx_tile",    "amx_int8",
                                            "amx_bf16", "avx512_fp16"};
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
    enum { OSXSAVE = 1 << 27, SAVES_YMM = 0x06, SAVES_ZMM = 0xe6, SAVES_TILES = 3 << 17 };
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
    if ((saved & SAVES_TILES) == SAVES_TILES)
        has |= BIT(edx, 24, HAS_AMX_TILE) | BIT(edx, 25, HAS_AMX_INT8) | BIT(edx, 22, HAS_AMX_BF16);
    if ((saved & SAVES_ZMM) != SAVES_ZMM) return has;
    has |= BIT(ebx, 16, HAS_AVX512F) | BIT(ebx, 17, HAS_AVX512DQ) | BIT(ebx, 30, HAS_AVX512BW);
    has |= BIT(ebx, 31, HAS_AVX512VL) | BIT(ecx, 11, HAS_AVX512_VNNI) | BIT(edx, 23, HAS_AVX512_FP16);
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) has |= BIT(eax, 5, HAS_AVX512_BF16);
    return has;
}

/* AMD64 Architecture Programmer's Manual, volume 3, CPUID Fn8000_001A: FP256 without FP512. */
int pysimd_halves_avx512(void)
{
    enum { FP256 = 1 << 2, FP512 = 1 << 3 };
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(0x8000001a, &eax, &ebx, &ecx, &edx) && (eax & (FP256 | FP512)) == FP256;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

uint64_t pysimd_cpu_features(void)
{
    /* Bits of the kernel's arch/arm64/include/uapi/asm/hwcap.h; headers of older systems do not have all of them. */
    enum { ASIMD = 1, ASIMDDP = 20, SVE_ = 22, I8MM = 13, BF16 = 14, SME_ = 23 };
    const uint64_t hwcap = getauxval(AT_HWCAP), hwcap2 = getauxval(AT_HWCAP2);
#define BIT(word, bit, feature) ((word) >> (bit)&1 ? (uint64_t)(feature) : 0)
    return BIT(hwcap, ASIMD, HAS_NEON) | BIT(hwcap, ASIMDDP, HAS_DOTPROD) | BIT(hwcap, SVE_, HAS_SVE) |
           BIT(hwcap2, I8MM, HAS_I8MM) | BIT(hwcap2, BF16, HAS_BF16) | BIT(hwcap2, SME_, HAS_SME);
}

#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

static uint64_t feature_of(const char *name, uint64_t feature)
{
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value ? feature : 0;
}

uint64_t pysimd_cpu_features(void)
{
    return HAS_NEON | feature_of("hw.optional.arm.FEAT_DotProd", HAS_DOTPROD) |
           feature_of("hw.optional.arm.FEAT_I8MM", HAS_I8MM) | feature_of("hw.optional.arm.FEAT_BF16", HAS_BF16) |
           feature_of("hw.optional.arm.FEAT_SME", HAS_SME);
}

#elif defined(__riscv) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t pysimd_cpu_features(void)
{
    enum { HWPROBE = 258, KEY_IMA_EXT_0 = 4, IMA_V = 1 << 2 }; /* arch/riscv/include/uapi/asm/hwprobe.h */
    struct {
        int64_t key;
        uint64_t value;
    } pair = {KEY_IMA_EXT_0, 0};
    if (syscall(HWPROBE, &pair, 1, 0, NULL, 0) == 0) return pair.key >= 0 && pair.value & IMA_V ? HAS_RVV : 0;
    return getauxval(AT_HWCAP) >> ('V' - 'A') & 1 ? HAS_RVV : 0; /* Linux before 6.4 */
}

#else
uint64_t pysimd_cpu_features(void) { return 0; }
#endif

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

/* Linux from 5.16 on: documentation of the kernel, arch/x86/xstate.rst. A thread that exists has the permission, too.
 * It is refused where a signal handler has a stack too small for the state with tiles; and after it is given, such a
 * stack is refused. */
int pysimd_permits_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
}
#else
int pysimd_permits_tiles(void) { return 0; }
#endif

/* Bytes of a vector register; 0 where the target has none of its own length here. Volatile: the compiler may move other
 * assembly out of the condition, and a processor without the target would execute it. */
static uint64_t register_bytes(pysimd_target target)
{
    uint64_t bytes = 0;
    (void)target;
#ifdef __aarch64__
    if (target == SVE) __asm__ volatile(".arch_extension sve\n rdvl %0, #1" : "=r"(bytes));
    if (target == SME) __asm__ volatile(".arch_extension sme\n rdsvl %0, #1" : "=r"(bytes));
#elif defined(__riscv)
    if (target == RVV) __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
#endif
    return bytes;
}

int pysimd_vector_bytes(pysimd_target target, uint64_t features)
{
    const uint64_t needs = pysimd_targets[target].needs;
    const uint64_t bytes = (features & needs) == needs ? register_bytes(target) : 0;
    return bytes < 16 ? 16 : bytes < PYSIMD_MOST_VECTOR_BYTES ? (int)bytes : PYSIMD_MOST_VECTOR_BYTES;
}

#ifndef __x86_64__
int pysimd_halves_avx512(void) { return 0; }
#endif
