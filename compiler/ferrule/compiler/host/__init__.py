"""How host code is written, by calling conventions and by the kernel language alike.

`flow` ends a function where a step failed; `tensors` describes tensors on the stack and makes new
ones; `owned` is the table of what a body owns.
"""
