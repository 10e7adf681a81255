/* memory.cuh: loads and stores of 4, 8 or 16 bytes, and the fragments of A and B that a tile needs for U steps of k. */

/* BYTES bytes from read-only memory as 32-bit words, in vectors of up to 16 bytes. */
template <int BYTES>
__device__ inline void load_words(u32* w, const void* from) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES % 16 == 0, "no such load");
    if constexpr (BYTES == 4) {
        w[0] = __ldg((const u32*)from);
    } else if constexpr (BYTES == 8) {
        uint2 v = __ldg((const uint2*)from);
        w[0] = v.x, w[1] = v.y;
    } else {
#pragma unroll
        for (int i = 0; i < BYTES / 16; ++i) {
            uint4 v = __ldg((const uint4*)from + i);
            w[4 * i] = v.x, w[4 * i + 1] = v.y, w[4 * i + 2] = v.z, w[4 * i + 3] = v.w;
        }
    }
}

/* An intrinsic, because the compiler may split a plain 16-byte store. */
template <int BYTES>
__device__ inline void store_words(void* to, const u32* w) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES % 16 == 0, "no such store");
    if constexpr (BYTES == 4) {
        *(u32*)to = w[0];
    } else if constexpr (BYTES == 8) {
        __stwb((uint2*)to, make_uint2(w[0], w[1]));
    } else {
#pragma unroll
        for (int i = 0; i < BYTES / 16; ++i)
            __stwb((uint4*)to + i, make_uint4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]));
    }
}

/* The same stride, opaque to the optimizer: clang would keep every multiple of it in a register, and spill. */
__device__ inline i64 opaque(i64 stride) {
#if defined(__HIP__)
    asm volatile("" : "+s"(stride));
#endif
    return stride;
}

/* Layouts of an operand in memory; R is the dimension that is not k: the rows of A, the columns of B. */
enum Layout {
    ANY,      /* any strides: one element a load */
    K_MAJOR,  /* contiguous in k, 16-byte aligned */
    MN_MAJOR, /* contiguous in R, aligned to R elements or to 16 bytes */
    PACKED,   /* as MN_MAJOR, and the R elements of one k follow those of the last: a packed panel */
};

/* Steps of k in an iteration: 16 bytes of them, but 4 at most, if one operand is K-major; 8 bytes if none is or the
 * other has any strides; 1 if both have. Registers hold twice as many: fragments are double-buffered. */
template <class Elem>
__device__ constexpr int steps(Layout a, Layout b) {
    if (a == ANY && b == ANY) return 1;
#if defined(__HIP__)
    if (sizeof(Elem) == 4) return 2; /* with more, the 8x8 tile spills on CDNA (clang 22) */
#endif
    int u = (a != ANY && b != ANY && (a == K_MAJOR || b == K_MAJOR) ? 16 : 8) / (int)sizeof(Elem);
    return u > 4 && sizeof(Elem) > 1 ? 4 : u;
}

/* Elements (r, u) of the next U steps of k, r < R. With EDGE only the first `count` of R exist; the others are 0. */
template <class Y, int R, int U, Layout L, bool EDGE>
__device__ inline void load_fragment(typename Y::Acc (&f)[R][U], const typename Y::Elem* from, i64 r_stride,
                                     i64 k_stride, int count) {
    typedef typename Y::Elem Elem;
    if constexpr (L == K_MAJOR) {
        constexpr int BYTES = U * sizeof(Elem);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            u32 w[BYTES / 4];
            load_words<BYTES>(w, from + r * r_stride);
#pragma unroll
            for (int u = 0; u < U; ++u) f[r][u] = Y::word(w, u);
        }
    } else if constexpr (L == MN_MAJOR || L == PACKED) {
        constexpr int BYTES = R * sizeof(Elem);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            u32 w[BYTES / 4];
            load_words<BYTES>(w, from + (L == PACKED ? (i64)(u * R) : u * k_stride));
#pragma unroll
            for (int r = 0; r < R; ++r) f[r][u] = Y::word(w, r);
        }
    } else {
        r_stride = opaque(r_stride), k_stride = opaque(k_stride);
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int u = 0; u < U; ++u)
                f[r][u] = !EDGE || r < count ? Y::value(__ldg(from + r * r_stride + u * k_stride)) : typename Y::Acc(0);
    }
}

/* Stores the tile, with C0 added if there is one; rows as vectors if C allows it. */
template <class Y, int MR, int NR, bool EDGE>
__device__ inline void store_tile(const Call& p, const Tile& t, const typename Y::Acc (&acc)[MR][NR]) {
    typedef typename Y::Out Out;
    constexpr int BYTES = NR * sizeof(Out);
    Out* c = (Out*)p.c + t.offsets.c + t.i * p.c_rs + t.j * p.c_cs;
    const Out* c0 = (const Out*)p.c0 + t.offsets.c0 + t.i * p.c0_rs + t.j * p.c0_cs;
#pragma unroll
    for (int i = 0; i < MR; ++i) {
        if (EDGE && i >= t.rows) break;
        Out row[NR];
#pragma unroll
        for (int j = 0; j < NR; ++j) {
            typename Y::Acc x = acc[i][j];
            if (p.c0 && (!EDGE || j < t.cols)) x = Y::add(c0[i * p.c0_rs + j * p.c0_cs], x);
            row[j] = Y::result(x);
        }
        if (!EDGE && p.c_vector) {
            u32 w[BYTES / 4];
#pragma unroll
            for (int x = 0; x < BYTES / 4; ++x) w[x] = Y::bits(row, x);
            store_words<BYTES>(c + i * p.c_rs, w);
        } else {
#pragma unroll
            for (int j = 0; j < NR; ++j)
                if (!EDGE || j < t.cols) c[i * p.c_rs + j * p.c_cs] = row[j];
        }
    }
}

/* Stores one element of C, with C0 added if there is one. */
template <class Y>
__device__ inline void store_element(const Call& p, const Tile& t, typename Y::Acc x) {
    typedef typename Y::Out Out;
    const Out* c0 = (const Out*)p.c0 + t.offsets.c0 + t.i * p.c0_rs + t.j * p.c0_cs;
    if (p.c0) x = Y::add(*c0, x);
    ((Out*)p.c)[t.offsets.c + t.i * p.c_rs + t.j * p.c_cs] = Y::result(x);
}
