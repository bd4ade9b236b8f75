"""Libraries of kernels: their functions, compiled together, as files, a package or a wheel."""
