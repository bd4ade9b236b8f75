"""`overload`: several functions as one; those that are only described are compiled at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ferrule.language.overloads import overload as joined
from ferrule.libraries.jobs import Job
from ferrule.runtime import Function


def overload(functions: Sequence[Function | Job], name: str | None = None) -> Function:
    """One function that calls the first of these that accepts the arguments.

    `functions`: results of `compile`, in the order in which they are tried, or `Job`s, which are
    compiled as by `compile_all`: at once, in a process for each processor.  `name`: by default that
    of the first one.  A call that all refuse is one TypeError with the reason of each.  In C it is
    one symbol; in Python it accepts keywords if the functions agree in the names.  Raises
    CompileError for anything but compiled functions and jobs, and if the functions have different
    defaults; CompileAllError if a job does not compile.
    """
    if isinstance(functions, Sequence) and any(isinstance(each, Job) for each in functions):
        return joined(_compiled(functions), name)
    return joined(cast("Sequence[Function]", functions), name)


def _compiled(functions: Sequence[Function | Job]) -> list[Function]:
    """The functions, with that of each job in its place."""
    from ferrule.libraries.many import compile_all

    done = iter(compile_all([each for each in functions if isinstance(each, Job)]))
    return [next(done) if isinstance(each, Job) else each for each in functions]
