"""Foreign code for the processor: an address, an object, LLVM IR, a shared library.

`code` is the interface for users and bodies.  Objects are laid into ours without a linker
(`embedding`).  LLVM code is first compiled in a separate process (`trial`, `child`), and its text
becomes a part of a body (`irtext`).
"""

from ferrule.compiler.hostcode.code import Address, HostCode, Library, LlvmModule, Undefined

__all__ = ["Address", "HostCode", "Library", "LlvmModule", "Undefined"]
