"""`fill` in host functions, of tensors on a CPU and on an emulated GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe


@fe.jit
def fill(a: fe.Tensor, x: fe.Float32):
    a.fill(x)
    fe.local_tile(a, (2, 3), (1, 0)).fill(7)


def compiled(shape: Any, target: str) -> Any:
    options = f"--target {target}" + (" --gpu-arch sm_90a" if target == "cuda" else "")
    return fe.compile(fill, fe.row_major(shape, fe.Float32), fe.Float32, options=options)


def shapes() -> list[Any]:
    return [(4, 3), (fe.sym_int(), fe.sym_int()), (4, 600)]


def wanted(shape: tuple[int, int]) -> Any:
    found = np.full(shape, 2, np.float32)
    found[2:4, :3] = 7
    return found


@pytest.mark.parametrize("which", [0, 1, 2], ids=["static", "symbols", "many"])
def test_fill_on_the_cpu(which: int) -> None:
    a = np.zeros((4, 600 if which == 2 else 3), np.float32)
    compiled(shapes()[which], "cpu")(a, 2.0)
    np.testing.assert_array_equal(a, wanted(a.shape))


@pytest.mark.parametrize("which", [0, 1, 2], ids=["static", "symbols", "many"])
def test_fill_on_a_gpu(which: int) -> None:
    function = compiled(shapes()[which], "cuda")
    with fe.emulated_gpu("sm_90a"):
        a = fe.cuda.array(np.zeros((4, 600 if which == 2 else 3), np.float32))
        function(a, 2.0)
        np.testing.assert_array_equal(fe.cuda.to_numpy(a), wanted(a.shape))


def test_what_it_takes() -> None:
    """As an assignment to the whole tensor does."""
    for target in ("cpu", "cuda"):
        with pytest.raises(fe.CompileError, match="a float32 is stored to a, whose elements are"):
            fe.compile(
                fill,
                fe.row_major((fe.sym_int(), 4), fe.Int32),
                fe.Float32,
                options=f"--target {target} --gpu-arch sm_90a",
            )
