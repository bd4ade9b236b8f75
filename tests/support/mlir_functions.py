"""What the tests of MLIR share: whether it is there, and functions for its process."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import pytest

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir import bindings
from ferrule.compiler.mlir.diagnostics import MlirMessage, Step
from ferrule.compiler.mlir.session import Session


def _installed() -> bool:
    """Whether a package is there at all; asked first, because importing it takes a while."""
    packages = (package.partition(".")[0] for package in bindings.PACKAGES)
    return any(importlib.util.find_spec(package) for package in packages)


needs_mlir = pytest.mark.skipif(
    not (_installed() and bindings.available()),
    reason="no package with MLIR's Python bindings is installed",
)


def abort(report: Callable[[object], None], said: bool) -> None:
    """Ends its process, with an error said before."""
    report(Step("do what ends it", "one\ntwo @f\n"))
    if said:
        report(MlirMessage("error", 'loc("-":2:5)', "this is no good"))
    os.abort()


def double(report: object, value: Any) -> Any:
    return value + value


def broken(report: object) -> None:
    raise KeyError("a mistake")


def refuse(report: object) -> None:
    raise CompileError("not so")


def talk(report: object) -> str:
    """Prints to both streams."""
    print("to the output", flush=True)
    os.write(2, b"to the error\n")
    return "answer"


def both(session: Session, text: str, pipeline: str) -> tuple[str, dict[str, str]]:
    """The host's LLVM IR and that of each `gpu.module`."""
    module = session.parse(text)
    session.run(module, pipeline)
    return "", session.translate_gpu(module)


def merged(session: Session, own: str, wrapper: str, pipeline: str) -> str:
    """The LLVM IR of a module and a wrapper as one, put together as docs/emit_wrapper.md says."""
    module, other = session.parse(own), session.parse(wrapper)
    session.run(module, pipeline)
    for key in ("llvm.data_layout", "llvm.target_triple"):
        module.operation.attributes[key] = other.operation.attributes[key]
    known = session.ir.SymbolTable(module.operation)
    for each in list(other.body.operations):
        if each.operation.attributes["sym_name"].value not in known:
            each.operation.detach_from_parent()
            module.body.append(each)
    return session.translate(module)
