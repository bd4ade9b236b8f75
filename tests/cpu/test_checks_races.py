"""The races that `--enable-checks` finds in random kernels, against those that there are."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe

KERNELS = 14
BLOCK = 64
ROOM = 200
INDICES = (
    "t",
    "t",
    "63 - t",
    "t // 2",
    "t * 2",
    "t + 64",
    "t % 8",
    "t ^ 1",
    "5",
    "t + k",
    "t + 128",
)
GUARDS = ("True", "True", "t < 32", "t == 3", "t % 2 == 0", "k == 1")
STATEMENTS = {
    "write": "row[{}] = t",
    "read": "total += row[{}]",
    "atomic": "fe.arch.atomic_add(row + ({}), 1)",
}
OPTIONS = "--target cpu --enable-checks --opt-level 1"

Step = tuple[str, str, str]
"""What is done, at which index, and under which condition; or "barrier" or "warp"."""


def steps(seed: int) -> list[Step]:
    """The body of a kernel's loop."""
    chosen = random.Random(seed)
    kinds = ("write", "write", "read", "read", "atomic", "barrier", "barrier", "warp")
    return [
        (chosen.choice(kinds), chosen.choice(INDICES), chosen.choice(GUARDS))
        for _ in range(chosen.randint(2, 6))
    ]


def text(body: list[Step]) -> str:
    """The module of a kernel and its host function."""
    lines = []
    for kind, index, guard in body:
        match kind:
            case "barrier":
                lines.append("fe.arch.sync_threads()")
            case "warp":
                lines.append("fe.arch.sync_warp()")
            case _:
                lines.append(f"if {guard}:\n            {STATEMENTS[kind].format(index)}")
    joined = "\n        ".join(lines)
    return f"""
import ferrule as fe

@fe.kernel
def kernel(out):
    t = fe.arch.thread_idx()[0]
    row = fe.arch.alloc_smem(fe.Int32, {ROOM})
    total = 0
    for k in range(2):
        {joined}
    out[t] = total

@fe.jit
def host(out: fe.Tensor):
    kernel(out).launch(grid=2, block={BLOCK})
"""


def races(body: list[Step]) -> bool:
    """Whether two threads use one element, one of them to write, and nothing separates them."""
    interval, warp_round = 0, 0
    found: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    for k in range(2):
        for kind, index, guard in body:
            interval, warp_round = interval + (kind == "barrier"), warp_round + (kind == "warp")
            if kind in ("barrier", "warp"):
                continue
            for t in range(BLOCK):
                names = {"t": t, "k": k}
                if eval(guard, names):
                    place = (interval, eval(index, names))
                    found.setdefault(place, []).append((t, warp_round, kind))
    return any(_clash(users) for users in found.values())


def _clash(users: list[tuple[int, int, str]]) -> bool:
    return any(
        {one[2], other[2]} not in ({"read"}, {"atomic"})
        and one[0] != other[0]
        and (one[0] // 32 != other[0] // 32 or one[1] == other[1])
        for one in users
        for other in users
    )


@pytest.mark.parametrize("seed", range(KERNELS))
def test_a_race_is_found_where_there_is_one(seed: int, tmp_path: Path) -> None:
    body = steps(seed)
    file = tmp_path / f"races_{seed}.py"
    file.write_text(text(body), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = np.zeros(BLOCK, np.int32)
    function = fe.compile(module.host, out, options=OPTIONS)
    if not races(body):
        function(out)
        return
    with pytest.raises(fe.RaceError):
        function(out)
