/* wmma.cuh: the fragments of warp_matrix.cuh in f16 for operands in either layout: a K-major operand is row-major for A
 * and column-major for B. */
#include "warp_matrix.cuh"
#include "gemm.cuh"

template <bool ROW_MAJOR>
struct Major {
    typedef warp_matrix::RowMajor Order;
};
template <>
struct Major<false> {
    typedef warp_matrix::ColumnMajor Order;
};

template <Layout L>
using FragmentA = warp_matrix::Fragment<warp_matrix::F16, warp_matrix::A, typename Major<k_major(L)>::Order>;
template <Layout L>
using FragmentB = warp_matrix::Fragment<warp_matrix::F16, warp_matrix::B, typename Major<!k_major(L)>::Order>;
typedef warp_matrix::Accumulator<warp_matrix::F16> Accumulator;
