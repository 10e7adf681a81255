/* wgmma.cuh: products of tiles in shared memory by the tensor cores of sm_90a, which a warpgroup, four warps, asks for
 * together; 16-bit elements, float sums.
 *
 * A tile is what boxes of 64 elements along memory (128 bytes, swizzled over 128) leave there (tma.cuh), K of it 64:
 *
 *     K_MAJOR   rows of 64 k, one below the other; eight rows make 1 KiB
 *     MN_MAJOR   for every 64 rows a block of 64 k, each with its 64 rows side by side; eight k make 1 KiB
 *
 * Sums of a thread: (row, column) with row = 16 * warp + lane / 4 and 8 below, column = 8 * j + lane % 4 * 2 and the
 * next: d[4 * j + 0, 1] above, d[4 * j + 2, 3] below.
 */
constexpr int TILE_K = 64, BOX_BYTES = 64 * TILE_K * 2; /* of 64 rows */

/* What the tensor cores are told of a tile at a multiple of 1 KiB: where it is (without the bits that say in which
 * block of a cluster), 1 KiB from eight to eight, BOX_BYTES from 64 rows to the next where they lie along memory,
 * 128-byte swizzle. */
__device__ inline u64 tile_descriptor(u32 at) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(BOX_BYTES >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
/* From a step of 16 k to the next, in the units of a descriptor. */
__device__ constexpr u64 step_of_16(Layout l) { return (k_major(l) ? 32 : 16 * 128) >> 4; }

/* Before the first of a series: sums that were written by other instructions are there. */
__device__ inline void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Waits until all series but the last N are done. */
template <int N>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)
#define SUMS64(i) SUMS16(i), SUMS16(i + 16), SUMS16(i + 32), SUMS16(i + 48)

/* d (64 x N) += A (64 x 16) B (16 x N), or = where `adds` is 0. */
template <Layout LA, Layout LB>
__device__ inline void multiply_bf16(float (&d)[128], u64 a, u64 b, int adds) {
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %130, 0;"
                 "  wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)
                     TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) "%120,%121,%122,%123,%124,%125,%126,%127},"
                 "  %128, %129, adds, 1, 1, %131, %132; }"
                 : SUMS64(0), SUMS64(64)
                 : "l"(a), "l"(b), "r"(adds), "n"(!k_major(LA)), "n"(!k_major(LB)));
}
template <Layout LA, Layout LB>
__device__ inline void multiply_bf16(float (&d)[64], u64 a, u64 b, int adds) {
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %66, 0;"
                 "  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)
                 "%60,%61,%62,%63}, %64, %65, adds, 1, 1, %67, %68; }"
                 : SUMS64(0)
                 : "l"(a), "l"(b), "r"(adds), "n"(!k_major(LA)), "n"(!k_major(LB)));
}

template <Layout LA, Layout LB>
__device__ inline void multiply_bf16(float (&d)[32], u64 a, u64 b, int adds) {
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %34, 0;"
                 "  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" TEN() TEN(1) TEN(2) "%30,%31},"
                 "  %32, %33, adds, 1, 1, %35, %36; }"
                 : SUMS16(0), SUMS16(16)
                 : "l"(a), "l"(b), "r"(adds), "n"(!k_major(LA)), "n"(!k_major(LB)));
}

/* d (64 x 128) += A (64 x 8) B (8 x 128) of floats, of which the tensor cores take 11 bits; both along k. */
__device__ inline void multiply_tf32(float (&d)[64], u64 a, u64 b, int adds) {
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %66, 0;"
                 "  wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)
                 "%60,%61,%62,%63}, %64, %65, adds, 1, 1; }"
                 : SUMS64(0)
                 : "l"(a), "l"(b), "r"(adds));
}

/* Sums that were waited for: what reads them stays behind the wait. */
__device__ inline void wgmma_done(float (&d)[64]) { asm volatile("" : SUMS64(0)::"memory"); }

/* A tile of R rows of an operand of 16-bit elements: boxes from (first_r, first_k) on. */
template <Layout L, int R, class Load>
__device__ inline void load_tile(u32 to, int first_r, int first_k, const Load& load) {
    if constexpr (k_major(L)) {
        load(to, first_k, first_r);
    } else {
#pragma unroll
        for (int i = 0; i < R / 64; ++i) load(to + i * BOX_BYTES, first_r + 64 * i, first_k);
    }
}

/* A warpgroup's sums into C from row i and column j of the tile's 64 x N on. */
template <int N>
__device__ inline void store_tile(const Gemm& p, u32 product, i64 i, i64 j, const float (&d)[N / 2]) {
    int lane = threadIdx.x % 32;
    i += threadIdx.x % 128 / 32 * 16 + lane / 4, j += lane % 4 * 2;
#pragma unroll
    for (int below = 0; below < 2; ++below, i += 8) {
        if (i >= p.m) return;
        float* c = p.c + product * p.c_batch + i * p.ldc + j;
        if (!p.c0 && p.c_vector && j - lane % 4 * 2 + N <= p.n) {
#pragma unroll
            for (int x = 0; x < N / 8; ++x)
                __stwb((float2*)(c + 8 * x),
                       make_float2(result(p, d[4 * x + 2 * below]), result(p, d[4 * x + 2 * below + 1])));
            continue;
        }
        const float* c0 = p.c0 + product * p.c0_batch + i * p.c0_rs + j * p.c0_cs;
#pragma unroll
        for (int x = 0; x < N / 8; ++x)
#pragma unroll
            for (int w = 0; w < 2; ++w)
                if (j + 8 * x + w < p.n) {
                    float sum = d[4 * x + 2 * below + w];
                    c[8 * x + w] = p.c0 ? result(p, sum, c0[(8 * x + w) * p.c0_cs]) : result(p, sum);
                }
    }
}

constexpr int STORE_BYTES = 64 * 32 * 4, STORE_BOXES = 2; /* of C, 64 rows by 32 columns; a warpgroup's, in turn */

/* What c_vector of a Gemm is where map_c is that of C: rows at multiples of 16 bytes, and no C0. */
constexpr i64 BY_MAP = 2;

/* The same by way of shared memory, from where the tensor memory accelerator stores whole lines while the next box is
 * written; it knows where C ends. `boxes` is for this warpgroup. */
template <int N>
__device__ inline void store_tile(const Gemm& p, const TensorMap& map_c, u32 boxes, int product, int i, int j,
                                  const float (&d)[N / 2]) {
    int thread = threadIdx.x % 128, lane = thread % 32, row = thread / 32 * 16 + lane / 4;
    auto together = [] { asm volatile("bar.sync %0, 128;" ::"r"(1 + threadIdx.x / 128) : "memory"); };
#pragma unroll
    for (int box = 0; box < N / 32; ++box) {
        u32 to = boxes + box % STORE_BOXES * STORE_BYTES;
        if (thread == 0) tma_stores_wait<STORE_BOXES - 1>();
        together();
#pragma unroll
        for (int x = 0; x < 8; ++x) {
            const float* sum = &d[16 * box + 2 * x];
            /* 8 bytes of a piece of 16; pieces of a row change places with the row (128-byte swizzle). */
            u32 below = x % 2 * 8, piece = (x / 2 * 2 + lane % 4 / 2) ^ (row % 8);
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + (row + below) * 128 + piece * 16 + lane % 2 * 8),
                         "f"(result(p, sum[0])), "f"(result(p, sum[1]))
                         : "memory");
        }
        writes_are_known_to_tma();
        together();
        if (thread == 0) tma_store(map_c, to, j + 32 * box, i, product);
    }
}
