/* call.cuh: the argument of every CUDA microkernel, the offsets of a product and the tile of a thread.
 *
 * A launch computes `batch` products C[m,n] = C0[m,n] + A[m,k] B[k,n] (without C0 where that is null):
 *
 *     A   element (i, p) at a[i*a_rs + p*a_cs]        B   element (p, j) at b[p*b_rs + j*b_cs]
 *     C0  element (i, j) at c0[i*c0_rs + j*c0_cs]     C   element (i, j) at c[i*c_rs + j*c_cs]
 *
 * Strides count elements and may be zero or negative (those of C are never zero along a dimension longer than 1). The
 * batch has up to 4 dimensions, each with strides of its own; offsets are 64-bit throughout. Not one byte outside the
 * elements named above is read or written. C overlaps neither A nor B; C0 is C itself or apart from it. A launch has at
 * most 2^31 tiles in all, so that 32 bits count them; the host splits larger batches into several launches.
 * Every field is 64 bits wide: on the host a Call is one array of int64.
 */
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

constexpr int DIMS = 4;

struct Call {
    const void *a, *b, *c0;
    void* c;
    i64 batch, m, n, k;
    i64 a_rs, a_cs, b_rs, b_cs, c0_rs, c0_cs, c_rs, c_cs;
    i64 c_vector; /* rows of C are contiguous and may be stored in vectors of up to 16 bytes */
    i64 ndim;
    i64 shape[DIMS], a_batch[DIMS], b_batch[DIMS], c0_batch[DIMS], c_batch[DIMS];
};

/* Offsets, in elements, of one product of the batch. */
struct Offsets {
    i64 a, b, c0, c;
};

__device__ inline Offsets offsets_of(const Call& p, u32 index) {
    Offsets at = {0, 0, 0, 0};
#pragma unroll 1
    for (int d = (int)p.ndim - 1; d >= 0; --d) {
        u32 here = index;
        if (d > 0) {
            u32 rest = index / (u32)p.shape[d];
            here = index - rest * (u32)p.shape[d];
            index = rest;
        }
        at.a += here * p.a_batch[d];
        at.b += here * p.b_batch[d];
        at.c0 += here * p.c0_batch[d];
        at.c += here * p.c_batch[d];
    }
    return at;
}

/* The tile of an MR x NR kernel that a thread (or LANES threads) computes; larger products have several. */
struct Tile {
    Offsets offsets;
    i64 i, j;       /* first row and column */
    int rows, cols; /* how many of them exist: fewer than MR, NR in an edge tile */
    bool inside;
};

template <int MR, int NR, bool EDGE>
__device__ inline Tile tile_of(const Call& p, u32 index) {
    Tile t;
    if (!EDGE && p.m == MR && p.n == NR) {
        t = {offsets_of(p, index), 0, 0, MR, NR, index < (u32)p.batch};
        return t;
    }
    u32 down = (u32)((p.m + MR - 1) / MR), across = (u32)((p.n + NR - 1) / NR);
    u32 product = index / (down * across), rest = index - product * (down * across), row = rest / across;
    t.i = (i64)row * MR;
    t.j = (i64)(rest - row * across) * NR;
    t.rows = p.m - t.i < MR ? (int)(p.m - t.i) : MR;
    t.cols = p.n - t.j < NR ? (int)(p.n - t.j) : NR;
    t.inside = product < (u32)p.batch;
    t.offsets = offsets_of(p, product);
    return t;
}

/* Which group of LANES threads this thread belongs to. */
template <int LANES>
__device__ inline u32 group_index() {
    return (u32)(((u64)blockIdx.x * blockDim.x + threadIdx.x) / LANES);
}
