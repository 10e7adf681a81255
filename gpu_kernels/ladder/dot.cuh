/* dot.cuh: one element of C as the inner product of a row of A and a column of B in global memory: the naive rungs. */
#include "gemm.cuh"

template <Layout LA, Layout LB>
__device__ inline float dot(const Gemm& p, u32 product, i64 i, i64 j) {
    const float* a = p.a + product * p.a_batch + (k_major(LA) ? i * p.lda : i);
    const float* b = p.b + product * p.b_batch + (k_major(LB) ? j * p.ldb : j);
    i64 a_stride = k_major(LA) ? 1 : p.lda, b_stride = k_major(LB) ? 1 : p.ldb;
    float acc = 0;
#pragma unroll 4
    for (i64 k = 0; k < p.k; ++k) {
        acc = multiply_add(__ldg(a), __ldg(b), acc);
        a += a_stride;
        b += b_stride;
    }
    return acc;
}
