/* pack.c by itself, for a kernel whose panels any processor can pack, though it may not run the kernel. */
#include "core/pack.c"

const pysimd_sizes pysimd_element_sizes[TYPES] = {[BF16F32] = {2, 2, 4}, [U8I8I32] = {1, 1, 4}};

int pysimd_has(pysimd_target target)
{
    (void)target;
    return 0;
}

#ifdef __x86_64__
#define ABSENT(NAME) __typeof__(NAME) NAME __attribute__((weak));
ABSENT(avx2_transpose_f32) ABSENT(avx2_transpose_f64)
ABSENT(avx512_interleave_words) ABSENT(avx512_interleave_bytes) ABSENT(avx512_interleave_offset_bytes)
ABSENT(avx512_pair_words) ABSENT(avx2_every_other)
#endif

/* A's panel of groups of four bytes; returns its bytes. */
int64_t pack(int size, int64_t m, int64_t k, const void *a, int64_t rs, int64_t cs, void *to)
{
    const pysimd_kernel kernel = {.types = size == 1 ? U8I8I32 : BF16F32, .mr = 14, .nr = 32, .k_group = 4 / size};
    pysimd_pack_a(&kernel, m, k, a, rs, cs, to);
    return pysimd_panel_of_a(&kernel, m, k).bytes;
}
