"""--host-target and --host-cpu: code for other machines, checked by its headers and by a run."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from exported import compiled_add_one, compiled_scale
from tvm_ffi import libinfo

import ferrule as fe
from ferrule.compiler import targets
from ferrule.compiler.exports import export_target
from ferrule.runtime import ObjectFileError, cpus, load_module
from ferrule.runtime.binaries.elf import Machine
from ferrule.runtime.binaries.metadata import NOTE_TYPE, read_metadata
from ferrule.runtime.binaries.objectfile import read_object


@pytest.mark.parametrize(
    ("triple", "machine"),
    [
        ("aarch64-linux-gnu", Machine.AARCH64),
        ("riscv64-linux-gnu", Machine.RISCV64),
        ("x86_64-linux-musl", Machine.X86_64),
    ],
)
def test_another_linux(triple: str, machine: Machine, tmp_path: Path) -> None:
    compiled_add_one(f"--host-target {triple}").export_to_c(tmp_path / "k.o")
    header = read_object((tmp_path / "k.o").read_bytes())
    assert header.machine is machine
    assert {symbol for symbol in header.defined if "__doc" not in symbol} == {
        "__tvm_ffi_add_one_host",
        "__tvm_ffi__metadata_add_one_host",
    }
    assert not any(symbol.startswith("ferrule") for symbol in header.undefined)
    (note,) = (each for each in header.notes if each.kind == NOTE_TYPE)
    assert read_metadata(note.text).triple == triple


def test_riscv_passes_floats_in_registers(tmp_path: Path) -> None:
    compiled_add_one("--host-target riscv64-linux-gnu").export_to_c(tmp_path / "k.o")
    data = (tmp_path / "k.o").read_bytes()
    assert struct.unpack_from("<I", data, 48)[0] & 0x6 == 0x4  # the double-float ABI
    assert not any(name.startswith("__add") for name in read_object(data).undefined)


@pytest.mark.parametrize(
    ("triple", "cpu"), [("arm64-apple-macosx11.0", 0x100000C), ("x86_64-apple-darwin", 0x1000007)]
)
def test_a_mac(triple: str, cpu: int, tmp_path: Path) -> None:
    compiled_add_one(f"--host-target {triple}").export_to_c(tmp_path / "k.o")
    data = (tmp_path / "k.o").read_bytes()
    magic, found, _, kind = struct.unpack_from("<4I", data)
    assert (magic, found, kind) == (0xFEEDFACF, cpu, 1)
    assert b"___tvm_ffi_add_one_host\0" in data
    assert b'{"type_schema"' in data


@pytest.mark.parametrize(
    ("triple", "file_format", "mangled", "last"),
    [
        ("aarch64-linux-gnu", "elf64-littleaarch64", "__tvm_ffi_add_one", "ret"),
        ("riscv64-linux-gnu", "elf64-littleriscv", "__tvm_ffi_add_one", "ret"),
        ("arm64-apple-macosx11.0", "mach-o arm64", "___tvm_ffi_add_one", "ret"),
        ("x86_64-apple-darwin", "mach-o 64-bit x86-64", "___tvm_ffi_add_one", "retq"),
    ],
)
def test_a_disassembler_reads_the_code(
    triple: str, file_format: str, mangled: str, last: str, tmp_path: Path
) -> None:
    if shutil.which("llvm-objdump") is None:
        pytest.skip("no llvm-objdump")
    function = compiled_add_one(f"--host-target {triple}")
    function.export_to_c(tmp_path / "k.o", function_name="add_one")
    command = ["llvm-objdump", "--syms", "--disassemble", "--no-show-raw-insn", "k.o"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert f"file format {file_format}\n" in done.stdout
    visible = {line.split()[-1] for line in done.stdout.splitlines() if " g " in line[:30]}
    prefix = mangled.removesuffix("_add_one")
    assert visible == {mangled, f"{prefix}__metadata_add_one", f"{prefix}__doc_add_one"}
    assert "<unknown>" not in done.stdout
    assert any(line.split()[-1:] == [last] for line in done.stdout.splitlines())


def test_what_was_made_for_another_machine_runs_here_too(tmp_path: Path) -> None:
    import numpy as np

    function = compiled_add_one("--host-target riscv64-linux-gnu")
    a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
    function(a, b)
    assert b.tolist() == [2, 2, 2]
    function.export_to_c(tmp_path / "k.o")
    with pytest.raises(ObjectFileError, match=r"k.o: wanted code for .*, got code for riscv64"):
        load_module(tmp_path / "k.o")


def test_a_library_for_another_machine_needs_its_linker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    said = (
        "no C compiler or linker to make k.so with: riscv64-linux-gnu-gcc or ld.lld is not on "
        "PATH.*run: riscv64-linux-gnu-gcc -shared -o .*k.so k.o"
    )
    with pytest.raises(fe.runtime.LinkError, match=said):
        compiled_add_one("--host-target riscv64-linux-gnu").export_library(tmp_path / "k.so")
    with pytest.raises(fe.runtime.LinkError, match="cannot be linked here .*Mach-O"):
        compiled_add_one("--host-target arm64-apple-macos").export_library(tmp_path / "k.so")


PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "k.h"
/* What the object needs of libtvm_ffi; none of it is called where nothing fails. */
#define UNUSED(name) int name(void) { puts(#name); return -1; }
"""


