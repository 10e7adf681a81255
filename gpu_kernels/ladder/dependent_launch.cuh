/* dependent_launch.cuh: programmatic dependent launch (griddepcontrol, sm_90): a kernel that the host launched as a
 * dependent (pysimd/backends/cuda/dependent_launch.py) starts before the one ahead of it in the stream has ended.
 */

/* Waits until the grids ahead in the stream have ended and their memory is visible. */
__device__ inline void grid_dependency_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
/* Lets the next grid start once all blocks of this one have called it, or have ended. */
__device__ inline void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
