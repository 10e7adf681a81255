// CUDA kernels executed on the host: the threads of a block are fibers, those of a cooperative launch's blocks run at
// the same time. Shared memory has 32-bit addresses, asynchronous copies arrive at once, an instruction of PTX is a
// function of the namespace ptx whose first argument is its text. host_kernels.py makes kernels call them.
#pragma once
#include "cuda_host.h"

#include <ucontext.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#define __CUDA_ARCH__ 800
#define __shared__ static thread_local

namespace host {

struct Barrier {
    u32 arrived = 0, generation = 0;
};
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = false;
};
struct Block {
    std::vector<Fiber> fibers;
    ucontext_t scheduler;
    Barrier barriers[16], warps[32];
    u32 words[1024][8];
    u64 yields = 0;
};
constexpr u64 MOST_YIELDS = 20000000; /* of a block that ends */

static thread_local Block* block;
static thread_local void (*body)(void**);
static thread_local void** arguments;
static thread_local __align__(1024) char shared_base[16];
static thread_local __align__(1024) unsigned char dynamic_shared[227 << 10];

static inline void yield() {
    u32 thread = threadIdx.x;
    swapcontext(&block->fibers[thread].context, &block->scheduler);
}
static inline void wait(Barrier& barrier, u32 threads) {
    u32 generation = barrier.generation;
    if (++barrier.arrived == threads) barrier.arrived = 0, ++barrier.generation;
    while (barrier.generation == generation) yield();
}
static inline void sync_warp() { wait(block->warps[threadIdx.x / 32], 32); }

/* What every lane of the warp passes, COUNT words each, handed to `use` as an array of lanes. */
template <int COUNT, class Use>
void exchange(const u32 (&mine)[COUNT], Use use) {
    memcpy(block->words[threadIdx.x], mine, sizeof mine);
    sync_warp();
    use(block->words + threadIdx.x / 32 * 32);
    sync_warp();
}

static inline void fiber() {
    body(arguments);
    block->fibers[threadIdx.x].done = true;
    swapcontext(&block->fibers[threadIdx.x].context, &block->scheduler);
}

/* Whether every thread of the block ended. */
static bool run_block(u32 index, u32 grid, u32 threads, void (*kernel)(void**), void** given) {
    Block mine;
    block = &mine, body = kernel, arguments = given;
    blockIdx.x = index, gridDim.x = grid, blockDim.x = threads;
    memset(dynamic_shared, 0xff, sizeof dynamic_shared);
    mine.fibers.resize(threads);
    for (Fiber& x : mine.fibers) {
        x.stack.reset(new char[64 << 10]);
        getcontext(&x.context);
        x.context.uc_stack.ss_sp = x.stack.get(), x.context.uc_stack.ss_size = 64 << 10;
        makecontext(&x.context, fiber, 0);
    }
    for (bool running = true; running;) {
        running = false;
        for (u32 i = 0; i < threads; ++i) {
            if (mine.fibers[i].done) continue;
            running = true, threadIdx.x = i;
            swapcontext(&mine.scheduler, &mine.fibers[i].context);
            if (++mine.yields > MOST_YIELDS) return false;
        }
    }
    return true;
}

static bool run_grid(u32 grid, u32 threads, bool cooperative, void (*kernel)(void**), void** given) {
    std::vector<char> ended(grid, 0);
    std::vector<std::thread> running;
    auto some = [&](u32 first, u32 last) {
        for (u32 i = first; i < last; ++i) ended[i] = run_block(i, grid, threads, kernel, given);
    };
    for (u32 i = 0; i < (cooperative ? grid : 1); ++i) running.emplace_back(some, i, cooperative ? i + 1 : grid);
    for (std::thread& x : running) x.join();
    return std::all_of(ended.begin(), ended.end(), [](char x) { return x; });
}

template <class... P, size_t... I>
void call(void (*kernel)(P...), void** given, std::index_sequence<I...>) {
    kernel(*(std::remove_cv_t<std::remove_reference_t<P>>*)given[I]...);
}
template <class... P>
void call(void (*kernel)(P...), void** given) {
    call(kernel, given, std::index_sequence_for<P...>());
}

template <class To, class From>
To bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
/* The compiler must not see that the address is one of shared_base: with -D_FORTIFY_SOURCE=3, which is the default of
 * Ubuntu's gcc, memcpy ends the process where it leaves the 16 bytes of that array. */
static inline char* pointer(u32 at) {
    char* base = shared_base;
    __asm__("" : "+r"(base));
    return base + (i64)at - (1 << 30);
}

