"""Functions that take sizes in C and refuse what is no int: while a host function is recorded, they
are given what they take."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from ferrule.frontends.triton.recorded.followed import Followed, Logarithm
from ferrule.frontends.triton.recorded.numbers.base import Number
from ferrule.frontends.triton.recorded.numbers.floats import root

_OF_TORCH: Final = ("empty", "zeros", "ones", "rand", "randn")
_OF_TENSORS: Final = "new_empty new_zeros new_ones expand repeat tile permute view reshape".split()
"""Functions of PyTorch that take sizes one by one, `empty(m, n)`: of them the first is an int."""


@contextlib.contextmanager
def sizes_taken() -> Iterator[None]:
    """Inside, functions of PyTorch and `math` take sizes that are followed."""
    with contextlib.ExitStack() as undo:
        _replace(undo, math, "log2", _logarithm)
        _replace(undo, math, "sqrt", _root)
        torch = sys.modules.get("torch")
        if torch is not None:
            for name in _OF_TORCH:
                _replace(undo, torch, name, _as_tuple)
            for name in _OF_TENSORS:
                _replace(undo, torch.Tensor, name, _as_tuple_of_tensor)
        yield


def _replace(
    undo: contextlib.ExitStack, owner: Any, name: str, by: Callable[[Any], Callable[..., Any]]
) -> None:
    own = getattr(owner, name)
    if name in vars(owner):
        undo.callback(setattr, owner, name, own)
    else:
        undo.callback(delattr, owner, name)
    setattr(owner, name, by(own))


def _as_tuple(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def function(*args: Any, **more: Any) -> Any:
        return own(args, **more) if _are_sizes(args) else own(*args, **more)

    return function


def _as_tuple_of_tensor(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def function(tensor: Any, *args: Any, **more: Any) -> Any:
        given = (args,) if _are_sizes(args) else args
        return own(tensor, *given, **more)

    return function


def _are_sizes(args: tuple[Any, ...]) -> bool:
    return any(isinstance(each, Followed) for each in args)


def _logarithm(own: Callable[..., Any]) -> Callable[..., Any]:
    def log2(number: Any) -> Any:
        is_size = isinstance(number, Followed) and 0 < number.number < Logarithm.MOST
        return Logarithm(own(number.number), number) if is_size else own(number)

    return log2


def _root(own: Callable[..., Any]) -> Callable[..., Any]:
    return lambda number: root(own, number) if isinstance(number, Number) else own(number)
