"""Compiles foreign LLVM code first in a separate process, see `child`."""

from __future__ import annotations

import base64
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from ferrule.compiler.artefacts import Foreign
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode.worker import Ended, Workers

SECONDS: Final = 300
"""The processor's time that LLVM may take for one request: a hostile text may need any amount."""


@cache
def _workers() -> Workers:
    return Workers(("-I", "-S", str(Path(__file__).with_name("child.py"))))


def tried_in_child(
    codes: Sequence[tuple[bytes, str]], prefix: str, triple: str = "", seconds: int = SECONDS
) -> dict[str, Any]:
    """The result of `child` for LLVM code with names for errors, for this platform or that of a
    triple.

    Raises CompileError with LLVM's message.
    """
    import llvmlite

    request = {
        "codes": [base64.b64encode(data).decode() for data, _ in codes],
        "prefix": prefix,
        "path": str(Path(llvmlite.__file__).parents[1]),
        "triple": triple,
        "seconds": seconds,
    }
    names = [what for _, what in codes]
    answer = _answer(json.dumps(request).encode())
    if isinstance(answer, Ended):
        raise CompileError(_ended(answer, ", ".join(names), seconds))
    said: dict[str, Any] = json.loads(answer)
    if "clash" in said:
        raise CompileError(_clash(said, names))
    if "error" in said:
        raise CompileError(
            Diagnostic(
                f"{names[said['at']]} cannot be read by LLVM {_llvm_version()}: "
                f"{_shortened(said['error'])}",
                hint="if a newer LLVM wrote it, write it with this one, or give an object file",
            )
        )
    return said


def _answer(request: bytes) -> bytes | Ended:
    try:
        return _workers().answer(request)
    except OSError as error:
        raise CompileError(
            f"LLVM code of others is tried in a process of its own, which cannot be started: "
            f"{sys.executable!r}: {error}"
        ) from None


def _ended(ended: Ended, what: str, seconds: int) -> str:
    """The message about code that ended the process."""
    words = ended.printed.strip() or f"the compiler ended with status {ended.status}"
    if ended.status == -getattr(signal, "SIGXCPU", 0):
        words = f"the compiler was not done after {seconds} seconds of the processor's time"
    return f"{what} cannot be compiled by LLVM {_llvm_version()}: {_shortened(words)}"


def _clash(said: Mapping[str, Any], names: Sequence[str]) -> Diagnostic:
    """The diagnostic for codes that cannot be linked with each other."""
    first, other = (names[at] for at in said["of"])
    symbol = said["symbol"]
    if said["clash"] == "twice":
        return Diagnostic(
            f"{first} and {other} both define {symbol}",
            hint="make it internal in one of them, give it another name, or build two codes",
        )
    return Diagnostic(
        f"{first} declares {symbol} with another type than {other}, which defines it: "
        f"{said['clash']}",
        hint="a call by the wrong type gives wrong values: declare it as it is defined",
    )


def require_portable(foreign: Foreign, text: str, triple: str) -> None:
    """Raise CompileError if foreign LLVM code is not for this platform, or LLVM cannot compile it
    for it."""
    if triple == foreign.triple:
        return
    what = f"LLVM IR that is a part of this function and was read for {foreign.triple}"
    if not foreign.is_portable:
        raise CompileError(
            Diagnostic(
                f"{what} cannot be exported for {triple}",
                hint="build the function with IR for that platform, or with IR without a triple",
            )
        )
    lines = text.splitlines(keepends=True)
    kept = (line for line in lines if not line.startswith(("target triple", "target datalayout")))
    tried_in_child([("".join(kept).encode(), what)], "", triple)


def _llvm_version() -> str:
    import llvmlite.binding as llvm

    return ".".join(map(str, llvm.llvm_version_info))


def _shortened(words: str) -> str:
    """The first lines of LLVM's message, without the addresses of its own stack."""
    lines = [line for line in words.strip().splitlines() if line.strip()]
    return "\n".join(lines[:8])
