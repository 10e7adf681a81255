/* batched.cuh: what the kernels for batches of small products (batched.cu, batched_mma.cu) have in common: the
 * parameters of an instance, copies of operands from global to shared memory.
 */
#include "call.cuh"
#include "types.cuh"
#include "memory.cuh"

/* --- the parameters of an instance --- */

template <int M_, int N_, int K_>
struct Shape {
    static constexpr int M = M_, N = N_, K = K_;
};

/* How a batch of an operand lies in global memory. */
enum Source {
    CONTIGUOUS, /* one 16-byte aligned range without gaps */
    STRIDED,    /* any strides, loaded element by element */
    BROADCAST,  /* any strides, one matrix for all products */
};

/* LAYOUT is K_MAJOR or MN_MAJOR (memory.cuh). */
template <Source SOURCE_, Layout LAYOUT_>
struct Operand {
    static constexpr Source SOURCE = SOURCE_;
    static constexpr Layout LAYOUT = LAYOUT_;
};

/* --- shared memory --- */

/* Largest power of two up to `most` that divides all of these. */
__device__ constexpr int power_of_two(int most, int a, int b = 0, int c = 0) {
    int v = most;
    while (v > 1 && (a % v || b % v || c % v)) v /= 2;
    return v;
}

/* COUNT adjacent elements of each block in global memory, and their place in shared memory. Where COUNT is no multiple
 * of a 16-byte vector, a block's elements begin up to VECTOR - 1 after a 16-byte boundary; in shared memory they begin
 * as many after one. */
template <class Elem, int COUNT>
struct Range {
    static constexpr int VECTOR = 16 / sizeof(Elem);
    static constexpr bool SHIFTED = COUNT % VECTOR != 0;
    static constexpr int SIZE = SHIFTED ? (COUNT / VECTOR + 2) * VECTOR : COUNT;
    __device__ static int shift(i64 first) { return SHIFTED ? (int)((u32)first % VECTOR) : 0; }
};

/* Rows of CHUNKS 16-byte chunks, whose chunks are permuted so that the same chunk of eight adjacent rows is on
 * different banks. */
template <int CHUNKS>
struct Swizzle {
    static constexpr int GROUP = power_of_two(8, CHUNKS), ROWS = 8 / GROUP;
    __device__ static u32 of_row(u32 row) { return row / ROWS % GROUP; }
    __device__ static u32 chunk(u32 x) { return GROUP > 1 ? x ^ of_row(x / CHUNKS) : x; }
};

/* The shared memory of a block: static up to what every device has, dynamic beyond. */
template <int BYTES>
__device__ inline unsigned char* shared_memory() {
    if constexpr (BYTES <= 48 << 10) {
        __shared__ __align__(16) unsigned char shared[BYTES];
        return shared;
    } else {
        extern __shared__ __align__(16) unsigned char dynamic_shared[];
        return dynamic_shared;
    }
}

/* --- from global to shared memory --- */

__device__ inline void copy16(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
    u32 to = (u32)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
#else
    *(uint4*)shared = __ldg((const uint4*)global);
#endif
}
__device__ inline void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* Applies `one` to the elements, and `vector` to the first elements of 16-byte vectors, of `count` adjacent elements
 * that begin `shift` after a 16-byte boundary. */
template <int VECTOR, int THREADS, class One, class Vector>
__device__ inline void for_each_vector(int count, int shift, One one, Vector vector) {
    int head = shift ? min(count, VECTOR - shift) : 0, vectors = (count - head) / VECTOR;
    for (int x = threadIdx.x; x < vectors; x += THREADS) vector(head + x * VECTOR);
    for (int x = threadIdx.x; x < head; x += THREADS) one(x);
    for (int x = head + vectors * VECTOR + threadIdx.x; x < count; x += THREADS) one(x);
}

/* `products` products of SIZE adjacent elements, of the PRODUCTS that a full block has; element x goes to
 * place(x), and the elements of a 16-byte vector stay adjacent. */
template <int SIZE, int PRODUCTS, int THREADS, class Elem, class Place>
__device__ inline void copy_contiguous(Elem* shared, const Elem* from, int products, int shift,
                                       Place place) {
    constexpr int VECTOR = 16 / sizeof(Elem), ALL = PRODUCTS * SIZE;
    if (products == PRODUCTS && ALL % VECTOR == 0) {
#pragma unroll
        for (int x0 = 0; x0 < ALL / VECTOR; x0 += THREADS) {
            int x = (x0 + threadIdx.x) * VECTOR;
            if (x0 + THREADS > ALL / VECTOR && x >= ALL) break;
            copy16(shared + place(x), from + x);
        }
    } else if constexpr (ALL % VECTOR == 0) {
        for (int x = threadIdx.x; x < products * SIZE; x += THREADS) shared[place(x)] = __ldg(from + x);
    } else {
        for_each_vector<VECTOR, THREADS>(
            products * SIZE, shift, [&](int x) { shared[place(x)] = __ldg(from + x); },
            [&](int x) { copy16(shared + place(x), from + x); });
    }
}

/* One element; asynchronous where cp.async has its size. */
template <class Elem>
__device__ inline void copy_element(Elem* shared, const Elem* global) {
#if __CUDA_ARCH__ >= 800
    if constexpr (sizeof(Elem) >= 4) {
        u32 to = (u32)__cvta_generic_to_shared(shared);
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(sizeof(Elem)) : "memory");
        return;
    }
#endif
    *shared = __ldg(global);
}
