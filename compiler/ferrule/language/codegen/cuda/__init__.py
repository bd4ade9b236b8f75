"""The CUDA target: kernels as PTX, launches as calls of the driver."""
