"""Launches of kernels that other compilers made: parameters, sizes, attributes, checks."""
