/* mma_warp.cuh: a Warp of f16_pipeline.cuh by mma.sync and ldmatrix; Mma is a class of mma.cuh. */
#include "f16_pipeline.cuh"
#include "mma.cuh"

template <class Mma, class PanelA, class PanelB>
struct MmaWarp {
    typedef FragmentAddress<SIDE_A, PanelA::LAYOUT, typename PanelA::Place> A;
    typedef FragmentAddress<SIDE_B, PanelB::LAYOUT, typename PanelB::Place> B;
    u32 a_address, b_address, a[2][TM / 16][4], b[2][TN / 16][4];
    typename Mma::Result::Partial acc[TM / 16][TN / 8][4] = {};

    __device__ MmaWarp(int row, int column) {
        a_address = shared_address(panels) + A::first(row);
        b_address = shared_address(panels) + PanelA::BYTES + B::first(column);
    }

    __device__ void load(int set, u32 panel, int k) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
            ldmatrix_x4<!k_major(PanelA::LAYOUT)>(a[set][i], A::at(panel + a_address, i, k));
#pragma unroll
        for (int j = 0; j < TN / 16; ++j)
            ldmatrix_x4<!k_major(PanelB::LAYOUT)>(b[set][j], B::at(panel + b_address, j, k));
    }

    /* Serpentine order: the last operand B of a row is the first of the next. */
    __device__ void multiply(int set) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
#pragma unroll
            for (int x = 0; x < TN / 8; ++x) {
                int j = i % 2 ? TN / 8 - 1 - x : x;
                Mma::multiply(acc[i][j], a[set][i], b[set][j / 2][j % 2 * 2], b[set][j / 2][j % 2 * 2 + 1]);
            }
    }

    __device__ void store(const Gemm& p, u32 product, i64 i, i64 j) {
        store_warp_tile<typename Mma::Result, TM, TN>(p, product, i, j, acc);
    }
};
