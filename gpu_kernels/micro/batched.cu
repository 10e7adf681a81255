/* batched: C[i] = A[i] B[i] for a batch of products of one small shape, at the speed of memory.
 *
 * contract  call.cuh without C0; m, n, k are those that the kernel was compiled for (m, n <= 32, k <= 64).
 * tile      M x N x K, cut into TM x TN per thread; P products a block
 * regs      TM*TN sums and the operands of KU steps of k; local memory 0
 * per k     TM*TN FFMA (DFMA; IDP.4A for 4 k of int8) for TM + TN elements from shared memory
 * ratio     TM*TN / (TM + TN) in shared memory; in device memory every element of A, B and C moves once, 16 bytes an
 *           access, whatever m, n and k are: what counts there is bytes/s
 * rounding  one fma per term, k ascending from 0: bit-equal to cuda_*_outer_*, for any P and tile. Half results (F16) are
 *           summed in float and rounded once
 * needs     sm_75
 * idea      the P products of a block lie one after the other, so their A (and their B) are one piece of memory, copied
 *           to shared memory in 16-byte pieces (cp.async from sm_80 on) without regard to rows; the odd sizes are
 *           as fast as the powers of two. Written here
 * lanes     ceil(M/TM) * ceil(N/TN)
 * launch    P * lanes threads, rounded up to a warp; grid ceil(batch / P)
 * smem      A and B of P products; results take the same place
 */
#include "call.cuh"
#include "types.cuh"
#include "memory.cuh"
#include "bytes.cuh"

/* How an operand comes into shared memory. */
enum Source {
    CHUNK,   /* the batch is one contiguous, 16-byte aligned piece of memory */
    STRIDED, /* any strides, element by element */
    SHARED,  /* as STRIDED, and all products have the same */
};

/* R x C elements a product as they lie in shared memory: one product after the other without a gap, as in the arrays. Any
 * padding, against bank conflicts when the tiles are read, makes the asynchronous copy slower than the conflicts would:
 * 3.8 against 4.37 TB/s for 4x4 on an H200. For a TURNED operand the stored rows are its columns. */
template <class Elem, int R, int C, int PRODUCTS>
struct Room {
    static constexpr int V = 16 / sizeof(Elem), PITCH = C, STEP = R * C;
    static constexpr int SIZE = (STEP * PRODUCTS + V - 1) / V * V;
};

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

/* `products` products of R x C adjacent elements, from one piece of memory. */
template <class Elem, int R, int C, int THREADS, int P>
__device__ inline void fetch_chunk(Elem* shared, const Elem* from, int products) {
    constexpr int V = 16 / sizeof(Elem), ALL = P * R * C;
    int count = products * R * C;
    if (products == P && ALL % V == 0) {
#pragma unroll
        for (int x0 = 0; x0 < ALL / V; x0 += THREADS) {
            int x = (x0 + threadIdx.x) * V;
            if (x0 + THREADS > ALL / V && x >= ALL) break;
            copy16(shared + x, from + x);
        }
    } else {
        for (int x = threadIdx.x; x < count; x += THREADS) shared[x] = __ldg(from + x);
    }
}

/* `products` products of R x C elements with strides, each at an offset of its own. */
template <class Elem, int R, int C, int THREADS, class Offset>
__device__ inline void fetch_strided(Elem* shared, const Elem* from, i64 rs, i64 cs, int products, Offset offset) {
    for (int x = threadIdx.x; x < products * R * C; x += THREADS) {
        int q = x / (R * C), r = x % (R * C) / C, c = x % C;
        shared[x] = __ldg(from + offset(q) + r * rs + c * cs);
    }
}

/* Largest power of two up to `most` that divides all of these. */
__device__ constexpr int common(int most, int a, int b = 0, int c = 0, int d = 0) {
    int v = most;
    while (v > 1 && (a % v || b % v || c % v || d % v)) v /= 2;
    return v;
}

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

/* KU steps of k of T elements of an operand: f[t][u]. In shared memory k is adjacent (K_INNER) or t is. A tile that
 * sticks out reads the last element again; its sums are dropped. */
