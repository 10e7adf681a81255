/* A program in C that calls a kernel of pysimd and links nothing of it:
 *
 *     gcc -O2 -I "$(python -c 'import pysimd; print(pysimd.get_include())')" tiles.c -o tiles -ldl
 *     ./tiles EXTENSION LIBPYTHON KERNEL
 *
 * EXTENSION is pysimd._cpu.__file__. It is an extension of Python as well, so that libpython (LIBPYTHON: libpython3.so
 * or libpython3.N.so) has to be loaded before; no interpreter is started. In a process of Python take the capsule
 * instead: PyCapsule_Import("pysimd._c_api", 0) is the same `const pysimd_api *`.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "pysimd_api.h"

enum { CALLS = 1000000, K = 4 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int count, char **arguments)
{
    if (count != 4) return fprintf(stderr, "usage: tiles EXTENSION LIBPYTHON KERNEL\n"), 2;
    void *extension = NULL;
    if (dlopen(arguments[2], RTLD_LAZY | RTLD_GLOBAL)) extension = dlopen(arguments[1], RTLD_LAZY);
    if (!extension) return fprintf(stderr, "%s\n", dlerror()), 1;
    pysimd_get_api_fn *get = (pysimd_get_api_fn *)dlsym(extension, "pysimd_get_api");
    const pysimd_api *api = get ? get() : NULL;
    if (!api || api->version != PYSIMD_API_VERSION) return fprintf(stderr, "another version of pysimd\n"), 1;
    const pysimd_kernel *kernel = api->find(arguments[3]);
    if (!kernel || kernel->types != F32 || kernel->form != OUTER || kernel->mr * kernel->nr > 1024)
        return fprintf(stderr, "%s is no f32 outer product of this machine\n", arguments[3]), 1;

    static float a[1024], b[1024], c[1024]; /* a (mr, K), b (K, nr), c (mr, nr), by rows */
    const int mr = kernel->mr, nr = kernel->nr;
    for (int i = 0; i < mr; i++)
        for (int p = 0; p < K; p++) a[i * K + p] = (float)(i - p);
    for (int p = 0; p < K; p++)
        for (int j = 0; j < nr; j++) b[p * nr + j] = (float)(p + 2 * j);

    kernel->run(K, a, K, 1, b, nr, c, nr); /* c += a b */
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nr; j++) {
            float sum = 0; /* whole numbers, so that any order of the terms is exact */
            for (int p = 0; p < K; p++) sum += (float)((i - p) * (p + 2 * j));
            if (c[i * nr + j] != sum) return fprintf(stderr, "c[%d,%d] is wrong\n", i, j), 1;
        }

    const double start = seconds();
    for (int call = 0; call < CALLS; call++) kernel->run(K, a, K, 1, b, nr, c, nr);
    printf("%s: right, %.2f ns a call\n", kernel->name, 1e9 / CALLS * (seconds() - start));
    return 0;
}
