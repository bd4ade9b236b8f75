"""Addresses that a callee declares `restrict`: which tensors of a call must not share memory.

A pointer is `restrict` as a parameter, or as a member of a struct that is passed or pointed to
(C11, 6.7.3.1): an object accessed through it is not accessed through another pointer, unless
nothing writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from ferrule.compiler.conventions.arguments import PointerCast, parameters
from ferrule.compiler.conventions.c.host_arguments import CArgument, HostArgument
from ferrule.compiler.conventions.c.structs import Struct
from ferrule.compiler.conventions.launches.values import given_fields
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import Spelled
from ferrule.specs import Data, Tensor
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass

RESTRICTED: Final = "the code declares an address restrict"
"""The hint of a call whose tensors share memory."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An address that a callee takes: its position, its argument, and its declaration."""

    what: str
    argument: object
    is_const: bool
    is_restrict: bool

    @property
    def tensor(self) -> Tensor | None:
        """The tensor with this address; None for another address."""
        return _tensor_of(self.argument)

    @property
    def address(self) -> object:
        """The argument without casts; for a tensor its address."""
        given = self.argument
        while isinstance(given, PointerCast):
            given = given.value
        return given.data if isinstance(given, Tensor) else given


def taken_addresses(
    arguments: Sequence[CArgument], types: Sequence[Spelled], restricted: Sequence[bool]
) -> Iterator[Taken]:
    """The addresses among the parameters of a callee, which have these types; `restricted` tells
    which are `restrict`.  An argument may become several parameters."""
    declared = list(zip(types, restricted, strict=False))
    position = 0
    for each in arguments:
        count = len(each.types() if isinstance(each, HostArgument) else parameters(each))
        for kind, is_apart in declared[position : position + count][-1:]:
            yield Taken(f"argument #{position}", each, kind.is_const, is_apart)
        position += count


def taken_members(what: str, struct: Struct, declared: Mapping[int, Spelled]) -> Iterator[Taken]:
    """The addresses in a struct, whose types are known by their offsets."""
    for offset, each in given_fields(struct):
        kind = declared.get(offset)
        if kind is not None:
            where = f"the member at byte {offset} of {what}"
            yield Taken(where, each, kind.is_const, kind.is_restrict)


def restricted_pairs(callee: str, taken: Iterable[Taken]) -> list[tuple[Tensor, Tensor]]:
    """The tensors that a callee assumes not to share memory: the tensor of a `restrict` address
    with each other one, unless both are only read.

    Raises CompileError if one address is passed as both of such a pair.
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
