"""A grid that no call changes is refused where calls differ, unless it is said on purpose."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.compiler.errors import CompileError
from ferrule.frontends import triton as frontend

pytestmark = pytest.mark.needs_cc

EXAMPLE = np.zeros(1000, np.float32)
SIZE = EXAMPLE.size
BLOCK = 128
PROGRAMS = 132
VECTORS = {"x": "*fp32[n]", "y": "*fp32[n]"}
ceil_div = frontend.ceil_div


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def compiled(kernel: Any, grid: Any, signature: Any = None) -> Any:
    known = {**VECTORS, "factor": "fp32"} if signature is None else signature
    return frontend.compile(
        kernel, signature=known, constexprs={"BLOCK": 128}, grid=grid, target="sm_90a"
    )


def next_power_of_2(n: int) -> int:
    """As Triton's."""
    n -= 1
    for bits in (1, 2, 4, 8, 16):
        n |= n >> bits
    return n + 1


class Host:
    """What a library has its sizes in."""

    blocks = 8

    def grid(self, meta: Any) -> Any:
        return ceil_div(meta["n"], 128), self.blocks

    __call__ = grid


def with_rows(meta: Any, rows: int) -> Any:
    return ceil_div(meta["n"], 128), rows


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a number": (lambda: 8, "grid is 8 in every call, but x.shape"),
    "one": (lambda: 1, "grid is 1 in every call"),
    "numbers": (lambda: (8, 1), r"grid is \(8, 1\) in every call"),
    "numbers of a function": (lambda: lambda meta: (8,), "grid is 8 in every call"),
    "a constant": (lambda: lambda meta: (meta["BLOCK"],), "grid is 128 in every call"),
    "a global": (lambda: lambda meta: (ceil_div(SIZE, 128),), "grid's x is 8 .* of SIZE, which"),
    "an array": (
        lambda: lambda meta: (ceil_div(meta["n"], 128), EXAMPLE.shape[0]),
        r"grid's y is 1000 in every call, of EXAMPLE.shape\[0\], which",
    ),
    "a quotient": (
        lambda: lambda meta: (ceil_div(meta["n"], 128), math.ceil(SIZE / 128)),
        "grid's y is 8 in every call, of SIZE",
    ),
    "rounded up to a power of two": (
        lambda: lambda meta: (ceil_div(meta["n"], 128), next_power_of_2(SIZE) >> 7),
        "grid's y is 8 in every call, of SIZE",
    ),
    "a float": (
        lambda: lambda meta: (ceil_div(meta["n"], 128), int(float(SIZE) / 128) + 1),
        "grid's y is 8 in every call, of a number that the function takes from its surroundings",
    ),
    "a length": (
        lambda: lambda meta: (ceil_div(meta["n"], 128), len(EXAMPLE)),
        "grid's y is 1000 in every call, of a number that",
    ),
    "a default": (
        lambda: lambda meta, rows=4: (ceil_div(meta["n"], 128), rows),
        "grid's y is 4 in every call, of rows",
    ),
    "a partial": (lambda: functools.partial(with_rows, rows=3), "grid's y is 3 .* of rows"),
    "a method": (lambda: Host().grid, "grid's y is 8 in every call, of self.blocks"),
    "an object": (lambda: Host(), "grid's y is 8 in every call, of self.blocks"),
    "a factor": (
        lambda: lambda meta: (ceil_div(meta["n"], 128) * SIZE,),
        "grid's x is a multiple of SIZE",
    ),
    "an outcome": (
        lambda: lambda meta: (SIZE if meta["n"] > 4 else 1,),
        "grid's x is 1000 in every call, of SIZE",
    ),
}
TAKEN: dict[str, tuple[Callable[[], Any], tuple[int, int]]] = {
    "a divisor": (lambda: lambda meta: ceil_div(meta["n"], BLOCK), (16, 1)),
    "rounded": (lambda: lambda meta: ((meta["n"] + BLOCK - 1) // BLOCK, 1), (16, 1)),
    "literals": (lambda: lambda meta: (ceil_div(meta["n"], 128), 3), (16, 3)),
    "constants": (lambda: lambda meta: (meta["n"], meta["BLOCK"] // 32), (2000, 4)),
    "a bound": (lambda: lambda meta: (min(PROGRAMS, ceil_div(meta["n"], 16)),), (125, 1)),
    "the bound": (lambda: lambda meta: (min(PROGRAMS, meta["n"]),), (132, 1)),
    "a minimum": (lambda: lambda meta: (frontend.minimum(meta["n"], PROGRAMS),), (132, 1)),
    "decided": (lambda: lambda meta: (2,) if meta["n"] > 4 else (1,), (2, 1)),
    "decided by a bound": (lambda: lambda meta: (4,) if meta["n"] > SIZE * 4 else (2,), (2, 1)),
    "fixed": (lambda: fe.frontends.fixed(8), (8, 1)),
    "fixed sizes": (lambda: fe.frontends.fixed((8, 2)), (8, 2)),
    "fixed among others": (lambda: (frontend.fixed(8), 2), (8, 2)),
    "fixed in a function": (lambda: lambda meta: (frontend.fixed(PROGRAMS) * 2, 1), (264, 1)),
    "a fixed factor": (
        lambda: lambda meta: (meta["n"] // 100 * frontend.fixed(SIZE),),
        (20_000, 1),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_grid_that_no_call_changes_is_refused(kernels: ModuleType, name: str) -> None:
    grid, said = REFUSED[name]
    with pytest.raises(CompileError, match=f"scale: the {said}"):
        compiled(kernels.scale, grid())


@pytest.mark.parametrize("name", TAKEN)
def test_a_grid_that_follows_a_call_or_is_fixed_on_purpose_is_taken(
    gpu: FakeCuda, kernels: ModuleType, name: str
) -> None:
    grid, wanted = TAKEN[name]
    function = compiled(kernels.scale, grid())
    function(tensor(2000)[0], tensor(2000)[0], 1.0)
    (launch,) = gpu.launches()
    assert launch.grid == (*wanted, 1)


def test_a_copy_of_a_launch_is_refused_with_the_names_of_what_differs(kernels: ModuleType) -> None:
    """The tutorial's own line: the size is that of the example."""
    x, y, n_elements = np.zeros(4096, np.float32), np.zeros(4096, np.float32), 4096
    with pytest.raises(CompileError) as error:
        frontend.compile(
            kernels.scale,
            *(x, y, n_elements, 1.0),
            BLOCK=1024,
            grid=lambda meta: (ceil_div(n_elements, meta["BLOCK"]),),
            target="sm_90a",
        )
    assert "of n_elements, which the function takes from its surroundings" in str(error.value)
    assert "x.shape[0], y.shape[0], n differ between calls" in str(error.value)
    assert "grid=fe.frontends.fixed" in str(error.value)


def test_where_every_size_is_fixed_a_grid_of_numbers_is_right(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    signature = {"x": "*fp32[1000]", "y": "*fp32[1000]", "n": 1000, "factor": "fp32"}
    function = compiled(kernels.scale, lambda meta: (ceil_div(SIZE, 128),), signature)
    function(tensor(1000)[0], tensor(1000)[0], 1.0)
    assert gpu.launches()[0].grid == (8, 1, 1)


@pytest.mark.parametrize("wrong", [True, 1.5, "n", (1, None)])
def test_fixed_takes_ints_alone(wrong: Any) -> None:
    with pytest.raises(TypeError, match="fixed takes an int or a tuple of ints, but got"):
        frontend.fixed(wrong)
