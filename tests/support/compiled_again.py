"""`pytest --pipeline again`: each program that is run in all ways is compiled again from its text.

`fe.frontends.mlir.compile(function.inspect_mlir())` makes of the text that people read a function
for the CPU, or, where it launches kernels, for an emulated GPU.  It must leave the same behind:
bit by bit, or within the tolerance of the program, and an error where there was one.
"""

from __future__ import annotations

import copy
import importlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import agreement
import numpy as np
from agreement import Compiled, Outcome, outcome
from second_pipeline import Forking

import ferrule as fe
from ferrule.compiler.errors import CompileError

ARCH = "sm_90a"
_OF_THE_CPU = ("DivergenceError",)
"""Errors that only a CPU finds."""


@dataclass
class Again:
    """How many programs were compiled again, and which were refused and why."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)

    def compare(self, program: Compiled) -> None:
        """Compiles a program again, calls it, and compares."""
        text = program.function.inspect_mlir()
        launches = "gpu.launch_func" in text
        if program.found.error and program.found.error[0] in _OF_THE_CPU:
            return
        try:
            again = fe.frontends.mlir.compile(text, target=ARCH if launches else "cpu")
        except CompileError as error:
            self.refused.append(f"{os.environ.get('PYTEST_CURRENT_TEST', '?')}: {error}")
            return
        self.counts["GPU" if launches else "CPU"] += 1
        given = tuple(agreement._items(program.arguments))
        found = _on_gpu(again, given) if launches else outcome(again, given)
        wanted = Outcome(tuple(agreement._items(program.found.arguments)), program.found.error)
        if found.error or wanted.error:
            assert bool(found.error) == bool(wanted.error), f"{found.error}, not {wanted.error}"
            return
        agreement.require_same(found, wanted, "compiled again", program.tolerance)

    def summary(self) -> str:
        reasons = Counter(each.partition("): ")[2].partition("\n")[0] for each in self.refused)
        return "; ".join(
            [
                f"compiled again from their text: {self.counts['CPU']} programs for the CPU, "
                f"{self.counts['GPU']} for an emulated GPU, {len(self.refused)} refused",
                *(f"{count}: {reason}" for reason, count in reasons.most_common()),
            ]
        )


def _on_gpu(function: fe.Function, given: tuple[Any, ...]) -> Outcome:
    """Calls a function with copies of these arguments in the memory of a GPU."""
    there = tuple(
        fe.cuda.array(each) if isinstance(each, np.ndarray) else copy.copy(each) for each in given
    )
    try:
        function(*there)
    except Exception as error:
        return Outcome(given, (type(error).__name__, str(error)))
    return Outcome(
        tuple(
            fe.cuda.to_numpy(each) if isinstance(old, np.ndarray) else each
            for old, each in zip(given, there, strict=True)
        )
    )


@contextmanager
def comparing() -> Iterator[Again]:
    """Inside, `agreement.run_all_ways` has this way, too."""
    frontend = importlib.import_module("ferrule.frontends.mlir")
    again, forking, in_child = Again(), Forking(), frontend.in_child
    frontend.in_child = forking.in_child  # type: ignore[attr-defined]
    agreement.MORE_WAYS.append(again.compare)
    with fe.emulated_gpu(ARCH):
        yield again
    agreement.MORE_WAYS.remove(again.compare)
    frontend.in_child = in_child  # type: ignore[attr-defined]
    forking.close()
