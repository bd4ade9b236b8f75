"""Where recordings of a host function began to differ: the line is told with what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.recorded.log import Compared, Log
from ferrule.frontends.triton.recorded.nodes import is_float


@contextmanager
def lines_told(logs: Sequence[Log]) -> Iterator[None]:
    """A CompileError inside says where the recordings decided differently, or else where a number
    was taken that is not followed."""
    try:
        yield
    except CompileError as error:
        raise with_line(error, logs) from None


def with_line(error: CompileError, logs: Sequence[Log]) -> CompileError:
    """The error with the line in its hint, if there is one."""
    said = _decided(logs) or _taken(logs)
    known = error.diagnostic
    if said is None or (known.hint or "").startswith(said):
        return error
    return CompileError(replace(known, hint=f"{said}; {known.hint}" if known.hint else said))


def _decided(logs: Sequence[Log]) -> str | None:
    """The first comparison that came out differently in two recordings."""
    for other in logs[1:]:
        for one, another in zip(logs[0].compared, other.compared, strict=False):
            if not _is_same(one, another):
                break  # they went different ways before, by nothing that was compared
            if one.outcome is not another.outcome:
                return f"the recordings go different ways at {one.where}"
    return None


def sides_of(logs: Sequence[Log]) -> list[list[int]] | None:
    """The recordings on each side of the first comparison of sizes that came out differently, by
    their numbers; None where they went different ways before, or by a float."""
    for each in zip(*(log.compared for log in logs), strict=False):
        first = each[0]
        if not all(_is_same(first, other) for other in each[1:]):
            return None
        if any(one.outcome is not first.outcome for one in each):
            if is_float(first.left) or is_float(first.right):
                return None  # by which no function of several is chosen
            same = [at for at, one in enumerate(each) if one.outcome is first.outcome]
            return [same, [at for at in range(len(each)) if at not in same]]
    return None


def _is_same(one: Compared, other: Compared) -> bool:
    return replace(one, outcome=other.outcome, where=other.where) == other


def _taken(logs: Sequence[Log]) -> str | None:
    places = dict.fromkeys(where for log in logs for where in log.taken().values())
    where = next(iter(places), None)
    return None if where is None else f"the host function takes a number at {where}"
