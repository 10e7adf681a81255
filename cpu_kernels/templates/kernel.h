/* kernel.h: what every kernel file and template is written with. */
#ifndef PYSIMD_KERNEL_H
#define PYSIMD_KERNEL_H

#if __STDC_HOSTED__
#include <string.h>
#else /* compiled for another machine by pysimd.inspect, without a C library */
#define memcpy __builtin_memcpy
#define memset __builtin_memset
#endif

#include "../core/pysimd.h"

#define PASTE_(x, y) x##_##y
#define PASTE(x, y) PASTE_(x, y)
#define V(op) PASTE(VEC, op) /* an operation of the vector type VEC, from vec_<target>.h */
#define UNROLL _Pragma("GCC unroll 32")
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

/* Keeps the compiler from deriving this integer or pointer from another one, or others from it: each derived pointer
 * takes a register, and with too many of them some are spilled. */
#define OPAQUE(x) __asm__("" : "+r"(x))

/* Row i of a matrix whose rows are rs bytes apart. Five rows share a base pointer: x86 addresses base + 1, 2 or 4 times
 * an index, and rs3 = 3 * rs is in a register of its own. So sixteen rows at any stride take six registers. */
#define ROW_ADDRESS(i) (base[(i) / 5] + ((i) % 5 == 3 ? rs3 : (i) % 5 * rs))

/* Makes a vector's value unknown to the compiler, and keeps it in its register. */
#if defined(__x86_64__)
#define KEEP(v) __asm__ volatile("" : "+v"(v))
#elif defined(__aarch64__)
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#else
#define KEEP(v) __asm__ volatile("" : "+m"(v))
#endif

/* Loads of one element at any address: a plain dereference would promise an alignment that arrays do not have. */
INLINE float get_f32(const void *p) { float x; memcpy(&x, p, sizeof x); return x; }
INLINE double get_f64(const void *p) { double x; memcpy(&x, p, sizeof x); return x; }
INLINE int32_t get_i32(const void *p) { int32_t x; memcpy(&x, p, sizeof x); return x; }

/* Prefetches `bytes` of a later product, PREFETCH_DISTANCE bytes ahead. Only batches that come from memory gain,
 * because the hardware's own prefetch does not reach far enough: a million 4x4 take 7.3 ns each with it and 8.2
 * without, where the memory traffic alone takes 7.2 (1 to 4 KiB ahead, a Xeon of the AMX generation). */
enum { PREFETCH_DISTANCE = 4096 };
INLINE void prefetch(const void *p, int bytes)
{
    UNROLL for (int i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)p + i);
}

/* One full tile as a call of the batch function, for kernels whose run function has a loop for packed panels alone. */
INLINE pysimd_call one_tile(int m, int n, int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b,
                            int64_t rs_b, void *c, int64_t rs_c)
{
    return (pysimd_call){.batch = 1, .m = m, .n = n, .k = k, .a = a, .rs_a = rs_a, .cs_a = cs_a, .b = b, .rs_b = rs_b,
                         .c = c, .rs_c = rs_c};
}

#endif
