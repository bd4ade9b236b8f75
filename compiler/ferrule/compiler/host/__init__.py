"""Common parts of host code, for calling conventions and the kernel language.

`flow` ends a function after a failed step; `tensors` describes tensors on the stack and makes new
ones; `owned` is the table of the objects that a body owns, and the two functions of such a body;
`steps` are the steps of a body as text.
"""
