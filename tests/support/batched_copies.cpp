// The copies of batched_mma.cu on the host, a thread after the other: test_batched_copies.py puts the kernel's text in
// the place of KERNEL. Prints what is wrong and exits with 1.
#include "cuda_host.h"

#include <vector>

static void copy16(void* shared, const void* global) {
    expect((u64)shared % 16 == 0 && (u64)global % 16 == 0, "alignment", 0, 0);
    memcpy(shared, global, 16);
}
enum Layout { K_MAJOR, MN_MAJOR };

KERNEL

template <class T>
T value(u32 index) {
    return (T)(index * 2654435761u >> 7);
}
template <class T>
struct Room { /* `size` elements from a 16-byte boundary on, and a guard behind them */
    std::vector<char> bytes;
    size_t size;
    T* at;
    explicit Room(size_t size) : bytes(size * sizeof(T) + 48, 0x7f), size(size) {
        at = (T*)(((u64)bytes.data() + 15) / 16 * 16);
    }
    bool guarded() const { return *(const unsigned char*)(at + size) == 0x7f; }
};

/* Products of ROWS x COLS elements in shared memory are those in global memory, and zeros follow along k. */
template <class Elem, int R, int K, Layout LAYOUT, Source SOURCE, int PRODUCTS, int THREADS>
void operand() {
    typedef Operand<SOURCE, LAYOUT> Op;
    typedef SharedOperand<Elem, Op, R, K, PRODUCTS> Shared;
    constexpr int ROWS = Shared::ROWS, COLS = Shared::COLS, SIZE = ROWS * COLS, BATCH = 2 * PRODUCTS + 1;
    Room<Elem> global((size_t)BATCH * SIZE);
    for (int i = 0; i < BATCH * SIZE; ++i) global.at[i] = value<Elem>(i);
    for (int first = 0; first < BATCH; first += PRODUCTS) {
        int products = min(PRODUCTS, BATCH - first), stored = SOURCE == BROADCAST ? 1 : products;
        Room<Elem> shared(Shared::SIZE);
        std::vector<OperandCopy<Op, Shared, THREADS, Elem>> copies;
        for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x)
            copies.emplace_back(shared.at, (const Elem*)global.at, LAYOUT == K_MAJOR ? COLS : 1,
                                LAYOUT == K_MAJOR ? 1 : COLS, (i64)first, products, [](i64 q) { return q * SIZE; });
        for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x) copies[threadIdx.x].end();
        const Elem* from = global.at + (SOURCE == BROADCAST ? 0 : first * SIZE);
        for (int row = 0; row < stored * ROWS; ++row)
            for (int col = 0; col < (LAYOUT == K_MAJOR ? Shared::VALID * Shared::VECTOR : COLS); ++col)
                expect(shared.at[Shared::place(row * Shared::LD + col)] ==
                           (col < COLS ? from[row * COLS + col] : Elem(0)),
                       "operand", ROWS, COLS);
        expect(shared.guarded(), "end of operand", ROWS, COLS);
    }
}

/* The same of C, which goes back. */
template <class Out, int M, int N, int PRODUCTS, int THREADS>
void result() {
    typedef StagedResult<Out, M, N> Staged;
    constexpr int SIZE = M * N, BATCH = 2 * PRODUCTS + 1;
    Room<Out> global((size_t)BATCH * SIZE);
    for (int first = 0; first < BATCH; first += PRODUCTS) {
        int products = min(PRODUCTS, BATCH - first);
        Room<Out> staged(PRODUCTS * M * Staged::LD);
        for (int row = 0; row < products * M; ++row)
            for (int col = 0; col < N; ++col)
                staged.at[Staged::place(row * Staged::LD + col)] = value<Out>(first * SIZE + row * N + col);
        for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x)
            store_range<Staged, M, N, THREADS>(global.at + first * SIZE, staged.at, products);
    }
    for (int i = 0; i < BATCH * SIZE; ++i) expect(global.at[i] == value<Out>(i), "result", M, N);
    expect(global.guarded(), "end of result", M, N);
}

template <class Elem, class Out, int R, int K, int PRODUCTS, int THREADS>
void all() {
    operand<Elem, R, K, K_MAJOR, CONTIGUOUS, PRODUCTS, THREADS>();
    operand<Elem, R, K, MN_MAJOR, CONTIGUOUS, PRODUCTS, THREADS>();
    operand<Elem, R, K, K_MAJOR, STRIDED, PRODUCTS, THREADS>();
    operand<Elem, R, K, MN_MAJOR, BROADCAST, PRODUCTS, THREADS>();
    result<Out, R, K, PRODUCTS, THREADS>();
}

int main() {
    all<u16, u16, 33, 62, 3, 96>();
    all<u16, u16, 127, 3, 1, 128>();
    all<u16, int, 31, 48, 2, 64>();
    all<signed char, int, 33, 63, 2, 128>();
    all<signed char, int, 34, 36, 1, 96>();
    return wrong != 0;
}
