/* amd.h: defines the CUDA names that gpu_kernels/micro uses for AMD GPUs, so that one source serves both vendors.
 *
 * Three compilers read it: hiprtc, which declares HIP's own names; clang without a header of HIP, which declares none;
 * and NVRTC, which needs nothing of this file. Names that HIP has too are defined here for both compilers of AMD, so
 * that an instance does not depend on a version of HIP.
 */
#if defined(__HIP__)

#if !defined(__HIPCC_RTC__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
typedef __SIZE_TYPE__ size_t;
__device__ inline int min(int a, int b) { return a < b ? a : b; }
namespace amd {
struct Index {
    unsigned x;
};
__device__ inline Index thread() { return {__builtin_amdgcn_workitem_id_x()}; }
__device__ inline Index block() { return {__builtin_amdgcn_workgroup_id_x()}; }
__device__ inline Index block_size() { return {__builtin_amdgcn_workgroup_size_x()}; }
__device__ inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
} // namespace amd
#define threadIdx amd::thread()
#define blockIdx amd::block()
#define blockDim amd::block_size()
#define __syncthreads amd::barrier
#endif

namespace amd {
typedef unsigned int Two __attribute__((ext_vector_type(2)));
typedef unsigned int Four __attribute__((ext_vector_type(4)));

template <class To, class From>
__device__ inline To bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "other sizes");
    To y;
    __builtin_memcpy(&y, &x, sizeof x);
    return y;
}
__device__ inline float fma(float a, float b, float c) {
#pragma clang fp contract(off) /* two of them in one v_dot2 would round differently */
    return __builtin_fmaf(a, b, c);
}
__device__ inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
__device__ inline double join(int high, int low) { return bits<double>(Two{(unsigned)low, (unsigned)high}); }
__device__ inline int high(double x) { return (int)bits<Two>(x).y; }
__device__ inline int low(double x) { return (int)bits<Two>(x).x; }

/* prmt and v_perm_b32: the selector of CUDA has 4 bits for a byte and numbers the bytes of y:x, that of AMD has 8 bits
 * and numbers the bytes of its first operand from 4 on. */
__device__ inline unsigned permute(unsigned x, unsigned y, unsigned s) {
    return __builtin_amdgcn_perm(y, x, (s & 7) | (s >> 4 & 7) << 8 | (s >> 8 & 7) << 16 | (s >> 12 & 7) << 24);
}

/* c plus four products of int8, exact; one instruction where the target has it. */
__device__ inline int dot4(int a, int b, int c) {
#if defined(__GFX11__) || defined(__GFX12__)
    return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || \
    defined(__gfx950__) || defined(__gfx1011__) || defined(__gfx1012__) ||                        \
    (defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__) || defined(__gfx1033__) || \
     defined(__gfx1034__) || defined(__gfx1035__) || defined(__gfx1036__))
    return __builtin_amdgcn_sdot4(a, b, c, false);
#else
#pragma unroll
    for (int i = 0; i < 32; i += 8)
        c = (int)((unsigned)c + (unsigned)((int)(signed char)(a >> i) * (int)(signed char)(b >> i)));
    return c;
#endif
}
} // namespace amd

#define __grid_constant__
#define uint2 amd::Two
#define uint4 amd::Four
#define make_uint2(x, y) (amd::Two{x, y})
#define make_uint4(x, y, z, w) (amd::Four{x, y, z, w})
#define __ldg(from) (*(from))
#define __stwb(to, x) (*(to) = (x))
#define __fmaf_ieee_rn amd::fma
#define __fma_rn amd::fma
#define __float_as_uint amd::bits<unsigned, float>
#define __uint_as_float amd::bits<float, unsigned>
#define __half_as_ushort amd::bits<unsigned short, _Float16>
#define __ushort_as_half amd::bits<_Float16, unsigned short>
#define __half2float(x) ((float)(x))
#define __float2half_rn(x) ((_Float16)(x))
#define __hiloint2double amd::join
#define __double2hiint amd::high
#define __double2loint amd::low
#define __byte_perm amd::permute
#define __dp4a amd::dot4

#endif
