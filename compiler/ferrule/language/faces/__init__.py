"""Faces: the names that users write in kernels and host functions, as Python sees them."""
