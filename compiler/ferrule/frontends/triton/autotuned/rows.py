"""Rows that are longer than the block of a call's configuration: such a call is refused.

The kernel's source tells of which parameter: `at < n`, or `n > at`, where `at` is `tl.arange(0,
BLOCK)` and nothing else, so that no column behind the block is met.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, TypeGuard

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


_COMPARED: Final = (ast.Lt, ast.GtE), (ast.Gt, ast.LtE)
"""How columns are compared with a length: from the left, and from the right."""
_DEPTH: Final = 4
"""The greatest depth of functions that a kernel calls."""


def _rows(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """The constants that are the block of a whole row, with the parameter that is its length."""
    known = {name: name for name in kernel.names}
    found = set(_compared(kernel.function, {}, known, _DEPTH))
    yield from sorted(each for each in found if holds_rows(kernel, each[0]))


def _compared(
    function: Any, columns: Mapping[str, str], lengths: Mapping[str, str], depth: int
) -> Iterator[tuple[str, str]]:
    """The blocks and lengths that a function compares.

    `columns` are names of the columns of a block, by the block, and `lengths` those of parameters
    of the kernel; other names for these are looked through, and functions that are called.
    """
    tree = function.parse()
    columns, lengths = _named(tree, columns, lengths)
    for each in ast.walk(tree):
        match each:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                for kinds, (at, length) in zip(
                    _COMPARED, ((left, right), (right, left)), strict=True
                ):
                    block, name = _block_in(at, columns), lengths.get(_name_of(length))
                    if isinstance(op, kinds) and block and name and isinstance(length, ast.Name):
                        yield block, name
            case ast.Call(func=ast.Name(id=name), args=args) if depth:
                yield from _called(function, name, args, columns, lengths, depth - 1)


def _called(
    function: Any,
    name: str,
    args: Sequence[ast.AST],
    columns: Mapping[str, str],
    lengths: Mapping[str, str],
    depth: int,
) -> Iterator[tuple[str, str]]:
    """What a function of Triton compares that is called with these arguments."""
    called: Any = getattr(function.fn, "__globals__", {}).get(name)
    if not hasattr(called, "parse") or not hasattr(called, "arg_names"):
        return
    given = list(zip(called.arg_names, args, strict=False))
    blocks = {to: block for to, each in given if (block := _block_in(each, columns))}
    sizes = {to: lengths[of] for to, each in given if (of := _name_of(each)) in lengths}
    yield from _compared(called, blocks, sizes, depth)


def _named(
    tree: ast.AST, columns: Mapping[str, str], lengths: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The names of columns and lengths, with those that are assigned once, to one of them."""
    stored = _stored(tree)
    blocks = {name: each for name, each in columns.items() if name not in stored}
    sizes = {name: each for name, each in lengths.items() if name not in stored}
    assigned = (each for each in ast.walk(tree) if isinstance(each, ast.Assign))
    pairs = [pair for each in assigned for pair in _pairs(each)]
    pairs.sort(key=lambda pair: getattr(pair[0], "lineno", 0))
    for target, value in pairs:
        if isinstance(target, ast.Name) and stored.count(target.id) == 1:
            block = _block_in(value, blocks)
            if block:
                blocks[target.id] = block
            elif isinstance(value, ast.Name) and value.id in sizes:
                sizes[target.id] = sizes[value.id]
    return blocks, sizes


def _block_in(node: ast.AST, columns: Mapping[str, str]) -> str:
    """The block of which these are the columns; nothing for anything else."""
    return columns.get(_name_of(node), "") or _block_of(node)


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
