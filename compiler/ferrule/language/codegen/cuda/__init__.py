"""The CUDA target: kernels as PTX, launches as driver calls."""
