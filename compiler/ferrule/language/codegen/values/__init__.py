"""Scalars: the representation of each dtype in LLVM, operators and conversions."""
