"""What the reference interpreter knows of code and objects outside of the program.

Functions of tvm-ffi are Python's, containers are lists, objects are `Object`.  Of PTX inside of a
kernel it knows what the tests have, a few instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.operation import Effect
from ferrule.specs import Int32, Sym
from interpreter import declared
from interpreter.stops import Stopped

Values: TypeAlias = Mapping[ops.Value, Any]


@dataclass
class Object:
    """An object of a registered type."""

    type_key: str
    fields: dict[str, Any] = field(default_factory=dict)


def looked_up(op: ops.ObjectOp, values: Values) -> Any:
    """An element or field, which the function owns from then on, or a part of a value."""
    declared.seen("reads")
    match op:
        case ops.Item(_, container, index):
            declared.seen("makes")
            declared.owned("kept", 1, op)
            return values[container][values[index]]
        case ops.Field(_, of, key, name):
            declared.seen("makes")
            declared.seen("asks")  # the field's offset, of its type
            declared.owned("kept", 1, op)
            return values[of].fields[name]
        case ops.Peek(_, source, part):
            return len(values[source]) if part in ("size", "text_size") else values[source]
        case ops.IsInstance(_, source, key):
            return isinstance(values[source], Object) and values[source].type_key == key


def run(
    op: ops.Outgoing, values: Values, functions: Mapping[str, Callable[..., Any]]
) -> tuple[Any, dict[Sym, int]]:
    """The result of a call, or a part of it; and the symbols that get their values from it."""
    match op:
        case ops.Call():
            for effect in _CALLS:
                declared.seen(effect)
            declared.seen("blocks")
            found = _function(op.callee, values, functions)(*_arguments(op, values))
            if op.wanted == "any":
                declared.seen("makes")
                declared.owned("kept", 1, op)
            return found, {}
        case ops.CallBody(callee=callee, made=made):
            for effect in _CALLS:
                declared.seen(effect)
            parts = functions[callee.name](*(values[each] for each in op.arguments))
            declared.seen("makes")
            declared.owned("objects", sum(hasattr(part, "bytes") for part in parts), op)
            declared.owned("kept", callee.keeps, op)
            return parts, {symbol: parts[at].sizes[axis] for symbol, at, axis in made}
        case ops.Receive(value=value, made=symbols):
            declared.seen("reads")
            declared.seen("asks")
            leaves = values[value]
            if not isinstance(leaves, list):
                raise Stopped(Fault("TypeError", f"{op.shown} is something else"))
            return leaves, {symbol: leaves[at] for symbol, at in symbols}
        case ops.Received(parts=parts, position=position):
            declared.seen("reads")
            return values[parts][position], {}


_CALLS: Final[tuple[Effect, ...]] = ("calls", "asks")


def _function(
    callee: ops.Callee, values: Values, functions: Mapping[str, Callable[..., Any]]
) -> Callable[..., Any]:
    match callee:
        case ops.Value():
            found: Callable[..., Any] = values[callee]
            return found
        case ops.Keep():
            return lambda value: value
        case ops.DTypeText():
            return str
        case ops.Extern(name=name) | ops.Imported(name=name) | ops.Linked(name=name):
            return functions[name]
    return functions[str(callee)]


def _arguments(op: ops.Call, values: Values) -> list[Any]:
    rest, found = [values[each] for each in op.arguments], []
    for kind in op.kinds:
        found.append(None if kind == "none" else rest.pop(0))
        if kind in ("text", "bytes"):
            found[-1] = found[-1][: rest.pop(0)]
    return found


# ---- PTX ----

_EFFECTS: Final[Mapping[str, tuple[Effect, ...]]] = {
    "ld": (),  # which its memory says
    "st": (),
    "mov": (),
    "bar": ("waits",),
    "membar": ("orders",),
    "griddepcontrol": ("shows",),
}
"""By the first word of an instruction."""


def effects_of(text: str) -> tuple[Effect, ...]:
    """What the instructions of a piece of PTX do, but for memory."""
    return tuple(effect for line in _instructions(text) for effect in _EFFECTS[line[0]])


def executed(op: ops.InlinePtx, words: Sequence[Any]) -> int:
    """The result of a piece of PTX, of the operands from `$1` on."""
    found = 0
    for name, *operands in _instructions(op.text):
        match name:
            case "ld":
                found = int(words[_number(operands[1]) - 1].read(Int32, 0))
            case "st":
                words[_number(operands[0]) - 1].write(Int32, 0, words[_number(operands[1]) - 1])
            case "mov":
                found = int(operands[1])
    return found


def _instructions(text: str) -> list[list[str]]:
    lines = (line.strip() for line in text.split(";"))
    found = []
    for line in filter(None, lines):
        name, _, operands = line.partition(" ")
        found.append([name.partition(".")[0], *(each.strip() for each in operands.split(","))])
    return found


def _number(operand: str) -> int:
    return int(operand.strip("[]$"))
