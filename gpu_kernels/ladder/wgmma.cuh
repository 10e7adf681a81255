/* wgmma.cuh: products of tiles in shared memory by the tensor cores of sm_90a, issued by a warpgroup of four warps
 * together (wgmma.mma_async); 16-bit or TF32 elements and f32 accumulators, or int8 and int32.
 *
 * A tile is what TMA boxes of 128 bytes of the contiguous dimension (128-byte swizzle) leave in shared memory; for
 * 16-bit elements, 64 of k:
 *
 *     K_MAJOR    rows of 64 k, consecutive; eight rows are 1 KiB; the only layout of other elements
 *     MN_MAJOR   a box for every 64 rows: 64 k, consecutive, of 64 rows each; eight k are 1 KiB
 *
 * Accumulators of a thread: rows 16 * warp + lane / 4 and that + 8, columns 8 * j + lane % 4 * 2 and the next;
 * d[4 * j + 0, 1] in the first row, d[4 * j + 2, 3] in the second.
 */
#include "tma.cuh"
#include "store_row.cuh"
#include "tile_scheduler.cuh"

constexpr int TILE_K = 64, BOX_BYTES = 64 * TILE_K * 2; /* 64 rows */

/* Matrix descriptor of a tile at a multiple of 1 KiB: its address without the bits that name the block of a cluster,
 * leading byte offset BOX_BYTES (from 64 rows to the next, MN-major only), stride byte offset 1 KiB, 128-byte
 * swizzle. */
__device__ inline u64 matrix_descriptor(u32 at) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(BOX_BYTES >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
/* From 16 k to the next 16, in the units of a descriptor. */
__device__ constexpr u64 k16_step(Layout l) { return (k_major(l) ? 32 : 16 * 128) >> 4; }

/* Before the first wgmma of a group: accumulators that other instructions wrote are visible to it. */
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Waits until all groups but the last N have completed. */
template <int N>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define ACC4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ACC16(i) ACC4(i), ACC4(i + 4), ACC4(i + 8), ACC4(i + 12)
#define ACC64(i) ACC16(i), ACC16(i + 16), ACC16(i + 32), ACC16(i + 48)

/* d (64 x N) += A (64 x 16) B (16 x N), or = where `accumulate` is 0; `type` is bf16 or f16. */
#define WGMMA_16BIT(type) \
    template <Layout LA, Layout LB> \
    __device__ inline void wgmma_##type(float (&d)[128], u64 a, u64 b, int accumulate) { \
        asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %130, 0;" \
                     "  wgmma.mma_async.sync.aligned.m64n256k16.f32." #type "." #type " {" TEN() TEN(1) TEN(2) TEN(3) \
                         TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) \
                     "%120,%121,%122,%123,%124,%125,%126,%127}, %128, %129, acc, 1, 1, %131, %132; }" \
                     : ACC64(0), ACC64(64) \
                     : "l"(a), "l"(b), "r"(accumulate), "n"(!k_major(LA)), "n"(!k_major(LB))); \
    } \
    template <Layout LA, Layout LB> \
    __device__ inline void wgmma_##type(float (&d)[96], u64 a, u64 b, int accumulate) { \
        asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %98, 0;" \
                     "  wgmma.mma_async.sync.aligned.m64n192k16.f32." #type "." #type " {" TEN() TEN(1) TEN(2) TEN(3) \
                         TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) "%90,%91,%92,%93,%94,%95}," \
                     "  %96, %97, acc, 1, 1, %99, %100; }" \
                     : ACC64(0), ACC16(64), ACC16(80) \
                     : "l"(a), "l"(b), "r"(accumulate), "n"(!k_major(LA)), "n"(!k_major(LB))); \
    } \
    template <Layout LA, Layout LB> \
    __device__ inline void wgmma_##type(float (&d)[64], u64 a, u64 b, int accumulate) { \
        asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %66, 0;" \
                     "  wgmma.mma_async.sync.aligned.m64n128k16.f32." #type "." #type " {" TEN() TEN(1) TEN(2) TEN(3) \
                         TEN(4) TEN(5) "%60,%61,%62,%63}, %64, %65, acc, 1, 1, %67, %68; }" \
                     : ACC64(0) \
                     : "l"(a), "l"(b), "r"(accumulate), "n"(!k_major(LA)), "n"(!k_major(LB))); \
    } \
    template <Layout LA, Layout LB> \
    __device__ inline void wgmma_##type(float (&d)[32], u64 a, u64 b, int accumulate) { \
        asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %34, 0;" \
                     "  wgmma.mma_async.sync.aligned.m64n64k16.f32." #type "." #type " {" TEN() TEN(1) TEN(2) \
                     "%30,%31}, %32, %33, acc, 1, 1, %35, %36; }" \
                     : ACC16(0), ACC16(16) \
                     : "l"(a), "l"(b), "r"(accumulate), "n"(!k_major(LA)), "n"(!k_major(LB))); \
    } \
    template <Layout LA, Layout LB> \
    __device__ inline void wgmma_##type(float (&d)[8], u64 a, u64 b, int accumulate) { \
        asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %10, 0;" \
                     "  wgmma.mma_async.sync.aligned.m64n16k16.f32." #type "." #type " {%0,%1,%2,%3,%4,%5,%6,%7}," \
                     "  %8, %9, acc, 1, 1, %11, %12; }" \
                     : ACC4(0), ACC4(4) \
                     : "l"(a), "l"(b), "r"(accumulate), "n"(!k_major(LA)), "n"(!k_major(LB))); \
    }
