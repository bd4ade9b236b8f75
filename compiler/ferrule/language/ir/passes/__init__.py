"""Passes over whole programs: unused ops, axes of nests, kernels of host loops."""
