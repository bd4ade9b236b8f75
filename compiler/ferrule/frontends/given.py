"""Checks of the arguments of frontends: lists of texts, names, architectures, signatures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Condition, Param, Requirement, Signature
from ferrule.specs.params import Tensor
from ferrule.specs.requirements import checked_requirements

if TYPE_CHECKING:
    from ferrule.compiler.artefacts import Location

_SHOWN: Final = 120
_ARCH: Final = re.compile(r"sm_\d+[af]?")
_MEANT: Final = re.compile(r"(?:sm|compute)?[_-]?(\d{2,3})([af]?)", re.IGNORECASE)


def brief(value: object) -> str:
    """A value as text in an error, shortened: the `repr` of some values is pages long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def check_signature(given: object, function: str) -> None:
    """Raises TypeError for a value that is not a signature."""
    if not isinstance(given, Signature):
        raise TypeError(
            f"fe.frontends.{function}: signature must be a specs.Signature(name, [specs]), "
            f"but got {type(given).__name__}"
        )


def requiring(signature: Signature, requires: Iterable[Condition | Requirement]) -> Signature:
    """The signature with these requirements, too: `requires` of a frontend that makes signatures.

    Raises TypeError for what is no condition, and CompileError for one that no call can tell.
    """
    listed = checked_requirements(signature.name, requires)
    try:
        return signature.altered(requires=(*signature.requires, *listed)) if listed else signature
    except ValueError as error:
        raise CompileError(str(error)) from None


def location_of(function: Any) -> Location | None:
    """The place where a Python function is defined, which errors of a call show; None for other
    values."""
    from ferrule.compiler.artefacts import Location

    code = getattr(function, "__code__", None)
    if code is None:
        return None
    file = code.co_filename.encode("utf-8", "backslashreplace").decode()
    return Location(file, function.__name__, code.co_firstlineno)


def emulates_gpu() -> bool:
    """Whether this process emulates a GPU, which executes PTX and no cubins."""
    from ferrule.runtime.devices import emulated_arch

    return emulated_arch() is not None


def texts(what: str, given: Any) -> tuple[str, ...]:
    """Several texts or paths.  Raises TypeError for a single text, which would be a sequence of
    letters."""
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        found = [os.fspath(each) if isinstance(each, os.PathLike) else each for each in given]
        if all(isinstance(each, str) for each in found):
            return tuple(found)
    hint = f", such as [{given!r}]" if isinstance(given, str) and " " not in given else ""
    raise TypeError(f"{what} must be a list of texts{hint}, but got {given!r}")


def names(given: Any, what: str = "results") -> tuple[str, ...]:
    """The arrays that the argument `what` names: one name or several.  Raises TypeError for other
    values."""
    if isinstance(given, str):
        return (given,)
    listed = _listed(given)
    if all(isinstance(each, str) for each in listed):
        return tuple(listed)
    wrong = next(each for each in listed if not isinstance(each, str))
    shown = f"{type(wrong).__name__} {wrong.name!r}" if isinstance(wrong, Tensor) else repr(wrong)
    raise TypeError(f"{what} must be names of parameters, such as ['out'], but got {shown}")


def _listed(given: Any) -> list[Any]:
    alone = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    return [given] if alone else list(given)


def architectures(what: str, given: Any, also: str = "") -> tuple[str, ...]:
    """Architectures without duplicates: one, several, or several in one text.

    `also` names other values that `what` may have.  Raises CompileError for a value that is no
    architecture.
    """
    listed = given.split(",") if isinstance(given, str) else _listed(given)
    archs = dict.fromkeys(each.strip() if isinstance(each, str) else each for each in listed)
    for arch in archs:
        if not isinstance(arch, str) or _ARCH.fullmatch(arch) is None:
            meant = _MEANT.fullmatch(str(arch))
            raise CompileError(
                Diagnostic(
                    f"{what} {arch!r} is no architecture",
                    expected=f"{also}such as 'sm_90a'",
                    hint=meant and f"did you mean 'sm_{meant[1]}{meant[2].lower()}'?",
                )
            )
    if not archs:
        raise CompileError(
            Diagnostic(f"{what} names no architecture", expected=f"{also}such as 'sm_90a'")
        )
    return tuple(archs)


def check_on_cpu(params: Iterable[Param], name: str) -> None:
    """Raises CompileError for a tensor whose spec requires memory that code for the CPU cannot
    access."""
    for param in params:
        if isinstance(param, Tensor) and param.device == "cuda":
            raise CompileError(
                Diagnostic(
                    f"{name}: the parameter {param.name!r} is on a GPU, but the target is 'cpu'",
                    hint="give it no device, or an architecture as target=",
                )
            )
