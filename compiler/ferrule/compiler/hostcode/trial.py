"""Compiles foreign LLVM code first in a separate process, see `child`."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ferrule.compiler.artefacts import Foreign
from ferrule.compiler.errors import CompileError, Diagnostic


def tried_in_child(data: bytes, what: str, prefix: str, triple: str = "") -> dict[str, Any]:
    """The result of `child` for LLVM code, for this platform or that of a triple.

    Raises CompileError with LLVM's message.
    """
    import llvmlite

    home = str(Path(llvmlite.__file__).parents[1])
    code = base64.b64encode(data).decode()
    request = {"code": code, "prefix": prefix, "path": home, "triple": triple}
    done = _run(json.dumps(request))
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        words = done.stderr.strip() or f"the compiler ended with status {done.returncode}"
        raise CompileError(
            Diagnostic(f"{what} cannot be compiled by LLVM {_llvm_version()}: {_shortened(words)}")
        ) from None
    if "error" in said:
        raise CompileError(
            Diagnostic(
                f"{what} cannot be read by LLVM {_llvm_version()}: {_shortened(said['error'])}",
                hint="if a newer LLVM wrote it, write it with this one, or give an object file",
            )
        )
    return said


def _run(request: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("child.py"))]
    try:
        return subprocess.run(
            command, input=request, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise CompileError(
            f"LLVM code of others is tried in a process of its own, which cannot be started: "
            f"{sys.executable!r}: {error}"
        ) from None


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
    tried_in_child("".join(kept).encode(), what, "", triple)


def _llvm_version() -> str:
    import llvmlite.binding as llvm

    return ".".join(map(str, llvm.llvm_version_info))


def _shortened(words: str) -> str:
    """The first lines of LLVM's message, without the addresses of its own stack."""
    lines = [line for line in words.strip().splitlines() if line.strip()]
    return "\n".join(lines[:8])
