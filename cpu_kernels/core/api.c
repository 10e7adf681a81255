/* api.c: the table of functions of ../include/pysimd_api.h. Compiled for the baseline processor. */
#include "../include/pysimd_api.h"

#include <stdlib.h>
#include <string.h>

#include "registry.h"

static const pysimd_kernel *find(const char *name)
{
    for (int i = 0; i < pysimd_kernel_count; i++)
        if (!strcmp(pysimd_kernels[i].name, name))
            return pysimd_can_run(pysimd_kernels + i) ? pysimd_kernels + i : NULL;
    return NULL;
}

static const pysimd_kernel *choose(pysimd_types types, int64_t m, int64_t n)
{
    return pysimd_choose((int)types, m, n, 0);
}

/* The bound of PYSIMD_ISA; -1 where it is no target. */
static int highest_target(void)
{
    const char *bound = getenv("PYSIMD_ISA");
    if (!bound || !*bound) return TARGETS - 1;
    for (int i = 0; i < TARGETS; i++)
        if (!strcmp(pysimd_targets[i].name, bound)) return i;
    return -1;
}

__attribute__((visibility("default"))) const pysimd_api *pysimd_get_api(void)
{
    static const pysimd_api api = {PYSIMD_API_VERSION, find, choose};
    const int started = pysimd_is_started(); /* by Python */
    const int highest = started ? 0 : highest_target();
    if (highest < 0) return NULL;
    if (!started) pysimd_start(highest);
    return &api;
}
