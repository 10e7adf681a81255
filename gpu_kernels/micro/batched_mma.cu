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
#include "batched.cuh"
#include "ldmatrix.cuh"

/* --- the instructions --- */

/* d (16 x 8) += A (16 x 32 bytes of k) B (32 bytes of k x 8). A lane has rows lane / 4 and lane / 4 + 8 of d, and of
 * each the columns lane % 4 * 2 and the next. */
#define PYSIMD_MMA(SHAPE, TYPES, CONSTRAINT)                                                                           \
    asm("mma.sync.aligned." SHAPE ".row.col." TYPES " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+" CONSTRAINT(d[0]), "+" CONSTRAINT(d[1]), "+" CONSTRAINT(d[2]), "+" CONSTRAINT(d[3])                       \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <class Y>
__device__ inline void mma(float (&d)[4], const u32* a, const u32* b) {
    PYSIMD_MMA("m16n8k16", "f32.f16.f16.f32", "f");
}
template <>
__device__ inline void mma<BF16F32>(float (&d)[4], const u32* a, const u32* b) {
    PYSIMD_MMA("m16n8k16", "f32.bf16.bf16.f32", "f");
}
template <>
__device__ inline void mma<BF16>(float (&d)[4], const u32* a, const u32* b) {
    mma<BF16F32>(d, a, b);
}
template <class Y>
__device__ inline void mma(int (&d)[4], const u32* a, const u32* b) {
    PYSIMD_MMA("m16n8k32", "s32.s8.s8.s32", "r");
}

/* --- the parameters of an instance, and what follows from them --- */

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

/* An operand of R x K elements (R is m of A, n of B) in shared memory: the rows of all products, CHUNKS 16-byte chunks
 * each, VALID of them with elements. Rows that do not divide into chunks are an odd number of them apart, which needs
 * no swizzle; where they are adjacent k, zeros fill the last one. */
template <class Elem, class Op, int R_, int K_, int PRODUCTS>
struct SharedOperand {
    static constexpr Layout LAYOUT = Op::LAYOUT;
    static constexpr int VECTOR = 16 / sizeof(Elem), R = R_, K = K_;
    static constexpr int ROWS = LAYOUT == K_MAJOR ? R : K, COLS = LAYOUT == K_MAJOR ? K : R;
    static constexpr int VALID = (COLS + VECTOR - 1) / VECTOR, STORED = Op::SOURCE == BROADCAST ? 1 : PRODUCTS;
    static constexpr bool WHOLE = COLS % VECTOR == 0;
    static constexpr int CHUNKS = WHOLE ? VALID : VALID | 1, LD = CHUNKS * VECTOR;
    static constexpr int SIZE = STORED * ROWS * LD;
    typedef Swizzle<CHUNKS> Place;
    __device__ static u32 place(u32 x) { return Place::chunk(x / VECTOR) * VECTOR + x % VECTOR; }
};

/* The product of the block and the first row and column of C that a warp computes. */
struct WarpPosition {
    int product, i, j;
};

/* --- operands from global to shared memory --- */

/* Rows of one matrix, by chunks where they divide into chunks, else element by element. */
template <class Shared, int THREADS, class Elem>
__device__ inline void copy_rows(Elem* shared, u32 first_row, const Elem* from, i64 rs, i64 cs) {
    constexpr u32 VECTOR = Shared::VECTOR, VALID = Shared::VALID, WIDTH = VALID * VECTOR;
    if (Shared::WHOLE && cs == 1 && ((u64)from | rs * sizeof(Elem)) % 16 == 0) {
        for (u32 x = threadIdx.x; x < Shared::ROWS * VALID; x += THREADS)
            copy16(shared + Shared::Place::chunk(first_row * VALID + x) * VECTOR,
                   from + x / VALID * rs + x % VALID * VECTOR);
    } else {
#pragma unroll 4
        for (u32 x = threadIdx.x; x < Shared::ROWS * WIDTH; x += THREADS) {
            u32 row = x / WIDTH, col = x % WIDTH;
            shared[Shared::place((first_row + row) * Shared::LD + col)] =
                col < Shared::COLS ? __ldg(from + row * rs + col * cs) : Elem(0);
        }
    }
}

/* Place of element x of adjacent rows of COLS where the rows are LD apart. */
template <int COLS, int LD>
__device__ inline u32 spread(u32 x) {
    return x + x / COLS * (LD - COLS);
}

/* Applies `apply` to e and the place of each of the 4 or 2 elements x + e of a 32-bit word. */
template <class Elem, int COLS, int LD, class Apply>
__device__ inline void for_each_of_word(u32 x, Apply apply) {
    u32 first = spread<COLS, LD>(x), left = COLS - x % COLS; /* in this row */
#pragma unroll
    for (u32 e = 0; e < 4 / sizeof(Elem); ++e) apply(e, first + e + (e < left ? 0 : LD - COLS));
}

/* How `count` adjacent elements from `first` on lie in aligned 32-bit words: the elements before them, the words. */
template <class Elem>
struct Words {
    static constexpr u32 WORD = 4 / sizeof(Elem);
    u32 head, words, end;
    __device__ Words(const Elem* first, u32 count) {
        head = min(count, (u32)(-(i64)first & 3) / (u32)sizeof(Elem));
        words = (count - head) / WORD, end = head + words * WORD;
    }
};

/* Rows of a contiguous range, in pieces of 4 or 8 bytes that end where the rows end. */
template <class Shared, int PIECE, int THREADS, class Elem>
__device__ inline void copy_pieces(Elem* shared, const Elem* from, u32 count) {
    constexpr u32 LENGTH = PIECE / sizeof(Elem);
    for (u32 x = threadIdx.x * LENGTH; x < count; x += THREADS * LENGTH) {
        u32 to = (u32)__cvta_generic_to_shared(shared + spread<Shared::COLS, Shared::LD>(x));
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from + x), "n"(PIECE) : "memory");
    }
}

