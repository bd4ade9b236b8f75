"""Launches of kernels: their arguments, sizes and options."""