WGMMA_16BIT(bf16)
WGMMA_16BIT(f16)

/* d (64 x 128) += A (64 x 8) B (8 x 128) in TF32: the tensor cores read 11 significant bits of a float. Both
 * operands are K-major. */
__device__ inline void wgmma_tf32(float (&d)[64], u64 a, u64 b, int accumulate) {
    asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %66, 0;"
                 "  wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)
                 "%60,%61,%62,%63}, %64, %65, acc, 1, 1; }"
                 : ACC64(0)
                 : "l"(a), "l"(b), "r"(accumulate));
}

/* d (64 x N) += A (64 x 32) B (32 x N) in int8, exactly; int32 wraps around. Both operands are K-major. */
#define INT4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define INT16(i) INT4(i), INT4(i + 4), INT4(i + 8), INT4(i + 12)
#define INT64(i) INT16(i), INT16(i + 16), INT16(i + 32), INT16(i + 48)

__device__ inline void wgmma_s8(int (&d)[128], u64 a, u64 b, int accumulate) {
    asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %130, 0;"
                 "  wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)
                     TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) "%120,%121,%122,%123,%124,%125,%126,%127},"
                 "  %128, %129, acc; }"
                 : INT64(0), INT64(64)
                 : "l"(a), "l"(b), "r"(accumulate));
}
__device__ inline void wgmma_s8(int (&d)[64], u64 a, u64 b, int accumulate) {
    asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %66, 0;"
                 "  wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)
                 "%60,%61,%62,%63}, %64, %65, acc; }"
                 : INT64(0)
                 : "l"(a), "l"(b), "r"(accumulate));
}
__device__ inline void wgmma_s8(int (&d)[32], u64 a, u64 b, int accumulate) {
    asm volatile("{ .reg .pred acc; setp.ne.b32 acc, %34, 0;"
                 "  wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" TEN() TEN(1) TEN(2) "%30,%31},"
                 "  %32, %33, acc; }"
                 : INT16(0), INT16(16)
                 : "l"(a), "l"(b), "r"(accumulate));
}

/* Keeps the compiler from moving reads of completed accumulators before the wait. */
__device__ inline void wgmma_completed(float (&d)[64]) { asm volatile("" : ACC64(0)::"memory"); }

