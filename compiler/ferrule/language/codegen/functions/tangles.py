"""Loops that LLVM's vectoriser never leaves, or after minutes.

For a value that it computes once for all lanes, it asks whether the operands are such values, and
of theirs again, without keeping what it has found (`isUniformAcrossVFsAndUFs` of LLVM 22.1): as
often as there are *paths* to the load at which such values begin. A float16 is widened and rounded
by integer code in which a value has many readers, so three additions behind `scale[0]` have a
billion paths; so have thirty lines of a hash.

    for i in range(n):
        seed = seeds[0]
        seed ^= seed >> 16
        ...

Such a loop is not vectorised. Values that depend on the iteration end a path, and what depends on
no load is moved out of the loop before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

from llvmlite import ir

MOST_PATHS: Final = 1 << 16
"""A million take LLVM a quarter of a second, and it may ask for each value."""

_PATHS: Final[WeakKeyDictionary[ir.Function, int]] = WeakKeyDictionary()


def is_tangled(loop: Iterable[ir.Instruction]) -> bool:
    """Whether a loop of these instructions has values with too many paths."""
    varies: set[int] = set()
    paths: dict[int, int] = {}
    for each in loop:
        operands = {id(operand) for operand in each.operands}
        if isinstance(each, ir.StoreInstr):
            _store(each, varies, paths)
        elif isinstance(each, ir.LoadInstr) and isinstance(_memory(each), ir.AllocaInstr):
            # Memory of the function becomes registers: what was stored there.
            place = id(_memory(each))
            if place in paths:
                paths[id(each)] = paths[place]
            elif place in varies:
                varies.add(id(each))
        elif isinstance(each, ir.PhiInstr) or not varies.isdisjoint(operands):
            varies.add(id(each))
        elif isinstance(each, ir.LoadInstr):
            paths[id(each)] = 1 + paths.get(id(each.operands[0]), 0)
        elif not operands.isdisjoint(paths):
            paths[id(each)] = found = _paths(each, paths)
            if found > MOST_PATHS:
                return True
    return False


def _store(store: ir.StoreInstr, varies: set[int], paths: dict[int, int]) -> None:
    """Note what memory of the function has then, of all its elements together."""
    value, place = id(store.operands[0]), id(_memory(store))
    if value in paths:
        paths[place] = max(paths.get(place, 0), paths[value])
    elif value in varies:
        varies.add(place)


def _memory(access: ir.LoadInstr | ir.StoreInstr) -> ir.Value:
    """What an address is within."""
    address = access.operands[-1]
    while isinstance(address, ir.GEPInstr):
        address = address.operands[0]
    return address


def _paths(instruction: ir.Instruction, paths: dict[int, int]) -> int:
    """The paths to a value, of those to its operands."""
    found = sum(paths.get(id(operand), 0) for operand in instruction.operands)
    if isinstance(instruction, ir.CallInstr) and isinstance(instruction.callee, ir.Function):
        found *= _through(instruction.callee)
    return found


def _through(function: ir.Function) -> int:
    """The paths through a function, which LLVM copies into its callers."""
    if function not in _PATHS:
        _PATHS[function] = 1  # of one that calls itself
        paths, ends = {id(each): 1 for each in function.args}, 0
        for each in (each for block in function.blocks for each in block.instructions):
            paths[id(each)] = found = _paths(each, paths)
            ends += found if each.opname == "ret" else 0
        _PATHS[function] = max(1, ends)
    return _PATHS[function]
