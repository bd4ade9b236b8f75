"""Modules of kind `ferrule.ptx`: kernels that are launched by what a library imports."""

from __future__ import annotations

import ctypes
import json
import pickle
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_body import IMAGE
from cuda_device import FakeCuda, fake_cuda, forged
from exported import run_python

import ferrule as fe
from ferrule.runtime import Function, ObjectFileError, StageError
from ferrule.runtime.llvm.launches import LAUNCH_CONFIG
from ferrule.runtime.ptx import functions, hot
from ferrule.runtime.ptx.driver import Image, KernelState, LaunchConfig
from ferrule.runtime.ptx.payload import read_payload

__all__ = ["fake_cuda"]

FIRST = "first(a: Pointer(float32), b: float32)"
SECOND = "second(both: Tuple[int64, int32])"
GRID, BLOCK = (4, 2, 1), (32, 1, 1)
LAUNCH = (*GRID, *BLOCK, 0)


ALONE = """
import importlib.machinery, sys
class Lean(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name == "llvmlite" or name.startswith(("ferrule.compiler", "ferrule.language"))
        return None if hidden else super().find_spec(name, path, target)
sys.meta_path = [Lean if f is importlib.machinery.PathFinder else f for f in sys.meta_path]
from ferrule.runtime import load_module
try:
    load_module(sys.argv[1]).imports[0].first(8, 1.5, 1, 1, 1, 32, 1, 1, 0)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.needs_cc
def test_an_import_needs_neither_llvm_nor_a_gpu_before_a_launch(
    ptx: fe.Module, add_one: Function, tmp_path: Path
) -> None:
    fe.Module([add_one], imports=[ptx]).write_to_file(tmp_path / "k.so")
    said = run_python(ALONE, tmp_path / "k.so")
    assert said.startswith(
        ("CudaError the CUDA driver cannot be loaded in the launch of first: ", "CudaError cu")
    )


Ready = Callable[[fe.Module], fe.Module]


@pytest.fixture(params=["python", "machine code"])
def ready(
    request: pytest.FixtureRequest, fake_cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> Ready:
    """Lets Python launch the kernels of a module, or machine code, which it must do alone.

    Machine code launches what is loaded already, on the device that is current.
    """

    def prepare(module: fe.Module) -> fe.Module:
        if request.param == "python":
            monkeypatch.setattr(functions, "find_spec", lambda name: None)
            return module
        fake_cuda.set_current(1)
        for function in module.functions.values():
            function(*[0] * (len(function.signature.params) - len(LAUNCH)), *LAUNCH)
        fake_cuda.clear()
        monkeypatch.setattr(Image, "launch", lambda *_: pytest.fail("Python launched it"))
        return module

    return prepare


def test_a_function_launches_its_kernel(fake_cuda: FakeCuda, ptx: fe.Module, ready: Ready) -> None:
    ready(ptx).first(4096, 1.5, *LAUNCH)
    ptx.first(
        a=ctypes.c_void_p(8),
        b=2.0,
        grid_x=1,
        grid_y=1,
        grid_z=1,
        block_x=1,
        block_y=1,
        block_z=1,
        shared_bytes=64,
    )
    ptx.second(7, -3, *LAUNCH)
    first, second, third = fake_cuda.launches()
    assert (first.kernel, first.grid, first.block, first.smem) == ("first", GRID, BLOCK, 0)
    assert first.parameters == (struct.pack("<Q", 4096), struct.pack("<f", 1.5))
    assert second.parameters == (struct.pack("<Q", 8), struct.pack("<f", 2.0))
    assert second.smem == 64
    assert third.parameters == (struct.pack("<qi4x", 7, -3),)
    assert fake_cuda.libraries == 1


def test_a_tensor_is_its_address_and_says_where(
    fake_cuda: FakeCuda, ptx: fe.Module, ready: Ready
) -> None:
    array = np.zeros(8, np.float32)
    stream = fake_cuda.stream(1)
    ready(ptx)
    depth = fake_cuda.depth
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:1"), stream):
        ptx.first(forged(array[2:], 1), 0.0, *LAUNCH)
    (call,) = [call for call in fake_cuda.calls() if call.launch is not None]
    assert call.launch is not None
    assert (call.device, call.launch.stream) == (1, stream)
    assert call.launch.parameters[0] == struct.pack("<Q", array.ctypes.data + 8)
    assert fake_cuda.depth == depth


def test_tensors_on_two_devices_are_refused(fake_cuda: FakeCuda) -> None:
    image = IMAGE.replace(b".param .align 8 .b8 second_both[16]", b".param .u64 a, .param .u64 b")
    module = fe.Module.from_ptx(image, "second(a: Pointer(float32), b: Pointer(float32))")
    a = np.zeros(8, np.float32)
    for _ in range(2):
        with pytest.raises(ValueError, match="expected cuda:0, where the tensors before it are, b"):
            module.second(forged(a, 0), forged(a, 1), *LAUNCH)
        module.second(forged(a, 1), forged(a, 1), *LAUNCH)
    assert [call.device for call in fake_cuda.calls() if call.launch is not None] == [1, 1]


def test_an_empty_grid_launches_nothing(fake_cuda: FakeCuda, ptx: fe.Module) -> None:
    ptx.first(None, 1.0, 0, 1, 1, 32, 1, 1, 0)
    assert fake_cuda.launches() == []


def test_a_call_through_tvm_ffi_launches_too(
    fake_cuda: FakeCuda, ptx: fe.Module, add_one: Function
) -> None:
    module = fe.Module([add_one], imports=[ptx]).system_lib(f"tests_{uuid.uuid4().hex}_")
    module.imports[0].first(ctypes.c_void_p(16), 1.0, *LAUNCH)
    assert [launch.grid for launch in fake_cuda.launches()] == [GRID]


CALLED = r"`first\(a: Pointer\(float32\), b: float32, grid_x: int32, grid_y: int32, grid_z: int32, "


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, "x", *LAUNCH), TypeError, f"Mismatched type on argument #1 when calling: {CALLED}"),
        (
            (1.5, 0, *LAUNCH),
            TypeError,
            "expected a pointer, an int, None or a tensor on a GPU, but",
        ),
        ((0, 0, 1.5, *LAUNCH[1:]), TypeError, "argument #2 .*expected int32, but got float"),
        (
            (0, 0, 1, 65536, 1, *BLOCK, 0),
            fe.LaunchError,
            r"grid y to be in \[0, 65535\], but got 65",
        ),
        ((0, 0, *GRID, 0, 1, 1, 0), fe.LaunchError, r"block x to be in \[1, 1024\], but got 0"),
        (
            (0, 0, *GRID, 64, 32, 1, 0),
            fe.LaunchError,
            "at most 1024 threads in a block, but got 2048",
        ),
        ((0, 0, *GRID, *BLOCK, -1), fe.LaunchError, "shared bytes to be in .*, but got -1"),
        (
            (np.zeros(2, np.float32), 0, *LAUNCH),
            ValueError,
            "expected a tensor on cuda, but got cpu",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[Any, ...],
    error: type[Exception],
    message: str,
    ptx: fe.Module,
    ready: Ready,
) -> None:
    with pytest.raises(error, match=message):
        ready(ptx).first(*arguments)


def test_numbers_that_do_not_fit_are_refused(ptx: fe.Module, ready: Ready) -> None:
    ready(ptx)
    said = r"Out of bound value on argument #1 .* int32 range \[-2147483648, 2147483647\], but got "
    with pytest.raises(ValueError, match=said + "2147483648"):
        ptx.second(0, 1 << 31, *LAUNCH)


def test_every_dtype_has_its_bytes(fake_cuda: FakeCuda) -> None:
    image = IMAGE.replace(
        b".param .align 8 .b8 second_both[16]",
        b".param .u16 a, .param .u16 b, .param .u8 c, .param .s8 d, .param .u64 e, .param .f64 f",
    )
    kernel = "second(a: float16, b: bfloat16, c: bool, d: int8, e: uint64, f: float64)"
    module = fe.Module.from_ptx(image, kernel)
    module.second(1.5, 1.0 + 3 * 2**-8, True, -1, (1 << 63) - 1, 0.1, *LAUNCH)
    module.second(1e9, float("nan"), 0, 1, 0, 1, *LAUNCH)
    first, second = fake_cuda.launches()
    forms = ("<e", "<H", "<B", "<b", "<Q", "<d")
    values = (1.5, 0x3F82, 1, -1, (1 << 63) - 1, 0.1)
    assert first.parameters == tuple(map(struct.pack, forms, values))
    assert second.parameters[:2] == (struct.pack("<e", float("inf")), struct.pack("<H", 0x7FC0))


@pytest.mark.parametrize(
    ("dtype", "value", "wanted"),
    [
        ("bfloat16", 1 + 2**-8 + 2**-30, 0x3F81),
        ("bfloat16", 1 + 2**-8 - 2**-30, 0x3F80),
        ("bfloat16", 2**60 + 2**52 + 1, 0x5D81),
        ("bfloat16", 1e39, 0x7F80),
        ("float16", 2**11 + 1 + 2**-40, 0x6801),
        ("float16", 10**30, 0x7C00),
        ("float32", 2**60 + 2**36 + 1, 0x5D800001),
    ],
)
def test_a_number_is_rounded_once(
    dtype: str, value: float, wanted: int, fake_cuda: FakeCuda
) -> None:
    kind, form = (".b32", "<I") if dtype == "float32" else (".b16", "<H")
    image = IMAGE.replace(b".param .align 8 .b8 second_both[16]", f".param {kind} a".encode())
    fe.Module.from_ptx(image, f"second(a: {dtype})").second(value, *LAUNCH)
    (launch,) = fake_cuda.launches()
    assert launch.parameters == (struct.pack(form, wanted),)


def test_a_struct_is_laid_out_as_c_does(fake_cuda: FakeCuda, ready: Ready) -> None:
    image = IMAGE.replace(b"second_both[16]", b"both[40]")
    kernel = "second(s: Tuple[int8, Tuple[int16, float64], Pointer(int8), int8, bool])"
    module = fe.Module.from_ptx(image, kernel)
    names = [param.name for param in module.second.signature.params[:-7]]
    assert names == ["s_0", "s_1_0", "s_1_1", "s_2", "s_3", "s_4"]
    ready(module).second(-1, -2, 3.5, 4, 5, True, *LAUNCH)
    module.second(1, 2, -3.5, 4, 5, False, *LAUNCH)
    first, second = (launch.parameters for launch in fake_cuda.launches())
    form = "<b7xh6xdQbB6x"
    assert first == (struct.pack(form, -1, -2, 3.5, 4, 5, True),)
    assert second == (struct.pack(form, 1, 2, -3.5, 4, 5, False),)


@pytest.mark.parametrize(("kind", "forms"), [("Int", "bhiq"), ("Uint", "BHIQ")])
def test_integers_of_every_width_have_their_range(
    kind: str, forms: str, fake_cuda: FakeCuda, ready: Ready
) -> None:
    types = [getattr(fe, f"{kind}{width}") for width in (8, 16, 32, 64)]
    params = ", ".join(f".param .u{dtype.bits} p{dtype.bits}" for dtype in types)
    image = IMAGE.replace(b".param .align 8 .b8 second_both[16]", params.encode())
    kernel = ", ".join(f"p{dtype.bits}: {dtype.name}" for dtype in types)
    module = ready(fe.Module.from_ptx(image, f"second({kernel})"))
    least, most = ([dtype.range[end] for dtype in types] for end in range(2))
    most[3] = (1 << 63) - 1
    for values in (least, most):
        module.second(*values, *LAUNCH)
        found = fake_cuda.launches()[-1].parameters
        assert list(map(struct.unpack, forms, found)) == [(value,) for value in values]
    for position in range(3):
        for value in (least[position] - 1, most[position] + 1):
            wrong = [value if i == position else 0 for i in range(4)]
            with pytest.raises(ValueError, match=f"argument #{position} .* but got {value}"):
                module.second(*wrong, *LAUNCH)


@pytest.mark.parametrize("call", ["cuLibraryLoadData", "cuLaunchKernelEx", "cuCtxPushCurrent_v2"])
def test_what_the_driver_refuses_is_an_error(
    fake_cuda: FakeCuda, ptx: fe.Module, call: str
) -> None:
    fake_cuda.fail(call, 2)
    with pytest.raises(
        fe.CudaError, match=rf"{call} failed with CUDA_ERROR_OUT_OF_MEMORY \(2: .*first"
    ):
        ptx.first(0, 0, *LAUNCH)
    ptx.first(0, 0, *LAUNCH)
    assert len(fake_cuda.launches()) == 1 and fake_cuda.depth == 0


@pytest.mark.parametrize(
    ("image", "kernels", "message"),
    [
        (b"junk", [FIRST], "wanted PTX text, a cubin or a fatbin, but got bytes that begin with"),
        (IMAGE, [], "wanted the signature of a kernel at least"),
        (IMAGE, [FIRST, FIRST], "each once, but got"),
        (IMAGE, ["third(n: int32)"], "the PTX has no kernel 'third'; its kernels: first, second"),
        (IMAGE, ["first(s: str)"], "first: a kernel takes numbers, pointers, and tuples of these"),
        (IMAGE, ["first(a: Tensor([4], float32))"], "write a tensor as a Pointer"),
        (IMAGE, ["first("], "is no signature"),
    ],
)
def test_what_is_no_image_with_kernels_is_refused(
    image: bytes, kernels: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fe.Module.from_ptx(image, kernels)


def test_a_payload_is_the_header_and_the_image(ptx: fe.Module) -> None:
    data = ptx.data or b""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    assert header == {"format": 1, "kernels": [FIRST, SECOND]}
    assert data[end:].startswith(IMAGE)
    newer = json.dumps({**header, "format": 2}).encode()
    with pytest.raises(ObjectFileError, match="has format 2, this ferrule reads up to 1"):
        read_payload(len(newer).to_bytes(8, "little") + newer + IMAGE)
    for cut in (0, 7, 30, end):
        with pytest.raises(
            ObjectFileError, match="of kind ferrule.ptx (is cut off|cannot be read)"
        ):
            read_payload(data[:cut])


def test_the_texts_of_kernels_are_their_ptx(ptx: fe.Module, tmp_path: Path) -> None:
    ptx.write_to_file(tmp_path / "k.ptx")
    assert (tmp_path / "k.ptx").read_text() == ptx.inspect_source("ptx")
    with pytest.raises(ValueError, match="to a file that ends in .so, .a or .pyi, but got '.*k.h'"):
        ptx.write_to_file(tmp_path / "k.h")
    assert ptx.inspect_source("ptx").startswith(IMAGE.decode())
    with pytest.raises(StageError, match="no 'llvm' text: the function launches a kernel"):
        ptx.inspect_source("ll")
    cubin = fe.Module.from_ptx(b"\x7fELF not looked at", FIRST)
    with pytest.raises(StageError, match="no 'ptx' text"):
        cubin.inspect_source("ptx")
    with pytest.raises(TypeError, match="cannot be pickled: .*as an import of another module"):
        pickle.dumps(ptx.first)


def test_structs_of_ctypes_lie_as_in_generated_code() -> None:
    for kind, layout in ((LaunchConfig, LAUNCH_CONFIG), (KernelState, hot.STATE)):
        for name in layout.names:
            assert getattr(kind, name).offset == layout.offset(name)
        assert ctypes.sizeof(kind) == layout.size
