"""What precedes the call of a C function whose type is known: checks, and remarks for the build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import PlainStep
from ferrule.specs import Condition
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.conventions import CFunction
    from ferrule.compiler.conventions.apart import Memory
    from ferrule.compiler.conventions.protocol import CallingConvention
    from ferrule.compiler.spelledtypes import Spelled
    from ferrule.frontends.prototypes import Prototype

_DROPPED: Final = (
    "{} returns an int that nobody gets: returns='status' makes an error of what is not 0, "
    "returns='int32' gives it back"
)
_UNTOLD: Final = (
    "what {} takes cannot be compared with what the call gives it: the compiler does not show its "
    "type"
)


def checks_before(
    called: CFunction, prototype: Prototype | None, apart: Sequence[Memory] | None
) -> list[CallingConvention]:
    """The conventions before the call: a check that tensors share no memory, one that they are as
    large as arrays are declared, and a remark on an unused result."""
    from ferrule.compiler.conventions.apart import Apart, apart_of
    from ferrule.compiler.conventions.launches.restrict import RESTRICTED, restricted_pairs

    checks: list[CallingConvention] = []
    if apart is not None:
        checks.append(apart_of(apart))
    elif prototype is not None:
        pairs = restricted_pairs(called.function, prototype.taken(called.arguments))
        checks += [Apart.of_pairs(pairs, hint=RESTRICTED)] if pairs else []
    if prototype is not None and prototype.arrays:
        from ferrule.frontends.arraysizes import checked_sizes

        checks += checked_sizes(called, prototype.arrays)
    if prototype is None:
        checks.append(Remark(_UNTOLD.format(called.function)))
    if called.returns is None and prototype is not None and prototype.result == "int":
        checks.append(Remark(_DROPPED.format(called.function)))
    return checks


def called_as_declared(called: CFunction, prototype: Prototype | None) -> CFunction:
    """The call, in which a Reference to what the function declares `const` is only read."""
    from ferrule.compiler.conventions import CFunction
    from ferrule.compiler.conventions.c.discards import as_read
    from ferrule.compiler.conventions.c.host_arguments import Reference, values_of

    if prototype is None or not any(isinstance(each, Reference) for each in called.arguments):
        return called
    given, types = [], list(prototype.types)
    for each in called.arguments:
        kinds = types[: (count := values_of(each))]
        given.append(as_read(each) if any(map(_is_constant, kinds)) else each)
        del types[:count]
    return CFunction(
        called.function,
        given,
        returns=called.returns,
        code=called.code,
        variadic_from=called.variadic_from,
    )


def _is_constant(kind: Spelled) -> bool:
    """Whether a parameter is the address of something that is `const`."""
    return kind.is_const and kind.stars == 1


@dataclass(frozen=True, slots=True)
class Remark(PlainStep):
    """A `BuildWarning` with this text; calls nothing."""

    text: str
    when: Condition | None = None

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.remark(self.text)
