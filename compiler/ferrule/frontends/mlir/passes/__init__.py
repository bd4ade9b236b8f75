"""Passes over a module in the process of MLIR, before and between upstream's."""
