"""Compiles specs and code to objects: wrappers, calling conventions, targets, assembly.

`build` makes a function from a signature and a calling convention.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ferrule.specs.deferred import names_of

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


_named = names_of(__name__, _ATTRIBUTES)


def __getattr__(name: str) -> Any:
    if name == "conventions":
        return importlib.import_module("ferrule.compiler.conventions")
    return _named(name)


def __dir__() -> list[str]:
    return __all__
