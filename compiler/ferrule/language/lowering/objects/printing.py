"""`printf`: numbers as text, in the format of Python (`{}`, `{:.3f}`) or of C (`%d`).

Compile-time values become part of the text.  The rest is one C format with a number for each
conversion, for `ops.Print`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from string import Formatter
from typing import Any, Final

from ferrule.language.faces import base as faces
from ferrule.language.faces import printing
from ferrule.language.ir import ops
from ferrule.language.layouts import Layout
from ferrule.language.layouts.dims import ScaledBasis
from ferrule.language.lowering import handles, structures
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.lowering.numbers.sizes import size_number
from ferrule.language.lowering.objects import any_values, shown, texts
from ferrule.language.lowering.tensors import devices
from ferrule.language.values import (
    CoordinateView,
    Handle,
    Number,
    PointerView,
    TensorView,
    Vector,
    is_run_time,
)
from ferrule.specs import (
    Boolean,
    DType,
    Float64,
    Int32,
    Int64,
    Numeric,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    params,
)
from ferrule.specs.deferred import dataclass

_C: Final = re.compile(r"%(?:%|([-+ #0]*)(\d*)(?:\.(\d+))?(hh|h|ll|l|j|z|t|L)?([a-zA-Z]))")
_PYTHON: Final = re.compile(r"([<>])?([-+ ])?(#)?(0)?(\d*)(?:\.(\d+))?([a-zA-Z])?")
_FIELD: Final = re.compile(r"\{[^{}]*\}")
_UNSIGNED: Final = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}
_INTEGERS: Final = "dioxXcu"
_SHORT: Final = {"hh": 8, "h": 16}
"""The bits to which C truncates a number."""

_FLOATS: Final = "eEfFgGaA"


def printf(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`printf(format, values..., end="\\n")`, or `printf(values...)`."""
    unknown = [name for name in kwargs if name != "end"]
    if unknown:
        low.fail(node, f"printf has no argument {unknown[0]!r}", expected="end")
    end = kwargs.get("end", "\n")
    if not isinstance(end, str):
        low.fail(node, f"the end of printf is {describe(end)}", expected="a string")
    text = _Text(low, node)
    if args and isinstance(args[0], FString):
        if len(args) > 1:
            low.fail(node, "an f-string of printf has its values inside, but more are given")
        text.pieces(args[0])
    elif args and isinstance(args[0], str):
        text.formatted(args[0], args[1:])
    else:
        for position, value in enumerate(args):
            text.literal(" " if position else "")
            text.value(value, "")
    # CuTe DSL ends each text with `end`, also one that ends with a newline.
    if low.is_as_cute or not (end == "\n" and text.format.endswith("\n")):
        text.literal(end)
    low.builder.append(ops.Print(text.format, tuple(text.values), low.location(node)))


@dataclass(frozen=True, slots=True)
class FString:
    """An f-string with its values: texts, and fields with a value, a conversion such as `r`, and a
    format."""

    pieces: tuple[str | tuple[Any, str, str], ...]

    @classmethod
    def of(cls, low: Lowering, node: ast.JoinedStr) -> FString:
        """The values of an f-string, each evaluated once, in order."""
        return cls(tuple(_field(low, piece) for piece in node.values))


def _field(low: Lowering, piece: ast.expr) -> str | tuple[Any, str, str]:
    if not isinstance(piece, ast.FormattedValue):
        return str(low.evaluate(piece))
    value = low.evaluate(piece.value)
    spec = "" if piece.format_spec is None else low.known_text(low.evaluate(piece.format_spec))
    return value, "" if piece.conversion == -1 else chr(piece.conversion), str(spec)


@dataclass(frozen=True, slots=True)
class _Spec:
    """The format of a number: C's flags, width, precision and letter; "" for the default.

    `position`: the index of the value, if the field has one.  `most`: the number of bits that C
    would print; C's other lengths are ignored, because a number is printed in its own width.
    """

    flags: str = ""
    width: str = ""
    precision: str | None = None
    letter: str = ""
    position: int | None = None
    most: int | None = None

    def c(self, length: str, letter: str) -> str:
        """The conversion in C."""
        precision = "" if self.precision is None else f".{self.precision}"
        return f"%{self.flags}{self.width}{precision}{length}{letter}"


