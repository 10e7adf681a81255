/* mma_fragments.cuh: mma.sync on fragments that ldmatrix reads from the operands in shared memory.
 */
#include "shared_operand.cuh"
#include "ldmatrix.cuh"
#include "mma_16x8.cuh"

/* d (16 x 8) += A (16 x 32 bytes of k) B (32 bytes of k x 8). */
template <class Y>
__device__ inline void mma(float (&d)[4], const u32* a, const u32* b) {
    mma_f16(d, a, b[0], b[1]);
}
template <>
__device__ inline void mma<BF16F32>(float (&d)[4], const u32* a, const u32* b) {
    mma_bf16(d, a, b[0], b[1]);
}
template <>
__device__ inline void mma<BF16>(float (&d)[4], const u32* a, const u32* b) {
    mma<BF16F32>(d, a, b);
}
template <class Y>
__device__ inline void mma(int (&d)[4], const u32* a, const u32* b) {
    mma_s8(d, a, b[0], b[1]);
}

enum Side { SIDE_A, SIDE_B };

/* Fragments of 16 rows of A (columns of B) by 32 bytes of k, four registers a lane. Register s is of matrix s:
 *
 *     A   rows 0 to 7   0  2         B   columns 0 to 7   0  1
 *         rows 8 to 15  1  3             columns 8 to 15  2  3
 *                       the first 16 bytes of k, the last
 *
 * PAIRED: the rows (columns) 0 to 7 here are the even ones of the 16 in the operand, the others the odd ones. */
template <class Elem, class Shared, Side SIDE, int TILES>
struct Fragments {
    static constexpr bool K_ROWS = Shared::LAYOUT == MN_MAJOR, PAIRED = K_ROWS && sizeof(Elem) == 1;
    static constexpr bool FULL = Shared::R % (16 * TILES) == 0; /* no tile has rows that do not exist */
    static constexpr int VECTOR = Shared::VECTOR, STEP = 2 * VECTOR;

    u32 address, zeros; /* of the product's matrix, and of 16 bytes of zeros, in shared memory */
    int r0;
    u32 swizzle;

    /* `row`: the first of the product in shared memory. `zero`: 16 bytes of zeros. */
    __device__ Fragments(const Elem* shared, const void* zero, int row, int r0) : r0(r0) {
        address = (u32)__cvta_generic_to_shared(shared) + row * (Shared::CHUNKS * 16);
        zeros = (u32)__cvta_generic_to_shared(zero);
        swizzle = Shared::Place::of_row(row + (K_ROWS ? k_of_lane() : r0 + r_of_lane()));
    }

    /* The place of matrix s, lane / 8, in a fragment. */
    __device__ static int r_half() { return threadIdx.x % 32 / 8 / (SIDE == SIDE_A ? 1 : 2) % 2; }
    __device__ static int k_half() { return threadIdx.x % 32 / 8 / (SIDE == SIDE_A ? 2 : 1) % 2; }
    /* The row that this lane gives the address of, where rows are adjacent k. Of bytes, the rows 2 q and 2 q + 1 of two
     * matrices are four adjacent k, in an order that puts the rows of each matrix on different banks. */
    __device__ static int k_of_lane() {
        u32 line = threadIdx.x % 8, matrix = threadIdx.x % 32 / 8;
        return PAIRED ? matrix / 2 * 16 + line / 2 * 4 + (matrix % 2 ^ line / 4) * 2 + line % 2 : k_half() * 8 + line;
    }
    __device__ static int r_of_lane() { return r_half() * 8 + threadIdx.x % 8; }

    /* Fragment i, at the 32 bytes of k from `k` on. */
    __device__ void load(u32 (&f)[4], int i, int k) const {
        if constexpr (!K_ROWS) {
            int row = r0 + 16 * i + r_of_lane(), chunk = k / VECTOR + k_half();
            bool exists = (FULL || row < Shared::R) && (k + STEP <= Shared::K || chunk < Shared::VALID);
            ldmatrix_x4<false>(f, exists ? at(row, chunk) : zeros);
        } else {
            int row = k + k_of_lane(), chunk = (r0 + 16 * i) / VECTOR + (PAIRED ? 0 : r_half());
            bool exists = (k + STEP <= Shared::K || row < Shared::K) && (FULL || chunk < Shared::VALID);
            ldmatrix_x4<true>(f, exists ? at(row, chunk) : zeros);
            if constexpr (PAIRED) split(f);
        }
    }
    __device__ u32 at(int row, int chunk) const {
        return address + row * (Shared::CHUNKS * 16) + (chunk ^ swizzle) * 16;
    }

    /* Pairs of bytes of two k each to words of four k: even rows (columns), and odd ones. */
    __device__ static void split(u32 (&f)[4]) {
        bool swapped = threadIdx.x % 4 >= 2;
        u32 even = swapped ? 0x2064 : 0x6420, odd = swapped ? 0x3175 : 0x7531;
        u32 e0 = __byte_perm(f[0], f[1], even), o0 = __byte_perm(f[0], f[1], odd);
        u32 e1 = __byte_perm(f[2], f[3], even), o1 = __byte_perm(f[2], f[3], odd);
        f[0] = e0, f[3] = o1;
        f[1] = SIDE == SIDE_A ? o0 : e1, f[2] = SIDE == SIDE_A ? e1 : o0;
    }
};

/* acc += A B over all k. */
template <int K, class Y, class A, class B, int MT, int NT>
__device__ inline void multiply(typename Y::Acc (&acc)[MT][NT][2][4], const A& a, const B& b) {
#pragma unroll
    for (int k = 0; k < K; k += A::STEP) {
        u32 fa[MT][4], fb[NT][4];
#pragma unroll
        for (int i = 0; i < MT; ++i) a.load(fa[i], i, k);
#pragma unroll
        for (int j = 0; j < NT; ++j) b.load(fb[j], j, k);
#pragma unroll
        for (int i = 0; i < MT; ++i)
#pragma unroll
            for (int j = 0; j < NT; ++j)
#pragma unroll
                for (int t = 0; t < 2; ++t) mma<Y>(acc[i][j][t], fa[i], fb[j] + 2 * t);
    }
}
