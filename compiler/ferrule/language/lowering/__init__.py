"""Lowers Python functions to the kernel IR by interpreting their AST.

What is known at compile time is computed as ordinary Python; what is known only at the call
becomes ops.  `program` is the entry, `context` the state of a lowering.

A folder knows those above it and not those below:

* `numbers`: run-time numbers, and arithmetic on them;
* `tensors`: elements, views, whole tensors, vectors, fragments, layouts;
* `device`: what `fe.arch` means; `launch`: launches of kernels;
* `objects`: what tvm-ffi has: texts, containers, objects, calls of functions;
* `control`: branches and loops on run-time values, and what names hold after them;
* `python`: Python's own meaning, from statements to the table of functions.

What a folder needs of one below it, it asks of the `Lowering`, whose `interpreter` is `python`.
"""
