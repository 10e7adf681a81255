/* mma.cuh: fragments of 16-bit elements from shared memory, and their products by the tensor cores of sm_80 (PTX ISA,
 * "Matrix multiply-accumulate operation using mma instruction").
 *
 * A fragment is 16 rows of A (columns of B) by 16 k in four words a lane, of a square of 8 x 8 each. The squares of A
 * are taken down first, as mma takes them; those of B along k first, so that words 0 and 1 are eight columns, and 2 and
 * 3 the next: pairs of registers.
 *
 *     A   rows 0 to 7   0  2         B   columns 0 to 7   0  1
 *         rows 8 to 15  1  3             columns 8 to 15  2  3
 *                       k 0 to 7, 8 to 15                 k 0 to 7, 8 to 15
 *
 * A lane's word has row lane / 4 of its square and two k from lane % 4 * 2 on.
 */
enum Side { SIDE_A, SIDE_B };

/* Four squares; lane 8 s + i names line i of square s, 16 bytes of shared memory. TURNED where lines are along rows. */
template <bool TURNED>
__device__ inline void load_squares(u32 (&x)[4], u32 line) {
    if constexpr (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(line));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(line));
}

/* d (16 x 8) += A (16 x 16) B (16 x 8). A lane has rows lane / 4 and 8 more, and of each the columns lane % 4 * 2 and
 * the next. */
__device__ inline void multiply_f16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Fragment i of the rows from `row` on, at step k of 16, of a panel (half_panel.cuh): what this lane gives
 * load_squares. first() once, then at() with what first() gave, plus the panel's address: a multiple of 128, so that
 * the order of the pieces can be changed from one fragment to the next without counting lines again. `row` is a
 * multiple of 64, i less than 4. */
template <Side S, Layout L, class Place>
struct Squares {
    __device__ static u32 first(int row) {
        int line = threadIdx.x % 8, square = threadIdx.x % 32 / 8;
        int down = S == SIDE_A ? square % 2 : square / 2, along = S == SIDE_A ? square / 2 : square % 2;
        return k_major(L) ? Place::at(row + 8 * down + line, along) : Place::at(8 * along + line, row / 8 + down);
    }
    __device__ static u32 at(u32 first, int i, int k) {
        return k_major(L) ? (first ^ 32 * k) + i * 16 * Place::PITCH : (first ^ 32 * i) + k * 16 * Place::PITCH;
    }
};

/* A warp's sums into C of a product from row i and column j on. Two neighbouring lanes have two columns each of two
 * rows: they exchange, so that each has four of one row. */
template <int TM, int TN>
__device__ inline void store_squares(const Gemm& p, u32 product, i64 i, i64 j, float (&sum)[TM / 16][TN / 8][4]) {
    int lane = threadIdx.x % 32, below = lane % 2;
    i += lane / 4 + 8 * below, j += lane % 4 / 2 * 4;
    bool plain = !p.c0 && p.c_vector && j + TN - 4 <= p.n;
    float* c = p.c + product * p.c_batch + i * p.ldc + j;
#pragma unroll
    for (int r = 0; r < TM / 16; ++r, i += 16, c += 16 * p.ldc) {
#pragma unroll
        for (int x = 0; x < TN / 8; ++x) {
            float* s = sum[r][x];
#pragma unroll
            for (int w = 0; w < 2; ++w) {
                float y = __shfl_xor_sync(0xffffffff, below ? s[w] : s[2 + w], 1);
                s[w] = below ? y : s[w], s[2 + w] = below ? s[2 + w] : y;
            }
        }
        if (i >= p.m) continue;
        if (plain) {
#pragma unroll
            for (int x = 0; x < TN / 8; ++x) {
#pragma unroll
                for (int w = 0; w < 4; ++w) sum[r][x][w] = result(p, sum[r][x][w]);
                store4(c + 8 * x, sum[r][x]);
            }
        } else {
#pragma unroll
            for (int x = 0; x < TN / 8; ++x) store_row<4>(p, product, i, j + 8 * x, sum[r][x]);
        }
    }
}
