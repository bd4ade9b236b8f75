"""Other people's kernels: what brings them here from the systems that they were written in.

`fe.frontends.triton`, `fe.frontends.cuda`, …: each is imported on first use, and imports the
package of its system when it is first asked for something.  `fe.frontends.fixed` says of sizes of
a launch that they are the same in every call.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = (
    "c",
    "cuda",
    "cutile",
    "files",
    "mlir",
    "numba",
    "tilelang",
    "triton",
    "warp",
)

__all__ = ["fixed", *_NAMES]


def __getattr__(name: str) -> Any:
    if name == "fixed":
        return importlib.import_module("ferrule.frontends.told").fixed
    if name not in _NAMES:
        known = ", ".join(_NAMES)
        raise AttributeError(f"module 'ferrule.frontends' has no {name!r}; it has {known}")
    return importlib.import_module(f"ferrule.frontends.{name}")


def __dir__() -> list[str]:
    return __all__
