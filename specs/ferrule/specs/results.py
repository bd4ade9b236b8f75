"""The kinds of results that a function can return: kinds whose values a caller can own."""

from __future__ import annotations

from ferrule.specs.params import (
    AnyValue,
    Array,
    Bytes,
    DataType,
    Device,
    Dict,
    Function,
    List,
    Map,
    Module,
    NoneValue,
    Object,
    Param,
    Pointer,
    Scalar,
    Shape,
    String,
    Tensor,
    Tuple,
)
from ferrule.specs.params.base import REQUIRED

_KINDS = (
    Scalar
    | String
    | Bytes
    | DataType
    | Device
    | Pointer
    | Shape
    | NoneValue
    | Tensor
    | Function
    | Array
    | List
    | Map
    | Dict
    | Object
    | Module
    | AnyValue
)


def checked_result(result: Param | None) -> Param | None:
    """The result spec for a signature; None for a function that returns nothing.

    Raises ValueError for a kind that a function cannot return, also inside a tuple.
    """
    if result is None or isinstance(result, NoneValue):
        return None
    _check(result)
    return result


def _check(result: Param) -> None:
    if not isinstance(result, (_KINDS, Tuple)):
        raise ValueError(f"a function cannot return a {type(result).__name__}")
    if result.default is not REQUIRED:
        raise ValueError(f"a result has no default, but got {result!r}")
    if isinstance(result, Tuple):
        for item in result.items:
            _check(item)
