"""Helpers that are too long for LLVM text: written as plain functions, `language` makes LLVM of them.
"""
