"""Constant folding: evaluates ops of the kernel IR on constants at compile time.

The bits are those that a target computes, except for the sign and the payload of a NaN, which no
target guarantees.  `scalars` has the operators, `regions` runs ops.
"""
