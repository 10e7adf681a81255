/* store_row.cuh: elements of C of a type of result.cuh, from accumulators reduced to one number. */
#pragma once
#include "gemm.cuh"
#include "result.cuh"

/* Four adjacent elements of a row of C, all of which exist, without C0. */
template <class T>
__device__ inline void store_whole_row4(float alpha, typename T::Out* c, const typename T::Partial* x) {
    typename T::Out y[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) y[w] = T::out(T::scaled(alpha, x[w]));
    if constexpr (sizeof(y) == 16) __stwb((uint4*)c, *(const uint4*)y);
    else __stwb((uint2*)c, *(const uint2*)y);
}

/* Four adjacent elements of a row of C, of which only the first `left` exist. */
template <class T>
__device__ inline void store_row4(const Gemm& p, typename T::Out* c, const typename T::Out* c0, i64 left,
                                  const typename T::Partial* x) {
    typedef typename T::Out Out;
    if (left >= 4 && p.c_vector) {
        Out y[4];
        if (c0) {
            struct alignas(4 * sizeof(Out)) Four {
                Out x[4];
            } old = *(const Four*)c0;
#pragma unroll
            for (int w = 0; w < 4; ++w) y[w] = T::out(T::scaled(p.alpha, x[w], p.beta, old.x[w]));
        } else {
#pragma unroll
            for (int w = 0; w < 4; ++w) y[w] = T::out(T::scaled(p.alpha, x[w]));
        }
        if constexpr (sizeof(Out) == 4) __stwb((uint4*)c, *(const uint4*)y);
        else __stwb((uint2*)c, *(const uint2*)y);
        return;
    }
#pragma unroll
    for (int w = 0; w < 4; ++w)
        if (w < left) c[w] = T::out(c0 ? T::scaled(p.alpha, x[w], p.beta, c0[w * p.c0_cs]) : T::scaled(p.alpha, x[w]));
}

/* Four adjacent elements of a product of the batch, from row i and column j on, of those that exist. */
template <class T>
__device__ inline void store_row4(const Gemm& p, u32 product, i64 i, i64 j, const typename T::Partial* x) {
    typedef typename T::Out Out;
    if (i >= p.m || j >= p.n) return;
    Out* c = (Out*)p.c + product * p.c_batch + i * p.ldc + j;
    const Out* c0 = p.c0 ? (const Out*)p.c0 + product * p.c0_batch + i * p.c0_rs + j * p.c0_cs : nullptr;
    store_row4<T>(p, c, c0, p.n - j, x);
}
