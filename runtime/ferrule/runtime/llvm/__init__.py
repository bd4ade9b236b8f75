"""What generated LLVM code is made with: C layouts, the C functions it may call, the emitter.

Importing a module of this package imports llvmlite; `ferrule.runtime` alone does not.
"""
