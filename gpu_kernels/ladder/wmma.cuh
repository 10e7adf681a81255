/* wmma.cuh: the fragments of mma.h, 16 x 16 x 16 f16 with f32 accumulators, for operands in either layout: a K-major
 * operand is row-major for A and column-major for B. */
#include <cuda_fp16.h>
#include <mma.h>
#include "gemm.cuh"

using namespace nvcuda;

template <bool ROW_MAJOR>
struct Major {
    typedef wmma::row_major Order;
};
template <>
struct Major<false> {
    typedef wmma::col_major Order;
};

template <Layout L>
using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, typename Major<k_major(L)>::Order>;
template <Layout L>
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, typename Major<!k_major(L)>::Order>;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> Accumulator;
