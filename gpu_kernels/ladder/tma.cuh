/* tma.cuh: boxes of a matrix brought to shared memory by the tensor memory accelerator (sm_90), and what its copies and
 * the blocks of a cluster need beside the barriers of async.cuh.
 *
 * One thread asks for a whole box; the host has described the matrix in a TensorMap (pysimd/backends/tensor_maps.py).
 * Elements of a box that lie outside the matrix become 0 and nothing is read for them, but their bytes are counted.
 */

/* A CUtensorMap of the driver: __grid_constant__ parameter of a kernel, never copied. */
struct alignas(64) TensorMap {
    u64 words[16];
};

/* The box whose first element is at x along memory and y across it, of product z; its bytes arrive at `barrier`. */
__device__ inline void tma_load(u32 to, const TensorMap& map, u32 barrier, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
            "r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

/* The same, to the same place and the same barrier of every block of the cluster whose bit is set in `blocks`. */
__device__ inline void tma_load_for(u16 blocks, u32 to, const TensorMap& map, u32 barrier, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
}

/* The other way: a box in shared memory into a matrix, as far as the matrix has a place for it. What was written to it
 * must have been made known to the accelerator by each writer. */
__device__ inline void tma_store(const TensorMap& map, u32 from, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
                 "r"(from), "r"(x), "r"(y), "r"(z)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Waits until all boxes but the last N that this thread has stored were read from shared memory. */
template <int N>
__device__ inline void tma_stores_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
__device__ inline void writes_are_known_to_tma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Arrives, and makes the phase wait for so many bytes of boxes. */
__device__ inline void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* Makes barriers that were just initialised known to the tensor memory accelerator and to the cluster. */
__device__ inline void barriers_are_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline u32 block_of_cluster() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* All threads of all blocks of the cluster. */
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/* Arrives at the barrier that lies at this address in the shared memory of another block of the cluster. Says nothing
 * of what this thread wrote: with .release.cluster it would wait for all of the GPU's memory, at every panel. */
__device__ inline void barrier_arrive_at(u32 barrier, u32 block) {
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
        "  mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
        "r"(block)
        : "memory");
}
