"""Addresses that a callee declares `restrict`: which tensors of a call share no memory, then.

A pointer is `restrict` as a parameter, or as a member of a struct that is handed over or pointed to
(C11, 6.7.3.1): what is reached through it is reached through no other, unless nobody writes there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from ferrule.compiler.conventions.arguments import PointerCast, parameters
from ferrule.compiler.conventions.hostarguments import CArgument, HostArgument
from ferrule.compiler.conventions.structs import Struct
from ferrule.compiler.conventions.typed import given_fields
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import Spelled
from ferrule.specs import Data, Tensor
from ferrule.specs import params as kinds

RESTRICTED: Final = "the code declares an address restrict"
"""The hint of a call whose tensors share memory."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An address that a callee takes: where, what is given for it, and how it is declared."""

    what: str
    argument: object
    is_const: bool
    is_restrict: bool

    @property
    def tensor(self) -> Tensor | None:
        """The tensor whose address it is; None for another address."""
        return _tensor_of(self.argument)

    @property
    def address(self) -> object:
        """What is given, without casts; of a tensor its address."""
        given = self.argument
        while isinstance(given, PointerCast):
            given = given.value
        return given.data if isinstance(given, Tensor) else given


def taken_addresses(
    arguments: Sequence[CArgument], types: Sequence[Spelled], restricted: Sequence[bool]
) -> Iterator[Taken]:
    """The addresses among the parameters of a callee, which have these types; whether each is
    `restrict` is said beside them.  An argument may become several parameters."""
    declared = list(zip(types, restricted, strict=False))
    position = 0
    for each in arguments:
        count = len(each.types() if isinstance(each, HostArgument) else parameters(each))
        for kind, is_apart in declared[position : position + count][-1:]:
            yield Taken(f"argument #{position}", each, kind.is_const, is_apart)
        position += count


def taken_members(what: str, struct: Struct, declared: Mapping[int, Spelled]) -> Iterator[Taken]:
    """The addresses in a struct, whose types are known by where they are."""
    for offset, each in given_fields(struct):
        kind = declared.get(offset)
        if kind is not None:
            where = f"the member at byte {offset} of {what}"
            yield Taken(where, each, kind.is_const, kind.is_restrict)


def restricted_pairs(callee: str, taken: Iterable[Taken]) -> list[tuple[Tensor, Tensor]]:
    """The tensors that a callee takes to share no memory: that of an address that is `restrict` and
    of each other one, unless both are only read.

    Raises CompileError for one address that is given twice to such a pair.
    """
    pairs = [
        (one, other)
        for one, other in combinations(taken, 2)
        if (one.is_restrict or other.is_restrict) and not (one.is_const and other.is_const)
    ]
    for one, other in pairs:
        if isinstance(one.address, Data) and one.address == other.address:
            raise CompileError(
                Diagnostic(
                    f"{one.what} and {other.what} of {callee} are the same address, which the code "
                    "declares restrict",
                    hint="give it two tensors; apart=[] asks for no check",
                )
            )
    tensors = ((one.tensor, other.tensor) for one, other in pairs)
    return list(
        {
            (id(one), id(other)): (one, other)
            for one, other in tensors
            if one is not None and other is not None and one is not other
        }.values()
    )


def _tensor_of(argument: object) -> Tensor | None:
    match argument:
        case Data(tensor=tensor):
            return tensor
        case Tensor():
            return argument
        case PointerCast(value=value):
            return _tensor_of(value)
        case kinds.Optional(item=Tensor() as item):
            return item
    return None
