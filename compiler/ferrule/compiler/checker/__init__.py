"""The checker: decides about every call that the hot path of a wrapper did not accept.

`program` turns a signature into a check program, constant bytes; `machine` is the interpreter of
such programs, LLVM code that is compiled once and is part of every object.  `format` defines the
programs for both.
"""
