"""What the CUDA and the HIP backend share."""
