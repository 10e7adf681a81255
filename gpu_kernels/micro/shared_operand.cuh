/* shared_operand.cuh: the operands of a block's products, copied from global to shared memory for ldmatrix.
 */
#include "batched.cuh"
#include "uneven_rows.cuh"

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

/* Rows of a contiguous range, in pieces of 4 or 8 bytes that end where the rows end. */
template <class Shared, int PIECE, int THREADS, class Elem>
__device__ inline void copy_pieces(Elem* shared, const Elem* from, u32 count) {
    constexpr u32 LENGTH = PIECE / sizeof(Elem);
    for (u32 x = threadIdx.x * LENGTH; x < count; x += THREADS * LENGTH) {
        u32 to = (u32)__cvta_generic_to_shared(shared + spread<Shared::COLS, Shared::LD>(x));
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from + x), "n"(PIECE) : "memory");
    }
}

/* Rows of a contiguous range that end anywhere, in units of 1 or 2 bytes, a row a warp: begun, with many loads of a
 * thread in flight, and stored with zeros behind the rows. Words of the rows in shared memory, each by a funnel shift
 * from the two words of the range that it lies in, ran at 0.24 to 0.54 times this speed on an H200 (f16 and int8 of 31
 * to 127 a side). By the TMA, with a tensor map for each of the eight classes of rows that are a multiple of 16 bytes
 * apart, boxes from any element of a row on, and zeros behind the rows, it was right on the host, but on an H200 the
 * loads of classes after the first were illegal instructions (f16 of 20 a side too). Not told apart: coordinates that
 * are no multiples of 16 bytes, and 128-byte swizzled boxes at addresses that are no multiples of 1024.
 */
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
