/* tma.cuh: the tensor memory accelerator (TMA, sm_90): bulk copies of boxes of a matrix between global and shared
 * memory, and what they need of fences and of thread block clusters.
 *
 * One thread starts the copy of a whole box; the host has described the matrix in a tensor map
 * (pysimd/backends/cuda/tensor_maps.py). Elements of a box that lie outside the matrix become 0 and nothing is read for
 * them, but their bytes are counted at the mbarrier.
 */
#include "mbarrier.cuh"

/* A CUtensorMap of the driver: a __grid_constant__ parameter of the kernel, never copied. */
struct alignas(64) TensorMap {
    u64 words[16];
};

/* The first copy would wait for the map otherwise. */
__device__ inline void prefetch_tensor_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/* The box whose first element is at x in the contiguous dimension and y in the other, of product z; its bytes arrive at
 * `barrier`. */
__device__ inline void tma_load(u32 to, const TensorMap& map, u32 barrier, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
            "r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

/* A box of a matrix that the map describes in three dimensions: w is the product. */
__device__ inline void tma_load(u32 to, const TensorMap& map, u32 barrier, int x, int y, int z, int w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

/* Has L2 load the same box. Allowed before a kernel that writes it has ended: L2 holds what that writes, too. */
__device__ inline void tma_prefetch(const TensorMap& map, int x, int y, int z) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(&map), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* Multicast: to the same address, and the same mbarrier, of every block of the cluster whose bit is set in `blocks`. */
__device__ inline void tma_load_multicast(u16 blocks, u32 to, const TensorMap& map, u32 barrier, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
}

/* Stores a box of shared memory to a matrix; elements outside the matrix are dropped. Every thread that wrote the box
 * has executed fence_proxy_async before. */
__device__ inline void tma_store(const TensorMap& map, u32 from, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
                 "r"(from), "r"(x), "r"(y), "r"(z)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Waits until all stores of this thread but the last N have read their shared memory. */
template <int N>
__device__ inline void tma_store_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Arrives, and adds `bytes` to what the phase waits for. */
__device__ inline void mbarrier_arrive_expect_tx(u32 barrier, u32 bytes) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* Makes mbarriers that were just initialised visible to the TMA and to the cluster. */
__device__ inline void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Barrier of all threads of all blocks of the cluster. Arriving does not order what this thread wrote: with .release it
 * takes 1100 cycles where C has just been stored. */
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

/* Copies between shared memories of blocks of the cluster; the bytes arrive at the mbarrier of `block`, which, like
 * `to`, is given by its address in this block. The threads that wrote them have executed fence_proxy_async before. */
__device__ inline void cluster_copy(u32 to, u32 from, u32 bytes, u32 barrier, u32 block) {
    asm volatile(
        "{ .reg .b32 there, full; mapa.shared::cluster.u32 there, %0, %4; mapa.shared::cluster.u32 full, %3, %4;"
        "  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [%1], %2, [full]; }"
        ::"r"(to), "r"(from), "r"(bytes), "r"(barrier), "r"(block)
        : "memory");
}

/* Arrives at the mbarrier at this address in the shared memory of another block of the cluster. It does not order what
 * this thread wrote: with .release.cluster it would wait for the memory of the whole GPU at every panel. */
__device__ inline void mbarrier_arrive_cluster(u32 barrier, u32 block) {
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
        "  mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
        "r"(block)
        : "memory");
}
