/* batched_any: C[i] = alpha A[i] B[i] + beta C0[i] for a batch of products of one small shape, known at run time.
 *
 * contract  call.cuh; A and B of a product fit the shared memory of a block; any strides. C0 is not read where it is
 *           null.
 * tile      1 x 4 of C a thread, tile after tile
 * regs      4 accumulators, 5 elements; local memory 0
 * per k     4 FFMA (DFMA, IMAD) for 5 elements from shared memory
 * ratio     4 / 5 = 0.80 in shared memory; in device memory every element moves once, one an access
 * rounding  one fma per term, k ascending from 0, then one for alpha and one for beta: bit-equal to batched where alpha
 *           is 1 and C0 null. F16 and BF16 accumulate in f32 and round once. Integers wrap around
 * needs     sm_75
 * idea      one instance for all shapes, compiled once: a shape seen for the first time waits for no compiler. Little
 *           code, so that the first shape of all does not wait long. Written here
 * lanes     m * ceil(n/4)
 * launch    128 threads a block; grid ceil(batch / products)
 * smem      dynamic: A and B of `products` products, each with one element of padding at most
 */
#include "call.cuh"
#include "types.cuh"

/* Every field is 64 bits wide. alpha and beta hold the bits of an accumulator. */
struct Any {
    u64 alpha, beta;
    i64 products;              /* of a block */
    i64 a_mn_major, b_k_major; /* A, B are loaded column by column */
};

constexpr int TN = 4, THREADS = 128;

__device__ inline int multiply_add(int a, int b, int c) { return (int)((u32)a * (u32)b + (u32)c); }

/* Results and elements as accumulators. */
template <class Y>
__device__ inline typename Y::Acc widened(typename Y::Out x) {
    if constexpr (sizeof(typename Y::Out) == 2) return Y::value(x); /* also the type of the elements */
    else return x;
}
template <class Y>
__device__ inline typename Y::Acc element(typename Y::Elem x) {
    return Y::value(x);
}
template <>
__device__ inline int element<I8I32>(signed char x) {
    return x;
}

/* -0 where there is one: adding it changes nothing, -0 included. */
template <class Acc>
__device__ inline Acc nothing() {
    return -Acc(0);
}

template <class Acc>
__device__ inline Acc from_bits(u64 bits) {
    return *(const Acc*)&bits;
}

/* An operand of rows x columns, the columns adjacent, of `products` products into shared memory, `step` apart. */
template <class Elem, class Offset>
__device__ inline void load(Elem* to, const Elem* from, int products, int rows, int columns, i64 rs, i64 cs, int step,
                            Offset offset) {
    u32 size = (u32)(rows * columns);
#pragma unroll 1
    for (u32 x = threadIdx.x; x < products * size; x += THREADS) {
        u32 q = x / size, rest = x - q * size, r = rest / (u32)columns, c = rest - r * (u32)columns;
        to[q * step + rest] = __ldg(from + offset(q) + r * rs + c * cs);
    }
}

template <class Y>
__global__ void __launch_bounds__(THREADS)
    batched_any(const __grid_constant__ Call p, const __grid_constant__ Any any) {
    typedef typename Y::Elem Elem;
    typedef typename Y::Acc Acc;
    typedef typename Y::Out Out;
    extern __shared__ __align__(16) unsigned char shared[];
    int m = (int)p.m, n = (int)p.n, k = (int)p.k, step_a = m * k | 1, step_b = k * n | 1;
    bool a_columns = any.a_mn_major, b_columns = any.b_k_major;
    Elem *a = (Elem*)shared, *b = a + any.products * step_a;
    u32 first = blockIdx.x * (u32)any.products;
    int products = (int)(p.batch - first < any.products ? p.batch - first : any.products);
    load(a, (const Elem*)p.a, products, a_columns ? k : m, a_columns ? m : k, a_columns ? p.a_cs : p.a_rs,
         a_columns ? p.a_rs : p.a_cs, step_a, [&](u32 q) { return offsets_of(p, first + q).a; });
    load(b, (const Elem*)p.b, products, b_columns ? n : k, b_columns ? k : n, b_columns ? p.b_cs : p.b_rs,
         b_columns ? p.b_rs : p.b_cs, step_b, [&](u32 q) { return offsets_of(p, first + q).b; });
    __syncthreads();

    Acc alpha = from_bits<Acc>(any.alpha), beta = from_bits<Acc>(any.beta);
    int a_i = a_columns ? 1 : k, a_k = a_columns ? m : 1, b_j = b_columns ? k : 1, b_k = b_columns ? 1 : n;
    u32 across = (n + TN - 1) / TN, tiles = across * m;
#pragma unroll 1
    for (u32 t = threadIdx.x; t < products * tiles; t += THREADS) {
        u32 q = t / tiles, tile = t - q * tiles, i = tile / across;
        int j0 = (int)(tile - i * across) * TN;
        const Elem *x = a + q * step_a + i * a_i, *y = b + q * step_b;
        int at_b[TN];
#pragma unroll
        for (int j = 0; j < TN; ++j) at_b[j] = min(j0 + j, n - 1) * b_j;
        Acc acc[TN] = {};
#pragma unroll 1
        for (int s = 0; s < k; ++s, x += a_k, y += b_k) {
            Acc f = element<Y>(*x);
#pragma unroll
            for (int j = 0; j < TN; ++j) acc[j] = multiply_add(f, element<Y>(y[at_b[j]]), acc[j]);
        }
        Offsets at = offsets_of(p, first + q);
        Out* c = (Out*)p.c + at.c + i * p.c_rs;
        const Out* c0 = (const Out*)p.c0 + at.c0 + i * p.c0_rs;
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            if (j0 + j >= n) break;
            Acc sum = multiply_add(alpha, acc[j], nothing<Acc>());
            if (p.c0) sum = multiply_add(beta, widened<Y>(c0[(j0 + j) * p.c0_cs]), sum);
            c[(j0 + j) * p.c_cs] = Y::result(sum);
        }
    }
}
