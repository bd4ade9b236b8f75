"""The launches of several recordings, one by one, over sizes that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.autotuned.configs import versions_of
from ferrule.frontends.triton.recorded.bound import Bound
from ferrule.frontends.triton.recorded.following import Following
from ferrule.frontends.triton.recorded.log import Log
from ferrule.frontends.triton.recorded.numbers.deciding import with_line
from ferrule.frontends.triton.recorded.sizes import Sizes, Values
from ferrule.frontends.triton.recorded.together import Together


def together(
    several: Sequence[Sequence[Bound]],
    configs: Callable[[int], Any],
    general: bool | frozenset[str],
    covered: frozenset[Values] = frozenset(),
    *,
    logs: Sequence[Log] | None = None,
    is_called: bool = False,
) -> list[Together]:
    """The launches of several recordings, one by one, over sizes that they share, for `Sizes` with
    `covered` and `general`.

    `several` has the launches of each recording, `logs` what their host functions did; without
    them, what they did before their first launch.  `is_called`: they were called by `call`.  Raises
    CompileError unless each has the same kernels in the same order.
    """
    check_order(several)
    chosen = [configs(at) for at in range(len(several[0]))]
    constants = frozenset(_constants(several, chosen))
    sizes = Sizes(constants, dict(_names(several)), covered, general=general)
    firsts = [launches[0] for launches in several]
    before = [each.reading.log.compared[: each.seen] for each in firsts]
    found = [each.reading.log for each in firsts] if logs is None else logs
    compared = before if logs is None else [list(each.compared) for each in logs]
    following = Following(sizes, found, compared, logs is None, is_called)
    each = zip(*several, strict=True)
    return [Together(launches, following, chosen[at]) for at, launches in enumerate(each)]


def check_order(several: Sequence[Sequence[Bound]]) -> None:
    """Raises CompileError unless each recording has the same kernels, and one at least."""
    orders = [[each.kernel.name for each in launches] for launches in several]
    for other in orders[1:]:
        if other != orders[0]:
            found = CompileError(
                Diagnostic(
                    f"one recording launches {', '.join(orders[0]) or 'nothing'}, another "
                    f"{', '.join(other) or 'nothing'}",
                    expected="the same kernels in the same order",
                    hint="where the host function decides by a size, give two recordings of each "
                    "side, or compile each and join them with fe.overload",
                )
            )
            logs = [launches[0].reading.log for launches in several if launches]
            raise with_line(found, logs)
    if not orders[0]:
        raise CompileError("the recording has no launch of a Triton kernel")


def _constants(several: Sequence[Sequence[Bound]], chosen: Sequence[Any]) -> Iterator[int]:
    """The numbers that are compiled into the launches, with those of the chosen configurations."""
    for launches in several:
        for launch, config in zip(launches, chosen, strict=True):
            given = {
                name: launch.given[name] for name in launch.kernel.constexprs & {*launch.given}
            }
            versions = versions_of(launch.kernel, config) if launch.kernel.configs else ()
            for constants in (given, *(each.constants for each in versions)):
                yield from (each for each in constants.values() if type(each) is int)


def _names(several: Sequence[Sequence[Bound]]) -> Iterator[tuple[Values, str]]:
    """Names for symbols: parameters that have their values; those before the last are kept."""
    for each in reversed(list(zip(*several, strict=True))):
        for name in reversed(list(each[0].given)):
            values = [launch.given.get(name) for launch in each]
            if name not in each[0].kernel.constexprs and all(type(v) is int for v in values):
                if "stride" not in name:
                    yield tuple(v for v in values if type(v) is int), name
