"""MLIR's diagnostics as data, and the `Diagnostic` for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

from ferrule.compiler.errors import Diagnostic, Span
from ferrule.specs.deferred import dataclass

_PLACE: Final = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_TEXT: Final = "-"
"""MLIR's name for a text that is not a file."""

UNNAMED: Final = "<mlir>"
"""The name in messages for a text that is not a file."""

_MOST_LINES: Final = 6
_MOST_NOTES: Final = 8
_MOST_LETTERS: Final = 240
_DIALECT: Final = re.compile(r"""(?:Dialect `|!")(\w+)['"]""")
_LOWERED_BY: Final = MappingProxyType(
    {
        "torch": "have torch-mlir lower it before: "
        'fx.export_and_import(…, output_type="linalg-on-tensors")',
        "tm_tensor": "install torch-mlir, whose bindings know it, or lower it before, with its "
        "passes tm-tensor-bufferize and tm-tensor-to-loops",
        "stablehlo": "pip install jaxlib, whose passes lower it, or lower it before, with "
        "StableHLO's pass stablehlo-legalize-to-linalg",
        "tt": "fe.frontends.triton compiles kernels of Triton",
    }
)
"""Dialects that are not upstream's, and the tools that lower them to upstream dialects."""


@dataclass(frozen=True, slots=True)
class MlirMessage:
    """One diagnostic: `severity` such as "error", the place as MLIR prints it, the message, its
    notes."""

    severity: str
    location: str
    message: str
    notes: tuple[MlirMessage, ...] = ()

    @staticmethod
    def of(diagnostic: Any) -> MlirMessage:
        """The data of a diagnostic of the bindings."""
        return MlirMessage(
            str(diagnostic.severity).rpartition(".")[2].lower(),
            str(diagnostic.location),
            str(diagnostic.message),
            tuple(MlirMessage.of(note) for note in diagnostic.notes),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A step: its verb phrase for "MLIR cannot …", the text for places, and its name."""

    doing: str
    source: str = ""
    who: str = "MLIR"
    file: str = UNNAMED


def failure(step: Step, messages: Sequence[MlirMessage], otherwise: str = "") -> Diagnostic:
    """The diagnostic of a failed step; `otherwise` is used if MLIR reported nothing.

    The place is that of the first error, in the source of the step.
    """
    errors = [each for each in messages if each.severity == "error"] or list(messages)
    if not errors:
        return Diagnostic(f"{_cannot(step)}: {_shortened(otherwise) or 'it says nothing'}")
    first, *others = errors
    notes = [*map(_line, first.notes), *map(_line, others)]
    return Diagnostic(
        f"{_cannot(step)}: {_shortened(first.message)}",
        span=span_of(first.location, step),
        hint=_hint(first.message),
        notes=tuple(notes[:_MOST_NOTES]),
    )


def _cannot(step: Step) -> str:
    return f"{step.who} cannot {step.doing}"


def _hint(message: str) -> str | None:
    if "LLVMTranslationDialectInterface" in message or "unrealized_conversion_cast" in message:
        return "the pipeline must leave nothing but operations of the llvm dialect"
    if "unregistered dialect" in message or ("Dialect `" in message and "not found" in message):
        known = _DIALECT.search(message)
        lowered = _LOWERED_BY.get(known[1]) if known else None
        return lowered or "lower the operations of other dialects to those of upstream before"
    return None


def _line(message: MlirMessage) -> str:
    """A note on one line; long listings of operations are cut."""
    where = _PLACE.search(message.location)
    place = f"{where[2]}:{where[3]}: " if where else ""
    words = " ".join(message.message.split())
    return place + (words if len(words) <= _MOST_LETTERS else words[:_MOST_LETTERS] + " …")


def _shortened(text: str) -> str:
    lines = text.strip().splitlines()
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], "…"]
    return "\n".join(lines)


def span_of(location: str, step: Step) -> Span | None:
    """The source span of a location in MLIR's text, None if it has none."""
    found = _PLACE.search(location)
    if found is None:
        return None
    file, line, column = found[1], int(found[2]), int(found[3])
    unnamed = file == _TEXT
    lines = step.source.splitlines() if unnamed else []
    if unnamed and not 0 < line <= len(lines):
        return None
    text = lines[line - 1][:_MOST_LETTERS] if unnamed else ""
    # MLIR counts columns from 1.
    start = max(0, column - 1)
    name = step.file if unnamed else file
    return Span(name, "module", line, start, max(start + 1, _word_end(text, start)), text)


def _word_end(text: str, start: int) -> int:
    found = re.compile(r"[\w.%@!#$-]+").match(text, start)
    return found.end() if found else start + 1
