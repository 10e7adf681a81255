/* loads: one kind of load instruction, nothing multiplied: how fast each memory feeds registers, to compare kernels with.
 *
 * contract  every thread loads turns * UNROLL words and stores the exclusive or of all, so that none is left out. The
 *           grid walks through `words` words from `from` again and again, UNROLL * THREADS of them for a block at a
 *           time; `words` is a power of two, at least that many. FROM: SHARED copies the first of these into shared
 *           memory and loads from there, L1 allows that cache, L2 passes it by (so does a window larger than L2, which
 *           then comes from device memory).
 * regs      a word each for UNROLL loads on their way
 * launch    THREADS a block; four blocks for each multiprocessor
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
__global__ void __launch_bounds__(THREADS, 4) loads(const Word* from, unsigned* out, long long words, int turns) {
    constexpr int STEP = UNROLL * THREADS;
    __shared__ Word near[FROM == SHARED ? STEP : 1];
    if (FROM == SHARED) {
        for (int i = threadIdx.x; i < STEP; i += THREADS) near[i] = from[i];
        __syncthreads();
    }
    long long at = (long long)blockIdx.x * STEP & (words - 1);
    unsigned sum = 0;
#pragma unroll 1
    for (int n = 0; n < turns; ++n) {
        const Word* p = (FROM == SHARED ? near : from) + at + threadIdx.x;
        Word x[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) x[i] = load<Word, FROM>(p + i * THREADS);
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) sum = mix(sum, x[i]);
        at = at + (long long)gridDim.x * STEP & (words - 1);
    }
    out[(long long)blockIdx.x * THREADS + threadIdx.x] = sum;
}
