/* shared_memory.cuh: loads and stores by 32-bit shared-memory addresses.
 *
 * They are volatile, so that a load stays between the barriers where it was written; the address takes a constant
 * offset. */
#include "vector.cuh"

__device__ inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ inline void shared_load4(u32* x, u32 from) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from));
}
__device__ inline void shared_store4(u32 to, u32 x, u32 y, u32 z, u32 w) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
__device__ inline void shared_store(u32 to, u32 x) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}
