"""Prints the text of a program, for `inspect_ir()` and the golden tests.

Names are deterministic: a value is `%hint`, or `%hint_1` … if the hint is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from operator import attrgetter
from string import Formatter
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.specs import Dim, Sym, format_dim

_INDENT: Final = "  "
_SHOWN_BYTES: Final = 32


def print_program(program: ops.Program) -> str:
    """The text of a whole program."""
    return "\n".join([*(text for text, _ in program_lines(program)), ""])


def program_lines(program: ops.Program) -> Iterator[tuple[str, ops.Op | None]]:
    """The lines of the text of a program, each with the op that it is of."""
    yield f"program @{program.name} {{", None
    for relation in program.relations:
        left, right = (format_dim(d, program.symbols) for d in (relation.left, relation.right))
        names = f"{relation.left_name} and {relation.right_name}"
        yield f"{_INDENT}require {left} == {right}  // {names}", None
    for function in (*program.kernels, program.host):
        printer = _Printer(program.symbols)
        yield from zip(printer.function(function), printer.owners, strict=True)
    yield "}", None


def print_function(function: ops.Function, symbols: dict[Sym, str]) -> str:
    """The text of one function."""
    return "\n".join(_Printer(symbols).function(function))


def print_type(type_: Type, symbols: dict[Sym, str]) -> str:
    """The text of a type: `float32`, or `tensor<[n0, 8]:[8, 1], float32, align 4>`."""
    if isinstance(type_, HandleType):
        return f"handle<{type_.what}>"
    if not isinstance(type_, TensorType):
        return type_.name
    shape, strides = _dims(type_.shape, symbols), _dims(type_.strides, symbols)
    space = f", {type_.space.value}" if type_.is_own or type_.is_shared else ""
    return f"tensor<[{shape}]:[{strides}], {type_.dtype.name}, align {type_.align}{space}>"


def _dims(dims: Iterable[Dim], symbols: dict[Sym, str]) -> str:
    return ", ".join(format_dim(dim, symbols) for dim in dims)


def _hints(hints: ops.LoopHints | None) -> str:
    """The text of a loop's hints: ` unroll(4) vectorize(True)`."""
    if hints is None:
        return ""
    wishes = {"unroll": hints.unroll, "vectorize": hints.vectorize}
    return "".join(f" {name}({wish})" for name, wish in wishes.items() if wish is not None)


# ---- the text formats of ops ----

_Part = Callable[["_Printer", ops.Op], str]
_Field = Callable[["_Printer", Any, str], str]


@cache
def _parts_of(text: str) -> tuple[_Part, ...]:
    """The parts of the text format of a kind of op.

    `{field}` is a value, several values, or `str` of anything else; `{field!r}` is its `repr`.
    After a colon comes one of `_FORMS`, with another name for the field after an equals sign.
    """
    found: list[_Part] = []
    for literal, path, form, conversion in Formatter().parse(text):
        if literal:
            found.append(_literal(literal))
        if path is not None:
            name, _, other = (form or "").partition("=")
            found.append(_field(path, "repr" if conversion else name, other or path))
    return tuple(found)


def _literal(text: str) -> _Part:
    return lambda printer, op: text


def _field(path: str, form: str, name: str) -> _Part:
    get, shown = attrgetter(path), _FORMS[form]
    return lambda printer, op: shown(printer, get(op), name)


def _plain(printer: _Printer, item: Any, name: str) -> str:
    match item:
        case ops.Value():
            return printer.use([item])
        case tuple():
            return ", ".join(_plain(printer, each, name) for each in item)
    return str(item)


def _word(printer: _Printer, item: Any, name: str) -> str:
    """` name(…)`; nothing for an absent field."""
    return f" {name}({_plain(printer, item, name)})" if item not in (None, ()) else ""


def _shown_bytes(data: bytes) -> str:
    """Bytes as hexadecimal digits; many of them as their beginning, and a digest of all."""
    if len(data) <= _SHOWN_BYTES:
        return data.hex()
    return f"{data[:_SHOWN_BYTES].hex()}... sha256({sha256(data).hexdigest()[:16]})"


_FORMS: Final[Mapping[str, _Field]] = {
    "": _plain,
    "repr": lambda printer, item, name: repr(item),
    "word": _word,
    "flag": lambda printer, item, name: f" {name}" if item else "",
    "prefix": lambda printer, item, name: f"{name} " if item else "",
    "fast": lambda printer, item, name: ".fast" if item else "",
    "saturate": lambda printer, item, name: ".saturate" if item else "",
    "rest": lambda printer, item, name: ".rest" if item else "",
    "flags": lambda printer, item, name: "".join(f".{flag}" for flag in item),
    "first": lambda printer, item, name: "" if item is None else f"{printer.use([item])}, ",
    "more": lambda printer, item, name: "" if item is None else f", {printer.use([item])}",
    "at": lambda printer, item, name: f"[{printer.use(item)}]" if item else "",
    "axis": lambda printer, item, name: ops.AXES[item],
    "dim": lambda printer, item, name: printer.dim(item),
    "bytes": lambda printer, item, name: _shown_bytes(item),
    "callee": lambda printer, item, name: printer.callee(item),
}


