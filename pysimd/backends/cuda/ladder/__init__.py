"""The GPU GEMM ladder on CUDA devices."""