/* Loads a tile of R rows of an operand of 16-bit elements, as boxes from (first_r, first_k) on. */
template <Layout L, int R, class Load>
__device__ inline void load_tile(u32 to, int first_r, int first_k, const Load& load) {
    if constexpr (k_major(L)) {
        load(to, first_k, first_r);
    } else {
#pragma unroll
        for (int i = 0; i < R / 64; ++i) load(to + i * BOX_BYTES, first_r + 64 * i, first_k);
    }
}

/* Two adjacent elements of C. */
__device__ inline void store_pair(float* to, float x, float y) { __stwb((float2*)to, make_float2(x, y)); }
__device__ inline void store_pair(int* to, int x, int y) { __stwb((int2*)to, make_int2(x, y)); }
__device__ inline void store_pair(u16* to, u16 x, u16 y) { __stwb((u32*)to, x | (u32)y << 16); }

/* Epilogue: a warpgroup's 64 x N accumulators to C, from row i and column j on. T is a type of result.cuh. */
template <class T, int N>
__device__ inline void store_warpgroup_tile(const Gemm& p, u32 product, i64 i, i64 j,
                                            const typename T::Partial (&d)[N / 2]) {
    typedef typename T::Out Out;
    int lane = threadIdx.x % 32;
    i += threadIdx.x % 128 / 32 * 16 + lane / 4, j += lane % 4 * 2;
#pragma unroll
    for (int below = 0; below < 2; ++below, i += 8) {
        if (i >= p.m) return;
        Out* c = (Out*)p.c + product * p.c_batch + i * p.ldc + j;
        if (!p.c0 && p.c_vector && j - lane % 4 * 2 + N <= p.n) {
#pragma unroll
            for (int x = 0; x < N / 8; ++x)
                store_pair(c + 8 * x, T::out(T::scaled(p.alpha, d[4 * x + 2 * below])),
                           T::out(T::scaled(p.alpha, d[4 * x + 2 * below + 1])));
            continue;
        }
        const Out* c0 = (const Out*)p.c0 + product * p.c0_batch + i * p.c0_rs + j * p.c0_cs;
#pragma unroll
        for (int x = 0; x < N / 8; ++x)
#pragma unroll
            for (int w = 0; w < 2; ++w)
                if (j + 8 * x + w < p.n) {
                    typename T::Partial acc = d[4 * x + 2 * below + w];
                    c[8 * x + w] = T::out(p.c0 ? T::scaled(p.alpha, acc, p.beta, c0[(8 * x + w) * p.c0_cs])
                                               : T::scaled(p.alpha, acc));
                }
    }
}

constexpr int STORE_BYTES = 64 * 128, STORE_BOXES = 2; /* boxes of C, 64 rows by 128 bytes; two a warpgroup */

/* Gemm::c_vector where map_c describes C: rows start at multiples of 16 bytes, and there is no C0. */
constexpr i64 C_BY_TMA = 2;

/* Two adjacent elements of C to shared memory. */
__device__ inline void shared_store_pair(u32 to, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}
__device__ inline void shared_store_pair(u32 to, int x, int y) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(x), "r"(y) : "memory");
}
__device__ inline void shared_store(u32 to, float x) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
__device__ inline void shared_store(u32 to, int x) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}
/* Four matrices of 8 x 8 elements of 16 bits; lane 8 * i + r has the address of row r of matrix i. */
__device__ inline void store_matrices(u32 to, const u32 (&pairs)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(pairs[0]),
                 "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
}

/* The same through shared memory: a TMA store writes whole 128-byte lines of one box while the next box is written to
 * shared memory, and drops what lies outside C. `boxes` are this warpgroup's. */
