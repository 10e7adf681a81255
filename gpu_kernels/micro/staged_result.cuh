/* staged_result.cuh: C from the accumulators of mma.sync to global memory, from registers or staged in shared memory.
 */
#include "batched.cuh"
#include "uneven_rows.cuh"

/* The product of the block and the first row and column of C that a warp computes. */
struct WarpPosition {
    int product, i, j;
};

/* Applies `store` to row, column and elements of the pieces of the warp's tile: the adjacent elements of a lane in each
 * row, two, or four where the columns are paired. */
template <class Y, bool ROWS_PAIRED, bool COLUMNS_PAIRED, int MT, int NT, class Store>
__device__ inline void for_each_piece(const typename Y::Acc (&acc)[MT][NT][2][4], WarpPosition at, int m, Store store) {
    typedef typename Y::Out Out;
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int row = at.i + 16 * i + (ROWS_PAIRED ? lane / 4 * 2 + h : lane / 4 + 8 * h);
            if (row >= m) continue;
#pragma unroll
            for (int j = 0; j < NT; ++j) {
                int col = at.j + 16 * j;
                Out x[2][2];
#pragma unroll
                for (int t = 0; t < 2; ++t)
#pragma unroll
                    for (int e = 0; e < 2; ++e) x[t][e] = Y::result(acc[i][j][t][2 * h + e]);
                if constexpr (COLUMNS_PAIRED) {
                    Out four[4] = {x[0][0], x[1][0], x[0][1], x[1][1]};
                    store(row, col + lane % 4 * 4, four);
                } else {
#pragma unroll
                    for (int t = 0; t < 2; ++t) store(row, col + 8 * t + lane % 4 * 2, x[t]);
                }
            }
        }
}

/* COUNT adjacent elements in one store; `to` is aligned to them. */
template <class Y, bool SHARED, int COUNT>
__device__ inline void store_piece(typename Y::Out* to, const typename Y::Out (&x)[COUNT]) {
    constexpr int WORDS = COUNT * sizeof(typename Y::Out) / 4;
    u32 w[WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        w[i] = Y::bits(x, i);
    if constexpr (!SHARED)
        store_words<4 * WORDS>(to, w); /* to global memory only */
    else if constexpr (WORDS == 1)
        *(u32*)to = w[0];
    else if constexpr (WORDS == 2)
        *(uint2*)to = make_uint2(w[0], w[1]);
    else
        *(uint4*)to = make_uint4(w[0], w[1], w[2], w[3]);
}

/* Element by element, those whose column exists. */
template <int N, bool ALL, class Out, int COUNT>
__device__ inline void store_columns(Out* to, i64 stride, int col, const Out (&x)[COUNT]) {
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        if (ALL || col + e < N) to[e * stride] = x[e];
}

/* C of all products of a block in shared memory: rows that divide into chunks are swizzled, others are as far apart as
 * puts the pieces of eight rows (of 32-bit elements four, a half warp) on different banks. */
template <class Out, int M, int N>
struct StagedResult {
    static constexpr int VECTOR = 16 / sizeof(Out), VALID = (N + VECTOR - 1) / VECTOR;
    static constexpr bool WHOLE = sizeof(Out) == 2 && N % VECTOR == 0;
    static constexpr int LD = WHOLE ? N : sizeof(Out) == 2 ? (VALID | 1) * VECTOR : (N + 7) / 16 * 16 + 8;
    __device__ static u32 place(u32 x) {
        return WHOLE ? Swizzle<VALID>::chunk(x / VECTOR) * VECTOR + x % VECTOR : x;
    }
};

/* `count` adjacent elements of C from rows of COLS that are LD apart, in words. */
template <int COLS, int LD, int THREADS, class Out>
__device__ inline void store_adjacent(Out* to, const Out* shared, u32 count) {
    Words<Out> all(to, count);
#pragma unroll 4
    for (u32 index = threadIdx.x; index < all.words; index += THREADS) {
        u32 word = 0, x = all.head + index * all.WORD;
        if constexpr (COLS % all.WORD == 0)
            word = *(const u32*)(shared + spread<COLS, LD>(x));
        else
            for_each_of_word<Out, COLS, LD>(x, [&](u32 e, u32 y) { word |= (u32)shared[y] << (8 * sizeof(Out) * e); });
        *(u32*)(to + x) = word;
    }
    for (u32 x = threadIdx.x; x < all.head; x += THREADS) to[x] = shared[spread<COLS, LD>(x)];
    for (u32 x = all.end + threadIdx.x; x < count; x += THREADS) to[x] = shared[spread<COLS, LD>(x)];
}

/* The same of odd rows, a row a warp. */
template <int COLS, int LD, int THREADS, class Out>
__device__ inline void store_rows(Out* to, const Out* shared, u32 rows) {
    typedef RowThreads<COLS, THREADS> Threads;
#pragma unroll 8
    for (u32 row = Threads::row(); row < rows; row += Threads::STEP)
#pragma unroll
        for (u32 p = 0; p < Threads::PARTS; ++p)
            if (Threads::col(p) < COLS)
                to[row * COLS + Threads::col(0) + p * Threads::LANES] =
                    shared[row * LD + Threads::col(0) + p * Threads::LANES];
}

/* The C of `products` products: rows that divide into chunks in vectors. */
template <class Staged, int M, int N, int THREADS, class Out>
__device__ inline void store_range(Out* c, const Out* staged, int products) {
    if constexpr (Staged::WHOLE)
        for (u32 x = threadIdx.x * Staged::VECTOR; x < products * M * N; x += THREADS * Staged::VECTOR)
            __stwb((uint4*)(c + x), *(const uint4*)(staged + Staged::place(x)));
    else if constexpr (N % 2 != 0 && RowThreads<N, THREADS>::FULL)
        store_rows<N, Staged::LD, THREADS>(c, staged, products * M);
    else
        store_adjacent<N, Staged::LD, THREADS>(c, staged, products * M * N);
}

/* Epilogue through shared memory: C goes out in vectors, in words or element by element. */
template <class Y, class S, class Staged, bool ALL, int THREADS, class Pieces>
__device__ inline void store_staged(const Call& p, typename Y::Out* staged, i64 first, int products, bool active,
                                    int product, Pieces pieces) {
    typedef typename Y::Out Out;
    constexpr int SIZE = S::M * S::N;
    __syncthreads();
    if (active)
        pieces([&](int row, int col, const auto& x) {
            int at = (product * S::M + row) * Staged::LD + col;
            if (ALL || col < S::N) store_piece<Y, true>(staged + Staged::place(at), x);
        });
    __syncthreads();
    Out* c = (Out*)p.c + first * SIZE;
    store_range<Staged, S::M, S::N, THREADS>(c, staged, products);
}