class _Printer:
    """Prints one function, and records the assigned names."""

    def __init__(self, symbols: dict[Sym, str]) -> None:
        self.symbols = symbols
        self.names: dict[ops.Value, str] = {}
        self.taken: dict[str, int] = {}
        self.lines: list[str] = []
        self.owners: list[ops.Op | None] = []
        self.owner: ops.Op | None = None
        self.depth = 1

    def function(self, function: ops.Function) -> list[str]:
        params = ", ".join(f"{self.define(p)}: {self.type(p.type)}" for p in function.params)
        self.line(f"{function.kind} @{function.name}({params}) {{")
        self.region(function.body)
        self.line("}")
        return self.lines

    def line(self, text: str) -> None:
        self.lines.append(_INDENT * self.depth + text)
        self.owners.append(self.owner)

    def dim(self, dim: Dim) -> str:
        return format_dim(dim, self.symbols)

    def type(self, type_: Type) -> str:
        return print_type(type_, self.symbols)

    def define(self, value: ops.Value) -> str:
        hint = value.hint or "v"
        name = hint
        while name in self.taken:
            self.taken[hint] += 1
            name = f"{hint}_{self.taken[hint]}"
        self.taken[name] = 0
        self.names[value] = f"%{name}"
        return self.names[value]

    def use(self, values: Sequence[ops.Value]) -> str:
        return ", ".join(self.names.get(value, f"%<undefined {value.hint}>") for value in values)

    def region(self, region: ops.Region) -> None:
        self.depth += 1
        for op in region.ops:
            self.op(op)
        if region.yields:
            self.line(f"yield {self.use(region.yields)}")
        self.depth -= 1

    def op(self, op: ops.Op) -> None:
        around, self.owner = self.owner, op
        if isinstance(op, ops.RegionOp):
            self.structured(op)
        else:
            self.simple(op)
        self.owner = around

    def simple(self, op: ops.SimpleOp | ops.EffectOp) -> None:
        text = "".join(part(self, op) for part in _parts_of(op.facts.text or type(op).__name__))
        if isinstance(op, ops.SimpleOp):
            text = f"{self.define(op.result)} = {text} : {self.type(op.result.type)}"
        self.line(text)

    def callee(self, callee: ops.Callee) -> str:
        match callee:
            case str():
                return repr(callee)
            case ops.Extern(name=name):
                return f"extern @{name}"
            case ops.Imported(name=name):
                return f"imported @{name}"
            case ops.Linked(name=name):
                return f"linked @{name}"
            case ops.Method():
                return f"method {callee}"
            case ops.Setter():
                return f"setter {callee}"
            case ops.Keep():
                return "keep"
            case ops.DTypeText():
                return "dtype_text"
        return self.use([callee])

    def structured(self, op: ops.If | ops.For | ops.While | ops.Parallel) -> None:
        match op:
            case ops.If(results, condition, then, otherwise):
                self.open(results, f"if {self.use([condition])}", then)
                if otherwise.ops or otherwise.yields:
                    self.line("} else {")
                    self.region(otherwise)
            case ops.For(results, index, start, stop, step, initial, carried, body, hints):
                bounds = f"{self.use([start])} to {self.use([stop])} step {self.use([step])}"
                head = f"for {self.define(index)} = {bounds}{self.carry(carried, initial)}"
                head += _hints(hints)
                self.open(results, head, body)
            case ops.While(results, initial, carried, test, body):
                self.open(results, f"while{self.carry(carried, initial)}", test)
                self.line("} do {")
                self.region(body)
            case ops.Parallel(indices, extents, body):
                names = ", ".join(self.define(index) for index in indices)
                self.open((), f"parallel ({names}) < ({self.use(extents)})", body)
        self.line("}")

    def open(self, results: Sequence[ops.Value], head: str, body: ops.Region) -> None:
        """The first line of an op with regions, and its first region."""
        names = ", ".join(self.define(result) for result in results)
        self.line(f"{names} = {head} {{" if names else f"{head} {{")
        self.region(body)

    def carry(self, carried: Sequence[ops.Value], initial: Sequence[ops.Value]) -> str:
        if not carried:
            return ""
        pairs = zip(carried, initial, strict=True)
        return f" carry({', '.join(f'{self.define(c)} = {self.use([i])}' for c, i in pairs)})"
