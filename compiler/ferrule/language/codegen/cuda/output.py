"""Output of a kernel on a GPU: `printf`, and the message of a failed check.

Both are system calls that the driver provides (CUDA's PTX interoperability guide, "System Calls"):
`int vprintf(const char* format, void* values)`, here with values of 8 bytes each, and `void
__assertfail(const char* message, const char* file, unsigned line, const char* function, size_t
character)`, which prints all of that with block and thread, and ends the context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import I1, I32, I64, PTR, VOID
from ferrule.specs.deferred import dataclass

V = TypeVar("V")

_PRINT: Final = ("vprintf", ir.FunctionType(I32, [PTR, PTR]))
_FAIL: Final = ("__assertfail", ir.FunctionType(VOID, [PTR, PTR, I32, PTR, I64]))
_FIELD: Final = re.compile(r"\{\{|\}\}|\{(\w*)\}")
_CONVERSIONS: Final = {
    "": "%lld",
    "unsigned": "%llu",
    "float": "%g",
    "bool": "%s",
}
"""The formats for values of a fault; other placeholders are unknown on a GPU."""


@dataclass(frozen=True, slots=True)
class DeviceOutput:
    """The output of one kernel; `paths`: whether messages include folders in file names."""

    kernel: str
    paths: bool = True

    def print_(self, emitter: Emitter, format_: str, values: Sequence[ir.Value]) -> None:
        """Prints with a format of `ops.Print`."""
        shown = [_named(emitter, v) if v.type == I1 else v for v in values]
        _vprintf(emitter, format_, shown)

    def check(
        self, emitter: Emitter, ok: ir.Value, fault: Fault, values: Sequence[ir.Value]
    ) -> None:
        """Ends the context if `ok` is false; prints the values of the message first."""
        passed, failed = emitter.block("passed"), emitter.block("failed")
        emitter.cond_branch(ok, passed, failed, LIKELY)
        emitter.at(failed)
        if values:
            format_, shown = as_format(fault, values, partial(_flag, emitter))
            _vprintf(emitter, format_ + "\n", shown)
        file, line, function = self.place(fault)
        texts = [emitter.cstring(text) for text in (still(fault), file, function)]
        # The last one is the size of a character of the texts.
        given = [texts[0], texts[1], emitter.const_i32(line), texts[2], emitter.const_i64(1)]
        _call(emitter, _FAIL, given, "noreturn")
        emitter.builder.unreachable()
        emitter.at(passed)

    def place(self, fault: Fault) -> tuple[str, int, str]:
        """File, line and function of a fault."""
        if fault.location is None:
            return "?", 0, self.kernel
        file, function = fault.location.file, fault.location.function
        return file if self.paths else Path(file).name, fault.location.line, function


def as_format(fault: Fault, values: Sequence[V], named: Callable[[V], V]) -> tuple[str, list[V]]:
    """A fault's message as a format of `vprintf`, with its values; `named` converts a flag to the
    text True or False."""
    rest, shown = iter(values), []

    def conversion(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        value = next(rest)
        if found[1] not in _CONVERSIONS:
            return "..."
        shown.append(named(value) if found[1] == "bool" else value)
        return _CONVERSIONS[found[1]]

    # `vprintf` would read a % of the message as a conversion, for which there is no value.
    text = f"{fault.kind}: {fault.message}".replace("%", "%%")
    return _FIELD.sub(conversion, text), shown


def _flag(emitter: Emitter, value: ir.Value) -> ir.Value:
    return _named(emitter, emitter.icmp("ne", value, emitter.const_i64(0)))


def _named(emitter: Emitter, flag: ir.Value) -> ir.Value:
    return emitter.select(flag, emitter.cstring("True"), emitter.cstring("False"))


def still(fault: Fault) -> str:
    """A fault's message without its values."""
    text = _FIELD.sub(lambda found: "..." if found[1] is not None else found[0][0], fault.message)
    return f"{fault.kind}: {text}"


def _vprintf(emitter: Emitter, format_: str, values: Sequence[ir.Value]) -> None:
    """Values have 8 bytes each."""
    place = emitter.null()
    if values:
        place = emitter.alloca(I64, len(values), name="printed")
        for number, value in enumerate(values):
            emitter.store(value, emitter.index(place, I64, number))
    _call(emitter, _PRINT, [emitter.cstring(format_), place])


def _call(
    emitter: Emitter,
    function: tuple[str, ir.FunctionType],
    given: Sequence[ir.Value],
    *attributes: str,
) -> None:
    name, kind = function
    symbol = emitter.symbol(name, kind)
    for attribute in attributes:
        symbol.attributes.add(attribute)
    emitter.call(symbol, list(given))
