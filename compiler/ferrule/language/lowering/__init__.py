"""Lowers Python functions to the kernel IR by interpreting their AST.

Compile-time values are computed as ordinary Python; run-time values become ops.  `program` is the
entry, `context` the state of a lowering.

A folder may import those listed before it, but not those after it:

* `numbers`: run-time numbers, and arithmetic on them;
* `tensors`: elements, views, whole tensors, vectors, fragments, layouts;
* `device`: the functions of `fe.arch`; `launch`: launches of kernels;
* `objects`: values of tvm-ffi: texts, containers, objects, calls of functions;
* `control`: branches and loops on run-time values, and the values of names after them;
* `python`: Python's semantics, from statements to the table of functions.

A folder calls functions of later folders only through the `Lowering`, whose `interpreter` is
`python`.
"""
