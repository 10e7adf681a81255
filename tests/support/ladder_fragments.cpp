// i8_mma_sync's panels and fragments on the host, a thread after the other: test_ladder_host.py puts the kernel's text
// in the place of KERNEL. Prints what is wrong and exits with 1.
#include "cuda_host.h"

#include <set>
#include <vector>

alignas(128) static unsigned char shared[24 << 10];
static void cp_async16(u32 to, const void* from, int bytes) {
    memset(shared + to, 0, 16);
    memcpy(shared + to, from, bytes);
}
static void shared_store(u32 to, u32 x) { memcpy(shared + to, &x, 4); }

KERNEL

/* PTX ISA, ldmatrix: lane 8 s + i gives the address of row i of matrix s, and lane l gets four bytes of row l / 4. */
static void ldmatrix(u32 (&x)[32][4], const u32 (&row)[32]) {
    for (int s = 0; s < 4; ++s) {
        std::set<u32> banks;
        for (int i = 0; i < 8; ++i) banks.insert(row[8 * s + i] % 128);
        expect(banks.size() == 8, "bank conflicts", s, (int)banks.size());
        for (int lane = 0; lane < 32; ++lane) memcpy(&x[lane][s], shared + row[8 * s + lane / 4] + lane % 4 * 4, 4);
    }
}

/* PTX ISA, mma.m16n8k32 of s8: rows of A in registers 0 and 1, 16 k later in 2 and 3. */
static void mma(int (&c)[16][8], const u32 (&a)[32][4], const u32 (&b)[32][4], int half) {
    for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 8; ++j)
            for (int k = 0; k < 32; ++k) {
                int lane = k % 16 / 4;
                signed char x = a[i % 8 * 4 + lane][i / 8 + k / 16 * 2] >> k % 4 * 8;
                signed char y = b[j * 4 + lane][2 * half + k / 16] >> k % 4 * 8;
                c[i][j] += x * y;
            }
}

constexpr int BM = 128, BN = 256, BK = 32, TM = 64, TN = 64, THREADS = 256;
typedef F16Panel<K_MAJOR_VEC4, BM, BK, THREADS, Swizzled> PanelA;
typedef F16Panel<K_MAJOR_VEC4, BN, BK, THREADS, Swizzled> PanelB;
typedef FragmentAddress<SIDE_A, K_MAJOR_VEC4, PanelA::Place> FragmentA;
typedef FragmentAddress<SIDE_B, K_MAJOR_VEC4, PanelB::Place> FragmentB;

/* Rows of int8, `pitch` bytes from one to the next, zeros from k on, as pack_rows leaves them. */
static std::vector<signed char> operand(int rows, int k, int pitch, u32 seed) {
    std::vector<signed char> x(rows * pitch);
    for (int i = 0; i < rows * k; ++i) {
        seed = seed * 1664525 + 1013904223;
        x[i / k * pitch + i % k] = (signed char)(seed >> 24);
    }
    return x;
}

/* The tile of m x n from the first row and column on. */
static void tile(int m, int n, int k) {
    int pitch = (k + 15) / 16 * 16, count = (k + 1) / 2;
    std::vector<signed char> a = operand(m, k, pitch, 1), b = operand(n, k, pitch, 2);
    std::vector<PanelA> panels_a;
    std::vector<PanelB> panels_b;
    for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x) {
        panels_a.emplace_back(a.data(), pitch / 2, 0, m, count);
        panels_b.emplace_back(b.data(), pitch / 2, 0, n, count);
    }
    std::vector<int> c(BM * BN);
    for (int first = 0; first < count; first += BK) {
        for (int part = 0; part < 2; ++part)
            for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x)
                panels_a[threadIdx.x].copy(0, part, 2), panels_b[threadIdx.x].copy(PanelA::BYTES, part, 2);
        for (int warp = 0; warp < 8; ++warp)
            for (int step = 0; step < BK / 16; ++step)
                for (int i = 0; i < TM / 16; ++i)
                    for (int j = 0; j < TN / 16; ++j) {
                        int row = warp / (BN / TN) * TM, column = warp % (BN / TN) * TN;
                        u32 at_a[32], at_b[32], fa[32][4], fb[32][4];
                        for (threadIdx.x = 32 * warp; threadIdx.x < 32 * warp + 32; ++threadIdx.x) {
                            at_a[threadIdx.x % 32] = FragmentA::at(FragmentA::first(row), i, step);
                            at_b[threadIdx.x % 32] = FragmentB::at(PanelA::BYTES + FragmentB::first(column), j, step);
                        }
                        ldmatrix(fa, at_a), ldmatrix(fb, at_b);
                        for (int half = 0; half < 2; ++half) {
                            int d[16][8] = {};
                            mma(d, fa, fb, half);
                            for (int x = 0; x < 128; ++x)
                                c[(row + 16 * i + x / 8) * BN + column + 16 * j + 8 * half + x % 8] += d[x / 8][x % 8];
                        }
                    }
    }
    for (int i = 0; i < BM; ++i)
        for (int j = 0; j < BN; ++j) {
            int expected = 0;
            for (int q = 0; q < k && i < m && j < n; ++q) expected += a[i * pitch + q] * b[j * pitch + q];
            expect(c[i * BN + j] == expected, "element", i, j);
        }
}

int main() {
    tile(BM, BN, 64);
    tile(77, 201, 145);
    tile(1, 9, 3);
    return wrong != 0;
}
