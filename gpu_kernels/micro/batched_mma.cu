/* batched_mma: C[i] = A[i] B[i] for a batch of products of one small shape on the tensor cores, bound by the memory
 * bandwidth.
 *
 * contract  call.cuh without C0; m, n, k are those that the kernel was compiled for (at most 128).
 * tile      C of M x N in tiles of 16*MT x 16*NT, one a warp; PRODUCTS products a block
 * regs      8*MT*NT accumulators; no spills
 * per k     MT*NT/8 HMMA.16816, MT*NT/16 IMMA.16832 for i8i32; (MT + NT)/16 LDSM, (MT + NT)/32 for i8i32
 * ratio     16*MT*NT / (MT + NT) in shared memory; in global memory every element of A, B and C moves once, in vectors
 *           where the batch is contiguous: what counts there is bytes a second
 * rounding  products are exact; the tensor core adds those of 16 steps of k to the accumulator in f32 and truncates in
 *           its own way, k ascending: bit-equal to cuda_*_wmma_16x16. 16-bit results are rounded once. Integers are
 *           exact, int32 wraps around
 * needs     sm_80
 * idea      the contiguous ranges of batched.cu, as fragments of mma.sync; 16-byte chunks swizzled by XOR on their way
 *           to shared memory (CUTLASS). Bytes are transposed by ldmatrix in pairs: the rows (columns) of a fragment are
 *           then the even and the odd ones of 16. Rows that do not divide into chunks are spread out on their way.
 *           Written here
 * lanes     32
 * launch    32 * PRODUCTS * ceil(M / (16*MT)) * ceil(N / (16*NT)) threads a block; grid ceil(batch / PRODUCTS)
 * smem      PRODUCTS*(M + N)*K*A_BYTES + 16 bytes; more where chunks do not divide a row, or where a C staged in the
 *           same memory is larger. Dynamic where that is more than every device has
 */
#include "mma_fragments.cuh"
#include "staged_result.cuh"

/* 16*MT x 16*NT elements of C a warp, PRODUCTS products a block. */
template <int MT_, int NT_, int PRODUCTS_>
struct WarpTile {
    static constexpr int MT = MT_, NT = NT_, PRODUCTS = PRODUCTS_;
};

/* A warp's tile is one of ACROSS in a row of tiles, and one of WARPS of its product. */
template <class S, class T>
struct Block {
    static constexpr int ACROSS = (S::N + 16 * T::NT - 1) / (16 * T::NT);
    static constexpr int WARPS = ACROSS * ((S::M + 16 * T::MT - 1) / (16 * T::MT));
    static constexpr int THREADS = 32 * T::PRODUCTS * WARPS;
};

/* CONTIGUOUS_C: the batch of C is one 16-byte aligned range without gaps. It is stored from registers where its rows
 * are whole sectors (32 bytes) that a lane's neighbours fill in the same store, else staged in shared memory. */
template <class Y, class S, class T, class A, class B, bool CONTIGUOUS_C>
__global__ void __launch_bounds__((Block<S, T>::THREADS)) batched_mma(const __grid_constant__ Call p) {
    typedef typename Y::Elem Elem;
    typedef typename Y::Out Out;
    constexpr int WARPS = Block<S, T>::WARPS, ACROSS = Block<S, T>::ACROSS, THREADS = Block<S, T>::THREADS;
    constexpr int PRODUCTS = T::PRODUCTS, K = S::K > 0 ? S::K : 1, SIZE = S::M * S::N;
    typedef SharedOperand<Elem, A, S::M, K, PRODUCTS> SharedA;
    typedef SharedOperand<Elem, B, S::N, K, PRODUCTS> SharedB;
    typedef Fragments<Elem, SharedA, SIDE_A, T::MT> FragmentsA;
    typedef Fragments<Elem, SharedB, SIDE_B, T::NT> FragmentsB;
    constexpr bool STAGED = CONTIGUOUS_C && (sizeof(Out) == 2 || S::N % 8 != 0);
    constexpr int ZEROS = (SharedA::SIZE + SharedB::SIZE) * sizeof(Elem), BYTES_IN = ZEROS + 16;
    typedef StagedResult<Out, S::M, S::N> Staged;
    constexpr int BYTES_OUT = STAGED ? PRODUCTS * S::M * Staged::LD * sizeof(Out) : 0;
    constexpr bool ALL = S::N % (16 * T::NT) == 0; /* no tile has columns that do not exist */
    unsigned char* shared = shared_memory<((BYTES_IN > BYTES_OUT ? BYTES_IN : BYTES_OUT) + 15) / 16 * 16>();
    Elem *a = (Elem*)shared, *b = a + SharedA::SIZE;

    i64 first = (i64)blockIdx.x * PRODUCTS;
    int products = p.batch - first < PRODUCTS ? (int)(p.batch - first) : PRODUCTS;
    if constexpr (S::K > 0) {
        OperandCopy<A, SharedA, THREADS, Elem> copy_a(a, (const Elem*)p.a, p.a_rs, p.a_cs, first, products,
                                                      [&](i64 q) { return offsets_of(p, (u32)q).a; });
        OperandCopy<B, SharedB, THREADS, Elem> copy_b(b, (const Elem*)p.b, p.b_cs, p.b_rs, first, products,
                                                      [&](i64 q) { return offsets_of(p, (u32)q).b; });
        copy_a.end(), copy_b.end();
        if (threadIdx.x == 0) *(uint4*)(shared + ZEROS) = make_uint4(0, 0, 0, 0);
        wait_copies();
        __syncthreads();
    }

    int warp = threadIdx.x / 32, product = warp / WARPS, tile = warp % WARPS;
    bool active = PRODUCTS == 1 || product < products;
    WarpPosition at = {product, tile / ACROSS * T::MT * 16, tile % ACROSS * T::NT * 16};
    typename Y::Acc acc[T::MT][T::NT][2][4] = {};
    if (S::K > 0 && active) {
        FragmentsA fa(a, shared + ZEROS, A::SOURCE == BROADCAST ? 0 : product * SharedA::ROWS, at.i);
        FragmentsB fb(b, shared + ZEROS, B::SOURCE == BROADCAST ? 0 : product * SharedB::ROWS, at.j);
        multiply<S::K, Y>(acc, fa, fb);
    }
    auto pieces = [&](auto store) {
        for_each_piece<Y, FragmentsA::PAIRED, FragmentsB::PAIRED>(acc, at, S::M, store);
    };
    if constexpr (STAGED) {
        store_staged<Y, S, Staged, ALL, THREADS>(p, (Out*)shared, first, products, active, product, pieces);
    } else if (active) {
        if constexpr (CONTIGUOUS_C) {
            Out* c = (Out*)p.c + (first + product) * SIZE;
            pieces([&](int row, int col, const auto& x) {
                if (ALL || col < S::N) store_piece<Y, false>(c + row * S::N + col, x);
            });
        } else {
            Out* c = (Out*)p.c + offsets_of(p, (u32)(first + product)).c;
            pieces([&](int row, int col, const auto& x) {
                store_columns<S::N, ALL>(c + row * p.c_rs + col * p.c_cs, p.c_cs, col, x);
            });
        }
    }
}