static inline float from_half(u16 x) {
    u32 sign = (u32)(x >> 15) << 31, exponent = x >> 10 & 31, fraction = x & 1023;
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * std::ldexp((float)fraction, -24);
    if (exponent == 31) return bits<float>(sign | 0x7f800000u | fraction << 13);
    return bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
/* To nearest, ties to even. */
static inline u16 to_half(double x) {
    u16 sign = std::signbit(x) ? 0x8000 : 0;
    double size = std::fabs(x);
    if (!(size < 65520.0)) return sign | (std::isnan(x) ? 0x7fff : 0x7c00);
    int exponent = size < 6.103515625e-05 ? -14 : std::ilogb(size);
    int units = (int)std::nearbyint(std::ldexp(size, 10 - exponent));
    return sign | (u16)((exponent + 14) * 1024 + units); /* a carry of the fraction goes into the exponent */
}
static inline u16 to_bf16(float x) {
    u32 b = bits<u32>(x);
    return std::isnan(x) ? 0x7fff : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

} // namespace host

/* --- intrinsics --- */

struct __half {
    u16 x;
};
static inline __half __ushort_as_half(u16 x) { return {x}; }
static inline u16 __half_as_ushort(__half x) { return x.x; }
static inline float __half2float(__half x) { return host::from_half(x.x); }
static inline __half __float2half_rn(float x) { return {host::to_half(x)}; }
struct __half2 {
    u16 x = 0, y = 0;
};
static inline __half __low2half(__half2 v) { return {v.x}; }
static inline __half __high2half(__half2 v) { return {v.y}; }
static inline __half __hadd_rn(__half a, __half b) { return {host::to_half(__half2float(a) + __half2float(b))}; }
/* A product of two f16 and a sum with a third are exact in f64, or far from a tie. */
static inline u16 half_multiply_add(u16 a, u16 b, u16 c) {
    return host::to_half((double)host::from_half(a) * host::from_half(b) + host::from_half(c));
}
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return {half_multiply_add(a.x, b.x, c.x), half_multiply_add(a.y, b.y, c.y)};
}
static inline float __fmaf_ieee_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline float __uint_as_float(u32 x) { return host::bits<float>(x); }
static inline u32 __float_as_uint(float x) { return host::bits<u32>(x); }
static inline double __hiloint2double(int high, int low) { return host::bits<double>((u64)(u32)high << 32 | (u32)low); }
static inline int __double2hiint(double x) { return (int)(host::bits<u64>(x) >> 32); }
static inline int __double2loint(double x) { return (int)host::bits<u64>(x); }
static inline u32 __funnelshift_r(u32 low, u32 high, u32 by) { return (u32)(((u64)high << 32 | low) >> by % 32); }
static inline u32 __byte_perm(u32 x, u32 y, u32 selector) {
    u32 result = 0;
    for (int i = 0; i < 4; ++i)
        result |= (u32)(((u64)y << 32 | x) >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}
static inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c = (int)((u32)c + (u32)((signed char)(a >> 8 * i) * (signed char)(b >> 8 * i)));
    return c;
}
static inline u64 __umul64hi(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static inline u64 __cvta_generic_to_shared(const void* p) {
    return (u32)((const char*)p - host::shared_base + (1 << 30));
}
static inline u64 __cvta_generic_to_global(const void* p) { return (u64)p; }
static inline void __syncthreads() { host::wait(host::block->barriers[0], blockDim.x); }
static inline void __syncwarp() { host::sync_warp(); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline u32 atomicAdd(u32* to, u32 x) { return __atomic_fetch_add(to, x, __ATOMIC_SEQ_CST); }
template <class T>
T __shfl_xor_sync(u32, T x, int far) {
    u32 result;
    host::exchange({host::bits<u32>(x)}, [&](auto lanes) { result = lanes[threadIdx.x % 32 ^ far][0]; });
    return host::bits<T>(result);
}

/* --- instructions of PTX --- */

namespace ptx {

template <class X>
static inline void mov_u32(const char* text, X& x) {
    x = strstr(text, "cluster") ? 0 : (X)threadIdx.x;
}
static inline void ld_shared_v4_u32(const char*, u32& x, u32& y, u32& z, u32& w, u32 from) {
    u32 v[4];
    memcpy(v, host::pointer(from), 16);
    x = v[0], y = v[1], z = v[2], w = v[3];
}
static inline void ld_shared_u32(const char*, u32& x, u32 from) { memcpy(&x, host::pointer(from), 4); }
static inline void ld_shared_v2_u32(const char*, u32& x, u32& y, u32 from) {
    u32 v[2];
    memcpy(v, host::pointer(from), 8);
    x = v[0], y = v[1];
}
static inline void st_shared_v4_u32(const char*, u32 to, u32 x, u32 y, u32 z, u32 w) {
    u32 v[4] = {x, y, z, w};
    memcpy(host::pointer(to), v, 16);
}
static inline void st_shared_u32(const char*, u32 to, u32 x) { memcpy(host::pointer(to), &x, 4); }
static inline void st_shared_v2_f32(const char*, u32 to, float x, float y) {
    float v[2] = {x, y};
    memcpy(host::pointer(to), v, 8);
}
static inline void ld_shared_b32(const char*, u32& x, u32 from) { memcpy(&x, host::pointer(from), 4); }

/* The size is a number of the text, or the last operand; where both are there, that one counts the bytes that exist. */
static inline void cp_async(const char* text, u32 to, const void* from, int last = -1) {
    int size = strstr(text, "], 16") ? 16 : strstr(text, "], 4") ? 4 : last, exist = last < 0 ? size : last;
    char copied[16] = {};
    if (to % size || (u64)from % size) abort(); /* misaligned */
    memcpy(copied, from, exist), memcpy(host::pointer(to), copied, size);
}
static inline void cp_async_cg_shared_global(const char* text, u32 to, const void* from, int last = -1) {
    cp_async(text, to, from, last);
}
static inline void cp_async_ca_shared_global(const char* text, u32 to, const void* from, int last = -1) {
    cp_async(text, to, from, last);
}
static inline void cp_async_commit_group(const char*) {}
static inline void cp_async_wait_group(const char*, int) {}
static inline void cp_async_wait_all(const char*) {}
static inline void setmaxnreg_dec_sync_aligned_u32(const char*, int) {}
static inline void setmaxnreg_inc_sync_aligned_u32(const char*, int) {}
static inline void griddepcontrol_wait(const char*) {} /* one grid after the other */
static inline void griddepcontrol_launch_dependents(const char*) {}
static inline void fence_proxy_async_shared_cta(const char*) {}
static inline void bar_sync(const char*, u32 which, int threads) { host::wait(host::block->barriers[which], threads); }
static inline void bar_sync(const char* text, int threads)
{
    host::wait(host::block->barriers[atoi(text + 9)], threads);
}

struct Mbarrier {
    u16 arrivals, pending;
    u32 phase;
};
static inline Mbarrier& mbarrier(u32 at) { return *(Mbarrier*)host::pointer(at); }
static inline void mbarrier_init_shared_b64(const char*, u32 at, int arrivals) {
    mbarrier(at) = {(u16)arrivals, (u16)arrivals, 0};
}
static inline void mbarrier_arrive_shared_b64(const char*, u32 at) {
    Mbarrier& x = mbarrier(at);
    if (--x.pending == 0) x.pending = x.arrivals, ++x.phase;
}
static inline void bar_warp_sync(const char* text, u32 at, int) { mbarrier_arrive_shared_b64(text, at); }
static inline void cp_async_mbarrier_arrive_noinc_shared_b64(const char* text, u32 at) {
    mbarrier_arrive_shared_b64(text, at);
}
/* Bytes arrive at once, so that nothing waits for them. */
static inline void mbarrier_arrive_expect_tx_shared_b64(const char* text, u32 at, u32) {
    mbarrier_arrive_shared_b64(text, at);
}
static inline void fence_mbarrier_init_release_cluster(const char*) {}
template <class Map>
void prefetch_tensormap(const char*, const Map*) {}
/* A box of a matrix by the TMA. The words of a map on the host: address, extents along memory, across and products,
 * bytes from row to row and from product to product, bytes of an element, extents of the box, bytes within which chunks
 * of 16 are swizzled or 0. */
template <class Map>
void cp_async_bulk_tensor_3d_shared_cluster(const char*, u32 to, const Map* map, u32, int x, int y, int z) {
    const u64* w = map->words;
    if (to % 128) abort(); /* misaligned */
    for (u64 p = 0; p < w[9]; ++p)
        for (u64 i = 0; i < w[8]; ++i)
            for (u64 j = 0; j < w[7]; ++j, to += (u32)w[6]) {
                bool inside = x + j < w[1] && y + i < w[2] && z + p < w[3];
                const char* from = (const char*)w[0] + (x + j) * w[6] + (y + i) * w[4] + (z + p) * w[5];
                u32 place = w[10] ? to ^ (to >> 7 & w[10] / 16 - 1) << 4 : to;
                if (inside) memcpy(host::pointer(place), from, w[6]);
                else memset(host::pointer(place), 0, w[6]);
            }
}
/* Of a map with an extent and a step more, in that order. */
template <class Map>
void cp_async_bulk_tensor_4d_shared_cluster(const char*, u32 to, const Map* map, u32, int x, int y, int z, int w) {
    const u64 *m = map->words, *extent = m + 1, *step = m + 5, *box = m + 9, size = m[8];
    if (to % 128) abort(); /* misaligned */
    for (u64 p = 0; p < box[3]; ++p)
        for (u64 h = 0; h < box[2]; ++h)
            for (u64 i = 0; i < box[1]; ++i)
                for (u64 j = 0; j < box[0]; ++j, to += (u32)size) {
                    bool inside = x + j < extent[0] && y + i < extent[1] && z + h < extent[2] && w + p < extent[3];
                    const char* from = (const char*)m[0] + (x + j) * size + (y + i) * step[0];
                    from += (z + h) * step[1] + (w + p) * step[2];
                    if (inside) memcpy(host::pointer(to), from, size);
                    else memset(host::pointer(to), 0, size);
                }
}
static inline void mbarrier_test_wait_parity_shared_b64(const char*, u32& passed, u32 at, u32 parity) {
    passed = (mbarrier(at).phase & 1) != parity;
    if (!passed) host::yield();
}

/* To nearest, ties away from 0: 11 bits of a finite number. */
static inline void cvt_rna_tf32_f32(const char*, u32& to, float x) {
    u32 b = host::bits<u32>(x);
    to = std::isfinite(x) ? (b + 0x1000) & ~0x1fffu : b;
}
static inline void cvt_f64_f32(const char*, double& to, float x) { to = x; }
static inline void cvt_rn_f32_f64(const char*, float& to, double x) { to = (float)x; }
static inline void cvt_rn_bf16_f32(const char*, u16& to, float x) { to = host::to_bf16(x); }

/* Lane 8 s + i gives the address of row i of matrix s; lane l gets two elements of row (TRANSPOSED: column) l / 4. */
template <bool TRANSPOSED>
void ldmatrix(u32 (&x)[4], u32 row) {
    host::exchange({row}, [&](auto lanes) {
        u32 line = threadIdx.x % 32 / 4, along = threadIdx.x % 4 * 2;
        for (int s = 0; s < 4; ++s) {
            u16 pair[2];
            for (u32 e = 0; e < 2; ++e)
                memcpy(&pair[e],
                       TRANSPOSED ? host::pointer(lanes[8 * s + along + e][0]) + 2 * line
                                  : host::pointer(lanes[8 * s + line][0]) + 2 * (along + e),
                       2);
            x[s] = pair[0] | (u32)pair[1] << 16;
        }
    });
}
static inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(const char*, u32& a, u32& b, u32& c, u32& d, u32 row) {
    u32 x[4];
    ldmatrix<false>(x, row), a = x[0], b = x[1], c = x[2], d = x[3];
}
static inline void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(const char*, u32& a, u32& b, u32& c, u32& d,
                                                                  u32 row) {
    u32 x[4];
    ldmatrix<true>(x, row), a = x[0], b = x[1], c = x[2], d = x[3];
}

/* d (16 x 8) += A (16 x 32 bytes of k) B (32 bytes of k x 8), `text` names the types. Registers of A: rows l / 4 and 8
 * more, then 16 bytes later; of B: column l / 4, then 16 bytes later; bytes l % 4 * 4 from there on. */
template <class D>
void mma(const char* text, D (&d)[4], const u32* a, const u32* b) {
    bool bytes = strstr(text, "s8"), bf16 = strstr(text, "bf16");
    host::exchange({a[0], a[1], a[2], a[3], b[0], b[1]}, [&](auto lanes) {
        for (int x = 0; x < 4; ++x) {
            u32 row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2 + x % 2;
            double sum = 0;
            for (u32 word = 0; word < 8; ++word) {
                u32 u = lanes[row * 4 + word % 4][x / 2 + word / 4 * 2], v = lanes[column * 4 + word % 4][4 + word / 4];
                for (int e = 0; e < (bytes ? 4 : 2); ++e)
                    if (bytes) sum += (signed char)(u >> 8 * e) * (signed char)(v >> 8 * e);
                    else if (bf16)
                        sum += (double)__uint_as_float(u >> 16 * e << 16) * __uint_as_float(v >> 16 * e << 16);
                    else sum += (double)host::from_half(u >> 16 * e) * host::from_half(v >> 16 * e);
            }
            if (bytes) d[x] = (D)((u32)d[x] + (u32)(int)sum);
            else d[x] = (D)(d[x] + sum);
        }
    });
}
static inline void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(const char* text, float& d0, float& d1, float& d2,
                                                                     float& d3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                                                     u32 b1) {
    float d[4] = {d0, d1, d2, d3};
    u32 a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
    mma("f16", d, a, b), d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}
static inline void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(const char* text, float& d0, float& d1,
                                                                       float& d2, float& d3, u32 a0, u32 a1, u32 a2,
                                                                       u32 a3, u32 b0, u32 b1) {
    float d[4] = {d0, d1, d2, d3};
    u32 a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
    mma("bf16", d, a, b), d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}
static inline void mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(const char* text, int& d0, int& d1, int& d2, int& d3,
                                                                   u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    int d[4] = {d0, d1, d2, d3};
    u32 a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
    mma("s8", d, a, b), d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}

/* wmma: eight elements a lane of the 16 rows (columns) by 16 k of an operand, or of C: row l / 2, from l % 2 * 8 on. */
static inline int wmma_row() { return threadIdx.x % 32 / 2; }
static inline int wmma_column() { return threadIdx.x % 2 * 8; }
template <bool K_ADJACENT, class E, int N>
void wmma_load(u32 (&x)[N], const E* from, u32 ld) {
    E* to = (E*)x;
    for (int e = 0; e < 8; ++e) {
        int row = wmma_row(), k = wmma_column() + e;
        to[e] = from[K_ADJACENT ? row * (i64)ld + k : row + k * (i64)ld];
    }
}
template <class E, class D, class Value, int N>
void wmma_multiply(u32 (&c)[8], const u32 (&a)[N], const u32 (&b)[N], Value value) {
    constexpr int WORDS = 8 * sizeof(E) / 4;
    u32 mine[2 * WORDS];
    memcpy(mine, a, 4 * WORDS), memcpy(mine + WORDS, b, 4 * WORDS);
    host::exchange(mine, [&](auto lanes) {
        for (int e = 0; e < 8; ++e) {
            double sum = 0;
            for (int k = 0; k < 16; ++k)
                sum += value(((const E*)lanes[wmma_row() * 2 + k / 8])[k % 8]) *
                       value(((const E*)(lanes[(wmma_column() + e) * 2 + k / 8] + WORDS))[k % 8]);
            ((D*)c)[e] = (D)(((D*)c)[e] + sum);
        }
    });
}

/* Row `row` of a K-major tile with the 128-byte swizzle in dynamic shared memory, from `byte` of k on. */
static inline const char* wgmma_operand(u64 descriptor, int row, int byte) {
    u32 base = (u32)__cvta_generic_to_shared(host::dynamic_shared), start = (u32)(descriptor & 0x3fff) << 4;
    u32 rows8 = (u32)(descriptor >> 32 & 0x3fff) << 4;
    u32 at = base + ((start - base) & 0x3ffff) + row / 8 * rows8 + row % 8 * 128 + byte;
    return host::pointer(at ^ (at >> 7 & 7) << 4);
}
/* wgmma.mma_async of TF32 or int8, as wgmma.cuh writes it: the first instruction of the text sets the predicate.
 * d (64 x N) += A B, or = where `accumulate` is 0, of 32 bytes of k; it is complete at once. */
template <class D, int COUNT>
static inline void setp_ne_b32(const char* text, D (&d)[COUNT], u64 a, u64 b, int accumulate, int = 0, int = 0) {
    typedef std::conditional_t<std::is_same<D, int>::value, signed char, float> Elem;
    if (!strstr(text, sizeof(Elem) == 1 ? ".s8.s8 " : ".tf32.tf32 ")) abort();
    for (int x = 0; x < COUNT; ++x) {
        int row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + x % 4 / 2 * 8;
        int column = x / 4 * 8 + threadIdx.x % 4 * 2 + x % 2;
        D sum = accumulate ? d[x] : 0;
        for (int byte = 0; byte < 32; byte += (int)sizeof(Elem))
            sum += (D)*(const Elem*)wgmma_operand(a, row, byte) * (D)*(const Elem*)wgmma_operand(b, column, byte);
        d[x] = sum;
    }
}

} // namespace ptx
