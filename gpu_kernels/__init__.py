"""CUDA kernel sources and their table."""
