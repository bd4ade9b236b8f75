"""Remarks about a launch whose kernel's source was read, but could not be fully compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ferrule.compiler.conventions.arguments import Argument, parameters
from ferrule.compiler.conventions.c.structs import Struct
from ferrule.compiler.conventions.launches.restrict import taken_addresses
from ferrule.compiler.cuda.kernelfacts import KernelFacts, Member
from ferrule.compiler.spelledtypes import read_type

_TYPES: Final = (
    "what {} takes cannot be compared with what the launch gives it: the compiler does not show "
    "its types"
)
_RESTRICT: Final = (
    "which addresses {} declares __restrict__ is not known, its definition is not found in the "
    "source: apart=[…] lists the tensors that share no memory, apart=[] is for none"
)
_MEMBERS: Final = (
    "argument #{} of {} is a Struct whose members cannot be compared with those that it takes: the "
    "compiler does not show them, or where they are"
)
_ALIGNED: Final = (
    "what is behind argument #{} of {} is aligned to is not known, the compiler does not say it: "
    "align=… in the spec is what the code needs"
)


def untold(
    kernel: str, params: Sequence[Argument], facts: KernelFacts, *, is_apart_said: bool
) -> Iterator[str]:
    """The remarks about a launch, given the known facts of its kernel; `is_apart_said`: the launch
    lists the tensors that share no memory."""
    if not facts.is_read:
        return
    if facts.types is None:
        yield _TYPES.format(kernel)
        return
    if not is_apart_said and facts.restricted is None and _may_share(params, facts.types):
        yield _RESTRICT.format(kernel)
    for position, aligned in enumerate(facts.aligned):
        if not aligned:
            yield _ALIGNED.format(position, kernel)
    for position, _, members in structs(params, facts):
        if members is None:
            yield _MEMBERS.format(position, kernel)


def structs(
    params: Sequence[Argument], facts: KernelFacts
) -> Iterator[tuple[int, Struct, tuple[Member, ...] | None]]:
    """The structs by value of a launch: the parameter of the kernel for each, and the known
    members.  An argument may become several parameters."""
    position = 0
    for each in params:
        if isinstance(each, Struct) and position < len(facts.members):
            yield position, each, facts.members[position]
        position += len(parameters(each))


def _may_share(params: Sequence[Argument], types: Sequence[str]) -> bool:
    """Whether there are two tensors of which one may be written: only then `restrict` matters."""
    kinds = [read_type(each) for each in types]
    taken = [*taken_addresses(params, kinds, [True] * len(kinds))]
    tensors = {id(each.tensor) for each in taken if each.tensor is not None}
    return len(tensors) > 1 and not all(each.is_const for each in taken if each.tensor is not None)
