"""The messages of the checker: entries of the catalogue, with parts that describe the current row.

They are the same for every function, so they are in the support code, each as a symbol of its own;
the parts that differ between functions are in its program.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from types import MappingProxyType
from typing import Final

from ferrule.compiler.messages import catalogue, parts
from ferrule.compiler.messages.catalogue import Entry, Filling
from ferrule.compiler.messages.parts import Value
from ferrule.compiler.messages.table import Op, encoded, shown
from ferrule.specs.expr import INT64_MAX, INT64_MIN


class Said(Enum):
    """A message of the checker."""

    NUM_ARGS = auto()
    TYPE = auto()
    NULL_TENSOR = auto()
    NULL_VALUE = auto()
    TYPE_KEY = auto()
    ELEMENT_TYPE = auto()
    TUPLE_SIZE = auto()
    SHAPE_SIZE = auto()
    NDIM = auto()
    DTYPE = auto()
    DEVICE = auto()
    DEVICE_ID = auto()
    SAME_DEVICE = auto()
    EXACT = auto()
    MATCH = auto()
    RELATED = auto()
    UNDEFINED = auto()
    DIVISIBLE = auto()
    ABOVE = auto()
    BELOW = auto()
    BOUNDS = auto()
    VALUE_BOUNDS = auto()
    TOO_LARGE = auto()
    TOO_SMALL = auto()
    ABOVE_INT64 = auto()
    FLOAT_TOO_LARGE = auto()
    FLOAT_TOO_SMALL = auto()
    ELEMENT_TOO_LARGE = auto()
    ELEMENT_TOO_SMALL = auto()
    BOOLEAN = auto()
    BOOLEAN_TOO_LARGE = auto()
    BOOLEAN_TOO_SMALL = auto()
    CONSTANT = auto()
    CONSTANT_TOO_LARGE = auto()
    CONSTANT_TOO_SMALL = auto()
    NAMED_VALUE = auto()
    ALIGNMENT = auto()
    NULL_DATA = auto()
    NULL_SHAPE = auto()
    POINTER_ALIGNMENT = auto()
    NULL_POINTER = auto()


_COMMON: Final[Mapping[str, Filling]] = MappingProxyType(
    {
        "signature": parts.Signature(),
        "argument": parts.ARGUMENT,
        "what": (parts.Name(), parts.Suffix(), parts.Element()),
        "expected": Value(0),
        "actual": Value(1),
        "hint": parts.HintHere(),
        "formula": parts.Expected(),
        "owner": parts.Owner(),
        "range": parts.Expected(),
        "low": Value(2),
        "high": parts.Unsigned(3),
        "count": parts.Expected(),
    }
)
_VALUE: Final[Mapping[str, Filling]] = {"what": "value"}
_LARGE: Final[Mapping[str, Filling]] = {"actual": f"an int above {INT64_MAX}"}
_SMALL: Final[Mapping[str, Filling]] = {"actual": f"an int below {INT64_MIN}"}
_DOUBLE: Final[Mapping[str, Filling]] = MappingProxyType(
    {"range": "float64", "low": "-1.8e308", "high": "1.8e308"}
)
_WORDS: Final[Mapping[str, Filling]] = {
    "expected": parts.Expected(),
    "actual": parts.ValueHere(),
}
_KIND: Final[Mapping[str, Filling]] = {"expected": parts.Expected(), "actual": parts.TypeHere()}

_MESSAGES: Final[Mapping[Said, tuple[Entry, Mapping[str, Filling]]]] = MappingProxyType(
    {
        Said.NUM_ARGS: (catalogue.NUM_ARGS, {"actual": parts.NumArgs()}),
        Said.TYPE: (catalogue.TYPE, _KIND),
        Said.NULL_TENSOR: (catalogue.TYPE, {**_KIND, "actual": "a null DLTensor pointer"}),
        Said.NULL_VALUE: (catalogue.TYPE, {**_KIND, "actual": "a null pointer"}),
        Said.TYPE_KEY: (catalogue.TYPE_KEY, _KIND),
        Said.ELEMENT_TYPE: (catalogue.ELEMENT_TYPE, {"actual": parts.TypeHere()}),
        Said.TUPLE_SIZE: (catalogue.TUPLE_SIZE, {}),
        Said.SHAPE_SIZE: (catalogue.SHAPE_SIZE, {}),
        Said.NDIM: (catalogue.NDIM, {}),
        Said.DTYPE: (
            catalogue.DTYPE,
            {"expected": parts.Expected(), "actual": parts.DTypeHere()},
        ),
        Said.DEVICE: (
            catalogue.DEVICE,
            {"expected": parts.Expected(), "actual": parts.DeviceHere()},
        ),
        Said.DEVICE_ID: (catalogue.DEVICE_ID, {}),
        Said.SAME_DEVICE: (catalogue.SAME_DEVICE, {}),
        Said.EXACT: (catalogue.EXACT, {}),
        Said.MATCH: (catalogue.MATCH, {}),
        Said.RELATED: (catalogue.RELATED, {}),
        Said.UNDEFINED: (catalogue.UNDEFINED, {}),
        Said.DIVISIBLE: (catalogue.DIVISIBLE, {}),
        Said.ABOVE: (catalogue.ABOVE, {}),
        Said.BELOW: (catalogue.BELOW, {}),
        Said.BOUNDS: (catalogue.BOUNDS, {}),
        Said.VALUE_BOUNDS: (catalogue.BOUNDS, _VALUE),
        Said.TOO_LARGE: (
            catalogue.BOUNDS,
            {**_VALUE, "actual": "an int above 18446744073709551615"},
        ),
        Said.TOO_SMALL: (catalogue.BOUNDS, {**_VALUE, **_SMALL}),
        Said.ABOVE_INT64: (catalogue.BOUNDS, {**_VALUE, **_LARGE}),
        Said.FLOAT_TOO_LARGE: (
            catalogue.BOUNDS,
            {**_VALUE, **_DOUBLE, "actual": "an int above 1.8e308"},
        ),
        Said.FLOAT_TOO_SMALL: (
            catalogue.BOUNDS,
            {**_VALUE, **_DOUBLE, "actual": "an int below -1.8e308"},
        ),
        Said.ELEMENT_TOO_LARGE: (catalogue.BOUNDS, {**_LARGE, "range": "int64"}),
        Said.ELEMENT_TOO_SMALL: (catalogue.BOUNDS, {**_SMALL, "range": "int64"}),
        Said.BOOLEAN: (catalogue.BOOLEAN, {}),
        Said.BOOLEAN_TOO_LARGE: (catalogue.BOOLEAN, _LARGE),
        Said.BOOLEAN_TOO_SMALL: (catalogue.BOOLEAN, _SMALL),
        Said.CONSTANT: (catalogue.CONSTANT, _WORDS),
        Said.CONSTANT_TOO_LARGE: (catalogue.CONSTANT, {**_WORDS, **_LARGE}),
        Said.CONSTANT_TOO_SMALL: (catalogue.CONSTANT, {**_WORDS, **_SMALL}),
        Said.NAMED_VALUE: (catalogue.NAMED_VALUE, _WORDS),
        Said.ALIGNMENT: (catalogue.ALIGNMENT, {"actual": parts.Hexadecimal(1)}),
        Said.NULL_DATA: (catalogue.NULL_DATA, {}),
        Said.NULL_SHAPE: (catalogue.NULL_SHAPE, {}),
        Said.POINTER_ALIGNMENT: (
            catalogue.POINTER_ALIGNMENT,
            {"actual": parts.Hexadecimal(1)},
        ),
        Said.NULL_POINTER: (catalogue.NULL_POINTER, {}),
    }
)


def report_symbol(said: Said) -> str:
    """The symbol of a message in the support code."""
    return f"ferrule_said_{said.name.lower()}"


def report(said: Said) -> bytes:
    """A message as bytes."""
    return encoded(_filled(said))


@cache
def shown_by() -> Mapping[str, frozenset[Op]]:
    """The operations that show the parts of each message, by the message's symbol.  Pure."""
    return MappingProxyType({report_symbol(said): shown(_filled(said)) for said in Said})


def _filled(said: Said) -> parts.Message:
    entry, own = _MESSAGES[said]
    return entry.fill(_COMMON, location=parts.Trace(), **own)
