"""Files of compiled code: what each is told by its bytes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from cuda_body import IMAGE
from forged_cubins import ForgedKernel, forge_cubin

from ferrule import compiler
from ferrule.compiler.conventions import CFunction
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.hostcode import HostCode
from ferrule.frontends import files
from ferrule.specs import Scalar, Signature

TWICE = """
define i32 @twice(i32 %a) {
  %b = add i32 %a, %a
  ret i32 %b
}
"""
SIGNATURE = Signature("f", [Scalar("a", "int32")])


def called(code: DeviceCode | HostCode) -> int:
    assert isinstance(code, HostCode)
    function = CFunction("twice", [SIGNATURE["a"]], returns="int32", code=code)
    return int(compiler.build(SIGNATURE, function)(21))


def written(folder: Path, data: bytes) -> Path:
    """A file whose name says nothing."""
    path = folder / "code"
    path.write_bytes(data)
    return path


def test_ptx_and_cubins_are_device_code(tmp_path: Path) -> None:
    ptx = files.load(written(tmp_path, IMAGE), kernels=["second"])
    assert isinstance(ptx, DeviceCode)
    assert (ptx.archs, ptx.kernels) == (("sm_80",), ("second",))
    cubin = files.load(written(tmp_path, forge_cubin("sm_90a", [ForgedKernel("add")])))
    assert isinstance(cubin, DeviceCode)
    assert (cubin.archs, cubin.kernels) == (("sm_90a",), ("add",))


def test_llvm_ir_and_bitcode_are_host_code(tmp_path: Path) -> None:
    assert called(files.load(written(tmp_path, TWICE.encode()))) == 42
    bitcode = llvm.parse_assembly(TWICE).as_bitcode()
    assert called(files.load(written(tmp_path, bitcode))) == 42


@pytest.mark.needs_cc
def test_objects_and_shared_libraries_are_host_code(tmp_path: Path) -> None:
    source = tmp_path / "twice.c"
    source.write_text("int twice(int a) { return 2 * a; }")
    cc = os.environ.get("CC", "cc").split()
    for flag in ("-c", "-shared"):
        target = tmp_path / f"twice{flag}"
        subprocess.run([*cc, "-fPIC", flag, str(source), "-o", str(target)], check=True)
        assert called(files.load(target)) == 42


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty", b"", "got no bytes"),
        ("k.cu", b"__global__ void f() {}", "a source of CUDA C++: fe.frontends.cuda.compile comp"),
        ("k.cpp", b"int f;", 'got a source of C++: g++ -c -fPIC, with its functions extern "C", '),
        ("k.c", b"int f;", "got a source of C: fe.frontends.c.compile compiles it"),
        ("notes.txt", b"some words", "got text that begins with 'some words'"),
        ("k.fatbin", b"\x50\xed\x55\xba\x01\0\x10\0", "take them out of it with cuobjdump"),
        ("k.o", b"\x7fELF\x02\x01\x01", "the object is cut off: the ELF header"),
        ("k.cubin", forge_cubin("sm_90", [ForgedKernel("f")])[:-9], "the object is cut off"),
    ],
)
def test_what_is_none_of_these_is_refused(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ValueError) as caught:
        files.load(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.load(tmp_path / "nothing")
    with pytest.raises(TypeError, match="expected the path of a file, but got bytes"):
        files.load(TWICE.encode())  # type: ignore[arg-type]


def test_what_is_asked_of_the_wrong_kind_of_code(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"kernels=\['k'\] is for device code, but this is host"):
        files.load(written(tmp_path, TWICE.encode()), kernels=["k"])
    with pytest.raises(ValueError, match=r"libraries=\['l'\] is for objects and LLVM IR alone"):
        files.load(written(tmp_path, IMAGE), libraries=["l"])
