"""Finds functions of a module without machine code; tvm-ffi's module for its bytes has them."""

from __future__ import annotations

from typing import Any

import tvm_ffi

from ferrule.runtime.abi import LOAD_FROM_BYTES


class Finder:
    """Looks up functions in the tvm-ffi module that the loader of a kind makes from bytes."""

    def __init__(self, kind: str, data: bytes, module: tvm_ffi.Module | None = None) -> None:
        self._kind = kind
        self._data = data
        self._module = module

    @property
    def module(self) -> tvm_ffi.Module:
        """The tvm-ffi module. RuntimeError if no loader is registered for the kind."""
        if self._module is None:
            self._module = self._load()
        return self._module

    def __call__(self, name: str) -> Any:
        """The function of this name, or None. RuntimeError if the kind has no loader."""
        try:
            return self.module.get_function(name)
        except AttributeError:
            return None

    def _load(self) -> tvm_ffi.Module:
        key = LOAD_FROM_BYTES + self._kind
        loader = tvm_ffi.get_global_func(key, allow_missing=True)
        if loader is None:
            raise RuntimeError(
                f"a module of kind {self._kind!r} has no loader here: import what registers {key}, "
                f"or register it, tvm_ffi.register_global_func({key!r}, load)"
            )
        module: tvm_ffi.Module = loader(self._data)
        return module
