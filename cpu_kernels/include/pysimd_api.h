/* pysimd_api.h: the CPU kernels for callers in C, C++ and Cython. Nothing is linked: the table of functions comes from
 * the capsule `pysimd._c_api` in a Python process, or from dlopen of pysimd's extension and dlsym of `pysimd_get_api`.
 *
 * The compiler finds it in the folder that pysimd.get_include() returns. ../core/pysimd.h, which it includes, is the
 * contract of a kernel; docs/kernel_contract.md draws it.
 */
#ifndef PYSIMD_API_H
#define PYSIMD_API_H

#ifdef __cplusplus
extern "C" {
#endif

#include "../core/pysimd.h"

enum { PYSIMD_API_VERSION = 1 };

/* version: PYSIMD_API_VERSION of the extension; a caller that was compiled with another one uses nothing else.
 * find:    the row of a kernel by its name; NULL: there is none, or this CPU (or PYSIMD_ISA) has not what it needs.
 * choose:  the row that pysimd.matmul takes for products of m rows and n columns; NULL for F16, which it takes by name
 *          alone. */
typedef struct {
    int version;
    const pysimd_kernel *(*find)(const char *name);
    const pysimd_kernel *(*choose)(pysimd_types types, int64_t m, int64_t n);
} pysimd_api;

/* In the extension, for dlsym. NULL: PYSIMD_ISA is no target. */
typedef const pysimd_api *pysimd_get_api_fn(void);

#ifdef __cplusplus
}
#endif

#endif
