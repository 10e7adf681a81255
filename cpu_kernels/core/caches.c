/* caches.c: see caches.h. Compiled for the baseline processor. */
#include "caches.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const pysimd_cache_sizes COMMON = {32 << 10, 256 << 10, 4 << 20};

static pysimd_cache_sizes sizes;

static void set_level(pysimd_cache_sizes *found, int level, int64_t bytes)
{
    if (level == 1) found->l1 = bytes;
    if (level == 2) found->l2 = bytes;
    if (level == 3) found->l3 = bytes;
}

#ifdef __x86_64__
#include <cpuid.h>

/* Both vendors describe one cache per subleaf, in the same format. */
static void by_cpuid(pysimd_cache_sizes *found)
{
    enum { NONE = 0, INSTRUCTIONS = 2, TOPOLOGY_EXTENSIONS = 1 << 22, SUBLEAVES = 16 };
    unsigned eax, ebx, ecx, edx;
    unsigned leaf = 4;
    if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && ecx & TOPOLOGY_EXTENSIONS) leaf = 0x8000001d;
    for (unsigned i = 0; i < SUBLEAVES && __get_cpuid_count(leaf, i, &eax, &ebx, &ecx, &edx); i++) {
        const unsigned type = eax & 31, level = eax >> 5 & 7;
        if (type == NONE) return;
        const int64_t ways = (ebx >> 22) + 1, partitions = (ebx >> 12 & 1023) + 1, line = (ebx & 4095) + 1;
        if (type != INSTRUCTIONS) set_level(found, (int)level, ways * partitions * line * ((int64_t)ecx + 1));
    }
}
#else
static void by_cpuid(pysimd_cache_sizes *found) { (void)found; }
#endif

/* A line of /sys/devices/system/cpu/cpu0/cache/index<i>/<name>; empty if there is none. */
static void read_line(int i, const char *name, char *line, int length)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, name);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, length, file)) line[0] = 0;
    if (file) fclose(file);
}

static void by_sysfs(pysimd_cache_sizes *found)
{
    enum { MOST_CACHES = 8 };
    char level[16], type[32], size[32];
    for (int i = 0; i < MOST_CACHES; i++) {
        read_line(i, "level", level, sizeof level), read_line(i, "type", type, sizeof type);
        read_line(i, "size", size, sizeof size);
        char *unit;
        const long long value = strtoll(size, &unit, 10);
        if (value <= 0 || value > 1 << 24 || type[0] == 'I') continue;
        set_level(found, atoi(level), value * (*unit == 'K' ? 1 << 10 : *unit == 'M' ? 1 << 20 : 1));
    }
}

static void find(void)
{
    by_cpuid(&sizes);
    if (!sizes.l1 || !sizes.l2) by_sysfs(&sizes);
    if (!sizes.l1) sizes.l1 = COMMON.l1;
    if (!sizes.l2) sizes.l2 = COMMON.l2;
    if (!sizes.l3) sizes.l3 = COMMON.l3 > sizes.l2 ? COMMON.l3 : sizes.l2;
}

pysimd_cache_sizes pysimd_caches(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    return sizes;
}
