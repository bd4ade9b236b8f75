"""Code for the processor that others made: an address, an object, LLVM IR, a shared library.

`code` is what a user gives and how a body comes to call it.  Objects are laid into ours without a
linker (`embedding`).  LLVM code is compiled in a process of its own first (`trial`, `child`), and
its text becomes a part of a body (`irtext`).
"""

from ferrule.compiler.hostcode.code import Address, HostCode, Library, LlvmModule, Undefined

__all__ = ["Address", "HostCode", "Library", "LlvmModule", "Undefined"]
