"""Objects as modules of tvm-ffi: their symbols registered with its system library.

A module of tvm-ffi is a C++ object that only a file or a registered symbol gives; the registration
lasts as long as the process, and so does the code. The same objects are registered once.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Final

import tvm_ffi

from ferrule.runtime.abi import SYMBOL_PREFIX, system_lib_symbol
from ferrule.runtime.archive import MAGIC, read_archive
from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.elf import ObjectFileError
from ferrule.runtime.engine import Engine
from ferrule.runtime.objectfile import read_object
from ferrule.runtime.sharedlibrary import tvm_ffi_library

# What was registered cannot be taken back: tvm-ffi calls it until the process ends.
_REGISTERED: Final[dict[str, tuple[str, list[Engine]]]] = {}
_LOCK: Final = Lock()


def register(prefix: str, objects: Sequence[bytes]) -> tvm_ffi.Module:
    """The module of these objects' functions. ValueError for a prefix that has other ones."""
    digest = hashlib.sha256(b"".join(map(_hash, objects))).hexdigest()
    with _LOCK:
        known = _REGISTERED.get(prefix)
        if known is None:
            engines = [Engine.load(ObjectCode(prefix, data, "", "")) for data in objects]
            _REGISTERED[prefix] = digest, engines
            for engine in engines:
                _register(prefix, engine)
        elif known[0] != digest:
            raise ValueError(f"the prefix {prefix!r} has other functions: choose another one")
    return tvm_ffi.system_lib(prefix)


def load_file(path: str) -> tvm_ffi.Module:
    """The module of an object or an archive: what `tvm_ffi.load_module` calls for these files."""
    data = Path(path).read_bytes()
    try:
        objects = list(read_archive(data)) if data.startswith(MAGIC) else [data]
        return register(f"ferrule_{_hash(data).hex()[:24]}_", objects)
    except ObjectFileError as error:
        raise ObjectFileError(f"{path}: {error}") from None


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _register(prefix: str, engine: Engine) -> None:
    add = tvm_ffi_library().TVMFFIEnvModRegisterSystemLibSymbol
    for symbol in read_object(engine.code.data).defined:
        if symbol.startswith(SYMBOL_PREFIX):
            known = system_lib_symbol(prefix, symbol).encode()
            if add(known, ctypes.c_void_p(engine.address(symbol))) != 0:
                raise RuntimeError(f"tvm-ffi does not take the symbol {known!r}")
