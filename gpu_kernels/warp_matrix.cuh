/* warp_matrix.cuh: C[16,16] += A[16,16] * B[16,16] of a warp on the tensor cores, by the PTX instructions wmma.load,
 * wmma.mma and wmma.store (PTX ISA, warp-level matrix instructions, shape m16n16k16). mma.h has them as C++ functions,
 * but includes crt/mma.h, which the wheels that CuPy asks for do not hold.
 *
 * The elements of a fragment are spread over the registers of the warp in an unspecified order: a fragment is loaded,
 * multiplied and stored, nothing else. All 32 lanes take part in a call. Addresses are multiples of 32 bytes, leading
 * dimensions of 16 bytes; ld counts elements.
 */
namespace warp_matrix {

/* The parts of an instruction's name, operands of asm with the constraint "C". */
struct A {
    static constexpr char NAME[] = "a";
};
struct B {
    static constexpr char NAME[] = "b";
};
struct RowMajor {
    static constexpr char NAME[] = "row";
};
struct ColumnMajor {
    static constexpr char NAME[] = "col";
};
struct Global {
    static constexpr char NAME[] = "global";
    static __device__ size_t address(const void* p) { return __cvta_generic_to_global(p); }
};
/* 32-bit addresses: with 64-bit ones wmma_smem takes two registers for each and spills. */
struct Shared {
    static constexpr char NAME[] = "shared";
    static __device__ unsigned address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
    static __device__ unsigned address(unsigned at) { return at; }
};

/* The type of A and B: its name, that of C, that of the product, and the registers of A or of B in a lane. */
struct F16 {
    static constexpr char NAME[] = "f16", ACC[] = "f32", PRODUCT[] = "f32.f32";
    static constexpr int REGISTERS = 8;
};
struct BF16 {
    static constexpr char NAME[] = "bf16", ACC[] = "f32", PRODUCT[] = "f32.bf16.bf16.f32";
    static constexpr int REGISTERS = 4;
};
struct S8 {
    static constexpr char NAME[] = "s8", ACC[] = "s32", PRODUCT[] = "s32.s8.s8.s32";
    static constexpr int REGISTERS = 2;
};

/* 16 x 16 elements of operand Which: A or B. */
template <class Type, class Which, class Major>
struct Fragment {
    unsigned x[Type::REGISTERS];
};
template <class Type>
struct Accumulator {
    unsigned x[8] = {}; /* zeros, as f32 and as int32 */
};

/* ADDRESS is the constraint of the address: "l" or "r". */
#define PYSIMD_WMMA_LOAD(ADDRESS)                                                                                      \
    if constexpr (Type::REGISTERS == 8)                                                                                \
        asm volatile("wmma.load.%10.sync.aligned.%11.m16n16k16.%12.%13 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"    \
                     : "=r"(f.x[0]), "=r"(f.x[1]), "=r"(f.x[2]), "=r"(f.x[3]), "=r"(f.x[4]), "=r"(f.x[5]),             \
                       "=r"(f.x[6]), "=r"(f.x[7])                                                                      \
                     : ADDRESS(at), "r"(ld), "C"(Which::NAME), "C"(Major::NAME), "C"(Space::NAME), "C"(Type::NAME)     \
                     : "memory");                                                                                      \
    else if constexpr (Type::REGISTERS == 4)                                                                           \
        asm volatile("wmma.load.%6.sync.aligned.%7.m16n16k16.%8.%9 {%0, %1, %2, %3}, [%4], %5;"                        \
                     : "=r"(f.x[0]), "=r"(f.x[1]), "=r"(f.x[2]), "=r"(f.x[3])                                          \
                     : ADDRESS(at), "r"(ld), "C"(Which::NAME), "C"(Major::NAME), "C"(Space::NAME), "C"(Type::NAME)     \
                     : "memory");                                                                                      \
    else                                                                                                               \
        asm volatile("wmma.load.%4.sync.aligned.%5.m16n16k16.%6.%7 {%0, %1}, [%2], %3;"                                \
                     : "=r"(f.x[0]), "=r"(f.x[1])                                                                      \
                     : ADDRESS(at), "r"(ld), "C"(Which::NAME), "C"(Major::NAME), "C"(Space::NAME), "C"(Type::NAME)     \
                     : "memory")

/* from is a pointer, or an address in shared memory. */
template <class Space, class Type, class Which, class Major, class From>
__device__ inline void load(Fragment<Type, Which, Major>& f, From from, unsigned ld) {
    auto at = Space::address(from);
    if constexpr (sizeof at == 4) {
        PYSIMD_WMMA_LOAD("r");
    } else {
        PYSIMD_WMMA_LOAD("l");
    }
}
#undef PYSIMD_WMMA_LOAD

/* c += a b */
template <class Type, class MajorA, class MajorB>
__device__ inline void multiply(Accumulator<Type>& c, const Fragment<Type, A, MajorA>& a,
                                const Fragment<Type, B, MajorB>& b) {
    if constexpr (Type::REGISTERS == 8)
        asm("wmma.mma.sync.aligned.%24.%25.m16n16k16.%26 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                     "{%8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19, %20, %21, %22, %23}, "
                     "{%0, %1, %2, %3, %4, %5, %6, %7};"
                     : "+r"(c.x[0]), "+r"(c.x[1]), "+r"(c.x[2]), "+r"(c.x[3]), "+r"(c.x[4]), "+r"(c.x[5]),
                       "+r"(c.x[6]), "+r"(c.x[7])
                     : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(a.x[4]), "r"(a.x[5]), "r"(a.x[6]),
                       "r"(a.x[7]), "r"(b.x[0]), "r"(b.x[1]), "r"(b.x[2]), "r"(b.x[3]), "r"(b.x[4]), "r"(b.x[5]),
                       "r"(b.x[6]), "r"(b.x[7]), "C"(MajorA::NAME), "C"(MajorB::NAME), "C"(Type::PRODUCT));
    else if constexpr (Type::REGISTERS == 4)
        asm("wmma.mma.sync.aligned.%16.%17.m16n16k16.%18 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                     "{%8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3, %4, %5, %6, %7};"
                     : "+r"(c.x[0]), "+r"(c.x[1]), "+r"(c.x[2]), "+r"(c.x[3]), "+r"(c.x[4]), "+r"(c.x[5]),
                       "+r"(c.x[6]), "+r"(c.x[7])
                     : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]), "r"(b.x[2]),
                       "r"(b.x[3]), "C"(MajorA::NAME), "C"(MajorB::NAME), "C"(Type::PRODUCT));
    else
        asm("wmma.mma.sync.aligned.%12.%13.m16n16k16.%14 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                     "{%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
                     : "+r"(c.x[0]), "+r"(c.x[1]), "+r"(c.x[2]), "+r"(c.x[3]), "+r"(c.x[4]), "+r"(c.x[5]),
                       "+r"(c.x[6]), "+r"(c.x[7])
                     : "r"(a.x[0]), "r"(a.x[1]), "r"(b.x[0]), "r"(b.x[1]), "C"(MajorA::NAME), "C"(MajorB::NAME),
                       "C"(Type::PRODUCT));
}

/* Into shared memory, row-major: f32 or int32. */
template <class Type>
__device__ inline void store(void* to, const Accumulator<Type>& c, unsigned ld) {
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.%10 [%8], {%0, %1, %2, %3, %4, %5, %6, %7}, %9;"
                 ::"r"(c.x[0]), "r"(c.x[1]), "r"(c.x[2]), "r"(c.x[3]), "r"(c.x[4]), "r"(c.x[5]), "r"(c.x[6]),
                 "r"(c.x[7]), "r"(Shared::address(to)), "r"(ld), "C"(Type::ACC)
                 : "memory");
}

} // namespace warp_matrix
