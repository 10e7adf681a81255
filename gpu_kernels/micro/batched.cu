/* batched: C[i] = A[i] B[i] for a batch of products of one small shape, bound by the memory bandwidth.
 *
 * contract  call.cuh without C0; m, n, k are those that the kernel was compiled for (at most 128).
 * tile      C of M x N in tiles of TM x TN, one a thread; PRODUCTS products a block
 * regs      TM*TN accumulators; no spills
 * per k     TM*TN FFMA, TM*TN DFMA for f64, TM*TN/4 IDP.4A for i8i32; TM + TN elements from shared memory
 * ratio     TM*TN / (TM + TN) in shared memory; in global memory every element of A, B and C moves once, in vectors
 *           where the batch is contiguous: what counts there is bytes a second
 * rounding  one fma per term, k ascending from 0: bit-equal to cuda_*_outer_*, for any PRODUCTS and tile. F16
 *           accumulates in f32 and rounds once
 * needs     sm_75
 * idea      the products of a block are adjacent in memory, so their A (and their B) are one contiguous range, copied
 *           to shared memory in 16-byte vectors (cp.async from sm_80 on) without regard to rows; up to 32 x 32 odd
 *           sizes are as fast as powers of two. Written here
 * lanes     ceil(M/TM) * ceil(N/TN)
 * launch    32 * ceil(PRODUCTS*LANES/32) threads a block; grid ceil(batch / PRODUCTS)
 * smem      PRODUCTS*(M + N)*K*A_BYTES bytes; more where ranges do not fill their vectors, or where a C staged in
 *           the same memory is larger. Dynamic where that is more than every device has
 */
#include "batched.cuh"
#include "int8.cuh"

/* --- the parameters of an instance --- */

/* TM x TN elements of C a thread, PRODUCTS products a block. */
template <int TM_, int TN_, int PRODUCTS_>
struct ThreadTile {
    static constexpr int TM = TM_, TN = TN_, PRODUCTS = PRODUCTS_;
};

/* --- what follows from them --- */

/* A thread's tile is one of ACROSS in a row of tiles, and one of LANES of its product. */
template <class S, class T>
struct Block {
    static constexpr int ACROSS = (S::N + T::TN - 1) / T::TN, LANES = ACROSS * ((S::M + T::TM - 1) / T::TM);
    static constexpr int THREADS = (T::PRODUCTS * LANES + 31) / 32 * 32;
};

/* An operand of R x K elements (R is m of A, n of B) in shared memory: ROWS x COLS elements a product, the products
 * without a gap, as in global memory. Padding against bank conflicts makes the asynchronous copy slower than the
 * conflicts would: 3.8 against 4.37 TB/s for 4x4 on an H200. */
template <class Elem, class Op, int R_, int K, int PRODUCTS, bool B = false>
struct SharedOperand {
    static constexpr Layout LAYOUT = Op::LAYOUT;
    static constexpr int R = R_, ROWS = LAYOUT == K_MAJOR ? R : K, COLS = LAYOUT == K_MAJOR ? K : R;
    static constexpr int LD = COLS, STRIDE = ROWS * COLS, STORED = Op::SOURCE == BROADCAST ? 1 : PRODUCTS;
    /* The columns of a transposed B that the lanes of a warp read would be on the same banks. */
    static constexpr int VECTOR = 16 / sizeof(Elem);
    static constexpr bool SWIZZLED = B && LAYOUT == K_MAJOR && Op::SOURCE == CONTIGUOUS && ROWS > 32 &&
                                     COLS % VECTOR == 0 && (PRODUCTS == 1 || ROWS % 8 == 0);
    typedef Swizzle<SWIZZLED ? COLS / VECTOR : 1> Place;
    __device__ static int place(int x) { return SWIZZLED ? (int)Place::chunk(x / VECTOR) * VECTOR + x % VECTOR : x; }
    __device__ static int in_row(int row, int col) { return SWIZZLED ? col ^ (int)Place::of_row(row) * VECTOR : col; }
    typedef Range<Elem, STRIDE * STORED> Elements;
    static constexpr int SIZE = Elements::SIZE;
    /* Elements between a 16-byte boundary and product `first`, the first of the block. */
    __device__ static int shift(i64 first) { return Op::SOURCE == CONTIGUOUS ? Elements::shift(first * STRIDE) : 0; }
};

/* The product of the block and the first row and column of C that a thread computes. */
struct ThreadPosition {
    int product, i, j;
    bool active;
};

