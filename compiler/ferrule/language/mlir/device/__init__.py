"""Kernels for NVIDIA GPUs as the MLIR text that upstream's passes lower."""