template <class Y, int T, int KU, class Place, bool K_INNER, int LIMIT, int ORIGIN_STEP>
__device__ inline void read_operand(typename Y::Acc (&f)[T][KU], const typename Y::Elem* s, int t0, int k0) {
    typedef typename Y::Elem Elem;
    constexpr int MOST = 16 / sizeof(Elem);
    constexpr bool RAGGED = LIMIT % T != 0;
    if constexpr (K_INNER) {
        constexpr int V = common(MOST, KU, Place::PITCH, Place::STEP);
#pragma unroll
        for (int t = 0; t < T; ++t) {
            int row = RAGGED ? min(t0 + t, LIMIT - 1) : t0 + t;
#pragma unroll
            for (int u = 0; u < KU; u += V) read_shared<Y, V>(&f[t][u], s + row * Place::PITCH + k0 + u);
        }
    } else {
        constexpr int V = RAGGED ? 1 : common(MOST, T, Place::PITCH, Place::STEP);
#pragma unroll
        for (int u = 0; u < KU; ++u)
#pragma unroll
            for (int t = 0; t < T; t += V) {
                typename Y::Acc v[V];
                int at = RAGGED ? min(t0 + t, LIMIT - 1) : t0 + t;
                read_shared<Y, V>(v, s + (k0 + u) * Place::PITCH + at);
#pragma unroll
                for (int i = 0; i < V; ++i) f[t + i][u] = v[i];
            }
    }
}

/* The same for int8: words of 4 steps of k, f[t] for one group; steps past K are zero. */
template <int T, class Place, bool K_INNER, int LIMIT, int K>
__device__ inline void read_group(u32 (&f)[T], const signed char* s, int t0, int k0) {
    constexpr bool RAGGED = LIMIT % T != 0;
    if constexpr (K_INNER && common(4, K, Place::PITCH, Place::STEP) == 4) {
#pragma unroll
        for (int t = 0; t < T; ++t)
            f[t] = *(const u32*)(s + (RAGGED ? min(t0 + t, LIMIT - 1) : t0 + t) * Place::PITCH + k0);
    } else if constexpr (!K_INNER && !RAGGED && K % 4 == 0 && common(4, T, Place::PITCH, Place::STEP) == 4) {
#pragma unroll
        for (int t = 0; t < T; t += 4) {
            u32 w[4];
#pragma unroll
            for (int u = 0; u < 4; ++u) w[u] = *(const u32*)(s + (k0 + u) * Place::PITCH + t0 + t);
            transpose_bytes(w);
#pragma unroll
            for (int i = 0; i < 4; ++i) f[t + i] = w[i];
        }
    } else {
#pragma unroll
        for (int t = 0; t < T; ++t) {
            int at = RAGGED ? min(t0 + t, LIMIT - 1) : t0 + t;
            u32 w = 0;
#pragma unroll
            for (int u = 0; u < 4; ++u)
                if (k0 + u < K)
                    w |= (u32)(unsigned char)s[K_INNER ? at * Place::PITCH + k0 + u : (k0 + u) * Place::PITCH + at]
                         << (8 * u);
            f[t] = w;
        }
    }
}

/* SA, SB: how A and B come in; TA, TB: they are stored column by column; WHOLE: C is one contiguous piece of memory,
 * 16-byte aligned. */