template <class T, int N>
__device__ inline void store_warpgroup_tile_tma(const Gemm& p, const TensorMap& map_c, u32 boxes, int product, int i,
                                                int j, const typename T::Partial (&d)[N / 2]) {
    constexpr int SIZE = sizeof(typename T::Out), COLUMNS = 128 / SIZE; /* of a box */
    int thread = threadIdx.x % 128, lane = thread % 32, row = thread / 32 * 16 + lane / 4;
    auto warpgroup_barrier = [] { asm volatile("bar.sync %0, 128;" ::"r"(1 + threadIdx.x / 128) : "memory"); };
#pragma unroll
    for (int box = 0; box < N / COLUMNS; ++box) {
        u32 to = boxes + box % STORE_BOXES * STORE_BYTES;
        if (thread == 0) {
            if (box == 0 && N / COLUMNS % STORE_BOXES) tma_store_wait<0>(); /* where the last box of a tile was */
            else tma_store_wait<STORE_BOXES - 1>();
        }
        warpgroup_barrier();
        /* 16-byte chunks of a row are permuted by the row (128-byte swizzle). */
        if constexpr (SIZE == 2) {
#pragma unroll
            for (int x = 0; x < 4; ++x) { /* a warp stores four matrices of 8 x 8 at a time: 16 rows, two chunks */
                const typename T::Partial* acc = &d[box * 32 + 8 * x];
                u32 pairs[4];
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    pairs[i] = T::out_pair(T::scaled(p.alpha, acc[2 * i]), T::scaled(p.alpha, acc[2 * i + 1]));
                store_matrices(to + (thread / 32 * 16 + lane % 16) * 128 + ((2 * x + lane / 16) ^ lane % 8) * 16,
                               pairs);
            }
        } else {
#pragma unroll
            for (int x = 0; x < COLUMNS / 4; ++x) {
                const typename T::Partial* acc = &d[box * (COLUMNS / 2) + 2 * x];
                u32 below = x % 2 * 8, at = (x / 2 * 8 + lane % 4 * 2) * SIZE, chunk = at / 16 ^ row % 8;
                shared_store_pair(to + (row + below) * 128 + chunk * 16 + at % 16, T::out(T::scaled(p.alpha, acc[0])),
                                  T::out(T::scaled(p.alpha, acc[1])));
            }
        }
        fence_proxy_async();
        warpgroup_barrier();
        if (thread == 0) tma_store(map_c, to, j + COLUMNS * box, i, product);
    }
}

__device__ inline uint4 shared_load4(u32 from) {
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(from)
                 : "memory");
    return x;
}
__device__ inline u32 shared_load(u32 from) {
    u32 x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}

/* The same for any C, with C0 too: through shared memory, so that a warp accesses 32 adjacent elements of a row. A warp
 * stores the rows that it computed. */
template <class T, int N>
__device__ inline void store_warpgroup_tile_rows(const Gemm& p, u32 boxes, u32 product, i64 i, i64 j,
                                                 const typename T::Partial (&d)[N / 2]) {
    typedef typename T::Partial Partial;
    typedef typename T::Out Out;
    int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    u32 rows = boxes + warp * 16 * 128, swizzled = (lane / 4) % 8;
    i += warp * 16, j += lane;
    Out* c = (Out*)p.c + product * p.c_batch + i * p.ldc + j;
    const Out* c0 = (const Out*)p.c0 + product * p.c0_batch + i * p.c0_rs + j * p.c0_cs;
    int count = (int)min(p.m - i, (i64)16);
#pragma unroll
    for (int box = 0; box < N / 32; ++box) {
        __syncwarp();
#pragma unroll
        for (int x = 0; x < 8; ++x)
            shared_store_pair(rows + (lane / 4 + x % 2 * 8) * 128 + ((x / 2 * 2 + lane % 4 / 2) ^ swizzled) * 16 +
                                  lane % 2 * 8,
                              d[16 * box + 2 * x], d[16 * box + 2 * x + 1]);
        __syncwarp();
        if (j + 32 * box < p.n) {
#pragma unroll 4
            for (int r = 0; r < count; ++r) {
                u32 word = shared_load(rows + r * 128 + ((lane / 4) ^ (r % 8)) * 16 + lane % 4 * 4);
                Partial acc = *(Partial*)&word;
                c[r * p.ldc + 32 * box] =
                    T::out(p.c0 ? T::scaled(p.alpha, acc, p.beta, c0[r * p.c0_rs + 32 * box * p.c0_cs])
                                : T::scaled(p.alpha, acc));
            }
        }
    }
}
