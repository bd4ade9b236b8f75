"""What kernels of Numba, Warp, cuTile and TileLang are handed, without these packages.

PTX with the parameters that they give a kernel stands for what they compile.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, Launch, forged

import ferrule as fe
from ferrule.compiler import conventions
from ferrule.compiler.building import build
from ferrule.compiler.conventions import CudaLaunch
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError
from ferrule.frontends.cutile.calling import TileCode
from ferrule.frontends.cutile.checks import Checks
from ferrule.frontends.cutile.constraints import Array, handed
from ferrule.frontends.numba.types import flattened
from ferrule.frontends.tilelang.calling import Apart, Names, _launch
from ferrule.frontends.tilelang.expressions import size_of
from ferrule.frontends.tilelang.lowered import Kernel, Lowered
from ferrule.frontends.warp.calling import LaunchBounds
from ferrule.frontends.warp.types import _array_struct
from ferrule.specs import Scalar, Signature, Tensor, sym_int64

N = fe.sym_int(symbol="n")
X = Tensor("x", (N,), "float32", strides=(sym_int64(),))
Y = Tensor("y", (N,), "float32", strides=(sym_int64(),))
A = Scalar("a", "float32")
SIGNATURE = Signature("axpy", [X, Y, A])


def code(*parameters: str) -> DeviceCode:
    """A kernel with these parameters."""
    listed = ", ".join(f".param {each.format(f'p{i}')}" for i, each in enumerate(parameters))
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    return DeviceCode.from_ptx(head + f".visible .entry k({listed}) {{ ret; }}\n")


def launched(fake_cuda: FakeCuda, convention: Any, signature: Signature = SIGNATURE) -> Launch:
    """The one launch of a call with arrays of 300 elements, of which y takes every second."""
    x, y = np.zeros(300, np.float32), np.zeros(600, np.float32)
    arrays = [forged(x), forged(y[::2])][: len(signature.params) - 1]
    build(signature, convention)(*arrays, 2.5)
    (launch,) = fake_cuda.launches()
    return launch


def test_numba_takes_an_array_as_seven_values_with_strides_in_bytes(fake_cuda: FakeCuda) -> None:
    taken = code(*[".u64 {}"] * 14, ".f32 {}")
    arguments = [each for param in SIGNATURE.params for each in flattened(param)]
    found = launched(fake_cuda, CudaLaunch(taken, "k", arguments, grid=1, block=32)).parameters
    values = [struct.unpack("<Q", each)[0] for each in found[:14]]
    assert [values[:4], values[5:11], values[12:]] == [
        [0, 0, 300, 4],
        [300, 4, 0, 0, 300, 4],
        [300, 8],
    ]
    assert found[14] == struct.pack("<f", 2.5)


def test_warp_takes_bounds_and_arrays_as_structs(fake_cuda: FakeCuda) -> None:
    taken = code(".align 8 .b8 {}[24]", *[".align 8 .b8 {}[56]"] * 2, ".f32 {}")
    bounds = LaunchBounds("k", (N, 3), 1)
    arguments = [bounds, _array_struct(X, 1), _array_struct(Y, 1), A]
    grid = fe.ceil_div(bounds.threads, 256)
    found = launched(fake_cuda, CudaLaunch(taken, "k", arguments, grid=grid, block=256))
    assert found.grid == (4, 1, 1)
    assert struct.unpack("<I4xQQ", found.parameters[0]) == (300, 900, 3)
    rows = [struct.unpack("<8xQ4i4iHH4x", each) for each in found.parameters[1:3]]
    assert rows == [
        (0, 300, 0, 0, 0, 4, 0, 0, 0, 1, 0),
        (0, 300, 0, 0, 0, 8, 0, 0, 0, 1, 0),
    ]


def test_cutile_takes_sizes_and_strides_of_its_index_dtype(fake_cuda: FakeCuda) -> None:
    cutile = SimpleNamespace(int32="int32", int64="int64")
    rows = [_constraint("int32", ("g",)), _constraint("int64", ())]
    pairs = list(zip((X, Y), rows, strict=True))
    arguments = [each for spec, row in pairs for each in handed(cutile, spec, row)]
    ptx = code(".u64 {}", ".u32 {}", ".u32 {}", *[".u64 {}"] * 3, ".f32 {}")
    tiles = TileCode(ptx.images, ptx.kernels, ptx.ptxas_options)
    launch = CudaLaunch(tiles, "k", [*arguments, A], grid=3, block=1)
    convention = conventions.Sequence([Checks(tuple(Array(*each) for each in pairs)), launch])
    found = launched(fake_cuda, convention).parameters
    assert found[1:3] == (struct.pack("<i", 300), struct.pack("<i", 1))
    assert found[4:6] == (struct.pack("<q", 300), struct.pack("<q", 2))
    function, same = build(SIGNATURE, convention), forged(np.zeros(8, np.float32))
    with pytest.raises(ValueError, match="x and y overlap in memory"):
        function(same, same, 1.0)
    backwards = forged(np.zeros(8, np.float32)[::-1])
    with pytest.raises(ValueError, match=r"Mismatched x.strides\[0\], expected at least 0, got -1"):
        function(backwards, same, 1.0)


def _constraint(index: str, groups: tuple[str, ...]) -> Any:
    return SimpleNamespace(
        index_dtype=index,
        stride_lower_bound_incl=(0,),
        may_alias_internally=False,
        alias_groups=groups,
    )


@dataclass(frozen=True)
class Var:
    """A variable of TVM, which is told by the name of its class."""

    name: str
    dtype: str = "handle"


@dataclass(frozen=True)
class FloorDiv:
    """An expression of TVM."""

    a: Any
    b: Any


class Select(FloorDiv):
    """One that stands for no size."""


def test_tilelang_takes_sizes_by_their_names(fake_cuda: FakeCuda) -> None:
    n, alpha, data, handle = Var("n", "int32"), Var("alpha", "float32"), Var("A"), Var("A_handle")
    buffer = SimpleNamespace(
        name="A", data=data, shape=[n], strides=[], dtype="float32", data_alignment=4
    )
    function = SimpleNamespace(params=[handle, alpha], buffer_map={handle: buffer})
    names = Names.of(function)
    signature = Signature("axpy", names.specs)
    assert str(signature) == "axpy(A: Tensor([n], float32), alpha: float32)"
    sizes, block = (FloorDiv(n, 100), 1, 1), (64, 1, 1)
    kernel = Kernel("k", (n, data, alpha), sizes, block, None, 0, False, False, frozenset())
    step = _launch(kernel, Lowered("", (kernel,), {}), names, code(".u32 {}", ".u64 {}", ".f32 {}"))
    found = launched(fake_cuda, conventions.Sequence([Apart.of_pairs(()), step]), signature)
    assert (found.grid, found.block) == ((3, 1, 1), (64, 1, 1))
    assert (found.parameters[0], found.parameters[2]) == (
        struct.pack("<i", 300),
        struct.pack("<f", 2.5),
    )
    with pytest.raises(CompileError, match="a size is .*, which is no size that a call tells"):
        size_of(Select(n, 2), names.symbols, "a size")
    with pytest.raises(CompileError, match="a kernel takes W, which is no parameter"):
        names.argument(Var("W"), {})
