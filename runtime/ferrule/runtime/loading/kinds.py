"""The kinds of modules that ferrule has beside tvm-ffi's, and the names of what loads a kind."""

from __future__ import annotations

from typing import Final

LOAD_FROM_BYTES: Final = "ffi.Module.load_from_bytes."
"""With a kind behind it: the global function that makes a module of bytes."""

PTX: Final = "ferrule.ptx"
"""The kind of a module of kernels as PTX or as images."""
