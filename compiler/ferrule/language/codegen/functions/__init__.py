"""The body of any function: every op of the kernel IR as LLVM instructions, for every target.

`lowering` is what the code of a function needs, `dispatch` says which code emits which op.
"""