/* Threads that share a row of LENGTH elements, one each in PARTS parts, and the first row of this one. */
template <int LENGTH, int THREADS>
struct RowThreads {
    static constexpr u32 LANES = LENGTH > 16 ? 32 : LENGTH > 8 ? 16 : 8, PARTS = (LENGTH + LANES - 1) / LANES;
    static constexpr u32 STEP = THREADS / LANES;
    static constexpr bool FULL = LENGTH * 4 >= LANES * PARTS * 3; /* three quarters of them have an element */
    __device__ static u32 row() { return threadIdx.x / LANES; }
    __device__ static u32 col(u32 part) { return threadIdx.x % LANES + part * LANES; }
};

/* Rows of a contiguous range that end anywhere, in units of 1 or 2 bytes, a row a warp: begun, with many loads of a
 * thread in flight, and stored with zeros behind the rows. */
template <class Shared, class Unit, int THREADS, class Elem>
struct RowCopy {
    static constexpr u32 SCALE = sizeof(Unit) / sizeof(Elem), COLS = Shared::COLS / SCALE, LD = Shared::LD / SCALE;
    static constexpr u32 LENGTH = Shared::VALID * 16 / sizeof(Unit), ROWS = Shared::STORED * Shared::ROWS;
    typedef RowThreads<LENGTH, THREADS> Threads;
    static constexpr u32 EACH = (ROWS + Threads::STEP - 1) / Threads::STEP, MOST = 32 / Threads::PARTS;
    static constexpr u32 BATCH = EACH < MOST ? EACH : MOST; /* rows of a thread in flight */
    const Unit* from;
    u32 rows;
    Unit x[BATCH][Threads::PARTS];

    __device__ RowCopy(const Elem* first, int products) : from((const Unit*)first), rows(products * Shared::ROWS) {
        load(Threads::row());
    }
    __device__ void load(u32 row) {
        const Unit* at = from + row * COLS + Threads::col(0);
#pragma unroll
        for (u32 i = 0; i < BATCH; ++i)
#pragma unroll
            for (u32 p = 0; p < Threads::PARTS; ++p) {
                bool exists = row + i * Threads::STEP < rows && Threads::col(p) < COLS;
                x[i][p] = exists ? __ldg(at + i * Threads::STEP * COLS + p * Threads::LANES) : Unit(0);
            }
    }
    __device__ void store(Elem* shared) {
#pragma unroll 1
        for (u32 row = Threads::row(); row < rows;) {
            Unit* at = (Unit*)shared + row * LD + Threads::col(0);
#pragma unroll
            for (u32 i = 0; i < BATCH; ++i)
#pragma unroll
                for (u32 p = 0; p < Threads::PARTS; ++p)
                    if (row + i * Threads::STEP < rows && Threads::col(p) < LENGTH)
                        at[i * Threads::STEP * LD + p * Threads::LANES] = x[i][p];
            row += BATCH * Threads::STEP;
            if (EACH > BATCH) load(row);
        }
    }
};

/* The same in words, which straddle rows: more instructions an element, but none for lanes after the end of a row. */
template <class Shared, int THREADS, class Elem>
struct WordCopy {
    static constexpr u32 WORD = 4 / sizeof(Elem), MOST = Shared::STORED * Shared::ROWS * Shared::COLS / WORD;
    static constexpr u32 EACH = (MOST + THREADS - 1) / THREADS, LOADS = EACH < 32 ? EACH : 32;
    const Elem* from;
    u32 count;
    Words<Elem> all;
    u32 x[LOADS];

