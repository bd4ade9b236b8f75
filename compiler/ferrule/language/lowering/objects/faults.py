"""Messages of run-time errors: text, and run-time values.

Compile-time values become part of the text.  Run-time values have placeholders, see `Fault`.
"""

from __future__ import annotations

import ast
from dataclasses import field
from string import Formatter
from typing import Any

from ferrule.compiler.artefacts import literal
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.values import Handle, Number, is_run_time
from ferrule.specs import DType, Float64, Int64, params
from ferrule.specs.deferred import dataclass


@dataclass(slots=True)
class Message:
    """A message under construction: its text, and the values of its placeholders."""

    low: Lowering
    node: ast.AST
    text: str = ""
    values: list[ops.Value] = field(default_factory=list)

    def expression(self, message: ast.expr) -> None:
        """An f-string, or any other text."""
        for piece in message.values if isinstance(message, ast.JoinedStr) else [message]:
            inner = piece.value if isinstance(piece, ast.FormattedValue) else piece
            value = self.low.known_text(self.low.evaluate(inner))
            if is_run_time(value):
                self._without_format(piece)
                self.value(value)
            else:
                self.text += literal(_known(self.low, piece, value))

    def _without_format(self, piece: ast.expr) -> None:
        if isinstance(piece, ast.FormattedValue) and (piece.format_spec or piece.conversion != -1):
            self.low.fail(
                self.node,
                "a run-time value in an error's message takes no format",
                hint="write {x} alone, or print it before with fe.printf",
            )

    def template(self, template: str, values: list[Any]) -> None:
        """A text with a `{}` for each value."""
        template = self.low.known_text(template)
        pieces = self._pieces(template)
        count = sum(is_field for _, is_field in pieces)
        if count != len(values):
            self.low.fail(
                self.node,
                f"the text of raise_error has {count} fields, but {len(values)} values are given",
                expected="one {} for each value",
                hint="write {{ and }} for braces",
            )
        rest = iter(values)
        for text, is_field in pieces:
            self.text += literal(text)
            if is_field:
                self.value(next(rest))

    def _pieces(self, template: str) -> list[tuple[str, bool]]:
        """Texts, and whether a field follows."""
        try:
            pieces = list(Formatter().parse(template))
        except ValueError as error:
            self.low.fail(
                self.node, f"the text of raise_error: {error}", hint="write {{ and }} for braces"
            )
        if any(name or spec or conversion for _, name, spec, conversion in pieces):
            self.low.fail(
                self.node,
                "the text of raise_error has a field with a name or format",
                expected="{} for each value",
            )
        return [(text, name is not None) for text, name, _, _ in pieces]

    def value(self, value: Any) -> None:
        """A value, as Python's `str` shows it; tuples and lists item by item."""
        match value:
            case _ if not is_run_time(value):
                self.text += literal(_shown(self.low.known_text(value)))
            case Number():
                self._number(value)
            case Handle(param=params.String() | params.Bytes(), leaves=(address, length)):
                at = ops.Value(Int64, "address")
                self.low.builder.append(ops.Address(at, address))
                self._append("{bytes}", at, length)
            case Handle(param=params.DataType()):
                self._append("{dtype}", value.leaves[0])
            case Handle(param=params.Device()):
                self._append("{device}", value.leaves[0])
            case tuple() | list():
                self._items(value)
            case _:
                self.low.fail(
                    self.node,
                    f"{describe(value)} cannot be shown in an error's message",
                    expected="numbers, strings, dtypes, devices, and tuples of these",
                    hint=usage_hint(value),
                )

    def _items(self, value: tuple[Any, ...] | list[Any]) -> None:
        opening, closing = "()" if isinstance(value, tuple) else "[]"
        self.text += opening
        for position, item in enumerate(value):
            self.text += ", " if position else ""
            self.value(repr(item) if isinstance(item, str) else item)
        self.text += ",)" if len(value) == 1 and closing == ")" else closing

    def _number(self, number: Number) -> None:
        build = self.low.builder
        match number.dtype.kind, number.dtype.bits:
            case "bool", _:
                self._append("{bool}", number.value)
            case "float", _:
                wide = coercion.convert(self.low, number, Float64)
                self._append("{float}", build.bitcast(Int64, wide.value))
            case "uint", 64:
                self._append("{unsigned}", number.value)
            case _:
                self._append("{}", number.value)

    def _append(self, placeholder: str, *values: ops.Value) -> None:
        self.text += placeholder
        self.values += values


def _shown(value: Any) -> str:
    """The text of a compile-time value."""
    raw = scalars.untyped(coercion.plain(value), None)[0]
    return raw.name if isinstance(raw, DType) else str(raw)


def _known(low: Lowering, piece: ast.expr, value: Any) -> str:
    """The text of a compile-time piece of an f-string."""
    if not isinstance(piece, ast.FormattedValue):
        return describe(value, plain=True)
    kept = ast.FormattedValue(ast.Name("value", ast.Load()), piece.conversion, piece.format_spec)
    code = ast.fix_missing_locations(ast.Expression(ast.JoinedStr([kept])))
    compiled = compile(code, "<message>", "eval")
    return str(coercion.at_compile_time(low, piece, lambda: eval(compiled, {"value": value})))
