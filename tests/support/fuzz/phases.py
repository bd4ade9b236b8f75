"""Random kernels with guards and waits, compiled: what their statements mean, thread by thread."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np
from phase_programs import GRID, SLOTS, Kernel, arrays, calls, drawn, meant

import ferrule as fe
from fuzz.campaigns import Case, Failure
from fuzz.programs import load

UNIT: Final = "calls"
OPTIONS: Final = (*4 * ("",), " --opt-level 0", " --index-bitwidth 64")


def run(seed: int) -> Iterator[int | Failure]:
    """A kernel, called three times."""
    choose = random.Random(seed)
    # The other seeds draw what they drew before: tests by day name some of them.
    kernel = drawn(choose, staged=seed % 7 == 6)
    case = {**asdict(kernel), "options": f"--target cpu{choose.choice(OPTIONS)}"}
    problem = replay(case)
    yield Failure(case, problem) if problem else len(list(calls(case["block"])))


def replay(case: Case) -> str | None:
    """The call that leaves other numbers."""
    kernel = Kernel(case["block"], case["source"], case["meaning"])
    with tempfile.TemporaryDirectory() as folder:
        host = load(kernel.source, Path(folder) / "phases.py").host
        examples = (
            fe.row_major((fe.sym_int(),), fe.Int32),
            fe.row_major((fe.sym_int(), SLOTS), fe.Int32),
        )
        compiled = fe.compile(host, *examples, 1, 1, 1, 1, 1, options=case["options"])
    for number, given in enumerate(calls(kernel.block)):
        x, o = arrays(number, kernel.block)
        wanted = meant(kernel, x, o, given)
        compiled(x, o, *given, GRID, kernel.block)
        if not np.array_equal(o, wanted):
            at = np.argwhere(o != wanted)[:4].tolist()
            return f"{kernel.source}\ncall {given}: elements {at}"
    return None
