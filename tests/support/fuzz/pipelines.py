"""The programs of `programs`, through MLIR: both pipelines leave the same bits behind.

Only where it is asked for, `--campaign pipelines`: it needs MLIR's bindings, and takes some ten
times as long for a program.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from agreement import outcome, require_same
from plain_python import examples
from random_programs import HOST, Generated

import ferrule as fe
from fuzz.campaigns import Case, Failure
from fuzz.programs import drawn, generated_of, load, saved

UNIT: Final = "programs through MLIR"
OPTIONS: Final = "--target cpu"


def run(seed: int) -> Iterator[int | Failure]:
    """One program."""
    case = saved(drawn(seed)[0], OPTIONS)
    problem = replay(case)
    yield Failure(case, problem) if problem else 1


def replay(case: Case) -> str | None:
    """What disagrees, or is compiled by one pipeline alone."""
    fork()
    try:
        check(generated_of(case), case["options"])
    except (AssertionError, fe.CompileError) as error:
        return f"{case['source']}\n{error}"
    return None


def check(generated: Generated, options: str) -> None:
    """Runs a program by both pipelines.  Raises AssertionError where they disagree."""
    arguments = generated.arguments
    given: list[Any] = examples(*arguments)
    with tempfile.TemporaryDirectory() as folder:
        function = getattr(load(generated.source, Path(folder) / "program.py"), HOST)
        ours, theirs = (
            outcome(fe.compile(function, *given, options=each), arguments)
            for each in (options, f"{options} --pipeline mlir")
        )
    require_same(theirs, ours, "through MLIR")


@cache
def fork() -> None:
    """From here on MLIR's processes are forked from one that has imported it."""
    from second_pipeline import Forking

    from ferrule.language.mlir import pipeline

    pipeline.in_child = Forking().in_child
