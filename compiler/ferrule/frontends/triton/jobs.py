"""The arguments of `compile` for a kernel: an example for each parameter, and options of Triton."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends import packages
from ferrule.frontends.triton.autotuned.configs import Version
from ferrule.frontends.triton.foreign import fixed, own
from ferrule.frontends.triton.installed import Kernel
from ferrule.specs.deferred import dataclass

_LEAST: Final = MappingProxyType(
    {"num_warps": 1, "num_stages": 0, "num_ctas": 1, "maxnreg": 1, "ptx_version": 1}
)
"""The options that are numbers, and their smallest values."""

_POWERS: Final = ("num_warps", "num_ctas")

_NOT_OPTIONS: Final = MappingProxyType(
    {
        "arch": 'name architectures as target="sm_90a"',
        "backend_name": "kernels are compiled for NVIDIA's GPUs alone",
        "warp_size": "a warp has 32 threads",
    }
)
"""Fields of Triton's options that follow from the target, and the hint for each."""


@dataclass(frozen=True, slots=True)
class ByPosition:
    """A constant as a launch gives it by position, see `by_position`."""

    value: Any


def by_position(value: Any) -> ByPosition:
    """A constant as if it were given by position: of `num_warps=8`, given by name, Triton takes the
    number of warps too where a constant of the kernel is called so, and of one by position not."""
    return ByPosition(value)


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
    """The job for these arguments.  Raises CompileError for an argument that is no parameter of the
    kernel, or that is given twice."""
    if len(examples) > len(kernel.parameters):
        raise CompileError(
            f"{kernel.name} has {len(kernel.parameters)} parameters, but got {len(examples)} "
            "examples"
        )
    given: dict[str, Any] = {}
    options = {key: value for key, value in more.items() if key not in kernel.names}
    named = {key: value for key, value in more.items() if key in kernel.names}
    plain = {key: _plain(value) for key, value in named.items()}
    for where, values in (
        ("by position", _own(kernel, dict(zip(kernel.names, examples, strict=False)))),
        ("in `signature`", _by_name(kernel, _signature(kernel, signature))),
        ("in `constexprs`", as_constants(_constexprs(kernel, constexprs))),
        ("as a keyword", _by_name(kernel, plain)),
    ):
        _merge(kernel, given, values, where)
    for by_name in (signature, constexprs, named):
        options |= also_options(kernel, by_name or {})
    for version in versions:
        _merge(kernel, dict(given), version.constants, "by its config")
        checked_options(kernel, version.options)
    return Job(given, checked_options(kernel, options))


def _signature(kernel: Kernel, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The examples of a signature; Triton's own signatures also name the parameters in
    `constexprs`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise CompileError(
            Diagnostic(
                f"{kernel.name}: the signature is a {type(given).__name__}",
                expected='a mapping of examples: {"x": "*fp32[n]", "n": "i32"}',
            )
        )
    return {key: _plain(each) for key, each in given.items() if not _is_word(each)}


def _constexprs(kernel: Kernel, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is None or isinstance(given, Mapping):
        return given or {}
    raise CompileError(
        Diagnostic(
            f"{kernel.name}: the constexprs are a {type(given).__name__}",
            expected='a mapping of constants: {"BLOCK": 1024}',
        )
    )


def _own(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """Examples in ferrule's terms; those that are compiled in are unchanged."""
    constants = kernel.constexprs
    return {key: each if key in constants else own(each, key) for key, each in given.items()}


def _by_name(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """Examples that are given by name: numbers among them are the same in every call."""
    constants = kernel.constexprs
    known = _own(kernel, given)
    return {key: each if key in constants else fixed(each) for key, each in known.items()}


def _is_word(example: object) -> bool:
    return isinstance(example, str) and example == "constexpr"


def as_constants(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that are compiled in, even if the kernel does not mark them as constants."""
    constexpr = packages.load("triton.language", "triton").constexpr
    plain = {key: _plain(value) for key, value in values.items()}
    return {
        key: value if isinstance(value, constexpr) else constexpr(value)
        for key, value in plain.items()
    }


def _plain(example: Any) -> Any:
    return example.value if isinstance(example, ByPosition) else example


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


def also_options(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """The constants among arguments by name whose parameters have the name of an option: Triton
    takes `num_warps=8` for both."""
    backend = packages.load("triton.backends.nvidia.compiler", "triton")
    known, found = backend.CUDAOptions.__dataclass_fields__, dict[str, Any]()
    for key in kernel.constexprs & names_of_options() & given.keys():
        if isinstance(given[key], ByPosition):
            continue
        value = getattr(given[key], "value", given[key])
        if value is None:  # as where it is not given
            continue
        usual = type(known[key].default)
        is_other = isinstance(value, bool | int) and usual in (bool, int)
        found[key] = usual(value) if is_other else value
    return found


def names_of_options() -> frozenset[str]:
    """The names of Triton's options."""
    backend = packages.load("triton.backends.nvidia.compiler", "triton")
    return frozenset(backend.CUDAOptions.__dataclass_fields__.keys() - _NOT_OPTIONS.keys())


def checked_options(kernel: Kernel, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options of Triton's compiler.  Raises CompileError for an unknown option."""
    backend = packages.load("triton.backends.nvidia.compiler", "triton")
    known = backend.CUDAOptions.__dataclass_fields__
    for key, value in options.items():
        if key not in known or key in _NOT_OPTIONS:
            names = sorted(known.keys() - _NOT_OPTIONS)
            raise CompileError(
                Diagnostic(
                    f"{key!r} is neither a parameter of {kernel.name} nor an option of Triton",
                    expected=f"{', '.join(kernel.names)}; or {', '.join(names)}",
                    hint=_NOT_OPTIONS.get(key) or _near(key, (*kernel.names, *names)),
                )
            )
        _check_option(kernel, key, value, known[key].default)
    return options


def _near(key: str, names: Sequence[str]) -> str | None:
    found = difflib.get_close_matches(key, names, n=1)
    return f"did you mean {found[0]}?" if found else None


def _check_option(kernel: Kernel, key: str, value: Any, usual: Any) -> None:
    """Checks an option: Triton itself checks few of them, and treats any text as true."""
    match usual:
        case _ if key in _LEAST:
            least = _LEAST[key]
            right = type(value) is int and value >= least
            right |= value is None and usual is None
            wanted = f"an integer of at least {least}"
            if key in _POWERS:
                right, wanted = right and value & (value - 1) == 0, "a power of two"
        case bool():
            right, wanted = isinstance(value, bool), "True or False"
        case str():
            right, wanted = isinstance(value, str), f"a text such as {usual!r}"
        case _:
            return
    if not right:
        raise CompileError(Diagnostic(f"{kernel.name}: {key} is {value!r}", expected=wanted))
