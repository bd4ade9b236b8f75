"""Tools to generate LLVM code: C layouts, the table of callable C functions, the emitter.

Importing a module of this package imports llvmlite; `ferrule.runtime` alone does not.
"""
