"""Registration of the loaders that make `tvm_ffi.load_module` take objects and archives."""

from __future__ import annotations

from typing import Any, Final

SUFFIXES: Final = ("o", "a")


def register_loaders() -> None:
    """Teach tvm-ffi these suffixes; a loader that somebody registered stays. May be repeated."""
    from tvm_ffi import get_global_func, register_global_func

    for suffix in SUFFIXES:
        name = f"ffi.Module.load_from_file.{suffix}"
        if get_global_func(name, allow_missing=True) is None:
            register_global_func(name, _load)


def _load(path: str, suffix: str) -> Any:
    from ferrule.runtime.systemlib import load_file

    return load_file(path)
