"""Kernels on the CPU whose threads work together: barriers, warps, shared memory, atomics."""
