"""Launches of a library that cannot be imported here are counted."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
from cuda_device import FakeCuda

pytestmark = pytest.mark.needs_cc

LIBRARY = """
import missing_package
import torch
from .of_gpus import tl, triton

SIZE = torch.cuda.get_device_properties(0).name.upper() + missing_package.SUFFIX

class Tuner(triton.runtime.Autotuner):
    pass

@triton.jit
def helper(x):
    return x + 1

@missing_package.decorated(SIZE)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def add_kernel(x_ptr, idx_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(idx_ptr + at, mask=at < n)
    tl.store(out_ptr + at, helper(tl.load(x_ptr + index, mask=at < n)), mask=at < n)

@triton.jit
def unknown(x_ptr, n, USE: tl.constexpr, BLOCK: tl.constexpr):
    if USE:
        missing_package.of_another_version(x_ptr)
    tl.store(x_ptr + tl.arange(0, BLOCK), missing_function(n) if USE else 0.0)

missing_function = missing_package.function

@triton.jit
def never(x_ptr, BLOCK: tl.constexpr):
    tl.static_assert(False)
"""
WRAPPED = """
import triton, triton.language as tl
if not triton.runtime.driver.active.is_active():
    triton = tl = None
"""


def test_kernels_are_found_guessed_and_compared(gpu: FakeCuda, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    counting = pytest.importorskip("triton_libraries")
    package = tmp_path / "own_library"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('no GPU')")
    (package / "of_gpus.py").write_text(WRAPPED)
    (package / "ops.py").write_text(LIBRARY)
    options = Namespace(arch=90, tries=3, most=9, seconds=60, only=None, without=(), verbose=False)
    found = counting.count(gpu, tmp_path, options)
    assert found.kernels == 3
    assert dict(found.said) == {"same": 1, "not guessed": 2}
    names = [each.partition(":")[0] for each in found.notes]
    assert sorted(names) == ["own_library.ops.never", "own_library.ops.unknown"]
    assert any("Unsupported function referenced" in each for each in found.notes)
    assert found.row() == f"| {tmp_path.name} | 3 | 3 | 1 | 1 | 0 | 0 |"