/* --- operands from global to shared memory --- */

/* `products` products of ROWS x COLS elements with strides; `offset` gives the first element of each. */
template <int ROWS, int COLS, int THREADS, class Elem, class Offset>
__device__ inline void copy_strided(Elem* shared, const Elem* from, i64 rs, i64 cs, int products, Offset offset) {
    if constexpr (ROWS * COLS >= THREADS) {
#pragma unroll 1
        for (int q = 0; q < products; ++q) {
            const Elem* product = from + offset(q);
            for (int x = threadIdx.x; x < ROWS * COLS; x += THREADS)
                copy_element(shared + q * ROWS * COLS + x, product + x / COLS * rs + x % COLS * cs);
        }
    } else {
        for (int x = threadIdx.x; x < products * ROWS * COLS; x += THREADS) {
            int q = x / (ROWS * COLS), r = x % (ROWS * COLS) / COLS, c = x % COLS;
            copy_element(shared + x, from + offset(q) + r * rs + c * cs);
        }
    }
}

/* One operand of the `products` products from `first` on. */
template <class Op, class Shared, int THREADS, class Elem, class Offset>
__device__ inline void load_operand(Elem* shared, const Elem* from, i64 r_stride, i64 k_stride, i64 first, int products,
                                    Offset offset) {
    if constexpr (Op::SOURCE == CONTIGUOUS)
        copy_contiguous<Shared::STRIDE, Shared::STORED, THREADS>(shared, from + first * Shared::STRIDE, products,
                                                                 Shared::shift(first),
                                                                 [](int x) { return Shared::place(x); });
    else
        copy_strided<Shared::ROWS, Shared::COLS, THREADS>(
            shared, from, Op::LAYOUT == K_MAJOR ? r_stride : k_stride, Op::LAYOUT == K_MAJOR ? k_stride : r_stride,
            Op::SOURCE == BROADCAST ? 1 : products,
            [&](int q) { return Op::SOURCE == BROADCAST ? (i64)0 : offset(first + q); });
}

/* --- fragments from shared memory to registers --- */

/* N adjacent elements from shared memory, aligned to N of them. */
template <class Y, int N>
__device__ inline void read_shared(typename Y::Acc* to, const typename Y::Elem* from) {
    typedef typename Y::Elem Elem;
    constexpr int BYTES = N * sizeof(Elem);
    if constexpr (BYTES < 4) {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = Y::value(from[i]);
    } else {
        u32 w[BYTES / 4];
        if constexpr (BYTES == 4) {
            w[0] = *(const u32*)from;
        } else if constexpr (BYTES == 8) {
            uint2 v = *(const uint2*)from;
            w[0] = v.x, w[1] = v.y;
        } else {
            uint4 v = *(const uint4*)from;
            w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
        }
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = Y::word(w, i);
    }
}

/* Elements (r0 + t, k0 + u), t < T, u < KU, of an operand: f[t][u]. An edge tile reads the last element again; those
 * accumulators are not stored. */
template <class Y, class Shared, int T, int KU>
__device__ inline void read_fragment(typename Y::Acc (&f)[T][KU], const typename Y::Elem* s, int r0, int k0) {
    constexpr int MOST = 16 / sizeof(typename Y::Elem);
    constexpr bool EDGE = Shared::R % T != 0;
    if constexpr (Shared::LAYOUT == K_MAJOR) {
        constexpr int V = power_of_two(MOST, KU, Shared::LD, Shared::STRIDE);
#pragma unroll
        for (int t = 0; t < T; ++t) {
            int row = EDGE ? min(r0 + t, Shared::R - 1) : r0 + t;
#pragma unroll
            for (int u = 0; u < KU; u += V)
                read_shared<Y, V>(&f[t][u], s + row * Shared::LD + Shared::in_row(row, k0 + u));
        }
    } else {
        constexpr int V = EDGE ? 1 : power_of_two(MOST, T, Shared::LD, Shared::STRIDE);
#pragma unroll
        for (int u = 0; u < KU; ++u)
#pragma unroll
            for (int t = 0; t < T; t += V) {
                typename Y::Acc v[V];
                int at = EDGE ? min(r0 + t, Shared::R - 1) : r0 + t;
                read_shared<Y, V>(v, s + (k0 + u) * Shared::LD + at);
#pragma unroll
                for (int i = 0; i < V; ++i) f[t + i][u] = v[i];
            }
    }
}

