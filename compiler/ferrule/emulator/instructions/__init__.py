"""What each instruction means, as LLVM on vectors of 32 lanes: `table` has all forms.

A form is an opcode and a pattern for all of its modifiers; what matches no pattern is refused.
"""
