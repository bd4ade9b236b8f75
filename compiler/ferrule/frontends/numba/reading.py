"""What a kernel of Numba reads besides its arguments: arrays on a GPU, by their names.

Numba compiles the address of such an array into the kernel.  It means something in this process
alone, and there only as long as the array is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic

_ON_GPU: Final = "__cuda_array_interface__"
_FEW: Final = 1000
"""Items of a tuple or list that are looked at."""


def check_no_device_array(function: FunctionType) -> None:
    """Raises CompileError where a function, or one that it calls, names an array on a GPU that is
    no parameter."""
    for where, name in _device_arrays(function, set()):
        raise CompileError(
            Diagnostic(
                f"{where} reads {name}, an array on a GPU that is no parameter: its address would "
                "be compiled in, which means something in this process alone",
                hint="hand it over as a parameter",
            )
        )


def _device_arrays(function: Any, seen: set[int]) -> Iterator[tuple[str, str]]:
    """The functions that name arrays on a GPU, and these names."""
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType) or id(plain) in seen:
        return
    seen.add(id(plain))
    for name, value in _named(plain):
        if _is_on_gpu(value):
            yield plain.__name__, name
        yield from _device_arrays(value, seen)


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The values that a function's code names, outside of itself."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # Nothing has been put into it yet.
            continue
    names = list(_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if name in function.__globals__:
            yield name, value
        if isinstance(value, ModuleType):
            for inner in names:
                if inner in vars(value):
                    yield f"{name}.{inner}", vars(value)[inner]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _is_on_gpu(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_on_gpu, value[:_FEW]))
    return not isinstance(value, type | ModuleType) and _has_interface(value)


def _has_interface(value: Any) -> bool:
    """Whether a value is an array on a GPU; a tensor of torch says so by an error where it is on
    the CPU."""
    try:
        return getattr(value, _ON_GPU, None) is not None
    except Exception:
        return False
