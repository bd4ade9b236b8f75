"""The verifier's rules for the ops of `objects`; their text is in the docstring of `verifier`."""

from __future__ import annotations

from typing import Final

from ferrule.language.ir import objects
from ferrule.language.ir.rules.checker import Checker
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.ir.values import Value
from ferrule.specs import Boolean, Float64, Int32, Int64

ANY_VALUE: Final = HandleType("any")
"""The type of a handle of any value, which is the address of a TVMFFIAny."""

PEEKED: Final[dict[objects.PeekPart, Type | None]] = {
    "type_index": Int32,
    "int": Int64,
    "float": Float64,
    "dtype": Int32,
    "device": Int64,
    "text": HandleType("bytes"),
    "text_size": Int64,
    "object": None,
    "tensor": None,
    "size": Int64,
}
"""The types of the parts; the type of an object and of a tensor is in the op."""


def simple(checker: Checker, op: objects.ObjectOp) -> None:
    """Checks an op with one result."""
    match op:
        case objects.Item(result, container, index):
            _handle(checker, container)
            checker.types([index, result], [Int64, ANY_VALUE], "positions and elements")
        case objects.Field(result, of):
            _handle(checker, of)
            checker.types([result], [ANY_VALUE], "values of fields")
        case objects.Peek(result, source, part):
            _handle(checker, source)
            wanted = PEEKED[part]
            checker.types([result], [result.type if wanted is None else wanted], "parts of a value")
            kind = TensorType if part == "tensor" else HandleType
            known = wanted is not None or isinstance(result.type, kind)
            checker.require(known, "an object is a handle, and a tensor a tensor")
        case objects.IsInstance(result, source):
            _handle(checker, source)
            checker.types([result], [Boolean], "conditions")


def _handle(checker: Checker, value: Value) -> None:
    checker.require(isinstance(value.type, HandleType), "a container or object is a handle")
