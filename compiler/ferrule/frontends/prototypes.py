"""Whether a function of a C source takes what a call hands to it, and returns what it expects: its
compiler is asked.

Behind the source come calls of the function, which are read and never made.  In the first the
arguments have the types that they will have.  In others numbers have wider types: where the
compiler sees no loss in that, the parameter is wider than the argument; in one addresses are
numbers: where it sees a loss, the parameter is a number with too few bits.  One has too many
arguments: where that is no error, the function says nothing about its parameters.  One has none:
where that alone is an error, the function has a `...`.  The last loses for sure: where the compiler
does not say so, it says nothing of the others.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends import returned
from ferrule.frontends.sources import Source

if TYPE_CHECKING:
    from ferrule.compiler.conventions.returns import Checked

_TYPES: Final = {
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "float": "float",
    "double": "double",
}
_WARN: Final = """
#pragma GCC diagnostic warning "-Wconversion"
#pragma GCC diagnostic warning "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic error "-Wint-conversion"
static void ferrule_narrow(float a, int b) {}
"""
_WIDER: Final = {
    "given": {},
    "wide": {"int": "long long", "float": "double"},
    "huge": {"int": "__int128"},
    "address": {"void*": "long long"},
}
_MANY: Final = 99
_SAID: Final = re.compile(r"^(\w+):(\d+):\d+: (error|warning): (.*)", re.MULTILINE)
_OF_ARGUMENTS: Final = re.compile(r"argument|passing .* to parameter|incompatible")
_TO_DOUBLE: Final = re.compile(r"\b(?:to|aka) 'double'")
_AN_ADDRESS: Final = re.compile(r"integer from pointer|pointer to integer")
"""An address for an intptr_t is as good as one for a pointer."""


def check_call(
    command: Sequence[str],
    source: Source,
    function: str,
    arguments: Sequence[tuple[str, Any]],
    returns: Checked = None,
    size: int = 0,
    *,
    is_variadic: bool = False,
) -> None:
    """Raises CompileError where a function does not take what it is handed, or returns something
    else.

    `command` are the words of the compiler, which has compiled the source.  `arguments` are
    descriptions of the values with their LLVM types, `returns` is what the call expects, `size` the
    bytes of the struct where it is one, `is_variadic` says that the call is one of a function with
    `...`, whose arguments are not compared.  A compiler that cannot be asked says nothing.
    """
    kinds = [_TYPES.get(str(kind), "void*") for _, kind in arguments]
    calls = [
        _call(name, function, [wider.get(kind, kind) for kind in kinds])
        for name, wider in _WIDER.items()
    ]
    calls.append(_call("many", function, [*kinds, *["int"] * _MANY]))
    calls.append(_call("none", function, []))
    calls.append(_call("sure", "ferrule_narrow", ["double", "long long"]))
    listed = ", ".join(f"a{i}" for i in range(len(kinds)))
    calls.append(returned.questions(function, _parameters(kinds), listed, size))
    text = "".join([source.text, "\n", _WARN, *calls])
    said = _said([*command, "-fsyntax-only", "-x", "c", "-"], text)
    asked = {name for name, _ in said}
    if "none" in asked and "many" not in asked and not is_variadic:
        raise _variadic(function)
    _check_taken(said, function, arguments, kinds)
    lines = [line for name, line in said if name == returned.FILE]
    returned.check_returned(function, lines, returns, size)


def _check_taken(
    said: dict[tuple[str, int], str],
    function: str,
    arguments: Sequence[tuple[str, Any]],
    kinds: Sequence[str],
) -> None:
    """Raises CompileError where what the compiler said means that an argument does not fit."""
    if not any(name == "many" for name, _ in said) or not {("sure", 2), ("sure", 3)} <= set(said):
        return
    for (name, line), words in said.items():
        if name == "given":
            raise _refused(function, arguments, line - 2, words)
    for position, kind in enumerate(kinds):
        wide = said.get(("wide", position + 2))
        if kind == "int" and wide is None and ("huge", position + 2) in said:
            raise _refused(function, arguments, position, "the parameter is an int64")
        address = said.get(("address", position + 2), "pointer")
        if kind == "void*" and "pointer" not in address:
            raise _refused(function, arguments, position, "the parameter is no address")
        if (kind == "float" and wide is None) or (kind == "int" and _TO_DOUBLE.search(wide or "")):
            raise _refused(function, arguments, position, "the parameter is a float64")


def _said(command: Sequence[str], text: str) -> dict[tuple[str, int], str]:
    """What the compiler says of the calls, by their names and the lines in them."""
    done = subprocess.run(
        command,
        input=text.encode("utf-8", "surrogateescape"),
        capture_output=True,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    said: dict[tuple[str, int], str] = {}
    for name, line, kind, words in _SAID.findall(done.stderr.decode("utf-8", "replace")):
        if name == returned.FILE:
            counts = kind == "error" and returned.failed(words)
        else:
            counts = kind == "error" if name in ("many", "none") else not _AN_ADDRESS.search(words)
            counts = counts and bool("[-W" in words or _OF_ARGUMENTS.search(words))
        if counts:
            said.setdefault((name, int(line)), words)
    return said


def _call(name: str, function: str, kinds: Sequence[str]) -> str:
    """A call, with argument n on the line n + 2 of a file of this name."""
    params = _parameters(kinds)
    lines = ",\n".join(f"a{i}" for i in range(len(kinds)))
    return (
        f'#line 1 "{name}"\nstatic void ferrule_{name}({params}) {{ (void)({function})(\n'
        f"{lines}); }}\n"
    )


def _parameters(kinds: Sequence[str]) -> str:
    return ", ".join(f"{kind} a{i}" for i, kind in enumerate(kinds)) or "void"


def _variadic(function: str) -> CompileError:
    return CompileError(
        Diagnostic(
            f"{function} takes any number of arguments, which are passed in another way",
            hint="variadic_from=… is the position of the first argument that is one of its `...`",
        )
    )


def _refused(
    function: str, arguments: Sequence[tuple[str, Any]], position: int, words: str
) -> CompileError:
    listed = ", ".join(f"{_TYPES.get(str(kind), 'pointer')} {text}" for text, kind in arguments)
    which = f"argument #{position}" if 0 <= position < len(arguments) else "the arguments"
    return CompileError(
        Diagnostic(
            f"{which} of {function} cannot be passed so: {words}",
            hint="arguments=[…] lists what it takes; conventions.cast(n, 'int64') is another type",
            notes=(f"the list: {listed or 'nothing'}",),
        )
    )
