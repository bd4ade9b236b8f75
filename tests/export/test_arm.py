"""Functions of calling conventions in C programs for aarch64, run by qemu."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import abc
from pathlib import Path

import pytest
from each_convention import OUT, SOURCE, TEXT, K, N, X
from tvm_ffi import libinfo

from ferrule.compiler.building import compiled
from ferrule.compiler.conventions import (
    CallingConvention,
    CFunction,
    HostCode,
    Memref,
    Sequence,
    cast,
)
from ferrule.compiler.errors import CompileError
from ferrule.compiler.hostcode.embedding import PREFIX, embed
from ferrule.specs import Param, Signature, Tensor

PROGRAM = Path(__file__).with_name("conventions.c")


def linked(compiler: str, objects: abc.Sequence[str], *flags: str, folder: Path) -> Path:
    """The program with these objects."""
    include = [f"-I{path}" for path in libinfo.include_paths()]
    strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    sources = [str(PROGRAM), *objects, *flags, "-ldl"]
    command = [compiler, *strict, *include, *sources, "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "main"


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


ALONE = ("-static", "-DWITHOUT_LIBRARY", "-Wl,--unresolved-symbols=ignore-all")
"""What code needs of libtvm_ffi where it fails is nowhere."""
ARM = "--host-target aarch64-linux-gnu"


@pytest.fixture(scope="module")
def arm() -> tuple[str, str]:
    """qemu and a C compiler for aarch64."""
    qemu, compiler = shutil.which("qemu-aarch64"), shutil.which("aarch64-linux-gnu-gcc")
    if qemu is None or compiler is None:
        pytest.skip("no qemu-aarch64 and aarch64-linux-gnu-gcc")
    return qemu, compiler


LAST = """
define double @_mlir_ciface_last(ptr %x) {
  %aligned = getelementptr ptr, ptr %x, i64 1
  %data = load ptr, ptr %aligned
  %sizes = getelementptr i64, ptr %x, i64 3
  %size = load i64, ptr %sizes
  %at = sub i64 %size, 1
  %place = getelementptr float, ptr %data, i64 %at
  %value = load float, ptr %place
  %wide = fpext float %value to double
  ret double %wide
}
"""


def test_llvm_ir_and_memrefs_run_on_arm(arm: tuple[str, str], tmp_path: Path) -> None:
    """Without a libtvm_ffi for that machine, so nothing is allocated."""
    ir = HostCode.from_llvm(LAST)
    for_arm(tmp_path, "last", Memref("last", [X], returns="float64", code=ir), X)
    shift = CFunction("shift", [X.data, X.data, N, K], code=HostCode.from_llvm(TEXT))
    for_arm(tmp_path, "shift", shift, X, K)
    flags = [*ALONE, "-DFUNCTIONS=F(shift, 2) F(last, 1)"]
    qemu, compiler = arm
    linked(compiler, ["last.o", "shift.o"], *flags, folder=tmp_path)
    shifted_by_2_and_minus_1 = "shift: \nlast: 5\nshift: \nlast: 4\n"
    assert run(qemu, "./main", folder=tmp_path) == shifted_by_2_and_minus_1


def for_arm(
    folder: Path,
    name: str,
    call: CallingConvention,
    *params: Param,
    results: abc.Sequence[Tensor] = (),
) -> None:
    origin = compiled(Signature(name, params), call, results=results, options=ARM)
    (folder / f"{name}.o").write_bytes(origin.export(name, ".o"))


def test_an_object_for_arm_is_laid_out_as_its_linker_would(
    arm: tuple[str, str], tmp_path: Path
) -> None:
    """What `embed` makes of it, read by an assembler for that machine: llvmlite brings none."""
    qemu, compiler = arm
    (tmp_path / "code.c").write_text(SOURCE)
    subprocess.run([compiler, "-O1", "-fPIC", "-c", "code.c"], cwd=tmp_path, check=True)
    embedded = embed((tmp_path / "code.o").read_bytes(), "code.o")
    prefix = f"{PREFIX}{embedded.digest}"
    shown = "".join(f"\n.globl {prefix}.{name}" for name in ("scale", "count"))
    (tmp_path / "laid.s").write_text(f"{embedded.assembly}{shown}\n")
    (tmp_path / "main.c").write_text(MAIN.replace("PREFIX", prefix))
    command = [compiler, "-static", "main.c", "laid.s", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert run(qemu, "./main", folder=tmp_path) == "0 2 4 1\n"


MAIN = """
#include <stdio.h>
int scale(float* out, const float* x, int n, float k) __asm__("PREFIX.scale");
int count(void) __asm__("PREFIX.count");
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) { puts(message + !kind); }
int main(void) {
  float x[2] = {1, 2}, out[2];
  printf("%d ", scale(out, x, 2, 2));
  printf("%g %g %d\\n", out[0], out[1], count());
  return 0;
}
"""


def test_an_object_for_arm_is_no_part_of_code_that_is_made_elsewhere(
    arm: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "code.c").write_text("int three(void) { return 3; }")
    subprocess.run([arm[1], "-c", "code.c"], cwd=tmp_path, check=True)
    call = CFunction("three", returns="int32", code=HostCode.from_object(tmp_path / "code.o"))
    origin = compiled(Signature("three", []), call, options=ARM)
    with pytest.raises(CompileError, match="llvmlite has no assembler for aarch64 here"):
        origin.export("three", ".o")


def test_results_are_allocated_on_arm_with_its_own_tvm_ffi(
    arm: tuple[str, str], tmp_path: Path
) -> None:
    """FERRULE_TVM_FFI_AARCH64 names the libtvm_ffi.so of the package for that machine."""
    library = os.environ.get("FERRULE_TVM_FFI_AARCH64")
    if library is None:
        pytest.skip("FERRULE_TVM_FFI_AARCH64 names no libtvm_ffi.so")
    code, between = HostCode.from_llvm(TEXT), Tensor("between", (N,), "float32")
    steps = [
        CFunction("shift", [between.data, X.data, N, cast(0.0, "float32")], code=code),
        CFunction("shift", [OUT.data, between.data, N, K], code=code),
    ]
    call = Sequence(steps, temporaries=[between])
    for_arm(tmp_path, "llvm_ir", call, X, K, results=[OUT])
    (qemu, compiler), folder = arm, Path(library).parent
    flags = [library, f"-Wl,-rpath,{folder}", "-DFUNCTIONS=F(llvm_ir, 2)"]
    linked(compiler, ["llvm_ir.o"], *flags, folder=tmp_path)
    command = [qemu, "-L", "/usr/aarch64-linux-gnu", "./main"]
    assert run(*command, folder=tmp_path) == "llvm_ir: 3 4 5\nllvm_ir: 0 1 2\n"
