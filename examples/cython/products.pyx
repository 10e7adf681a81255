# cython: language_level=3, boundscheck=False, wraparound=False
"""Products of 4x4 float matrices in Cython, without the GIL. In setup.py:

    Extension("products", ["products.pyx"], include_dirs=[pysimd.get_include()])
    cythonize(..., include_path=[pysimd.get_include()])
"""
from cpython.pycapsule cimport PyCapsule_Import
from libc.stdint cimport int64_t

cimport pysimd_api

cdef const pysimd_api.pysimd_api *api = <const pysimd_api.pysimd_api *>PyCapsule_Import("pysimd._c_api", 0)
if api.version != pysimd_api.PYSIMD_API_VERSION:
    raise ImportError("built with the headers of another version of pysimd: build again")
cdef const pysimd_api.pysimd_kernel *kernel = api.find(b"generic_f32_outer_4x4")


def accumulate(const float[:, :, ::1] a, const float[:, :, ::1] b, float[:, :, ::1] c):
    """c[i] += a[i] @ b[i] for a (n, 4, K), b (n, K, 4) and c (n, 4, 4)."""
    cdef int64_t i, k = a.shape[2], n = a.shape[0]
    if (a.shape[1], b.shape[0], b.shape[1], b.shape[2]) != (4, n, k, 4) or (c.shape[0], c.shape[1], c.shape[2]) != (n, 4, 4):
        raise ValueError("a (n, 4, K), b (n, K, 4) and c (n, 4, 4)")
    if n == 0 or k == 0:
        return
    with nogil:
        for i in range(n):
            kernel.run(k, &a[i, 0, 0], k, 1, &b[i, 0, 0], 4, &c[i, 0, 0], 4)
