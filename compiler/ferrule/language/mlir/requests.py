"""Requests of a host function to TVM-FFI and the CUDA driver, in the text that people read.

Each such op is a call of a private function that is declared and has no body, named after the op:
`@ferrule.call`, `@ferrule.item`, and so on.  Attributes of the declaration contain the rest.  A
request that fails ends the host function.  Tensors are memrefs; objects, functions, values of any
type and tensor maps are pointers.  A new tensor is a `memref.alloc`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ferrule.language.ir import ops
from ferrule.language.mlir.text import Text, escaped
from ferrule.specs import Signature, Sym
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.language.mlir.functions import FunctionText

OUTSIDE: Final = (ops.Alloc, ops.Shrink, ops.Outgoing, ops.ObjectOp)
"""Ops that are requests to TVM-FFI: new tensors, containers, objects, and calls of other
functions."""

_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def emit(f: FunctionText, op: ops.Op) -> None:
    """Emits one of these ops, or a `CallDevice`."""
    name = _WORDS.sub("_", type(op).__name__).lower()
    made = () if isinstance(op, ops.Alloc) else op.symbols
    given = [f.general(value) for value in op.operands]
    (result,) = op.defined
    types = [f.type_of(result), *["i64"] * len(made)]
    found = call(f, name, given, types, dict(_said(op)))
    f.values[result] = found[0]
    for symbol, value in zip(made, found[1:], strict=True):
        f.symbols.give(symbol, value)  # type: ignore[attr-defined]
    if isinstance(op, ops.Alloc):
        give_sizes(f, op)


def call(
    f: FunctionText,
    name: str,
    given: Sequence[str],
    types: Sequence[str],
    said: Mapping[str, str],
) -> list[str]:
    """Calls a function that is declared once for each type; returns its results."""
    t = f.t
    taken = ", ".join(t.types[value] for value in given)
    results = types[0] if len(types) == 1 else f"({', '.join(types)})"
    kind = f"({taken}) -> {results}"
    symbol = _declared(t, f"ferrule.{name}", kind, said)
    return t.several(f"func.call @{symbol}({', '.join(given)}) : {kind}", types, name)


def _declared(t: Text, name: str, kind: str, said: Mapping[str, str]) -> str:
    """The symbol of a function of this type, whose attributes contain `said`."""
    shown = ", ".join(f"{key} = {escaped(value.encode())}" for key, value in said.items())
    attributes = f" attributes {{{shown}}}" if shown else ""
    key = f"{name} {kind}{attributes}"
    if key not in t.declared:
        number = sum(known.startswith(f"{name} ") for known in t.declared)
        symbol = f"{name}.{number}" if number else name
        t.declared[key] = f"  func.func private @{symbol}{kind}{attributes}"
    return t.declared[key].split("@", 1)[1].split("(", 1)[0]


def _said(op: ops.Op) -> Iterator[tuple[str, str]]:
    """The attributes of an op, by name."""
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
    """The name of a callee, as people write it."""
    match callee:
        case str():
            return callee
        case ops.Method() | ops.Setter():
            return str(callee)
        case ops.Extern(name=name) | ops.Imported(name=name) | ops.Linked(name=name):
            return name
    return type(callee).__name__


def give_sizes(f: FunctionText, op: ops.Alloc | ops.Shrink) -> None:
    """Sets the symbols that are dims of a new tensor."""
    assert isinstance(f.symbols, Symbols)
    sizes = op.sizes if isinstance(op, ops.Alloc) else (op.size,)
    for dim, size in zip(op.result.tensor.shape, sizes, strict=False):
        if isinstance(dim, Sym) and dim in f.symbols.places:
            f.symbols.give(dim, f.values[size])


def define(f: FunctionText, op: ops.Define) -> None:
    """Sets a symbol to a number."""
    assert isinstance(f.symbols, Symbols)
    f.symbols.give(op.symbol, f.values[op.value])


def object_of(f: FunctionText, tensor: ops.Value) -> str:
    """The object of a tensor that the function owns, as a number."""
    (found,) = call(f, "object", [f.general(tensor)], ["i64"], {})
    return found


def tensor_map(f: FunctionText, tensor: ops.Value, boxes: ops.Boxes) -> str:
    """The tensor map that a kernel receives for a tensor."""
    (found,) = call(f, "tensor_map", [f.general(tensor)], ["!llvm.ptr"], {"boxes": str(boxes)})
    return found


@dataclass(frozen=True, slots=True)
class Symbols(Mapping[Sym, str]):
    """The values of symbols: those that the caller passes, and those on the stack, which are loaded
    where they are used."""

    t: Text
    given: Mapping[Sym, str]
    places: Mapping[Sym, str]

    @staticmethod
    def of(t: Text, given: Mapping[Sym, str], made: Sequence[Sym]) -> Symbols:
        """Makes a stack slot for each symbol in `made`; each is 0 at first."""
        kind = "memref<i64>"
        places = {s: t.first(f"memref.alloca() : {kind}", kind, s.name or "size") for s in made}
        zero = t.const_i64(0) if made else ""
        for place in places.values():
            t.line(f"memref.store {zero}, {place}[] : {kind}")
        return Symbols(t, given, places)

    def give(self, symbol: Sym, value: str) -> None:
        """Stores the value of a symbol, which it has from now on."""
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
