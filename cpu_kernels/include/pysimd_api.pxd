# pysimd_api.h for Cython: `cimport pysimd_api`, with pysimd.get_include() among the include paths of Cython and of C.
from libc.stdint cimport int64_t

cdef extern from "pysimd_api.h" nogil:
    enum: PYSIMD_API_VERSION, PYSIMD_ZERO

    ctypedef struct pysimd_call:
        int64_t batch, m, n, k
        const void *a
        int64_t bs_a, rs_a, cs_a
        const void *b
        int64_t bs_b, rs_b
        void *c
        int64_t bs_c, rs_c
        int flags

    ctypedef struct pysimd_kernel:
        const char *name
        int mr, nr, k_group
        void (*run)(int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, void *c,
                    int64_t rs_c) noexcept nogil
        void (*batch)(const pysimd_call *call) noexcept nogil

    ctypedef enum pysimd_types:
        F32, F64, BF16F32, F16F32, I8I32, U8I8I32

    ctypedef struct pysimd_api:
        int version
        const pysimd_kernel *(*find)(const char *name) noexcept nogil
        const pysimd_kernel *(*choose)(pysimd_types types, int64_t m, int64_t n) noexcept nogil
