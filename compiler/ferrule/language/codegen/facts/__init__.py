"""Static analyses of kernels and their launches, on the kernel IR only."""
