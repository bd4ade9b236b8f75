"""Constants and options that `compile` gets as functions of the arguments, such as

    constexprs={"BLOCK_SIZE": lambda args: triton.next_power_of_2(args["n_cols"])},
    num_warps=lambda args: 8 if args["BLOCK_SIZE"] >= 2048 else 4

They are what a library's host function computes before a launch, and are traced as heuristics are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.autotuned.configs import Version
from ferrule.frontends.triton.installed import Kernel

Named = Mapping[str, Any]


def with_functions(
    kernel: Kernel,
    versions: Sequence[Version],
    signature: Named | None,
    constexprs: Named | None,
    more: Named,
) -> tuple[Kernel, Named | None, Named | None, Named]:
    """The kernel with the functions among its constants and options as heuristics, which come
    before its own, and the arguments without them.

    Raises CompileError for one that a configuration sets as well.
    """
    constants = kernel.constexprs
    found: dict[str, Callable[..., Any]] = {}
    left: list[Named | None] = []
    for given, names in (
        (signature, constants),
        (constexprs, frozenset(kernel.names)),
        (more, constants | {*more} - {*kernel.names}),
    ):
        taken = dict(_functions(given, names))
        for name in taken.keys() & found.keys():
            raise CompileError(f"{kernel.name}: the parameter {name!r} is given twice")
        found |= taken
        left.append(_without(given, taken))
    for version in versions:
        for name in found.keys() & {*version.constants, *version.options}:
            raise CompileError(
                f"{kernel.name}: {name!r} is given twice, by its config and by a function"
            )
    own = {name: each for name, each in kernel.heuristics.items() if name not in found}
    kept, passed, rest = left
    ordered = {**_before(found, kernel, own), **own, **found}
    return replace(kernel, heuristics=ordered), kept, passed, rest or {}


def _before(
    found: Mapping[str, Callable[..., Any]], kernel: Kernel, own: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """The functions that come before the kernel's own: those of constants, and those of options of
    which one of the kernel's asks.  Other options may follow from the kernel's constants."""
    asked = {
        each for function in own.values() for each in _texts(getattr(function, "__code__", None))
    }
    return {name: each for name, each in found.items() if name in kernel.names or name in asked}


def _texts(code: CodeType | None) -> Iterator[str]:
    """The texts in a function, among which are the names of the arguments that it reads."""
    for each in code.co_consts if code is not None else ():
        if isinstance(each, str):
            yield each
        elif isinstance(each, CodeType):
            yield from _texts(each)


def _functions(
    given: Named | None, names: frozenset[str]
) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if name in names and isinstance(value, FunctionType | MethodType | partial):
            yield name, value


def _without(given: Named | None, names: Mapping[str, Any]) -> Named | None:
    if not names or given is None:
        return given
    return {name: each for name, each in given.items() if name not in names}
