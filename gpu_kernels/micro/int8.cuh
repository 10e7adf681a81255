/* int8.cuh: int8 values in words of four, the operands of dp4a. */

/* Transposes a 4x4 matrix of bytes: byte r of word u becomes byte u of word r, in 8 PRMT. */
__device__ inline void transpose_bytes(u32 (&w)[4]) {
    u32 a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
    u32 c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(a, b, 0x5410);
    w[1] = __byte_perm(a, b, 0x7632);
    w[2] = __byte_perm(c, d, 0x5410);
    w[3] = __byte_perm(c, d, 0x7632);
}

/* The first `count` (at most 4) values, `stride` apart, from global memory; the others are zero. */
__device__ inline u32 gather_group(const signed char* from, i64 stride, int count) {
    u32 w = 0;
    stride = opaque(stride);
#pragma unroll
    for (int u = 0; u < 4; ++u)
        if (u < count) w |= (u32)(unsigned char)__ldg(from + u * stride) << (8 * u);
    return w;
}
