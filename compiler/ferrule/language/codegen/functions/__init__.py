"""The body of any function: every op of the kernel IR as LLVM instructions, for every target.

`lowering` is the state of a function under construction, `dispatch` selects the code for each op.
"""
