"""Helpers that are too long for LLVM text: plain functions, of which `language` makes LLVM."""
