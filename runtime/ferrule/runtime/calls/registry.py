"""tvm-ffi's registry: global functions by name, for all languages in the process.

A registration lasts until the process ends, and the registered function lives as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import tvm_ffi

_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def register_global_func(name: str, f: _F, override: bool = False) -> _F: ...


@overload
def register_global_func(
    name: str, f: None = None, override: bool = False
) -> Callable[[_F], _F]: ...


def register_global_func(name: str, f: Any = None, override: bool = False) -> Any:
    """Register a function under a name such as `my_package.my_function`; returns the function.

    `f` is a compiled function or any Python callable; without `f`, it returns a decorator.  Raises
    ValueError if the name is taken and `override` is False, TypeError for other types.  A compiled
    function that has already called this name continues to call the old function.
    """
    if not isinstance(name, str):
        raise TypeError(
            f'expected the name of a function, register_global_func("my.name", f), but got {name!r}'
        )
    if not name or "\0" in name:
        raise ValueError(f"{name!r} is no name of a function: it is empty or has a NUL character")
    if f is None:
        return lambda function: register_global_func(name, _callable(function), override)
    _callable(f)
    if not override and tvm_ffi.get_global_func(name, allow_missing=True) is not None:
        raise ValueError(
            f"the function {name!r} is registered already; take another name, or say override=True"
        )
    tvm_ffi.register_global_func(name, f, override=override)
    return f


def _callable(function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"expected a function to register, but got {function!r}")
    return function


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The `tvm_ffi.Function` that is registered under a name.

    Raises ValueError if there is none; with `allow_missing` it returns None instead.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a function, but got {name!r}")
    found = tvm_ffi.get_global_func(name, allow_missing=True)
    if found is None and not allow_missing:
        raise ValueError(
            f"tvm-ffi has no function {name!r}: register it before, "
            f"ferrule.register_global_func({name!r}, f)"
        )
    return found