    __device__ WordCopy(const Elem* from, int products)
        : from(from), count(products * Shared::ROWS * Shared::COLS), all(from, count) {
        load(threadIdx.x);
    }
    __device__ void load(u32 base) {
        const u32* source = (const u32*)(from + all.head);
#pragma unroll
        for (u32 u = 0; u < LOADS; ++u)
            x[u] = base + u * THREADS < all.words ? __ldg(source + base + u * THREADS) : 0;
    }
    __device__ void store(Elem* shared) {
        for (u32 base = threadIdx.x; base < all.words;) {
#pragma unroll
            for (u32 u = 0; u < LOADS; ++u)
                if (base + u * THREADS < all.words)
                    for_each_of_word<Elem, Shared::COLS, Shared::LD>(
                        all.head + (base + u * THREADS) * WORD,
                        [&](u32 e, u32 y) { shared[y] = (Elem)(x[u] >> (8 * sizeof(Elem) * e)); });
            base += LOADS * THREADS;
            if (EACH > LOADS) load(base);
        }
        for (u32 x = threadIdx.x; x < all.head; x += THREADS) store_one(shared, x);
        for (u32 x = all.end + threadIdx.x; x < count; x += THREADS) store_one(shared, x);
    }
    __device__ void store_one(Elem* shared, u32 x) { shared[spread<Shared::COLS, Shared::LD>(x)] = __ldg(from + x); }
};

/* The elements after the end of every row of COLS, up to a whole chunk. */
template <class Shared, int THREADS, class Elem>
__device__ inline void clear_tails(Elem* shared, u32 rows) {
    constexpr u32 TAIL = Shared::VALID * Shared::VECTOR - Shared::COLS;
    for (u32 x = threadIdx.x; x < rows * TAIL; x += THREADS)
        shared[x / TAIL * Shared::LD + Shared::COLS + x % TAIL] = 0;
}

struct NoCopy {
    __device__ NoCopy(const void*, int) {}
    __device__ void store(void*) {}
};
template <bool, class X, class>
struct Either {
    typedef X Type;
};
template <class X, class Y>
struct Either<false, X, Y> {
    typedef Y Type;
};

/* One operand of the `products` products from `first` on: begun, so that the loads of both are in flight, and ended. */
template <class Op, class Shared, int THREADS, class Elem>
struct OperandCopy {
    static constexpr int SIZE = Shared::ROWS * Shared::COLS, PIECE = power_of_two(8, Shared::COLS * sizeof(Elem));
    static constexpr bool IN_UNITS = Op::SOURCE == CONTIGUOUS && PIECE < 4;
    typedef typename Either<PIECE % 2 == 0, u16, unsigned char>::Type Unit;
    static constexpr int UNITS = Shared::COLS * sizeof(Elem) / sizeof(Unit);
    static constexpr bool ROWWISE = UNITS < 4 || RowThreads<UNITS, THREADS>::FULL;
    typedef typename Either<ROWWISE, RowCopy<Shared, Unit, THREADS, Elem>, WordCopy<Shared, THREADS, Elem>>::Type Copy;
    typename Either<IN_UNITS, Copy, NoCopy>::Type units;
    Elem* shared;
    int products;

    template <class Offset>
    __device__ OperandCopy(Elem* shared, const Elem* from, i64 r_stride, i64 k_stride, i64 first, int products,
                           Offset offset)
        : units(from + first * SIZE, products), shared(shared), products(products) {
        if constexpr (Op::SOURCE == CONTIGUOUS && Shared::WHOLE) {
            copy_contiguous<SIZE, Shared::STORED, THREADS>(shared, from + first * SIZE, products, 0,
                                                           [](u32 x) { return Shared::place(x); });
        } else if constexpr (Op::SOURCE == CONTIGUOUS && !IN_UNITS) {
            copy_pieces<Shared, PIECE, THREADS>(shared, from + first * SIZE, products * SIZE);
        } else if constexpr (Op::SOURCE != CONTIGUOUS) {
            i64 rs = Op::LAYOUT == K_MAJOR ? r_stride : k_stride, cs = Op::LAYOUT == K_MAJOR ? k_stride : r_stride;
#pragma unroll 1
            for (int q = 0; q < (Op::SOURCE == BROADCAST ? 1 : products); ++q)
                copy_rows<Shared, THREADS>(shared, q * Shared::ROWS,
                                           from + (Op::SOURCE == BROADCAST ? (i64)0 : offset(first + q)), rs, cs);
        }
    }

    __device__ void end() {
        units.store(shared);
        if (Op::SOURCE == CONTIGUOUS && Op::LAYOUT == K_MAJOR && !Shared::WHOLE && !(IN_UNITS && ROWWISE))
            clear_tails<Shared, THREADS>(shared, products * Shared::ROWS);
    }
};

/* --- fragments from shared memory to registers --- */

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

/* --- C from registers to global memory --- */

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

/* --- the kernel --- */

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
