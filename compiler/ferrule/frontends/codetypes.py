"""Checks that a function whose address C gets is of the type that C calls.

What C calls is known from debugging information, `layouts.Code`: the names of types do not tell
which values an enum has, nor whether a name is an enum or a struct.  A callback says its types,
LLVM IR has them, and a function that the source declares is asked for.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Final

from ferrule.compiler.conventions.conversions import limits
from ferrule.compiler.conventions.launches.values import Function
from ferrule.frontends.layouts import Code, Layout, Leaf
from ferrule.specs import DType

_INTEGERS: Final = ("int", "uint")
_OF_LLVM: Final = {"float": ("float", 4), "double": ("float", 8)}


def misfit_of_code(given: Function, own: Code | None, wanted: Code) -> str | None:
    """None if a function fits; else the hint.  `own` is its type where the source declares it."""
    params = given.params if own is None else own.parameters
    returns = given.returns if own is None else own.result
    if params is None:
        return (
            "nobody knows what it takes: FunctionPointer(…, params=[…], returns=…) says it, in the "
            "words of a Callback"
        )
    if wanted.is_open or len(params) != len(wanted.parameters):
        return f"C calls it with {len(wanted.parameters)}{' or more' * wanted.is_open} arguments"
    for position, (mine, taken) in enumerate(zip(params, wanted.parameters, strict=True)):
        if not _takes(mine, taken):
            return f"C calls it with {_said(taken)} as argument #{position}"
    if wanted.result is None:
        return None
    return None if _takes(returns, wanted.result) else f"C wants {_said(wanted.result)} back"


def _takes(own: DType | str | Layout | None, taken: Layout | None) -> bool:
    """Whether a parameter or result of the function is what C has there."""
    if taken is None:
        return False
    if isinstance(own, Layout):
        return own.size == taken.size and all(
            one is not None and other is not None and _alike(one, other)
            for one, other in zip_longest(own.leaves, taken.leaves)
        )
    leaf = taken.leaves[0] if len(taken.leaves) == 1 and not taken.is_struct else None
    if leaf is None or own is None:
        return False
    if isinstance(own, DType):
        return leaf.size == own.itemsize and _is_number(own, leaf)
    if own in ("pointer", "string", "ptr"):
        return leaf.kind == "pointer" and (own != "string" or _is_text(leaf.pointee))
    if own in _OF_LLVM:
        return (leaf.kind, leaf.size) == _OF_LLVM[own]
    is_integer = leaf.kind in (*_INTEGERS, "bool", "enum")
    bits = own[1:] if own[0] == "i" else ""
    return is_integer and bits in (str(8 * leaf.size), "1" if leaf.kind == "bool" else "")


def _is_number(own: DType, leaf: Leaf) -> bool:
    if leaf.kind == "enum":
        return own.kind in _INTEGERS and fits_enum(own, leaf)
    if leaf.kind == "bool":
        return own.kind in ("bool", "uint")
    return own.kind == leaf.kind


def has_values(own: DType, leaf: Leaf) -> bool:
    """Whether an integer has the sign of another one, or all values of an enum."""
    if leaf.kind == "enum":
        return fits_enum(own, leaf)
    return leaf.kind not in _INTEGERS or own.kind not in _INTEGERS or own.kind == leaf.kind


def fits_enum(dtype: DType, leaf: Leaf) -> bool:
    """Whether an integer has all values of an enum."""
    low, high = limits(dtype)
    least, most = leaf.values or (0, 0)
    return dtype.itemsize == leaf.size and low <= least and most <= high


def _is_text(leaf: Leaf | None) -> bool:
    return leaf is None or (leaf.size == 1 and leaf.kind in _INTEGERS)


def _alike(one: Leaf, other: Leaf) -> bool:
    """Whether two leaves are handed over alike, and mean the same where that is known."""
    if one.at != other.at or one.size != other.size:
        return False
    if one.kind == other.kind == "pointer":
        mine, theirs = one.pointee, other.pointee
        numbers = (*_INTEGERS, "float")
        if mine is None or theirs is None or {mine.kind, theirs.kind} - {*numbers}:
            return True
        return mine.size == theirs.size and (mine.kind == "float") == (theirs.kind == "float")
    whole = (*_INTEGERS, "bool", "enum")
    return one.kind == other.kind or (one.kind in whole and other.kind in whole)


def _said(layout: Layout | None) -> str:
    """A type in words."""
    if layout is None:
        return "an incomplete type"
    if layout.is_struct or len(layout.leaves) != 1:
        return f"a struct of {layout.size} bytes"
    (leaf,) = layout.leaves
    if leaf.kind == "enum" and leaf.values is not None:
        least, most = leaf.values
        return f"an enum of {8 * leaf.size} bits with values from {least} to {most}"
    return "an address" if leaf.kind == "pointer" else f"{leaf.kind}{8 * leaf.size}"
