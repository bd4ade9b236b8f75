"""MLIR, through the Python bindings of any package that includes them.

`bindings` finds the package, `session` is one context in it, and `jobs` runs requests in a separate
process: MLIR aborts the process on unexpected input.
"""
