"""Checks and counts that are written into kernels only where they are asked for.

`watch` says where in a kernel's code they are called; each other file has one of them.
"""
