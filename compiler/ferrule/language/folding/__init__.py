"""The kernel IR on constants: what its ops give, computed while compiling.

The bits are those that a target computes, but for the sign and the payload of a NaN, which no
target promises.  `scalars` has the operators, `regions` runs ops.
"""
