"""Lowers Python functions to the kernel IR by interpreting their AST.

What is known at compile time is computed as ordinary Python; what is known only at the call
becomes ops.  `context` holds the state, `expressions` and `statements` walk the AST, `control`
makes regions of branches and loops, `calls` inlines functions, `launches` lowers kernels, and
`program` is the entry.
"""