def emulator() -> tuple[str, str]:
    """qemu and a C compiler for aarch64; skips without them."""
    qemu, compiler = shutil.which("qemu-aarch64"), shutil.which("aarch64-linux-gnu-gcc")
    if qemu is None or compiler is None:
        pytest.skip("no qemu-aarch64 and aarch64-linux-gnu-gcc")
    return qemu, compiler


def test_an_arm_program_runs_with_its_own_tvm_ffi(tmp_path: Path) -> None:
    """FERRULE_TVM_FFI_AARCH64 names the libtvm_ffi.so of the package for that machine."""
    qemu, compiler = emulator()
    library = os.environ.get("FERRULE_TVM_FFI_AARCH64")
    if library is None:
        pytest.skip("FERRULE_TVM_FFI_AARCH64 names no libtvm_ffi.so")
    function = compiled_scale("--host-target aarch64-linux-gnu")
    function.export_to_c(tmp_path / "scale.o", function_name="scale")
    function.export_header(tmp_path / "scale.h", function_name="scale")
    example = Path(__file__).parents[2] / "examples" / "other_languages" / "static.c"
    include = [f"-I{path}" for path in (tmp_path, *libinfo.include_paths())]
    flags = [*include, f"-Wl,-rpath,{Path(library).parent}", "-o", "main"]
    command = [compiler, str(example), "scale.o", library, *flags]
    subprocess.run(command, cwd=tmp_path, check=True)
    run = [qemu, "-L", "/usr/aarch64-linux-gnu", "main"]
    done = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True)
    numbers, error = done.stdout.splitlines()
    assert numbers == "0 2.5 5 7.5"
    assert error.startswith(
        "ValueError: Mismatched b.shape[0] on argument #1 when calling: `scale("
    )


def test_arm_code_runs_under_qemu(tmp_path: Path) -> None:
    qemu, compiler = emulator()
    function = compiled_add_one("--host-target aarch64-linux-gnu")
    function.export_to_c(tmp_path / "k.o", function_name="add_one")
    function.export_header(tmp_path / "k.h", function_name="add_one")
    needed = read_object((tmp_path / "k.o").read_bytes()).undefined
    unused = "\n".join(f"UNUSED({name})" for name in needed if name.startswith("TVMFFI"))
    main = """
int main(void) {
  float a[3] = {1, 2, 3}, b[3] = {0, 0, 0};
  int64_t shape[1] = {3}, strides[1] = {1};
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0}, y = x;
  y.data = b;
  int status = add_one(&x, &y);
  printf("%d %g %g %g\\n", status, b[0], b[1], b[2]);
  return 0;
}
"""
    stubbed = PROGRAM.replace('#include "k.h"', "") + unused
    (tmp_path / "unused.c").write_text(stubbed)
    (tmp_path / "main.c").write_text(PROGRAM + main)
    include = [f"-I{path}" for path in libinfo.include_paths()]
    sources = ["main.c", "unused.c", "k.o"]
    command = [compiler, "-static", *include, "-o", "main", *sources, "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([qemu, "main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "0 2 3 4\n"


on_x86_64 = pytest.mark.skipif(
    cpus.host_architecture() != "x86_64", reason="processor levels are those of x86-64"
)


@on_x86_64
def test_a_processor_level_is_recorded(tmp_path: Path) -> None:
    compiled_add_one("--host-cpu x86-64-v3").export_to_c(tmp_path / "k.o")
    notes = read_object((tmp_path / "k.o").read_bytes()).notes
    (note,) = (each for each in notes if each.kind == NOTE_TYPE)
    metadata = read_metadata(note.text)
    assert metadata.cpu == "x86-64-v3"
    assert set(metadata.features) == set(cpus.LEVELS["x86-64-v3"])


@on_x86_64
def test_this_cpu_is_recorded_by_what_a_loader_can_check() -> None:
    chosen = export_target(host_cpu="native")
    assert chosen.target.cpu == targets.host().cpu
    assert set(chosen.needs) == cpus.host_features("x86_64")
    words = chosen.target.features.split(",")
    assert {word[1:] for word in words if word[0] == "+"} == set(chosen.needs)
    assert not {f"-{name}" for name in ("sse2", "cmov", "64bit")} & set(words)


def test_what_a_machine_has_is_what_llvm_finds() -> None:
    architecture = cpus.host_architecture()
    found = llvm.get_host_cpu_features()
    known = cpus.FEATURES[architecture]
    assert cpus.host_features(architecture) == {name for name in known if found.get(name)}


def test_the_baseline_needs_nothing() -> None:
    assert export_target() == export_target(host_cpu="baseline")
    assert export_target().needs == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--host-target sparc-sun-solaris", "no code for the host target 'sparc-sun-solaris'"),
        ("--host-target x86_64-pc-windows-msvc", "a triple of Linux or macOS"),
        ("--host-cpu pentium", "--host-cpu pentium is no kind of CPU to export for"),
        ("--host-target riscv64-linux-gnu --host-cpu x86-64-v3", "expected: baseline, native$"),
        ("--host-target riscv64-linux-gnu --host-cpu native", "and cannot go with --host-target"),
    ],
)
def test_wrong_targets_are_refused(options: str, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        compiled_add_one(options)


def test_options_are_text() -> None:
    with pytest.raises(fe.CompileError, match="host_cpu must be a str, but got 3"):
        fe.Options(host_cpu=3)  # type: ignore[arg-type]
