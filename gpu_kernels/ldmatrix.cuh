/* ldmatrix.cuh: matrices of 16-bit elements from shared memory to the fragments of a warp, by PTX's ldmatrix (sm_75).
 * u32 is the includer's.
 */

/* Four 8 x 8 matrices of 16-bit elements; lane 8 s + i gives the address of row i of matrix s, 16 bytes. A lane's
 * register holds two elements of row (TRANSPOSE: column) lane / 4, from lane % 4 * 2 on. */
template <bool TRANSPOSE>
__device__ inline void ldmatrix_x4(u32 (&x)[4], u32 row) {
    if constexpr (TRANSPOSE)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(row));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(row));
}
