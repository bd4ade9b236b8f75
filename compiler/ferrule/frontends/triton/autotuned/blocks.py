"""Blocks of configurations that hold a whole row: a call with a longer one has no right result.

Which constants these are, the kernel's source tells: a block that is one of several, in a loop or
by the number of a program, is multiplied, added or stepped by; one that holds a row is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.autotuned.choosing import AtMost
from ferrule.frontends.triton.autotuned.configs import Version
from ferrule.frontends.triton.installed import Kernel

_SHAPES: Final = ("arange", "zeros", "full", "reshape", "broadcast_to")
"""Functions of Triton that take the sizes of a block."""


def check_rows(
    kernel: Kernel,
    versions: Sequence[Version],
    numbers: Mapping[str, Sequence[int]],
    in_grid: frozenset[str],
) -> None:
    """Raises CompileError for a version whose block holds less than a number of a launch, where the
    block of another configuration holds it.

    `numbers` are those of the recorded launches by their parameters, `in_grid` the constants of
    which the grid is made.  What the autotuner prunes, it prunes in calls as well.
    """
    if kernel.pruning.early is not None:
        return
    known = {name for version in versions for name in version.constants} - in_grid
    rows = [name for name in known if holds_rows(kernel, name)] if len(kernel.configs) > 1 else []
    for name in rows:
        largest = max((each.kwargs.get(name, 0) for each in kernel.configs), default=0)
        for version, parameter, most in _meetings(kernel, versions, numbers):
            block = version.constants.get(name)
            if type(block) is int and block < most <= largest:
                raise CompileError(
                    Diagnostic(
                        f"{kernel.name}: {name} = {block} is the block of the config for "
                        f"{parameter} = {most}, and the kernel has no loop over such blocks",
                        expected=f"a config whose {name} is at least {most}",
                        hint="choose another one by config=, or configs={…} of a recording",
                    )
                )


def _meetings(
    kernel: Kernel, versions: Sequence[Version], numbers: Mapping[str, Sequence[int]]
) -> Iterator[tuple[Version, str, int]]:
    """The largest number of each parameter with which a version is launched."""
    by = {each.fit.size for each in versions if isinstance(each.fit, AtMost)}
    for parameter, values in numbers.items():
        if "stride" in parameter or (by and parameter not in by):
            continue
        least = min(values) - 1
        for version in versions:
            most = max(values)
            if version.key is not None:
                of_key = dict(zip(kernel.key, version.key, strict=True))
                most = of_key.get(parameter, most)
            elif isinstance(version.fit, AtMost) and version.fit.size == parameter:
                most = min(most, version.fit.most)
                if most <= least:
                    continue
                least = most
            elif version.fit is None and most <= least:
                continue
            yield version, parameter, most


def holds_rows(kernel: Kernel, name: str) -> bool:
    """Whether the kernel uses a constant as the size of blocks alone."""
    tree = kernel.function.parse()
    uses = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and each.id == name]
    shaping = {id(use) for call in ast.walk(tree) for use in _shaped_by(call)}
    return bool(uses) and all(id(each) in shaping for each in uses)


def _shaped_by(node: ast.AST) -> Iterator[ast.AST]:
    """The names that are sizes of a block in a call of Triton."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if node.func.attr in _SHAPES:
        for given in (*node.args, *(each.value for each in node.keywords)):
            yield from given.elts if isinstance(given, ast.Tuple | ast.List) else (given,)
