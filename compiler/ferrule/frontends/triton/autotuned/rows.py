"""Rows that are longer than the block of a call's configuration: such a call is refused.

The kernel's source tells of which parameter: `at < n`, where `at` is `tl.arange(0, BLOCK)` and
nothing else, so that no column behind the block is met.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TypeGuard

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.arguments import Argument, Arguments, IntegerArgument
from ferrule.frontends.triton.autotuned.blocks import holds_rows
from ferrule.frontends.triton.autotuned.configs import Version
from ferrule.frontends.triton.installed import Kernel
from ferrule.frontends.triton.traced.knowledge import Knowledge, sizes_in
from ferrule.specs import Condition, Dim, Requirement
from ferrule.specs.conditions import Comparison


def row_requirements(
    kernel: Kernel, versions: Sequence[Version], arguments: Arguments
) -> list[Requirement]:
    """What calls must be like, of a kernel with several configurations: a row fits the block of the
    first version that is for the call, if that of another configuration is larger.

    What the autotuner prunes by a function of its own is left to that.  Raises CompileError if no
    call is like that.
    """
    if len(kernel.configs) < 2 or kernel.pruning.early is not None:
        return []
    found: list[Requirement] = []
    for block, parameter in _rows(kernel):
        sizes = [a.size for a in arguments.each if _is_integer(a, parameter)]
        largest = max((each.kwargs.get(block, 0) for each in kernel.configs), default=0)
        for size in sizes:
            found += _of_block(kernel, versions, arguments, block, largest, size)
    return found


def _of_block(
    kernel: Kernel,
    versions: Sequence[Version],
    arguments: Arguments,
    block: str,
    largest: int,
    size: Dim,
) -> Iterator[Requirement]:
    earlier: list[Condition] = []
    for version in versions:
        most, when = version.constants.get(block), version.condition(kernel, arguments)
        own = [] if isinstance(when, bool) else [when]
        if type(most) is int and most < largest and when is not False:
            fits = Comparison("le", size, most)
            said = f"{block} = {most} is the config's block for a whole row"
            told = [(each, True) for each in own]
            known = Knowledge(told, sizes_in(arguments.signature)).outcome(fits)
            if known is False and not own and not earlier:
                raise CompileError(f"{kernel.name}: {said}, which is {size} long")
            if known is not True:
                others = [*earlier, *(~each for each in own)]
                yield Requirement(reduce(operator.or_, others, fits), said)
        if when is True:
            return
        earlier += own


def _is_integer(argument: Argument, name: str) -> TypeGuard[IntegerArgument]:
    return isinstance(argument, IntegerArgument) and argument.name == name


def _rows(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """The constants that are the block of a whole row, with the parameter that is its length."""
    tree = kernel.function.parse()
    changed = set(_stored(tree))
    blocks = dict(_columns(tree))
    found = set()
    for each in ast.walk(tree):
        match each:
            case ast.Compare(left=left, ops=[ast.Lt()], comparators=[ast.Name(id=length)]):
                block = blocks.get(_name_of(left)) if _name_of(left) else _block_of(left)
                if block and length in kernel.names and length not in changed:
                    found.add((block, length))
    yield from sorted(each for each in found if holds_rows(kernel, each[0]))


def _columns(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that are `tl.arange(0, BLOCK)` wherever they are used, with the block."""
    stored = _stored(tree)
    assigned = (each for each in ast.walk(tree) if isinstance(each, ast.Assign))
    for target, value in (pair for each in assigned for pair in _pairs(each)):
        block = _block_of(value)
        if block and isinstance(target, ast.Name) and stored.count(target.id) == 1:
            yield target.id, block


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What is assigned to what, by name."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _block_of(node: ast.AST) -> str:
    """The block of `tl.arange(0, BLOCK)`, also where it has new dims; else nothing."""
    match node:
        case ast.Subscript(value=inner):
            return _block_of(inner)
        case ast.Call(
            func=ast.Attribute(attr="arange"), args=[ast.Constant(value=0), ast.Name(id=name)]
        ):
            return name
    return ""


def _name_of(node: ast.AST) -> str:
    match node:
        case ast.Subscript(value=inner):
            return _name_of(inner)
        case ast.Name(id=name):
            return name
    return ""


def _stored(tree: ast.AST) -> list[str]:
    """The names that are assigned, as often as they are."""
    names = (each for each in ast.walk(tree) if isinstance(each, ast.Name))
    return [each.id for each in names if isinstance(each.ctx, ast.Store)]
