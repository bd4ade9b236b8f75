"""The matmuls on tensor cores: what they compute on a CPU, and what they are for a GPU.

There, the tiles of LARGE need nearly all registers, and their loop is to compute hardly anything
but products; shared memory is to be read and written without waiting for one of its 32 banks.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import ptxas
import pytest

import ferrule as fe

BANKS = 32
CHUNK_BYTES = 16
QUARTER = 8  # lanes, whose 16 bytes each are read or written at one time


def load(name: str) -> ModuleType:
    path = Path(__file__).parents[2] / f"examples/{name}.py"
    spec = importlib.util.spec_from_file_location(f"examples.{name}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def copied() -> ModuleType:
    """Its slices come by `cp_async`."""
    return load("tensor_core_matmul")


@pytest.fixture(scope="module")
def boxed() -> ModuleType:
    """Its slices come as boxes of tensors."""
    return load("tma_matmul")


# ---- results ----


def test_boxes_agree_with_numpy(boxed: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    boxed.main()
    assert "equals" in capsys.readouterr().out


def test_any_sizes_and_a_narrow_result(copied: ModuleType) -> None:
    """Less than a tile, less than the slices that are ahead, tiles in two groups, nothing."""
    function = copied.compiled(dtype=fe.Float16, result=fe.Float16)
    rng = np.random.default_rng(0)
    for m, n, k in ((1, 8, 8), (33, 40, 200), (290, 72, 24), (3, 8, 0), (0, 8, 8)):
        a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        c = np.full((m, n), np.nan, np.float16)
        function(a, b, c)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


# ---- what they are for a GPU ----


@pytest.mark.needs_ptxas
def test_the_copied_one_assembles_without_a_spill(copied: ModuleType, tmp_path: Path) -> None:
    result = {"result": fe.BFloat16, "tiles": copied.LARGE}
    options = "--target cuda --gpu-arch sm_80 --index-bitwidth 32"
    ptx = copied.compiled(options, **result).inspect_ptx()
    ptxas.assemble(ptx, "sm_80", tmp_path, "--warn-on-spills")
    counts = loop_counts(ptx)
    assert counts["mma"] == 4 * 8 * 2 and counts["ldmatrix"] == 8 * 2 and counts["cp"] == 6 + 2
    assert not ptx.count(".local")
    # Each result of two is narrowed in one step.
    assert len(re.findall(r"cvt\.rn\.bf16", ptx)) == 4 * 8 * 4


@pytest.mark.needs_ptxas
def test_the_boxed_one_assembles_without_a_spill(boxed: ModuleType, tmp_path: Path) -> None:
    options = "--target cuda --gpu-arch sm_90a"
    ptx = boxed.compiled(options, tiles=boxed.LARGE).inspect_ptx()
    ptxas.assemble(ptx, "sm_90a", tmp_path, "--warn-on-spills")
    assert ptx.count("cp.async.bulk.tensor.2d.shared::cluster") == 1 + 4
    assert ptx.count("setmaxnreg") == 2 and ".minnctapersm 1" in ptx
    counts = loop_counts(ptx)
    assert counts["mma"] == 4 * 8 * 4 and counts["ldmatrix"] == 8 * 4
    assert sum(counts.values()) < 2 * counts["mma"]


def loop_counts(ptx: str) -> dict[str, int]:
    """The instructions of the loop with the products: between its label and the way back to it."""
    lines = [line.strip() for line in ptx.splitlines()]
    products = [i for i, line in enumerate(lines) if line.startswith("mma.")]
    first = max(i for i in range(products[0]) if lines[i].startswith("$L"))
    found: dict[str, int] = {}
    for line in lines[first : products[-1] + 1]:
        name = re.match(r"(?:@!?%p\d+ )?([a-z]+)\b[^:]*$", line)
        if name is not None:
            found[name[1]] = found.get(name[1], 0) + 1
    return found


# ---- banks ----


def without_conflicts(place: Callable[..., int], lanes: Iterator[tuple[int, int]]) -> None:
    """Quarters of a warp, each lane at a row and column, are in all banks."""
    at: list[Any] = [place(row, column) * 2 for row, column in lanes]
    for first in range(0, len(at), QUARTER):
        banks = {byte % (BANKS * 4) // CHUNK_BYTES for byte in at[first : first + QUARTER]}
        assert len(banks) == QUARTER


@pytest.mark.parametrize("columns", [32, 64, 128, 256])
def test_neither_copies_nor_fragments_wait_for_a_bank(copied: ModuleType, columns: int) -> None:
    def place(row: int, column: int) -> int:
        return int(copied.swizzled(row, column, columns))

    per_row = columns // 8
    for column in range(0, columns, 8):
        without_conflicts(place, ((row, column) for row in range(16)))
    without_conflicts(place, ((i // per_row, i % per_row * 8) for i in range(256)))


def test_fragments_of_boxes_wait_for_no_bank(boxed: ModuleType) -> None:
    for column in range(0, boxed.WIDTH, 8):
        without_conflicts(boxed.place, ((row, column) for row in range(16)))
