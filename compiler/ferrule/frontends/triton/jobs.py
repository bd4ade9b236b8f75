"""What a caller of `compile` says of a kernel: an example for each parameter, options of Triton."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends import packages
from ferrule.frontends.triton.configs import Version
from ferrule.frontends.triton.installed import Kernel


@dataclass(frozen=True, slots=True)
class Job:
    """The examples of a kernel's parameters by name, and Triton's options."""

    given: Mapping[str, Any]
    options: Mapping[str, Any]


def job_of(
    kernel: Kernel,
    examples: Sequence[Any],
    signature: Mapping[str, Any] | None,
    constexprs: Mapping[str, Any] | None,
    more: Mapping[str, Any],
    versions: Sequence[Version],
) -> Job:
    """Raises CompileError for what the kernel has no parameter for, or was said twice."""
    if len(examples) > len(kernel.parameters):
        raise CompileError(
            f"{kernel.name} has {len(kernel.parameters)} parameters, but got {len(examples)} "
            "examples"
        )
    given: dict[str, Any] = {}
    options = {key: value for key, value in more.items() if key not in kernel.names}
    named = {key: value for key, value in more.items() if key in kernel.names}
    for where, values in (
        ("by position", dict(zip(kernel.names, examples, strict=False))),
        ("in `signature`", _signature(kernel, signature)),
        ("in `constexprs`", as_constants(constexprs or {})),
        ("as a keyword", named),
    ):
        _merge(kernel, given, values, where)
    for version in versions:
        _merge(kernel, dict(given), version.constants, "by its config")
    return Job(given, checked_options(kernel, options))


def _signature(kernel: Kernel, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The examples of a signature; Triton's own also names what is in `constexprs`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise CompileError(
            Diagnostic(
                f"{kernel.name}: the signature is a {type(given).__name__}",
                expected='a mapping of examples: {"x": "*fp32[n]", "n": "i32"}',
            )
        )
    return {key: each for key, each in given.items() if not _is_word(each)}


def _is_word(example: object) -> bool:
    return isinstance(example, str) and example == "constexpr"


def as_constants(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that are compiled in, whether or not the kernel marks them so."""
    constexpr = packages.load("triton.language", "triton").constexpr
    return {
        key: value if isinstance(value, constexpr) else constexpr(value)
        for key, value in values.items()
    }


def _merge(kernel: Kernel, given: dict[str, Any], values: Mapping[str, Any], where: str) -> None:
    for key, value in values.items():
        if key not in kernel.names:
            raise CompileError(
                Diagnostic(
                    f"{kernel.name} has no parameter {key!r}, which is given {where}",
                    expected=", ".join(kernel.names),
                )
            )
        if key in given:
            raise CompileError(f"{kernel.name}: the parameter {key!r} is given twice, once {where}")
        given[key] = value


def checked_options(kernel: Kernel, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options of Triton's compiler.  Raises CompileError for what is none."""
    backend = packages.load("triton.backends.nvidia.compiler", "triton")
    known = backend.CUDAOptions.__dataclass_fields__
    for key in options:
        if key not in known:
            raise CompileError(
                Diagnostic(
                    f"{key!r} is neither a parameter of {kernel.name} nor an option of Triton",
                    expected=f"{', '.join(kernel.names)}; or {', '.join(sorted(known))}",
                )
            )
    return options
