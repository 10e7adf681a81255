/* uneven_rows.cuh: adjacent rows that do not divide into 16-byte chunks: where their elements lie in 32-bit words,
 * where in shared memory with rows further apart, and which threads have a row.
 */
#include "call.cuh"

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

/* Threads that share a row of LENGTH elements, one each in PARTS parts, and the first row of this one. */
template <int LENGTH, int THREADS>
struct RowThreads {
    static constexpr u32 LANES = LENGTH > 16 ? 32 : LENGTH > 8 ? 16 : 8, PARTS = (LENGTH + LANES - 1) / LANES;
    static constexpr u32 STEP = THREADS / LANES;
    static constexpr bool FULL = LENGTH * 4 >= LANES * PARTS * 3; /* three quarters of them have an element */
    __device__ static u32 row() { return threadIdx.x / LANES; }
    __device__ static u32 col(u32 part) { return threadIdx.x % LANES + part * LANES; }
};
