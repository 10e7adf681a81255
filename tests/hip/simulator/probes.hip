// Device code for the simulator's own tests: what compilers make of it reaches most classes of instructions.
#define KERNEL extern "C" __attribute__((global)) void
#define SHARED __attribute__((shared))
#define THREAD ((int)__builtin_amdgcn_workitem_id_x())
#define BLOCK ((int)__builtin_amdgcn_workgroup_id_x())
#define INDEX (BLOCK * (int)__builtin_amdgcn_workgroup_size_x() + THREAD)
typedef long long i64;
typedef unsigned long long u64;
typedef _Float16 half;

__attribute__((device)) inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KERNEL divide(const int* a, const int* b, int* q, unsigned* r, int n) {
    int i = INDEX;
    if (i < n) {
        q[i] = a[i] / b[i];
        r[i] = (unsigned)a[i] % (unsigned)b[i];
    }
}

KERNEL divide_wide(const i64* a, const i64* b, i64* q, u64* r, int n) {
    int i = INDEX;
    if (i < n) {
        q[i] = a[i] / b[i];
        r[i] = (u64)a[i] % (u64)b[i];
    }
}

KERNEL shift_wide(const i64* a, const int* by, i64* left, i64* right, int n) {
    int i = INDEX;
    if (i < n) {
        left[i] = (i64)((u64)a[i] << (by[i] & 63)) + 5 * a[i];
        right[i] = (a[i] >> (by[i] & 63)) ^ (i64)((u64)a[i] * 0x123456789abcdefull);
    }
}

KERNEL bytes(const signed char* a, const unsigned char* b, short* sum, signed char* low, int n) {
    int i = INDEX;
    if (i < n) {
        sum[i] = (short)(a[i] * b[i] + 7);
        low[i] = (signed char)(a[i] - b[i]);
    }
}

KERNEL halves(const half* a, const half* b, half* sum, float* product, int n) {
    int i = INDEX;
    if (i < n) {
        sum[i] = a[i] + b[i];
        product[i] = (float)a[i] * (float)b[i] + 1.0f;
    }
}

KERNEL convert(const float* x, int* truncated, unsigned* positive, half* narrow, int n) {
    int i = INDEX;
    if (i < n) {
        truncated[i] = (int)x[i];
        positive[i] = (unsigned)__builtin_fabsf(x[i]);
        narrow[i] = (half)x[i];
    }
}

// Every thread runs another number of iterations.
KERNEL collatz(const unsigned* start, int* steps, int n) {
    int i = INDEX;
    if (i >= n) return;
    unsigned x = start[i];
    int count = 0;
    while (x != 1) {
        x = x % 2 ? 3 * x + 1 : x / 2;
        ++count;
    }
    steps[i] = count;
}

// Every wave runs another number of iterations: the branch is scalar.
KERNEL waves_part(int* out, int n) {
    int wave = __builtin_amdgcn_readfirstlane(THREAD / WAVE), sum = 0;
    for (int i = 0; i <= wave; ++i) sum += i * n + BLOCK;
    out[INDEX] = sum;
}

// The sum of a block by a tree in shared memory.
KERNEL block_sum(const int* x, int* out) {
    SHARED int part[256];
    part[THREAD] = x[INDEX];
    for (int half = 128; half > 0; half /= 2) {
        barrier();
        if (THREAD < half) part[THREAD] += part[THREAD + half];
    }
    if (THREAD == 0) out[BLOCK] = part[0];
}

// Reversed through shared memory, whose size the launch chooses.
extern SHARED float dynamic[];
KERNEL reverse(const float* x, float* y, int n) {
    for (int i = THREAD; i < n; i += 64) dynamic[i] = x[i];
    barrier();
    for (int i = THREAD; i < n; i += 64) y[i] = dynamic[n - 1 - i];
}

KERNEL rotate_lanes(const int* x, int* y) {
    int lane = THREAD % WAVE;
    y[INDEX] = __builtin_amdgcn_ds_bpermute(4 * ((lane + 5) % WAVE), x[INDEX]);
}

KERNEL where(int* out) {
    int x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y();
    int z = __builtin_amdgcn_workitem_id_z();
    int bx = __builtin_amdgcn_workgroup_id_x(), by = __builtin_amdgcn_workgroup_id_y();
    int bz = __builtin_amdgcn_workgroup_id_z();
    int wide = __builtin_amdgcn_workgroup_size_x(), high = __builtin_amdgcn_workgroup_size_y();
    int threads = wide * high * (int)__builtin_amdgcn_workgroup_size_z();
    int grid_x = __builtin_amdgcn_grid_size_x() / wide, grid_y = __builtin_amdgcn_grid_size_y() / high;
    int block = (bz * grid_y + by) * grid_x + bx;
    out[block * threads + (z * high + y) * wide + x] = (bz << 20) + (by << 16) + (bx << 12) + (z << 8) + (y << 4) + x;
}

// 4 by 4 products of packed f16, as a microkernel computes them.
typedef half half2 __attribute__((ext_vector_type(2)));
KERNEL tile(const half2* a, const half2* b, half2* c, int k_size) {
    int i = INDEX;
    half2 acc[4][2];
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int s = 0; s < 2; ++s) acc[r][s] = half2{0, 0};
    for (int k = 0; k < k_size; ++k) {
        const half2 *x = a + 2 * ((i64)i * k_size + k), *y = b + 2 * ((i64)i * k_size + k);
        half2 column[2] = {x[0], x[1]}, row[2] = {y[0], y[1]};
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            half one = column[r / 2][r % 2];
#pragma unroll
            for (int s = 0; s < 2; ++s)
                acc[r][s] = __builtin_elementwise_fma(half2{one, one}, row[s], acc[r][s]);
        }
    }
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int s = 0; s < 2; ++s) c[(i64)i * 8 + 2 * r + s] = acc[r][s];
}
