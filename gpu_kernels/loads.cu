/* loads: the load bandwidth of each level of the memory hierarchy, measured by a loop of one load instruction.
 *
 * contract  every thread loads iterations * UNROLL words, coalesced, and stores their exclusive or, so that no load is
 *           dead code. A block loads UNROLL * THREADS adjacent words in an iteration, and the grid strides through a
 *           window of `words` words at `from`, which wraps around; `words` is a power of two, at least UNROLL *
 *           THREADS. FROM SHARED loads from shared memory, filled with the first words; L1 loads with the default cache
 *           operator; L2 bypasses L1 (ld.cg): a window larger than L2 is then loaded from device memory.
 * regs      UNROLL words, whose loads are in flight together
 * launch    THREADS a block, four blocks a multiprocessor
 */
enum From { SHARED, L1, L2 };
constexpr int UNROLL = 8, THREADS = 256;

__device__ unsigned mix(unsigned sum, unsigned x) { return sum ^ x; }
__device__ unsigned mix(unsigned sum, uint4 x) { return sum ^ x.x ^ x.y ^ x.z ^ x.w; }

template <class Word, From FROM>
__device__ Word load(const Word* p) {
    return FROM == L2 ? __ldcg(p) : *p;
}

template <class Word, From FROM>
__global__ void __launch_bounds__(THREADS, 4) loads(const Word* from, unsigned* out, long long words, int iterations) {
    constexpr int STEP = UNROLL * THREADS;
    __shared__ Word shared[FROM == SHARED ? STEP : 1];
    if (FROM == SHARED) {
        for (int i = threadIdx.x; i < STEP; i += THREADS) shared[i] = from[i];
        __syncthreads();
    }
    long long at = (long long)blockIdx.x * STEP & (words - 1);
    unsigned sum = 0;
#pragma unroll 1
    for (int n = 0; n < iterations; ++n) {
        const Word* p = (FROM == SHARED ? shared : from) + at + threadIdx.x;
        Word x[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) x[i] = load<Word, FROM>(p + i * THREADS);
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) sum = mix(sum, x[i]);
        at = at + (long long)gridDim.x * STEP & (words - 1);
    }
    out[(long long)blockIdx.x * THREADS + threadIdx.x] = sum;
}
