"""Other people's kernels: what brings them here from the systems that they were written in.

`fe.frontends.triton`, `fe.frontends.cuda`, …: each is imported on first use, and imports the
package of its system when it is first asked for something.
"""

from __future__ import annotations

import importlib
from types import ModuleType

_NAMES = ("c", "cuda", "cutile", "files", "mlir", "numba", "tilelang", "triton", "warp")

__all__ = list(_NAMES)


def __getattr__(name: str) -> ModuleType:
    if name not in _NAMES:
        known = ", ".join(_NAMES)
        raise AttributeError(f"module 'ferrule.frontends' has no {name!r}; it has {known}")
    return importlib.import_module(f"ferrule.frontends.{name}")


def __dir__() -> list[str]:
    return __all__
