/* mma_16x8.cuh: d (16 x 8) += A (16 x k) B (k x 8) by the tensor cores, operands in registers: PTX's mma.sync (sm_80),
 * with k = 16 elements of 16 bits, or 32 of int8. u32 is the includer's.
 *
 * Lane 4 g + t of the warp has, of d, the columns 2 t and 2 t + 1 of rows g and g + 8: d[0] and d[1], d[2] and d[3]. A
 * register holds 4 bytes along k from byte 4 t of 16 on: a[0] and a[1] of rows g and g + 8, b0 of column g; a[2], a[3]
 * and b1 those of the next 16 bytes.
 */

__device__ inline void mma_f16(float (&d)[4], const u32* a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void mma_bf16(float (&d)[4], const u32* a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void mma_s8(int (&d)[4], const u32* a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
