"""Kernels of others: what is handed to the driver, byte for byte, and what is refused."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cuda_device import FakeCuda
from gpu_functions import floats

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.conventions import NULL, CudaLaunch, Struct, TensorStruct, cast
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.kernelfacts import KernelImage
from ferrule.specs import Scalar, Signature, Tensor, ceil_div

N = specs.sym_int(symbol="n")
M = specs.sym_int64(symbol="m")
_TYPES = {1: ".b8", 2: ".b16", 4: ".b32", 8: ".b64"}


def code(*kernels: str, params: Sequence[int | tuple[int, int]] = ()) -> DeviceCode:
    """PTX with kernels that take so many bytes each, or bytes and an alignment, and do nothing."""
    rows = []
    for i, each in enumerate(params):
        if isinstance(each, tuple):
            rows.append(f".param .align {each[1]} .b8 p{i}[{each[0]}]")
        else:
            rows.append(f".param {_TYPES[each]} p{i}")
    heads = (f".visible .entry {name}({', '.join(rows)}) {{ ret; }}" for name in kernels)
    text = ".version 8.0\n.target sm_80\n.address_size 64\n" + "\n".join(heads)
    return DeviceCode((KernelImage("sm_80", (text,)),), kernels)


def vector(name: str, *shape: specs.Dim, **more: Any) -> Tensor:
    return Tensor(name, shape or (N,), "float32", **more)


def launched(fake_cuda: FakeCuda, fn: fe.Function, *args: Any) -> Any:
    """The one launch of a call."""
    fake_cuda.clear()
    fn(*args)
    (launch,) = fake_cuda.launches()
    return launch


def test_a_kernel_of_ptx_gets_pointers_sizes_and_numbers(fake_cuda: FakeCuda) -> None:
    sig = Signature("add", [vector("x", align=16), vector("y"), Scalar("alpha", fe.Float32)])
    fn = compiler.build(
        sig,
        CudaLaunch(
            code("add_kernel", params=[8, 8, 4, 4]),
            "add_kernel",
            [sig["x"].data, sig["y"].data, N, sig["alpha"]],
            grid=(ceil_div(N, 256), 1, 1),
            block=(256, 1, 1),
        ),
    )
    x, y = floats(1000), floats(1000)
    launch = launched(fake_cuda, fn, x, y, 2.5)
    assert (launch.kernel, launch.grid, launch.block) == ("add_kernel", (4, 1, 1), (256, 1, 1))
    assert launch.parameters[2:] == (struct.pack("<i", 1000), struct.pack("<f", 2.5))
    assert all(len(each) == 8 for each in launch.parameters[:2])
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\] on argument #1"):
        fn(x, floats(999), 2.5)


def test_numbers_become_what_the_kernel_takes(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [vector("x", N, M), Scalar("k", "int64"), Scalar("a", "float64")])
    params = [
        NULL,
        cast(N, "int64"),
        cast(M, "int32"),
        cast(sig["k"], "uint8"),
        cast(sig["a"], "float16"),
        cast(sig["a"], "bfloat16"),
        cast(7, "int16"),
        cast(0.1, "float32"),
        cast(sig["k"], "float32"),
        sig["k"].value * 2,
        sig["x"].byte_strides[0],
    ]
    sizes = [8, 8, 4, 1, 2, 2, 2, 4, 4, 8, 8]
    fn = compiler.build(sig, CudaLaunch(code("f", params=sizes), "f", params, 1, 32))
    launch = launched(fake_cuda, fn, floats(3, 5), 200, 1.00048828125 + 2**-30)
    assert launch.parameters == (
        bytes(8),
        struct.pack("<q", 3),
        struct.pack("<i", 5),
        b"\xc8",
        struct.pack("<H", 0x3C01),
        struct.pack("<H", 0x3F80),
        struct.pack("<h", 7),
        struct.pack("<f", 0.1),
        struct.pack("<f", 200.0),
        struct.pack("<q", 400),
        struct.pack("<q", 20),
    )
    with pytest.raises(ValueError, match="parameter #3 of f does not fit uint8: got 256"):
        fn(floats(3, 5), 256, 1.0)


def test_structs_have_the_layout_of_c(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [vector("x", N, 8, strides=(M, 1))])
    struct_of_x = TensorStruct(sig["x"])
    mixed = Struct([cast(1, "int8"), cast(2, "int32"), cast(3, "int8"), sig["x"].data])
    assert (struct_of_x.size, mixed.offsets, mixed.size) == (24, (0, 4, 8, 16), 24)
    fn = compiler.build(
        sig,
        CudaLaunch(code("f", params=[(24, 8), (24, 8)]), "f", [struct_of_x, mixed], 1, 1),
    )
    launch = launched(fake_cuda, fn, floats(6, 8))
    data, rows, stride = struct.unpack("<Qi4xq", launch.parameters[0])
    assert (rows, stride) == (6, 8)
    first, second, third, same = struct.unpack("<b3xib7xQ", launch.parameters[1])
    assert (first, second, third, same) == (1, 2, 3, data)


def test_what_fills_a_struct_up_is_zeros(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [vector("x"), Scalar("k", "int64")])
    inner = Struct([cast(-1, "int8"), cast(-1, "int16")])
    odd = Struct([cast(-1, "int8"), inner, sig["k"], cast(-1, "int8")], align=16)
    assert (odd.offsets, odd.size) == ((0, 2, 8, 16), 32)
    fn = compiler.build(sig, CudaLaunch(code("f", params=[(32, 16)]), "f", [odd], 1, 1))
    (found,) = launched(fake_cuda, fn, floats(3), -1).parameters
    assert found == b"\xff\0\xff\0\xff\xff\0\0" + b"\xff" * 9 + bytes(15)


def test_constants_of_all_widths_are_what_they_are(fake_cuda: FakeCuda) -> None:
    given = {-128: "int8", 255: "uint8", 1: "bool", -(1 << 63): "int64", (1 << 64) - 1: "uint64"}
    params = [cast(value, dtype) for value, dtype in given.items()]
    sizes = [1, 1, 1, 8, 8]
    fn = compiler.build(
        Signature("f", [vector("x")]), CudaLaunch(code("f", params=sizes), "f", params, 1, 1)
    )
    found = launched(fake_cuda, fn, floats(3)).parameters
    wanted = (
        value.to_bytes(size, "little", signed=value < 0)
        for value, size in zip(given, sizes, strict=True)
    )
    assert found == tuple(wanted)


def test_launch_sizes_beyond_the_limits_are_refused(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [vector("x"), Scalar("b", "int32")])
    launch = CudaLaunch(code("f"), "f", [], grid=(1, N * 16384), block=sig["b"].value)
    fn = compiler.build(sig, launch)
    for rows, block, message in (
        (1, 1025, r"Invalid launch of f: expected block x to be in \[1, 1024\], but got 1025"),
        (1, 0, r"expected block x to be in \[1, 1024\], but got 0"),
        (4, 32, r"expected grid y to be in \[0, 65535\], but got 65536"),
    ):
        with pytest.raises(fe.LaunchError, match=message):
            fn(floats(rows), block)
    fake_cuda.clear()
    fn(floats(0), 32)
    assert fake_cuda.launches() == []


def test_results_are_allocated_and_returned(fake_cuda: FakeCuda) -> None:
    out = vector("out", N * 2)
    sig = Signature("f", [vector("x")])
    convention = CudaLaunch(code("f", params=[8, 8]), "f", [sig["x"].data, out.data], 1, 32)
    fn = compiler.build(sig, convention, results=[out])
    assert str(fn.signature).endswith("-> Tensor([n * 2], float32)")
    with pytest.raises(RuntimeError, match="there is no allocator for a new tensor on cuda"):
        fn(floats(4))


def test_a_sequence_launches_where_conditions_hold(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [vector("x")])
    kernels = code("first", "second", params=[8])
    steps = [
        CudaLaunch(kernels, "first", [sig["x"].data], ceil_div(N, 64), 64),
        CudaLaunch(kernels, "second", [sig["x"].data], 1, 64, when=N > 64),
    ]
    fn = compiler.build(sig, conventions.Sequence(steps))
    fn(floats(64))
    assert [each.kernel for each in fake_cuda.launches()] == ["first"]
    fake_cuda.clear()
    fn(floats(65))
    assert [each.kernel for each in fake_cuda.launches()] == ["first", "second"]
    assert fake_cuda.names().count("cuCtxGetDevice") == 1


def test_the_first_that_fits_is_launched(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [vector("x")])

    def choice(name: str, when: specs.Condition) -> CudaLaunch:
        return CudaLaunch(code(name, params=[8]), name, [sig["x"].data], 1, 32, when=when)

    wide = specs.divisible(N, 4) & specs.aligned(sig["x"].data, 4)
    fn = compiler.build(sig, conventions.FirstOf([choice("wide", wide), choice("odd", N < 8)]))
    for size, kernel in ((16, "wide"), (7, "odd"), (4, "wide")):
        assert launched(fake_cuda, fn, floats(size)).kernel == kernel
    with pytest.raises(ValueError, match=r"no code for these sizes: expected \(n % 4 == 0"):
        fn(floats(9))


def test_a_kernel_that_is_not_there_is_refused() -> None:
    sig = Signature("f", [vector("x")])
    with pytest.raises(fe.CompileError, match="no kernel 'h' in the device code"):
        compiler.build(sig, CudaLaunch(code("f", "g"), "h", [], 1, 1))


def test_a_symbol_of_no_parameter_is_refused() -> None:
    sig = Signature("f", [vector("x")])
    other = specs.sym_int(symbol="other")
    with pytest.raises(ValueError, match="the symbol other is in no parameter of f"):
        compiler.build(sig, CudaLaunch(code("f"), "f", [], other, 1))
    with pytest.raises(ValueError, match="Tensor 'z' is in no parameter of f"):
        compiler.build(sig, CudaLaunch(code("f", params=[8]), "f", [vector("z").data], 1, 1))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((1, 2, 3, 4), "block takes 1 to 3 sizes, but got 4"),
        (0, r"block x must be in \[1, 1024\], but got 0"),
        ((64, 32), "a block has at most 1024 threads"),
    ],
)
def test_constant_blocks_are_checked_at_once(block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CudaLaunch(code("f"), "f", [], 1, block)


def test_what_is_no_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="parameter #0 of f must be a parameter, the .data of"):
        CudaLaunch(code("f"), "f", [1.5], 1, 1)  # type: ignore[list-item]


def test_options_that_would_be_ignored_are_refused(tmp_path: Path) -> None:
    sig, launch = Signature("f", [vector("x")]), CudaLaunch(code("f"), "f", [], 1, 1)
    with pytest.raises(
        fe.CompileError, match="f: --gpu-arch, --fast-math says how ferrule compiles"
    ):
        compiler.build(sig, launch, options="--gpu-arch sm_80 --fast-math")
    with pytest.raises(fe.CompileError, match="f: --target is cpu, but this function launches"):
        compiler.build(sig, launch, options="--target cpu")
    compiler.build(sig, launch, options=f"--target cuda --keep-ptx --dump-dir {tmp_path}")
    assert ".entry f()" in (tmp_path / "f.sm_80.ptx").read_text()
