"""What a launch costs on the host, beside launchers written by hand and those of other packages.

    python benchmarks/launch.py [--only given|triton|warp|numba] [--quick] [--json FILE]

`given` has kernels in PTX, beside launchers in C++; the others have kernels of Triton, Warp and
Numba, each beside the package's own launches: see `launch_given.py`, `launch_triton.py` and so on.
Those of Triton and the given ones meet a driver that is a stand-in, whose calls return at once, so
that no GPU is needed and what is measured is what surrounds them. A part whose package is not
installed is left out, with the reason.

Each part has a process of its own: the stand-in of one must not be the driver of another, and two
packages that each bring an LLVM need not get on with each other.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Final

from harness import FULL, QUICK, Effort, Result, Skipped, arguments, finish
from launch_overhead import STAND_IN, compiler, load_stand_in

PARTS: Final = ("given", "triton", "warp", "numba")
PACKAGES: Final = MappingProxyType({"triton": "Triton", "warp": "Warp", "numba": "Numba"})
"""What a part needs, by the names of both."""
ON_THE_STAND_IN: Final = ("given", "triton")
OLDER: Final = STAND_IN.with_name("fast_modules.c")
"""What launchers other than ferrule's call of the driver."""


def measured(part: str, effort: Effort) -> Result:
    """A part, in this process, or why it is left out."""
    reason = None
    if part in PACKAGES and importlib.util.find_spec(part) is None:
        reason = f"{PACKAGES[part]} is not installed"
    command = compiler() if part in ON_THE_STAND_IN else []
    if command is None:
        reason = reason or "no C compiler ($CC, cc, gcc or clang) for the stand-in of the driver"
    if reason is not None:
        return Result((), (), (Skipped(f"launches, {part}", reason),))
    module = importlib.import_module(f"launch_{part}")
    with tempfile.TemporaryDirectory() as folder:
        driver = load_stand_in(command, Path(folder), OLDER) if command else None
        found: Result = module.measured(Path(folder), effort)
        del driver  # until now it was called
    return found


def apart(parts: Sequence[str], effort: Effort) -> Iterator[Result]:
    """The parts one after the other, each in a process of its own."""
    for part in parts:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            yield process.submit(measured, part, effort).result()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What a launch costs on the host", argv, parts=PARTS)
    effort = QUICK if given.quick else FULL
    found = [measured(given.only, effort)] if given.only else list(apart(PARTS, effort))
    result = Result(
        tuple(table for part in found for table in part.tables),
        tuple(goal for part in found for goal in part.goals),
        tuple(left_out for part in found for left_out in part.skipped),
    )
    finish("launch", result, given)


if __name__ == "__main__":
    main()
