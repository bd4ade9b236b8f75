"""The verifier's rules for the ops of `calls` and `objects`.

Their text is in the docstring of `verifier`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal

from ferrule.language.ir import calls, objects
from ferrule.language.ir.rules.checker import Checker
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.ir.values import Value
from ferrule.specs import Boolean, DType, Float64, Int32, Int64, Sym

CALL_OPERANDS: Final[dict[calls.ArgumentKind, tuple[DType | Literal["handle", "tensor"], ...]]] = {
    "none": (),
    "bool": (Boolean,),
    "int": (Int64,),
    "unsigned": (Int64,),
    "float": (Float64,),
    "text": ("handle", Int64),
    "bytes": ("handle", Int64),
    "dtype": (Int32,),
    "device": (Int64,),
    "pointer": ("handle",),
    "object": ("handle",),
    "any": ("handle",),
    "tensor": ("tensor",),
}
"""The types of the values for each kind of argument."""


def call(checker: Checker, op: calls.Call) -> None:
    """Checks a call of a function."""
    handle = not isinstance(op.callee, Value) or isinstance(op.callee.type, HandleType)
    checker.require(handle, "what a Call calls is a name, a function, or a handle")
    wanted: Type = Float64 if op.wanted == "float" else Int64
    wanted = HandleType("any") if op.wanted == "any" else wanted
    checker.types([op.result], [wanted], "results of a Call")
    taken = [word for kind in op.kinds for word in CALL_OPERANDS[kind]]
    checker.require(len(taken) == len(op.arguments), "a Call has the values of its arguments")
    for word, value in zip(taken, op.arguments, strict=True):
        match word:
            case "tensor":
                fits = isinstance(value.type, TensorType) and not value.type.is_own
            case "handle":
                fits = isinstance(value.type, (HandleType, TensorType))
            case dtype:
                fits = value.type is dtype
        checker.require(fits, "the values of a Call's arguments are as their kinds say")


def receive(
    checker: Checker, op: calls.CallBody | calls.Receive | calls.Received, made: Collection[Sym]
) -> None:
    """Checks an op that reads the result of a call; `made` are the symbols that the program
    makes."""
    match op:
        case calls.CallBody(result):
            checker.types([result], [HandleType("results")], "results of a CallBody")
        case calls.Receive(result, value, made=symbols):
            checker.types([result], [HandleType("leaves")], "results of a Receive")
            checker.types([value], [HandleType("any")], "values that came back")
            known = all(symbol in made for symbol, _ in symbols)
            checker.require(known, "a Receive makes symbols that the program makes")
        case calls.Received(parts=parts):
            known = parts.type in (HandleType("results"), HandleType("leaves"))
            checker.require(known, "a part is of what came back")


# ---- objects ----


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
