"""What compiling a Triton kernel costs, by Triton and for all variants of a function.

    python benchmarks/triton_compile.py [--quick] [--json FILE]

Needs Triton, and no GPU. Every sample is a compilation in a process of its own, without its
imports. "one variant" is Triton's own compiler, with everything assumed; `"dispatch"` are the ten
variants of a kernel with five tensors. "first" are with empty caches and the digest that Triton
makes of its own library in each process; "warm" behind another compilation of the same process;
"kept" in a process that finds the caches of an earlier one.  The second table has the seconds of
the processor of all processes that take part, the least of all rounds: they hardly depend on what
else the machine does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from harness import (
    FULL,
    MS,
    QUICK,
    Facts,
    Goal,
    Result,
    Row,
    Side,
    Table,
    arguments,
    finish,
    measure,
)

HERE: Final = Path(__file__).resolve().parent
TRITON: Final = "Triton, one variant"
CHECK: Final = 'ferrule, "check"'
DISPATCH: Final = 'ferrule, "dispatch"'

CHILD: Final = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {folder!r})
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter as now
import triton
import triton_launched as kernels
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from ferrule.frontends import triton as frontend

T = [f"*fp32[m, n: s{{i}}, {{('t%d' % i) if i < 4 else 1}}]" for i in range(5)]
KNOWN = dict(zip("abcde", T)) | {{f"s{{i}}": f"s{{i}}" for i in range(5)}}
KNOWN |= {{f"t{{i}}": f"t{{i}}" for i in range(4)}}
CONSTANTS = {{"C0": 1, "C1": 2, "C2": 4, "BLOCK": 1024}}

def ferrule(warps, specialize):
    frontend.compile(
        kernels.rows, signature=KNOWN, constexprs=CONSTANTS, num_warps=warps, target="sm_90a",
        grid=lambda meta: (meta["a"].shape[0],), specialize=specialize,
    )

def own(warps):
    names = kernels.rows.arg_names
    types = {{name: "*fp32" if name in "abcde" else "i64" for name in names}}
    types |= dict.fromkeys(("t0", "t1", "t2", "t3", *CONSTANTS), "constexpr") | {{"n": "i32"}}
    constants = {{**CONSTANTS, **dict.fromkeys(("t0", "t1", "t2", "t3"), 1)}}
    aligned = [names.index(name) for name in (*"abcde", "s0", "s1", "s2", "s3", "s4", "n")]
    attributes = {{(at,): [["tt.divisibility", 16]] for at in aligned}}
    source = ASTSource(kernels.rows, types, constants, attributes)
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options={{"num_warps": warps}})

def processor():
    used = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return [each.ru_utime + each.ru_stime for each in used]

if {warm}:
    own(2)
    ferrule(2, "check")
before, start = processor(), now()
{code}
wall = now() - start
print(wall, *(after - each for after, each in zip(processor(), before)))
"""
CODES: Final = {
    TRITON: "own(4)",
    CHECK: 'ferrule(4, "check")',
    DISPATCH: 'ferrule(4, "dispatch")',
}


Used = dict[tuple[str, str], list[tuple[float, float]]]
"""By row and side, the seconds of the processor in the process that compiles and in its own."""


def seconds(row: str, side: str, warm: bool, folder: Path | None, used: Used) -> float:
    """The time of one compilation, with the caches of a folder, or empty ones."""
    with tempfile.TemporaryDirectory() as empty:
        at = empty if folder is None else str(folder)
        kept = {"TRITON_CACHE_DIR": f"{at}/triton", "FERRULE_CACHE_DIR": f"{at}/ferrule"}
        program = CHILD.format(folder=str(HERE), warm=warm, code=CODES[side])
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, **kept},
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"a process failed:\n{done.stderr}")
    wall, own, others = map(float, done.stdout.split())
    used.setdefault((row, side), []).append((own, others))
    return wall


def row(
    name: str, rounds: int, used: Used, *, warm: bool = False, folder: Path | None = None
) -> Row:
    """All sides in one state of the process and the caches."""
    sides = [Side(side, partial(seconds, name, side, warm, folder, used)) for side in CODES]
    return measure(name, sides, QUICK if rounds == 1 else FULL.fewer(FULL.rounds // rounds))


def measured(rounds: int, folder: Path) -> Result:
    """All of it."""
    used: Used = {}
    first, warm = row("first", rounds, used), row("warm", rounds, used, warm=True)
    kept = row("kept", rounds, used, folder=folder)
    table = Table("Compiling a Triton kernel", MS, (first, warm, kept), (DISPATCH, TRITON))
    found = kept.side(DISPATCH)
    milliseconds = None if found is None else 1e3 * found.median
    goals = (
        Goal('"dispatch" over one variant, first', 1.2, first.ratio(DISPATCH, TRITON), "times"),
        Goal('"dispatch", kept', 50, milliseconds, "ms"),
    )
    return Result((table, processor(used)), goals)


def processor(used: Used) -> Facts:
    """Seconds of the processor, the least of all rounds."""

    def cell(name: str, side: str) -> str:
        own, others = min(used[name, side], key=sum)
        return f"{own + others:.2f}, of which {others:.2f} in processes that it starts"

    names = tuple(dict.fromkeys(name for name, _ in used))
    lines = tuple((name, *(cell(name, side) for side in CODES)) for name in names)
    return Facts("Seconds of the processor", ("", *CODES), lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What compiling a Triton kernel costs", argv)
    with tempfile.TemporaryDirectory() as folder:
        finish("triton_compile", measured(1 if given.quick else 7, Path(folder)), given)


if __name__ == "__main__":
    main()