/* The same for int8: f[t] is a word of 4 steps of k, those past K zero. */
template <class Shared, int K, int T>
__device__ inline void read_group(u32 (&f)[T], const signed char* s, int r0, int k0) {
    constexpr bool EDGE = Shared::R % T != 0;
    if constexpr (Shared::LAYOUT == K_MAJOR && power_of_two(4, K, Shared::LD, Shared::STRIDE) == 4) {
#pragma unroll
        for (int t = 0; t < T; ++t)
            f[t] = *(const u32*)(s + (EDGE ? min(r0 + t, Shared::R - 1) : r0 + t) * Shared::LD + k0);
    } else if constexpr (Shared::LAYOUT == MN_MAJOR && !EDGE && K % 4 == 0 &&
                         power_of_two(4, T, Shared::LD, Shared::STRIDE) == 4) {
#pragma unroll
        for (int t = 0; t < T; t += 4) {
            u32 w[4];
#pragma unroll
            for (int u = 0; u < 4; ++u) w[u] = *(const u32*)(s + (k0 + u) * Shared::LD + r0 + t);
            transpose_bytes(w);
#pragma unroll
            for (int i = 0; i < 4; ++i) f[t + i] = w[i];
        }
    } else {
#pragma unroll
        for (int t = 0; t < T; ++t) {
            int at = EDGE ? min(r0 + t, Shared::R - 1) : r0 + t;
            u32 w = 0;
#pragma unroll
            for (int u = 0; u < 4; ++u)
                if (k0 + u < K)
                    w |= (u32)(unsigned char)
                             s[Shared::LAYOUT == K_MAJOR ? at * Shared::LD + k0 + u : (k0 + u) * Shared::LD + at]
                         << (8 * u);
            f[t] = w;
        }
    }
}

/* --- the tile of a thread --- */

/* acc += A B over all k. Inlined by force: clang simplifies a function before it inlines it, and then needs a fifth
 * more registers for int8 on AMD GPUs. */
template <class Y, class SharedA, class SharedB, int K, int TM, int TN>
__device__ __forceinline__ void multiply(typename Y::Acc (&acc)[TM][TN], const typename Y::Elem* a,
                                         const typename Y::Elem* b, ThreadPosition at) {
    typedef typename Y::Elem Elem;
    if constexpr (sizeof(Elem) == 1) {
#pragma unroll
        for (int k = 0; k < K; k += 4) {
            u32 fa[TM], fb[TN];
            read_group<SharedA, K>(fa, a, at.i, k);
            read_group<SharedB, K>(fb, b, at.j, k);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) acc[i][j] = __dp4a((int)fa[i], (int)fb[j], acc[i][j]);
        }
    } else {
        constexpr int KU = power_of_two(sizeof(Elem) == 8 ? 2 : 4, K);
        constexpr int UNROLL = K * TM * TN <= 1024 ? 64 : 4;
#pragma unroll UNROLL
        for (int k = 0; k < K; k += KU) {
            typename Y::Acc fa[TM][KU], fb[TN][KU];
            read_fragment<Y, SharedA>(fa, a, at.i, k);
            read_fragment<Y, SharedB>(fb, b, at.j, k);
#pragma unroll
            for (int u = 0; u < KU; ++u)
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) acc[i][j] = multiply_add(fa[i][u], fb[j][u], acc[i][j]);
        }
    }
}

/* Epilogue through shared memory: the C of all products of the block is one contiguous range, stored 16 bytes at a
 * time whatever its rows are. */
template <class Y, class S, int PRODUCTS, int THREADS, int TM, int TN>
__device__ inline void store_staged(const Call& p, typename Y::Out* staged, const typename Y::Acc (&acc)[TM][TN],
                                    ThreadPosition at, i64 first, int products) {
    typedef typename Y::Out Out;
    constexpr int SIZE = S::M * S::N, VECTOR = 16 / sizeof(Out);
    int shift = Range<Out, PRODUCTS * SIZE>::shift(first * SIZE);
    staged += shift;
    __syncthreads();
    if (at.active) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j)
                if ((S::M % TM == 0 || at.i + i < S::M) && (S::N % TN == 0 || at.j + j < S::N))
                    staged[at.product * SIZE + (at.i + i) * S::N + at.j + j] = Y::result(acc[i][j]);
    }
    __syncthreads();
    Out* c = (Out*)p.c + first * SIZE;
    for_each_vector<VECTOR, THREADS>(
        products * SIZE, shift, [&](int x) { c[x] = staged[x]; },
        [&](int x) { __stwb((uint4*)(c + x), *(const uint4*)(staged + x)); });
}

