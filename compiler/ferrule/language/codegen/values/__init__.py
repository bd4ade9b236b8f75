"""Scalars: how each dtype looks in LLVM, and what operators and conversions do to it."""