class _Text:
    """The format under construction, and its numbers."""

    def __init__(self, low: Lowering, node: ast.Call) -> None:
        self.low = low
        self.node = node
        self.format = ""
        self.values: list[ops.Value] = []

    def literal(self, text: str) -> None:
        """Literal text."""
        if "\0" in text:
            self.low.fail(self.node, "the text of printf has a NUL character, which ends it")
        self.format += text.replace("%", "%%")

    def formatted(self, template: str, values: list[Any]) -> None:
        """A template and the values of its fields."""
        self.low.known_text(template)
        pieces = list(self._pieces(template))
        fields = [piece for piece in pieces if isinstance(piece, _Spec)]
        if any(field.position is not None for field in fields):
            values = self._in_order(fields, values)
        if len(fields) != len(values):
            self.low.fail(
                self.node,
                f"the format of printf has {len(fields)} fields, but {len(values)} values are "
                f"given",
                expected='one {} or %d for each value, such as printf("{} {}", a, b)',
            )
        rest = iter(values)
        for piece in pieces:
            if isinstance(piece, str):
                self.literal(piece)
            else:
                self.value(next(rest), piece)

    def pieces(self, given: FString) -> None:
        """The pieces of an f-string; Python itself formats values known at compile time."""
        for piece in given.pieces:
            if isinstance(piece, str):
                self.literal(piece)
                continue
            value, conversion, spec = piece
            if isinstance(value, Layout) and not (conversion or spec):
                self._layout(value)
                continue
            if not is_run_time(self.low.known_text(value)):
                self.literal(self._formatted(value, conversion, spec))
                continue
            if isinstance(value, Number):  # str, repr and ascii of a number are the same
                conversion = ""
            wanted = self._python_spec("", spec, conversion or None)
            if isinstance(value, Handle) and wanted.width and not spec.startswith(">"):
                wanted = replace(wanted, flags="-")  # texts begin at the left
            self.value(value, wanted)

    def _formatted(self, value: Any, conversion: str, spec: str) -> str:
        converters: dict[str, Callable[[Any], Any]] = {"s": str, "r": repr, "a": ascii}
        known = value.value if isinstance(value, Numeric) else value
        known = known.name if isinstance(known, DType) and not conversion else known
        compute = coercion.at_compile_time
        shown = converters[conversion](known) if conversion else known
        return str(compute(self.low, self.node, lambda: format(shown, spec)))

    def _in_order(self, fields: list[_Spec], values: list[Any]) -> list[Any]:
        """The value of each field, all of which have an index."""
        chosen: list[Any] = []
        for field in fields:
            if field.position is None:
                self.low.fail(
                    self.node, "the format of printf has fields with a number and without one"
                )
            if field.position >= len(values):
                self.low.fail(
                    self.node,
                    f"the format of printf has a field {{{field.position}}}, but {len(values)} "
                    f"values are given",
                    hint="the first one is {0}",
                )
            chosen.append(values[field.position])
        unused = set(range(len(values))) - {field.position for field in fields}
        if unused:
            self.low.fail(self.node, f"no field of printf's format is of value {min(unused)}")
        return chosen

    def _pieces(self, template: str) -> Iterator[str | _Spec]:
        """Text and fields in order: C's if there are any, else Python's."""
        if any(found[0] != "%%" for found in _C.finditer(template)) and not _FIELD.search(template):
            yield from self._c_pieces(template)
            return
        try:
            pieces = list(Formatter().parse(template))
        except ValueError as error:
            self.low.fail(
                self.node, f"the format of printf: {error}", hint="write {{ and }} for braces"
            )
        for text, field, spec, conversion in pieces:
            yield text
            if field is not None:
                yield self._python_spec(field, spec or "", conversion)

    def _c_pieces(self, template: str) -> Iterator[str | _Spec]:
        end = 0
        for found in _C.finditer(template):
            yield template[end : found.start()]
            end = found.end()
            if found[0] == "%%":
                yield "%"
            else:
                yield _Spec(found[1], found[2], found[3], found[5], most=_SHORT.get(found[4] or ""))
        yield template[end:]

    def _python_spec(self, field: str, spec: str, conversion: str | None) -> _Spec:
        found = _PYTHON.fullmatch(spec)
        whole = found is not None and found[6] is not None and (found[7] or "f") in _INTEGERS
        if (field and not field.isdecimal()) or conversion or found is None or whole:
            shown = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            self.low.fail(
                self.node,
                f"the field {{{field}{shown}}} of printf is not supported",
                expected="{}, or a width, precision and letter, such as {:8.3f}",
            )
        align, sign, hash_, zero, width, precision, letter = (part or "" for part in found.groups())
        flags = ("-" if align == "<" else "") + sign.replace("-", "") + hash_ + zero
        position = int(field) if field else None
        return _Spec(flags, width, precision or None, letter, position)

    def value(self, value: Any, spec: _Spec | str) -> None:
        """A value with its conversion; tuples like Python prints them."""
        spec = _Spec() if isinstance(spec, str) else spec
        if isinstance(value, Number):
            self._number(value, spec)
        elif isinstance(value, Layout):
            self._layout(value)
        elif isinstance(value, CoordinateView):
            self._sizes(value.origin)
            self.literal(" o ")
            self._layout(value.layout)
        elif not is_run_time(value):
            self._known(coercion.plain(value), spec)
        elif isinstance(value, (TensorView, PointerView)):
            self._memory(value)
        elif isinstance(value, devices.CallDevice):
            self.literal(f"{value.kind}:")
            self.value(texts.device_attribute(self.low, value, "index", self.node), spec)
        elif isinstance(value, Handle) and handles.compares(value):
            self._handle(value, spec)
        elif isinstance(value, (tuple, list)):
            opening, closing = "()" if isinstance(value, tuple) else "[]"
            self.literal(opening)
            for position, item in enumerate(value):
                self.literal(", " if position else "")
                self.value(repr(item) if isinstance(item, str) else item, spec)
            self.literal(",)" if len(value) == 1 and closing == ")" else closing)
        elif structures.parts(value) is not None:
            self.value(tuple(item for _, item in structures.parts(value) or ()), spec)
        else:
            self.low.fail(
                self.node,
                f"{describe(value)} cannot be printed",
                expected="numbers, strings, dtypes, devices, and tuples of these",
                hint=usage_hint(value),
            )

    def _handle(self, value: Handle, spec: _Spec) -> None:
        """A text, dtype or device."""
        match value.param:
            case params.Device():
                self._text(texts.device_type(self.low, value), spec)
                self.literal(":")
                self.value(texts.device_attribute(self.low, value, "index", self.node), "")
            case params.DataType():
                self._text(any_values.dtype_text(self.low, value, self.node), spec)
            case _:
                self._text(value, spec)

    def _layout(self, layout: Layout) -> None:
        """A layout, with the sizes of the call."""
        self._sizes(layout.shape)
        self.literal(":")
        self._sizes(layout.stride)

    def _sizes(self, sizes: Any) -> None:
        """Sizes, strides or coordinates, without spaces."""
        if isinstance(sizes, tuple):
            self.literal("(")
            for position, item in enumerate(sizes):
                self.literal("," if position else "")
                self._sizes(item)
            self.literal(")")
        elif isinstance(sizes, ScaledBasis):
            self._sizes(sizes.value)
            self.literal("".join(f"@{mode}" for mode in reversed(sizes.mode)))
        else:
            self.value(sizes if is_run_time(sizes) else size_number(self.low, sizes), "")

    def _memory(self, memory: TensorView | PointerView) -> None:
        """The type of memory, with its address unless it is in registers; a tensor's layout."""
        self.literal("raw_ptr(")
        if not memory.type.is_own:
            at = ops.Value(Int64, "address")
            self.low.builder.append(ops.Address(at, memory.value))
            self._append("0x%016llx", coercion.convert(self.low, Number(at), Uint64), Uint64)
            self.literal(": ")
        self.literal(f"{shown.elements(self.low, memory.type)})")
        if isinstance(memory, TensorView):
            self.literal(" o ")
            self._layout(memory.layout)

    def _text(self, text: Handle, spec: _Spec) -> None:
        """A text, unchanged."""
        if spec.letter not in ("", "s") or spec.precision is not None:
            self.low.fail(
                self.node,
                f"{describe(text)} is printed as {spec.c('', spec.letter or 's')}",
                expected="{}, %s, or one with a width",
            )
        address, size = text.leaves
        build = self.low.builder
        most = build.constant(Int64, Int32.range[1])
        self.format += f"%{spec.flags.replace('0', '')}{spec.width}.*s"
        self.values += [build.cast(Int32, build.binary("min", size, most)), address]

    def _known(self, value: Any, spec: _Spec) -> None:
        """A value known at compile time: part of the text."""
        self.low.known_text(value)
        raw = scalars.untyped(value, None)[0]
        if isinstance(raw, (bool, int, float)) and spec.letter not in ("", "s", "d"):
            self.literal(self._python(raw, spec))
        else:
            self.literal(raw.name if isinstance(raw, DType) else str(raw))

    def _python(self, raw: Any, spec: _Spec) -> str:
        compute = coercion.at_compile_time
        letter = {"u": "d", "i": "d"}.get(spec.letter, spec.letter)
        return str(compute(self.low, self.node, lambda: spec.c("", letter) % raw))

    def _number(self, number: Number, spec: _Spec) -> None:
        kind, letter = number.dtype.kind, spec.letter
        if spec.most is not None and number.dtype.bits > spec.most:
            self.low.fail(
                self.node,
                f"printf would cut {describe(number)} down to {spec.most} bits",
                hint=f"convert it, or write %{letter}",
            )
        if kind == "bool" and letter in ("", "s"):
            self._append(spec.c("", "s"), number, Boolean)
        elif letter and letter not in (_FLOATS if kind == "float" else _FLOATS + _INTEGERS):
            wanted = "%f, %e or %g" if kind == "float" else "%d, %u or %x"
            self.low.fail(
                self.node,
                f"%{letter} of printf cannot show {describe(number)}",
                expected=f"{wanted}, or {{}}",
            )
        elif kind == "float" or letter and letter in _FLOATS:
            self._append(spec.c("", letter or "g"), number, Float64)
        elif letter == "c":
            self.low.fail(self.node, "%c of printf is not supported", expected="%d or {}")
        elif kind == "uint" or letter in tuple("uxXo"):
            unsigned = coercion.convert(self.low, number, _UNSIGNED[number.dtype.bits])
            self._append(spec.c("ll", letter if letter in tuple("xXo") else "u"), unsigned, Uint64)
        else:
            self._append(spec.c("ll", "d"), number, Int64)

    def _append(self, conversion: str, number: Number, dtype: Any) -> None:
        self.format += conversion
        self.values.append(coercion.convert(self.low, number, dtype).value)


def _in_memory(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """The tensor whose elements `print_tensor` shows."""
    (value,) = bound(low, "tensor", args, kwargs, node)
    if isinstance(value, Vector):
        from ferrule.language.faces.vectors import make_fragment_like
        from ferrule.language.lowering.tensors import vectors

        fragment = low.call(make_fragment_like, [value], {}, node)
        vectors.store(low, fragment, value, node)
        return fragment
    if not isinstance(value, (TensorView, CoordinateView)):
        low.fail(node, f"print_tensor takes a tensor, but got {describe(value)}")
    return value


def _has_coordinates(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    (value,) = bound(low, "tensor", args, kwargs, node)
    return isinstance(value, CoordinateView)


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.printf: printf,
    printing.in_memory: _in_memory,
    printing.has_coordinates: _has_coordinates,
}
