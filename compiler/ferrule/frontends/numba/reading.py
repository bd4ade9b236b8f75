"""Arrays on a GPU that a kernel of Numba reads in addition to its arguments, by their names.

Numba compiles the address of such an array into the kernel.  The address is valid only in this
process, and only while the array exists.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.captured import captured

_ON_GPU: Final = "__cuda_array_interface__"
_FEW: Final = 1000
"""The number of items of a tuple or list that are examined."""


def check_no_device_array(function: FunctionType) -> None:
    """Raises CompileError if a function, or one that it calls, refers to an array on a GPU that is
    not a parameter."""
    for where, name, value in captured(function):
        if not _is_on_gpu(value):
            continue
        raise CompileError(
            Diagnostic(
                f"{where} reads {name}, an array on a GPU that is no parameter: its address would "
                "be compiled in, which means something in this process alone",
                hint="hand it over as a parameter",
            )
        )


def _is_on_gpu(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_on_gpu, value[:_FEW]))
    return not isinstance(value, type | ModuleType) and _has_interface(value)


def _has_interface(value: Any) -> bool:
    """Whether a value is an array on a GPU; for a tensor on the CPU, torch raises an error
    instead."""
    try:
        return getattr(value, _ON_GPU, None) is not None
    except Exception:
        return False
