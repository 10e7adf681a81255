"""The HIP backend."""
