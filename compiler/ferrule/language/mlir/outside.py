"""What a host function asks of TVM-FFI and of the CUDA driver, in the text that people read.

Each such op is a call of a private function that is declared and has no body: `@ferrule.alloc`,
`@ferrule.call`, and so on, by the name of the op.  Attributes of the declaration say the rest.
What may fail gives a status first, which ends the host function unless it is 0.  Tensors are
memrefs; objects, functions, values of any type and tensor maps are pointers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ferrule.language.ir import ops
from ferrule.language.mlir import control
from ferrule.language.mlir.text import Text, escaped
from ferrule.specs import Signature, Sym

if TYPE_CHECKING:
    from ferrule.language.mlir.functions import FunctionText

OUTSIDE: Final = (ops.Alloc, ops.Outgoing, ops.ObjectOp)
"""Ops that are calls of TVM-FFI: new tensors, containers and objects, functions of others."""

_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def may_fail(op: ops.Op) -> bool:
    """Whether an op asks for something that may be refused."""
    return "asks" in op.effects


def emit(f: FunctionText, op: ops.Op) -> None:
    """One of these ops, or a `CallDevice`."""
    name = _WORDS.sub("_", type(op).__name__).lower()
    made = list(_made(op))
    given = [f.values[value] for value in _operands(op)]
    assert isinstance(op, ops.Alloc | ops.Outgoing | ops.ObjectOp | ops.CallDevice)
    types = [f.type_of(op.result), *["i64"] * len(made)]
    found = call(f, name, given, types, dict(_said(op)), fails=may_fail(op))
    f.values[op.result] = found[0]
    for symbol, value in zip(made, found[1:], strict=True):
        f.symbols.give(symbol, value)  # type: ignore[attr-defined]
    if isinstance(op, ops.Alloc):
        _give_sizes(f, op)


def call(
    f: FunctionText,
    name: str,
    given: Sequence[str],
    types: Sequence[str],
    said: Mapping[str, str],
    *,
    fails: bool,
) -> list[str]:
    """The results of a call of a function that is declared once for each type; a status that is not
    0 ends the function."""
    t = f.t
    taken = ", ".join(t.types[value] for value in given)
    whole = ["i32", *types] if fails else list(types)
    kind = f"({taken}) -> ({', '.join(whole)})"
    symbol = _declared(t, f"ferrule.{name}", kind, said)
    results = t.several(f"func.call @{symbol}({', '.join(given)}) : {kind}", whole, name)
    if fails:
        control.leave_if(f, results.pop(0))
    return results


def _declared(t: Text, name: str, kind: str, said: Mapping[str, str]) -> str:
    """The symbol of a function of this type, of which the attributes say more."""
    shown = ", ".join(f"{key} = {escaped(value.encode())}" for key, value in said.items())
    attributes = f" attributes {{{shown}}}" if shown else ""
    key = f"{name} {kind}{attributes}"
    if key not in t.declared:
        number = sum(known.startswith(f"{name} ") for known in t.declared)
        symbol = f"{name}.{number}" if number else name
        t.declared[key] = f"  func.func private @{symbol}{kind}{attributes}"
    return t.declared[key].split("@", 1)[1].split("(", 1)[0]


def _operands(op: ops.Op) -> tuple[ops.Value, ...]:
    match op:
        case ops.Alloc(sizes=sizes):
            return sizes
        case ops.Call(callee=callee, arguments=arguments):
            return (callee, *arguments) if isinstance(callee, ops.Value) else arguments
        case ops.CallBody(arguments=arguments):
            return arguments
        case ops.Receive(value=value):
            return (value,)
        case ops.Received(parts=parts):
            return (parts,)
        case ops.Item(container=container, index=index):
            return (container, index)
        case ops.Field(object=of):
            return (of,)
        case ops.Peek(source=source) | ops.IsInstance(source=source):
            return (source,)
    return ()


def _said(op: ops.Op) -> Iterator[tuple[str, str]]:
    """What an op is about, by name."""
    match op:
        case ops.Call(callee=callee, kinds=kinds, wanted=wanted):
            if not isinstance(callee, ops.Value):
                yield "callee", _shown(callee)
            yield "arguments", " ".join(kinds)
            yield "wanted", wanted
        case ops.CallBody(callee=callee):
            yield "callee", callee.name
        case ops.Receive(param=param):
            yield "expected", Signature("call", (param,)).kind(param)
        case ops.Received(position=position):
            yield "position", str(position)
        case ops.Field(type_key=key, name=name):
            yield "field", f"{key}.{name}"
        case ops.Peek(part=part):
            yield "part", part
        case ops.IsInstance(type_key=key):
            yield "type", key


def _shown(callee: ops.Callee) -> str:
    """What is called, as people name it."""
    match callee:
        case str():
            return callee
        case ops.Method() | ops.Setter():
            return str(callee)
        case ops.Extern(name=name) | ops.Imported(name=name) | ops.Linked(name=name):
            return name
    return type(callee).__name__


def _made(op: ops.Op) -> Iterator[Sym]:
    """The symbols that what comes back has the values of."""
    if isinstance(op, ops.CallBody | ops.Receive):
        yield from (each[0] for each in op.made)


def _give_sizes(f: FunctionText, op: ops.Alloc) -> None:
    """The symbols that are dims of a new tensor."""
    assert isinstance(f.symbols, Symbols)
    for dim, size in zip(op.result.tensor.shape, op.sizes, strict=True):
        if isinstance(dim, Sym) and dim in f.symbols.places:
            f.symbols.give(dim, f.values[size])


def object_of(f: FunctionText, tensor: ops.Value) -> str:
    """The object of a tensor that the function owns, as a number."""
    (found,) = call(f, "object", [f.values[tensor]], ["i64"], {}, fails=False)
    return found


def tensor_map(f: FunctionText, tensor: ops.Value, boxes: ops.Boxes) -> str:
    """The tensor map that a kernel gets for a tensor."""
    (found,) = call(
        f, "tensor_map", [f.values[tensor]], ["!llvm.ptr"], {"boxes": str(boxes)}, fails=True
    )
    return found


@dataclass(frozen=True, slots=True)
class Symbols(Mapping[Sym, str]):
    """The values of symbols: those that the caller gave, and those in memory, read where needed."""

    t: Text
    given: Mapping[Sym, str]
    places: Mapping[Sym, str]

    @staticmethod
    def of(t: Text, given: Mapping[Sym, str], made: Sequence[Sym]) -> Symbols:
        """With a place on the stack for each symbol that is made; it is 0 at first."""
        kind = "memref<i64>"
        places = {s: t.first(f"memref.alloca() : {kind}", kind, s.name or "size") for s in made}
        zero = t.const_i64(0) if made else ""
        for place in places.values():
            t.line(f"memref.store {zero}, {place}[] : {kind}")
        return Symbols(t, given, places)

    def give(self, symbol: Sym, value: str) -> None:
        """A symbol that is made has this value from now on."""
        self.t.line(f"memref.store {value}, {self.places[symbol]}[] : memref<i64>")

    def __getitem__(self, symbol: Sym) -> str:
        if symbol in self.places:
            return self.t.op(f"memref.load {self.places[symbol]}[] : memref<i64>", "i64")
        return self.given[symbol]

    def __iter__(self) -> Iterator[Sym]:
        yield from self.given
        yield from self.places

    def __len__(self) -> int:
        return len(self.given) + len(self.places)
