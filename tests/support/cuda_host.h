// CUDA C++ for the host: the words of the language and the intrinsics that need no other thread.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

template <class X, class Y>
constexpr std::common_type_t<X, Y> min(X x, Y y) {
    return std::common_type_t<X, Y>(y) < std::common_type_t<X, Y>(x) ? y : x;
}
template <class X, class Y>
constexpr std::common_type_t<X, Y> max(X x, Y y) {
    return std::common_type_t<X, Y>(x) < std::common_type_t<X, Y>(y) ? y : x;
}
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned u32;
typedef unsigned short u16;

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct uint2 {
    u32 x, y;
};
struct alignas(16) uint4 {
    u32 x, y, z, w;
};
struct int2 {
    int x, y;
};
struct float2 {
    float x, y;
};
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
static inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }

static thread_local struct {
    u32 x;
} threadIdx, blockIdx, blockDim, gridDim;

template <class T>
T __ldg(const T* p) {
    return *p;
}
template <class T>
T __ldcg(const T* p) {
    return *p;
}
template <class T>
void __stwb(T* to, T x) {
    *to = x;
}

static int wrong = 0;
static inline void expect(bool right, const char* what, int i, int j) {
    if (!right && wrong++ < 20) printf("%s: %d, %d\n", what, i, j);
}
