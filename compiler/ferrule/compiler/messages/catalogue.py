"""The catalogue: every way in which a wrapper refuses a call, each with a stable code.

An entry has the class of the error and a template.  `fill` is the one renderer: it puts texts and
parts in the template's fields.  The openings and the `expected …` clauses are those of other
TVM-FFI wrappers, which people know and search for; the actual value follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from itertools import count
from string import Formatter
from types import MappingProxyType
from typing import Final, TypeAlias

from ferrule.compiler.artefacts import Fault, Location
from ferrule.compiler.messages.parts import (
    CString,
    Given,
    GivenKind,
    Message,
    Part,
    Text,
    Trace,
    Unsigned,
    Value,
)
from ferrule.specs.deferred import dataclass

Filling: TypeAlias = "str | int | Part | tuple[Part, ...]"
"""The value of a field of a template."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One kind of refusal.  `meaning` describes its cause, for the documentation."""

    code: str
    error: str
    template: str
    meaning: str
    pieces: tuple[tuple[str, str | None], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pieces = tuple((text, name) for text, name, _, _ in Formatter().parse(self.template))
        object.__setattr__(self, "pieces", pieces)

    def fill(
        self,
        common: Mapping[str, Filling] = MappingProxyType({}),
        /,
        *,
        location: Location | Trace | None = None,
        **own: Filling,
    ) -> Message:
        """The message with these fields; `common` are fields that many messages share."""
        fields = {**common, **own}
        trace = location if isinstance(location, Trace) else trace_of(location)
        parts: list[Part] = []
        for text, name in self.pieces:
            if text:
                parts.append(Text(text))
            if name is not None:
                parts.extend(_as_parts(fields[name]))
        return Message(self.code, self.error, tuple(parts), trace)


def _as_parts(filling: Filling) -> tuple[Part, ...]:
    match filling:
        case str() | int():
            return (Text(str(filling)),)
        case tuple():
            return filling
        case _:
            return (filling,)


def trace_of(location: Location | None) -> str:
    """The line of a backtrace that tvm-ffi turns into a frame of Python's traceback."""
    if location is None:
        return ""
    return f'  File "{location.file}", line {location.line}, in {location.function}\n'


@lru_cache(1024)
def body_fault(fault: Fault) -> Message:
    """The message of a fault that a body reports, with its values."""
    parts: list[Part] = []
    slots = count()
    for text in _PLACEHOLDERS.split(fault.message):
        match text:
            case "":
                continue
            case "{}":
                parts.append(Value(next(slots)))
            case "{text}":
                parts.append(CString(next(slots)))
            case "{unsigned}":
                parts.append(Unsigned(next(slots)))
            # Two values: the address and the number of bytes.
            case "{bytes}":
                parts.append(Given("bytes", next(slots)))
                next(slots)
            case _ if text in _GIVEN:
                parts.append(Given(_GIVEN[text], next(slots)))
            case _:
                parts.append(Text(_BRACES.get(text, text)))
    return Message("BODY", fault.kind, tuple(parts), trace_of(fault.location))


_PLACEHOLDERS: Final = re.compile(
    r"(\{\{|\}\}|\{(?:|text|unsigned|bytes|bool|float|dtype|device|type)\})"
)
_GIVEN: Final[Mapping[str, GivenKind]] = MappingProxyType(
    {
        "{bool}": "bool",
        "{float}": "float",
        "{dtype}": "dtype",
        "{device}": "device",
        "{type}": "type",
    }
)
_BRACES: Final = MappingProxyType({"{{": "{", "}}": "}"})


_ON: Final = "on {argument} when calling: `{signature}`, "

NUM_ARGS: Final = Entry(
    "CALL01",
    "TypeError",
    "Expects {count} when calling: `{signature}`, but got {actual}",
    "The call has too few or too many arguments.",
)
TYPE: Final = Entry(
    "CALL02",
    "TypeError",
    "Mismatched type " + _ON + "expected {expected}, but got {actual}",
    "An argument is of another kind than its parameter takes.",
)
TYPE_KEY: Final = Entry(
    "CALL03",
    "TypeError",
    "Mismatched type " + _ON + "expected {expected}, which is no registered type here, "
    "but got {actual}",
    "A parameter takes an object of a type that this process does not have.",
)
ELEMENT_TYPE: Final = Entry(
    "CALL04",
    "TypeError",
    "Invalid shape element type {what} " + _ON + "expected int, but got {actual}",
    "An element of a tuple of sizes is no int.",
)
TUPLE_SIZE: Final = Entry(
    "CALL05",
    "ValueError",
    "Mismatched tuple size " + _ON + "expected tuple size={expected}, but got tuple size={actual}",
    "A tuple has another number of items.",
)
SHAPE_SIZE: Final = Entry(
    "CALL06",
    "ValueError",
    "Mismatched Shape " + _ON + "expected shape size={expected}, but got shape size={actual}",
    "A tuple of sizes has another number of elements.",
)
NDIM: Final = Entry(
    "CALL11",
    "ValueError",
    "Mismatched Tensor " + _ON + "expected ndim={expected}, but got ndim={actual}",
    "A tensor has another number of dims.",
)
DTYPE: Final = Entry(
    "CALL12",
    "ValueError",
    "Mismatched Tensor " + _ON + "expected dtype={expected}, but got dtype={actual}",
    "A tensor has another dtype.",
)
DEVICE: Final = Entry(
    "CALL13",
    "ValueError",
    "Mismatched Tensor " + _ON + "expected device_type={expected}, but got device={actual}",
    "A tensor is on a device of another type.",
)
DEVICE_ID: Final = Entry(
    "CALL14",
    "ValueError",
    "Mismatched device index " + _ON + "expected to be {expected}, but got {actual}",
    "A tensor is on another device of the right type.",
)
SAME_DEVICE: Final = Entry(
    "CALL15",
    "ValueError",
    "Mismatched device index " + _ON + "expected to match {owner} = {expected}, but got {actual}",
    "The tensors of a call that are not on the CPU are on different devices.",
)
EXACT: Final = Entry(
    "CALL21",
    "ValueError",
    "Mismatched {what} " + _ON + "expected to be {expected}, but got {actual}{hint}",
    "A size or stride differs from the number that the parameter has.",
)
MATCH: Final = Entry(
    "CALL22",
    "ValueError",
    "Mismatched {what} " + _ON + "expected to match {owner} = {expected}, but got {actual}{hint}",
    "Two places that have one symbol in the signature have different values.",
)
RELATED: Final = Entry(
    "CALL23",
    "ValueError",
    "Mismatched {what} " + _ON + "expected {formula} = {expected}, but got {actual}{hint}",
    "A size or stride differs from the value of its expression.",
)
UNDEFINED: Final = Entry(
    "CALL24",
    "ValueError",
    "Invalid {what} "
    + _ON
    + "expected {formula}, which overflows 64 bits or divides by zero, but got {actual}",
    "The expression of a size or stride has no value for these arguments.",
)
DIVISIBLE: Final = Entry(
    "CALL25",
    "ValueError",
    "Invalid {what} " + _ON + "expected to be divisible by {expected}, but got {actual}",
    "A size or stride is no multiple of its symbol's divisibility.",
)
BOUNDS: Final = Entry(
    "CALL26",
    "ValueError",
    "Out of bound {what} " + _ON + "expected to be in {range} range [{low}, {high}], "
    "but got {actual}",
    "A size, a stride or a number does not fit its type.",
)
BOOLEAN: Final = Entry(
    "CALL27",
    "ValueError",
    "Invalid value " + _ON + "expected True, False, 0 or 1, but got {actual}",
    "An int other than 0 and 1 was given for a bool.",
)
CONSTANT: Final = Entry(
    "CALL28",
    "ValueError",
    "Mismatched constant value " + _ON + "expected {expected}, but got {actual}",
    "An argument that was known when the function was compiled has another value.",
)
NAMED_VALUE: Final = Entry(
    "CALL29",
    "ValueError",
    "Invalid value " + _ON + "expected the name of a {expected}, but got {actual}",
    "A text that stands for a dtype or a device is the name of none.",
)
ALIGNMENT: Final = Entry(
    "CALL31",
    "ValueError",
    "Misaligned Tensor data "
    + _ON
    + "expected data alignment={expected} bytes, but got address {actual}",
    "The address of a tensor's first element is no multiple of the parameter's alignment.",
)
NULL_DATA: Final = Entry(
    "CALL32",
    "ValueError",
    "Invalid Tensor data " + _ON + "expected the address of the elements, but got a null pointer",
    "A tensor has elements, but its data pointer is null.",
)
NULL_SHAPE: Final = Entry(
    "CALL33",
    "ValueError",
    "Invalid Tensor shape " + _ON + "expected the sizes, but got a null pointer",
    "A tensor has dims, but the pointer to its sizes is null.",
)
POINTER_ALIGNMENT: Final = Entry(
    "CALL34",
    "ValueError",
    "Misaligned pointer " + _ON + "expected alignment={expected} bytes, but got address {actual}",
    "An address is no multiple of the parameter's alignment.",
)
NULL_POINTER: Final = Entry(
    "CALL35",
    "ValueError",
    "Invalid value " + _ON + "expected an address, but got a null pointer",
    "None or a null pointer was given where the parameter needs an address.",
)
ABOVE: Final = Entry(
    "CALL51",
    "ValueError",
    "Out of bound {what} " + _ON + "expected to be at most {expected}, but got {actual}",
    "A size or stride is above the upper bound of its symbol.",
)
BELOW: Final = Entry(
    "CALL52",
    "ValueError",
    "Out of bound {what} " + _ON + "expected to be at least {expected}, but got {actual}",
    "A size or stride is below the lower bound of its symbol.",
)
RELATION: Final = Entry(
    "CALL41",
    "ValueError",
    "Mismatched {what} when calling: `{signature}`, expected to match {owner} = {expected}, "
    "but got {actual}",
    "Two sizes that the function's body needs to be equal differ.",
)
RELATION_UNDEFINED: Final = Entry(
    "CALL42",
    "ValueError",
    "Invalid {what} when calling: `{signature}`, expected {left} to be equal to {right}, "
    "but one of them overflows 64 bits or divides by zero",
    "A size that the function's body needs has no value for these arguments.",
)
REQUIRED: Final = Entry(
    "CALL53",
    "ValueError",
    "Invalid sizes when calling: `{signature}`, expected {condition}, but got {actual}{hint}",
    "A relation between sizes and integers that the function requires does not hold.",
)
REQUIRED_UNDEFINED: Final = Entry(
    "CALL54",
    "ValueError",
    "Invalid sizes when calling: `{signature}`, expected {condition}, a part of which "
    "overflows 64 bits or divides by zero, but got {actual}{hint}",
    "A requirement of the function has no value for these arguments.",
)

CATALOGUE: Final[tuple[Entry, ...]] = (
    NUM_ARGS,
    TYPE,
    TYPE_KEY,
    ELEMENT_TYPE,
    TUPLE_SIZE,
    SHAPE_SIZE,
    NDIM,
    DTYPE,
    DEVICE,
    DEVICE_ID,
    SAME_DEVICE,
    EXACT,
    MATCH,
    RELATED,
    UNDEFINED,
    DIVISIBLE,
    BOUNDS,
    BOOLEAN,
    CONSTANT,
    NAMED_VALUE,
    ALIGNMENT,
    NULL_DATA,
    NULL_SHAPE,
    POINTER_ALIGNMENT,
    NULL_POINTER,
    RELATION,
    RELATION_UNDEFINED,
    ABOVE,
    BELOW,
    REQUIRED,
    REQUIRED_UNDEFINED,
)
