"""Random programs in PTX, executed by an emulated GPU: the bits that the CPU target leaves.

A host function that reads or writes elements itself is a kernel of one thread; a program that no
kernel can be made of, and one whose call is an error, passes as one of the CPU.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import device_memory
from agreement import outcome, require_same
from draws import Seeded
from on_gpu import Compiler, Done, OnGpu
from plain_python import examples
from random_programs import HOST, LONG, SHORT, programs

import ferrule as fe
from ferrule.emulator.gpu import EmulatedGPU, active, emulated_gpu
from fuzz.campaigns import Case, Failure
from fuzz.programs import generated_of, load, saved

UNIT: Final = "programs"
ARCHS: Final = ("sm_90a", "sm_80", "sm_120", "sm_75", "sm_100a", "sm_50")
TURN: Final = 100
"""Seeds that have one architecture: another one is another GPU."""
OPTIONS: Final = tuple(
    f"--target cpu{more}"
    for more in (
        "",
        *2 * (" --index-bitwidth 32", " --index-bitwidth 64"),
        " --index-bitwidth 32 --opt-level 0",
        " --index-bitwidth 64 --opt-level 0",
    )
)
"""Mostly one version of the kernels: two take half as long again."""


def run(seed: int) -> Iterator[int | Failure]:
    """One program; 0 passed where nothing of it ran on the GPU."""
    choose = random.Random(seed)
    size, lengths = choose.choice((1, 2, 2, 3, 4, 8)), choose.choice((*4 * (SHORT,), LONG))
    case = saved(programs(size, lengths).of(Seeded(choose)), choose.choice(OPTIONS))
    case["arch"] = ARCHS[seed // TURN % len(ARCHS)]
    done = Done(runs=True)
    problem = checked(case, done)
    yield Failure(case, problem) if problem else done.calls


def replay(case: Case) -> str | None:
    """What disagrees."""
    return checked(case, Done(runs=True))


def checked(case: Case, done: Done) -> str | None:
    """What disagrees on the GPU of a case; `done` counts."""
    on(case["arch"])
    generated = generated_of(case)
    given: list[Any] = examples(*generated.arguments)
    with tempfile.TemporaryDirectory() as folder:
        function = getattr(load(generated.source, Path(folder) / "program.py"), HOST)
        both = Compiler(fe.compile, done)(function, *given, options=case["options"])
    if not isinstance(both, OnGpu):
        return None
    wanted = outcome(both.cpu, generated.arguments)
    if wanted.error is not None:
        return None
    try:
        require_same(outcome(both, generated.arguments), wanted, f"on the CPU, {case['arch']}")
    except AssertionError as error:
        return f"{case['source']}\n{error}"
    return None


def on(arch: str) -> EmulatedGPU:
    """Emulates a GPU of this architecture, from now on."""
    found = active()
    if found is not None and found.arch == arch:
        return found
    if found is not None:
        found.close()
    device_memory.forget()
    made = emulated_gpu(arch)
    made.__enter__()
    return made