template <class Y, int M, int N, int K, int TM, int TN, int P, Source SA, bool TA, Source SB, bool TB, bool WHOLE>
__global__ void __launch_bounds__((P * ((M + TM - 1) / TM) * ((N + TN - 1) / TN) + 31) / 32 * 32)
    batched(const __grid_constant__ Call p) {
    typedef typename Y::Elem Elem;
    typedef typename Y::Acc Acc;
    typedef typename Y::Out Out;
    constexpr int ACROSS = (N + TN - 1) / TN, LANES = ACROSS * ((M + TM - 1) / TM);
    constexpr int THREADS = (P * LANES + 31) / 32 * 32;
    constexpr int PA = SA == SHARED ? 1 : P, PB = SB == SHARED ? 1 : P;
    constexpr int KK = K > 0 ? K : 1;
    typedef Room<Elem, TA ? KK : M, TA ? M : KK, PA> RoomA;
    typedef Room<Elem, TB ? N : KK, TB ? KK : N, PB> RoomB;
    constexpr int VO = 16 / sizeof(Out);
    constexpr bool STAGED = WHOLE && (N % TN != 0 || N * sizeof(Out) % 16 != 0 || TN * sizeof(Out) % 16 != 0);
    constexpr int BYTES_IN = (RoomA::SIZE + RoomB::SIZE) * sizeof(Elem), BYTES_OUT = STAGED ? P * M * N * sizeof(Out) : 0;
    __shared__ __align__(16) unsigned char shared[((BYTES_IN > BYTES_OUT ? BYTES_IN : BYTES_OUT) + 15) / 16 * 16];
    Elem *sa = (Elem*)shared, *sb = sa + RoomA::SIZE;

    i64 first = (i64)blockIdx.x * P;
    int products = p.batch - first < P ? (int)(p.batch - first) : P;
    if constexpr (K > 0) {
        if constexpr (SA == CHUNK)
            fetch_chunk<Elem, TA ? K : M, TA ? M : K, THREADS, P>(sa, (const Elem*)p.a + first * (M * K), products);
        else
            fetch_strided<Elem, TA ? K : M, TA ? M : K, THREADS>(
                sa, (const Elem*)p.a, TA ? p.a_cs : p.a_rs, TA ? p.a_rs : p.a_cs, SA == SHARED ? 1 : products,
                [&](int q) { return SA == SHARED ? (i64)0 : place(p, (u32)(first + q)).a; });
        if constexpr (SB == CHUNK)
            fetch_chunk<Elem, TB ? N : K, TB ? K : N, THREADS, P>(sb, (const Elem*)p.b + first * (K * N), products);
        else
            fetch_strided<Elem, TB ? N : K, TB ? K : N, THREADS>(
                sb, (const Elem*)p.b, TB ? p.b_cs : p.b_rs, TB ? p.b_rs : p.b_cs, SB == SHARED ? 1 : products,
                [&](int q) { return SB == SHARED ? (i64)0 : place(p, (u32)(first + q)).b; });
        wait_copies();
        __syncthreads();
    }

    int q = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    int i0 = lane / ACROSS * TM, j0 = lane % ACROSS * TN;
    bool active = q < products;
    if (SA != SHARED) sa += (active ? q : 0) * RoomA::STEP;
    if (SB != SHARED) sb += (active ? q : 0) * RoomB::STEP;
    Acc acc[TM][TN] = {};
    if constexpr (sizeof(Elem) == 1) {
#pragma unroll
        for (int k = 0; k < K; k += 4) {
            u32 fa[TM], fb[TN];
            read_group<TM, RoomA, !TA, M, K>(fa, sa, i0, k);
            read_group<TN, RoomB, TB, N, K>(fb, sb, j0, k);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) acc[i][j] = __dp4a((int)fa[i], (int)fb[j], acc[i][j]);
        }
    } else {
        constexpr int KU = common(16 / sizeof(Elem) < 4 ? 2 : 4, KK);
        constexpr int UNROLL = K * TM * TN <= 1024 ? 64 : 4;
#pragma unroll UNROLL
        for (int k = 0; k < K; k += KU) {
            Acc fa[TM][KU], fb[TN][KU];
            read_operand<Y, TM, KU, RoomA, !TA, M, TM>(fa, sa, i0, k);
            read_operand<Y, TN, KU, RoomB, TB, N, TN>(fb, sb, j0, k);
#pragma unroll
            for (int u = 0; u < KU; ++u)
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) acc[i][j] = multiply_add(fa[i][u], fb[j][u], acc[i][j]);
        }
    }

    if constexpr (STAGED) {
        Out* out = (Out*)shared;
        __syncthreads();
        if (active) {
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    if ((M % TM == 0 || i0 + i < M) && (N % TN == 0 || j0 + j < N))
                        out[q * (M * N) + (i0 + i) * N + j0 + j] = Y::result(acc[i][j]);
        }
        __syncthreads();
        Out* c = (Out*)p.c + first * (M * N);
        int count = products * (M * N), vectors = count / VO;
        for (int x = threadIdx.x; x < vectors; x += THREADS) __stwb((uint4*)c + x, ((const uint4*)out)[x]);
        for (int x = vectors * VO + threadIdx.x; x < count; x += THREADS) c[x] = out[x];
    } else if (active) {
        Out* c = WHOLE ? (Out*)p.c + (first + q) * (M * N) : (Out*)p.c + place(p, (u32)(first + q)).c;
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            if (M % TM != 0 && i0 + i >= M) break;
            if constexpr (WHOLE) {
                constexpr int BYTES = TN * sizeof(Out);
                Out row[TN];
#pragma unroll
                for (int j = 0; j < TN; ++j) row[j] = Y::result(acc[i][j]);
                u32 w[BYTES / 4];
#pragma unroll
                for (int x = 0; x < BYTES / 4; ++x) w[x] = Y::bits(row, x);
                store_words<BYTES>(c + (i0 + i) * N + j0, w);
            } else {
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    if (N % TN == 0 || j0 + j < N) c[(i0 + i) * p.c_rs + (j0 + j) * p.c_cs] = Y::result(acc[i][j]);
            }
        }
    }
}
