"""Registration of the loaders that tvm-ffi calls: for objects and archives, and for `ferrule.ptx`.

`ffi.Module.load_from_file.<suffix>` makes `tvm_ffi.load_module` take a file,
`ffi.Module.load_from_bytes.<kind>` what a library imports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ferrule.runtime.abi import LOAD_FROM_BYTES, PTX

SUFFIXES: Final = ("o", "a")


def register_loaders() -> None:
    """Register these loaders with tvm-ffi; an existing loader stays. Can be called again."""
    for suffix in SUFFIXES:
        _register(f"ffi.Module.load_from_file.{suffix}", _load)
    for kind, load in FROM_BYTES.items():
        _register(LOAD_FROM_BYTES + kind, load)


def _register(name: str, load: Callable[..., Any]) -> None:
    from tvm_ffi import get_global_func, register_global_func

    if get_global_func(name, allow_missing=True) is None:
        register_global_func(name, load)


def _load(path: str, suffix: str) -> Any:
    from ferrule.runtime.loading.systemlib import load_file

    return load_file(path)


def _load_ptx(data: bytes) -> Any:
    from ferrule.runtime.loading.systemlib import register_code
    from ferrule.runtime.ptx.functions import PtxCode, symbols_under
    from ferrule.runtime.ptx.payload import read_payload

    digest = hashlib.sha256(bytes(data)).hexdigest()
    prefix = f"ferrule_ptx_{digest[:24]}_"

    def make() -> Any:
        code = PtxCode(read_payload(bytes(data)))
        return code, symbols_under(prefix, code)

    return register_code(prefix, digest, make)


FROM_BYTES: Final[Mapping[str, Callable[[bytes], Any]]] = MappingProxyType({PTX: _load_ptx})
"""For each kind of module without machine code, the function that makes a module from its bytes."""
