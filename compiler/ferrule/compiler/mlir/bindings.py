"""Finds MLIR's Python bindings by their features.

Several packages include the same bindings under their own name.  Accepted are those with the
modules `ir` and `passmanager`, the dialect `llvm` with its translation to LLVM IR, and the
registered passes of upstream.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from importlib import metadata, util
from typing import Any, Final

from ferrule.compiler.errors import Diagnostic, render
from ferrule.specs.deferred import dataclass

PACKAGES: Final = ("mlir", "iree.compiler", "torch_mlir")
"""The packages that may have bindings, in the order of the search."""

VARIABLE: Final = "FERRULE_MLIR"
"""The environment variable with the name of the package to use."""

INSTALL: Final = 'pip install "ferrule[mlir]", which brings torch-mlir'

_PLACEHOLDER: Final = "mlir-python-bindings"
_NEEDED_PASSES: Final = "builtin.module(convert-func-to-llvm,reconcile-unrealized-casts)"


class NoBindingsError(ImportError):
    """No installed package has MLIR's bindings; the message tells what each lacks."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """The bindings that were found: the package, and its modules that are used."""

    package: str
    ir: Any
    passmanager: Any
    llvm: Any


def open_mlir(environ: Mapping[str, str] = os.environ) -> Bindings:
    """The bindings of the first package with everything needed, or of the one that the environment
    variable FERRULE_MLIR names.

    Raises NoBindingsError, an ImportError, if there are none: what is missing and what to install.
    """
    chosen = environ.get(VARIABLE)
    reasons = []
    for package in (chosen,) if chosen else PACKAGES:
        found = recognise(package)
        if isinstance(found, Bindings):
            return found
        reasons.append(found)
    raise NoBindingsError(render(_missing(chosen, reasons)), name=chosen or PACKAGES[-1])


def available() -> bool:
    """Whether there are bindings."""
    try:
        open_mlir()
    except NoBindingsError:
        return False
    return True


def recognise(package: str) -> Bindings | str:
    """The bindings in a package, or what it lacks."""
    if (absent := _absent(package)) is not None:
        return absent
    modules: list[Any] = []
    for name in ("ir", "passmanager", "dialects.llvm"):
        try:
            modules.append(importlib.import_module(f"{package}.{name}"))
        except Exception as error:  # any module of that name on the path runs here
            return f"{package} has no module {name} ({_first_line(error)})"
    ir, passmanager, llvm = modules
    return _lacking(package, ir, passmanager, llvm) or Bindings(package, ir, passmanager, llvm)


def _absent(package: str) -> str | None:
    """The reason why there is no package of this name.

    A file with its name is not a package, and is not run to test it: it may be the user's own
    script.
    """
    top = package.partition(".")[0]
    try:
        first = util.find_spec(top)
        if first is not None and first.submodule_search_locations is None:
            return f"{top} is the file {first.origin}, no package"
        found = first is not None and util.find_spec(package) is not None
    except Exception as error:  # as above, for the parent package
        return f"{package} cannot be imported ({_first_line(error)})"
    return None if found else f"{package} is not installed"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _lacking(package: str, ir: Any, passmanager: Any, llvm: Any) -> str | None:
    """The features that the bindings lack although their modules are there."""
    wanted: dict[str, Callable[[], object]] = {
        "ir.Context": lambda: ir.Context,
        "ir.Module.parse": lambda: ir.Module.parse,
        "passmanager.PassManager.parse": lambda: passmanager.PassManager.parse,
        "dialects.llvm.translate_module_to_llvmir": lambda: llvm.translate_module_to_llvmir,
    }
    for name, get in wanted.items():
        try:
            get()
        except AttributeError:
            return f"{package} has no {name}"
    try:
        with ir.Context():
            passmanager.PassManager.parse(_NEEDED_PASSES)
    except (ValueError, RuntimeError) as error:
        return f"{package} does not register MLIR's passes ({_first_line(error)})"
    return None


def _missing(chosen: str | None, reasons: list[str]) -> Diagnostic:
    asked = f" ({VARIABLE} is {chosen!r})" if chosen else ""
    return Diagnostic(
        f"there are no Python bindings of MLIR{asked}",
        expected="a package with ir, passmanager, dialects.llvm and its translation to LLVM IR",
        hint=INSTALL,
        notes=(*reasons, *_placeholder()),
    )


def _placeholder() -> tuple[str, ...]:
    """A note if the installed package has only the name."""
    try:
        version = metadata.version(_PLACEHOLDER)
    except metadata.PackageNotFoundError:
        return ()
    if util.find_spec("mlir") is not None:
        return ()
    return (f"{_PLACEHOLDER} {version} is installed, an empty placeholder of the package index",)