/* Epilogue from registers: rows of a contiguous C in vectors, element by element for any strides. */
template <class Y, class S, bool CONTIGUOUS_C, int TM, int TN>
__device__ inline void store_direct(const Call& p, const typename Y::Acc (&acc)[TM][TN], ThreadPosition at, i64 first) {
    typedef typename Y::Out Out;
    Out* c = CONTIGUOUS_C ? (Out*)p.c + (first + at.product) * (S::M * S::N)
                          : (Out*)p.c + offsets_of(p, (u32)(first + at.product)).c;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        if (S::M % TM != 0 && at.i + i >= S::M) break;
        if constexpr (CONTIGUOUS_C) {
            constexpr int BYTES = TN * sizeof(Out);
            Out row[TN];
#pragma unroll
            for (int j = 0; j < TN; ++j) row[j] = Y::result(acc[i][j]);
            u32 w[BYTES / 4];
#pragma unroll
            for (int x = 0; x < BYTES / 4; ++x) w[x] = Y::bits(row, x);
            store_words<BYTES>(c + (at.i + i) * S::N + at.j, w);
        } else {
#pragma unroll
            for (int j = 0; j < TN; ++j)
                if (S::N % TN == 0 || at.j + j < S::N)
                    c[(at.i + i) * p.c_rs + (at.j + j) * p.c_cs] = Y::result(acc[i][j]);
        }
    }
}

/* CONTIGUOUS_C: the batch of C is one 16-byte aligned range without gaps. */
template <class Y, class S, class T, class A, class B, bool CONTIGUOUS_C>
__global__ void __launch_bounds__((Block<S, T>::THREADS)) batched(const __grid_constant__ Call p) {
    typedef typename Y::Elem Elem;
    typedef typename Y::Out Out;
    constexpr int LANES = Block<S, T>::LANES, ACROSS = Block<S, T>::ACROSS, THREADS = Block<S, T>::THREADS;
    constexpr int TM = T::TM, TN = T::TN, PRODUCTS = T::PRODUCTS, K = S::K > 0 ? S::K : 1;
    typedef SharedOperand<Elem, A, S::M, K, PRODUCTS> SharedA;
    typedef SharedOperand<Elem, B, S::N, K, PRODUCTS, true> SharedB;
    constexpr bool STAGED =
        CONTIGUOUS_C && (S::N % TN != 0 || S::N * sizeof(Out) % 16 != 0 || TN * sizeof(Out) % 16 != 0);
    constexpr int BYTES_IN = (SharedA::SIZE + SharedB::SIZE) * sizeof(Elem);
    constexpr int BYTES_OUT = STAGED ? Range<Out, PRODUCTS * S::M * S::N>::SIZE * sizeof(Out) : 0;
    unsigned char* shared = shared_memory<((BYTES_IN > BYTES_OUT ? BYTES_IN : BYTES_OUT) + 15) / 16 * 16>();
    Elem *a = (Elem*)shared, *b = a + SharedA::SIZE;

    i64 first = (i64)blockIdx.x * PRODUCTS;
    int products = p.batch - first < PRODUCTS ? (int)(p.batch - first) : PRODUCTS;
    a += SharedA::shift(first), b += SharedB::shift(first);
    if constexpr (S::K > 0) {
        load_operand<A, SharedA, THREADS>(a, (const Elem*)p.a, p.a_rs, p.a_cs, first, products,
                                          [&](i64 q) { return offsets_of(p, (u32)q).a; });
        load_operand<B, SharedB, THREADS>(b, (const Elem*)p.b, p.b_cs, p.b_rs, first, products,
                                          [&](i64 q) { return offsets_of(p, (u32)q).b; });
        wait_copies();
        __syncthreads();
    }

    int product = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    ThreadPosition at = {product, lane / ACROSS * TM, lane % ACROSS * TN, product < products};
    if (A::SOURCE != BROADCAST) a += (at.active ? product : 0) * SharedA::STRIDE;
    if (B::SOURCE != BROADCAST) b += (at.active ? product : 0) * SharedB::STRIDE;
    typename Y::Acc acc[TM][TN] = {};
    multiply<Y, SharedA, SharedB, S::K>(acc, a, b, at);
    if constexpr (STAGED)
        store_staged<Y, S, PRODUCTS, THREADS>(p, (Out*)shared, acc, at, first, products);
    else if (at.active)
        store_direct<Y, S, CONTIGUOUS_C>(p, acc, at, first);
}
