/* caches.h: the sizes of this processor's caches. */
#ifndef PYSIMD_CACHES_H
#define PYSIMD_CACHES_H

#include <stdint.h>

/* Bytes of the data caches that a core can use; level 3 is the whole of what cores share. */
typedef struct {
    int64_t l1, l2, l3;
} pysimd_cache_sizes;

/* By CPUID (leaf 4, or 0x8000001D of AMD), else by sysfs, else common sizes. Found once per process. */
pysimd_cache_sizes pysimd_caches(void);

#endif
