/* dot.cuh: one element of C from global memory, as the two naive rungs compute it. */
template <Layout LA, Layout LB>
__device__ inline float dot(const Gemm& p, u32 product, i64 i, i64 j) {
    const float* a = p.a + product * p.a_batch + (k_major(LA) ? i * p.lda : i);
    const float* b = p.b + product * p.b_batch + (k_major(LB) ? j * p.ldb : j);
    i64 next_a = k_major(LA) ? 1 : p.lda, next_b = k_major(LB) ? 1 : p.ldb;
    float sum = 0;
#pragma unroll 4
    for (i64 k = 0; k < p.k; ++k) {
        sum = multiply_add(__ldg(a), __ldg(b), sum);
        a += next_a;
        b += next_b;
    }
    return sum;
}
