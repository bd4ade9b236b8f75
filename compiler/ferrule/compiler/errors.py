"""Errors of a compilation: a diagnostic is data, and there is one renderer.

The user can always correct a `CompileError`: it names the place in the source, what was expected
and what to write instead.  A bug in ferrule itself is an ordinary Python error.
"""

from __future__ import annotations

from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of one source line: 1-based line, 0-based columns, the text of the whole line."""

    file: str
    function: str
    line: int
    column: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What is wrong, where, what was expected and a hint; `notes` come after, one line each."""

    message: str
    span: Span | None = None
    expected: str | None = None
    hint: str | None = None
    notes: tuple[str, ...] = ()


def render(diagnostic: Diagnostic) -> str:
    """The text of a diagnostic: message, place, source line with a caret, expected, hint, notes."""
    lines = [diagnostic.message]
    if diagnostic.span is not None:
        lines += _render_span(diagnostic.span)
    if diagnostic.expected is not None:
        lines.append(f"  expected: {diagnostic.expected}")
    if diagnostic.hint is not None:
        lines.append(f"  hint: {diagnostic.hint}")
    lines += [f"  note: {note}" for note in diagnostic.notes]
    return "\n".join(lines)


def _render_span(span: Span) -> list[str]:
    # Columns count characters, so a tab is shown as one.
    text = span.text.rstrip("\n").expandtabs(1)
    indent = len(text) - len(text.lstrip())
    width = max(1, min(span.end_column, len(text)) - span.column)
    gutter = f"{span.line:5d} | "
    return [
        f'  File "{span.file}", line {span.line}, in {span.function}',
        gutter + text[indent:],
        " " * 5 + " | " + " " * max(0, span.column - indent) + "^" * width,
    ]


class NoSuchNameError(AttributeError):
    """A name of CuTe DSL that ferrule has not; the text says what there is instead."""


class CompileError(Exception):
    """A function cannot be compiled with its example arguments and options; says what to change.

    `diagnostic` holds the parts of the message.
    """

    def __init__(self, diagnostic: Diagnostic | str) -> None:
        self.diagnostic = Diagnostic(diagnostic) if isinstance(diagnostic, str) else diagnostic
        super().__init__(render(self.diagnostic))

    def _render_traceback_(self) -> list[str]:
        """As IPython and notebooks show it: the user's lines, and the message with colours."""
        from ferrule.compiler.tracebacks import coloured

        return coloured(self, render(self.diagnostic))

    def __reduce__(self) -> tuple[type[CompileError], tuple[Diagnostic]]:
        return type(self), (self.diagnostic,)
