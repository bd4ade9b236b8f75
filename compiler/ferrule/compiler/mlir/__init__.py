"""MLIR, by the Python bindings of whatever package brings them.

`bindings` finds the package, `session` is one context in it, and `jobs` does what a compiler asks
of it, in a process of its own: MLIR ends the process that gives it what it does not expect.
"""
