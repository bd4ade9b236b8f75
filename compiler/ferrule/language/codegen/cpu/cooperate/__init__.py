"""Kernels on the CPU whose threads cooperate: barriers, warps, shared memory, atomics."""
