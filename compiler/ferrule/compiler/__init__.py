"""Compiles specs and code to objects: wrappers, calling conventions, targets, assembly.

`build` makes a function from a signature and a calling convention.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ferrule.compiler import conventions as conventions
    from ferrule.compiler.assumptions import BuildWarning as BuildWarning
    from ferrule.compiler.building import build as build
    from ferrule.compiler.cuda.code import DeviceCode as DeviceCode
    from ferrule.compiler.emitting import emit_wrapper as emit_wrapper

_ATTRIBUTES = {
    "BuildWarning": "ferrule.compiler.assumptions",
    "DeviceCode": "ferrule.compiler.cuda.code",
    "build": "ferrule.compiler.building",
    "emit_wrapper": "ferrule.compiler.emitting",
}

__all__ = ["BuildWarning", "DeviceCode", "build", "conventions", "emit_wrapper"]


def __getattr__(name: str) -> Any:
    if name == "conventions":
        return importlib.import_module("ferrule.compiler.conventions")
    if name not in _ATTRIBUTES:
        raise AttributeError(f"module 'ferrule.compiler' has no attribute {name!r}")
    value = getattr(importlib.import_module(_ATTRIBUTES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
