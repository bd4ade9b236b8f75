"""Loading: every kind of file, functions as they were compiled, and errors before code runs."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
from exported import ADDED, DOUBLED, applied, compiled_add_one, compiled_scale, run_python

from ferrule.runtime import Function, ObjectFileError, StageError, cpus, load_module
from ferrule.runtime.binaries.elf import Machine
from ferrule.runtime.loading import files as loading_module

KINDS = {".o": "object", ".a": "archive", ".so": "library"}


def write(function: Function, path: Path) -> Path:
    if path.suffix == ".o":
        function.export_to_c(path)
    else:
        function.export_library(path)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, scale: Function) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    return {suffix: write(scale, folder / f"k{suffix}") for suffix in KINDS}


every_file = pytest.mark.parametrize("suffix", list(KINDS))
pytestmark = pytest.mark.needs_cc


@every_file
@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_function_comes_back_as_it_was(
    files: dict[str, Path], scale: Function, suffix: str, as_bytes: bool
) -> None:
    path = files[suffix]
    module = load_module(path.read_bytes() if as_bytes else path)
    assert module.kind == KINDS[suffix]
    function = module.scale_host
    assert isinstance(function, Function)
    assert function.signature == scale.signature
    assert function.__doc__ == scale.__doc__
    assert repr(function) == repr(scale)
    assert applied(function) == DOUBLED
    assert applied(function, factor=3) == [0, 3, 6]
    with pytest.raises(TypeError, match=r"scale_host\(\) got an unexpected keyword argument 'z'"):
        function(z=1)
    with pytest.raises(ValueError, match="expected to match a.shape"):
        function(np.zeros(2, np.float32), np.zeros(3, np.float32))


@every_file
def test_a_docstring_comes_back(add_one: Function, suffix: str, tmp_path: Path) -> None:
    function = load_module(write(add_one, tmp_path / f"k{suffix}")).add_one_host
    assert function.__doc__ == add_one.__doc__
    assert 'Quoted" text; größer.' in function.__doc__


@every_file
def test_tvm_ffi_loads_the_same_files(files: dict[str, Path], suffix: str) -> None:
    for _ in range(2):
        module = tvm_ffi.load_module(files[suffix])
        assert applied(module.scale_host, 2.0) == DOUBLED
        assert "ferrule" in module.get_function_metadata("scale_host")


def test_looking_up_functions(files: dict[str, Path]) -> None:
    module = load_module(files[".o"])
    assert module["scale_host"] is module.get_function("scale_host") is module.scale_host
    assert "scale_host" in module and "other" not in module
    assert module.implements_function("scale_host") and not module.implements_function("other")
    assert (list(module), len(module)) == (["scale_host"], 1)
    assert dict(module.functions) == {"scale_host": module.scale_host}
    assert "scale_host" in dir(module)
    said = "k.o has no function 'other'; its functions: scale_host"
    with pytest.raises(AttributeError, match=said):
        module.other  # noqa: B018
    with pytest.raises(AttributeError, match=said):
        module.get_function("other")
    with pytest.raises(KeyError, match="has no function 'other'"):
        module["other"]


def test_the_code_lives_as_long_as_a_function(files: dict[str, Path]) -> None:
    for path in files.values():
        function = load_module(path).scale_host
        gc.collect()
        assert applied(function) == DOUBLED


def test_a_library_goes_when_nobody_holds_it(scale: Function, tmp_path: Path) -> None:
    path = write(scale, tmp_path / "only.so")
    module = load_module(path)
    function = module.scale_host
    gone = weakref.ref(module)
    del module
    assert gone() is None and "only.so" in Path("/proc/self/maps").read_text()
    del function
    gc.collect()
    assert "only.so" not in Path("/proc/self/maps").read_text()


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "k.so"
    scale, add_one = compiled_scale(), compiled_add_one()
    scale.export_library(path, function_name="f")
    first = load_module(path).f
    same = load_module(path).f
    add_one.export_library(path, function_name="f")
    second = load_module(path).f
    assert applied(first) == applied(same) == DOUBLED
    assert applied(second) == ADDED


@every_file
def test_loading_again_and_again_takes_no_more_memory(files: dict[str, Path], suffix: str) -> None:
    data = files[suffix].read_bytes()

    def load(times: int) -> int:
        for _ in range(times):
            applied(load_module(data).scale_host)
        gc.collect()
        fields = Path("/proc/self/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    before = load(20)
    assert load(60) - before < 4 << 20


FOREIGN = """
#include <tvm/ffi/c_api.h>
__attribute__((visibility("default")))
int __tvm_ffi_three(void* handle, const TVMFFIAny* args, int32_t n, TVMFFIAny* result) {
  result->type_index = kTVMFFIInt;
  result->v_int64 = 3;
  return 0;
}
"""


def test_another_library_gives_functions_of_tvm_ffi(tmp_path: Path) -> None:
    include = [f"-I{path}" for path in tvm_ffi.libinfo.include_paths()]
    (tmp_path / "k.c").write_text(FOREIGN)
    command = ["gcc", "-shared", "-fPIC", *include, "-o", "k.so", "k.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    module = load_module(tmp_path / "k.so")
    assert type(module.three) is tvm_ffi.Function
    assert module.three() == 3


MISSING = "extern int nowhere(void);\nint __tvm_ffi_f(void) { return nowhere(); }\n"


def test_a_missing_symbol_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text(MISSING)
    for flags, name in ((["-shared"], "k.so"), (["-c"], "k.o")):
        command = ["gcc", *flags, "-fPIC", "-o", name, "k.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(ObjectFileError, match="k.so: the system cannot load it: .*nowhere"):
        load_module(tmp_path / "k.so")
    with pytest.raises(ObjectFileError, match="k.o: the object needs the symbol nowhere, which"):
        load_module(tmp_path / "k.o")


def test_a_missing_file_is_just_that(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing.so"):
        load_module(tmp_path / "nothing.so")


@every_file
def test_a_file_that_was_cut_off_is_refused(
    files: dict[str, Path], suffix: str, tmp_path: Path
) -> None:
    data = files[suffix].read_bytes()
    for length in (20, 70, len(data) // 2, len(data) - 9):
        (tmp_path / "short").write_bytes(data[:length])
        with pytest.raises(ObjectFileError, match="short: the (object|archive) is"):
            load_module(tmp_path / "short")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "wanted an ELF object, got no bytes"),
        (b"#!/bin/sh\n", "got bytes that begin with 23 21"),
        (b"BC\xc0\xde1234", "got LLVM bitcode"),
        (b"!<arch>\n" + b"x" * 60, "the archive is damaged: no member begins at 8"),
    ],
)
def test_junk_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "junk").write_bytes(data)
    with pytest.raises(ObjectFileError, match=f"junk: .*{message}"):
        load_module(tmp_path / "junk")
    with pytest.raises(ObjectFileError, match=message):
        load_module(data)


@every_file
def test_code_for_another_machine_is_refused(
    files: dict[str, Path], suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Machine[cpus.host_architecture().upper()]
    other = Machine.AARCH64 if here is Machine.X86_64 else Machine.X86_64
    monkeypatch.setattr(loading_module, "host_machine", lambda: other)
    with pytest.raises(ObjectFileError, match=f"k{suffix}: wanted code for {other.name.lower()}"):
        load_module(files[suffix])


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were changed are loaded."""
    monkeypatch.setenv("FERRULE_VERIFY", "0")


def altered(path: Path, change: Callable[[dict[str, object]], None]) -> bytes:
    """The file with metadata that was changed but kept its length; its digest does not fit."""
    data = path.read_bytes()
    start = data.index(b'{"type_schema"')
    end = data.index(b"\0", start)
    whole = json.loads(data[start:end])
    change(whole["ferrule"])
    text = json.dumps(whole, separators=(",", ":")).encode()
    return data[:start] + text.ljust(end - start) + data[end:]


@every_file
@pytest.mark.usefixtures("unverified")
def test_code_for_a_newer_tvm_ffi_is_refused(files: dict[str, Path], suffix: str) -> None:
    data = altered(files[suffix], lambda ours: ours.update(abi=[9, 1, 0]))
    said = "scale_host needs the C API of tvm-ffi 9.1.0 or newer, this process has 0"
    with pytest.raises(ObjectFileError, match=said):
        load_module(data)


@every_file
@pytest.mark.usefixtures("unverified")
def test_metadata_of_a_function_that_is_not_there_is_refused(
    files: dict[str, Path], suffix: str
) -> None:
    data = altered(files[suffix], lambda ours: ours.update(signature="scale_hos(k: int32)"))
    with pytest.raises(ObjectFileError, match="the symbol __tvm_ffi_scale_hos is missing"):
        load_module(data)


@pytest.mark.skipif(cpus.host_architecture() != "x86_64", reason="processor levels are x86-64's")
@pytest.mark.parametrize("suffix", [".o", ".so"])
def test_code_for_another_cpu_is_refused(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(compiled_add_one("--host-cpu x86-64-v3"), tmp_path / f"k{suffix}")
    old = frozenset(cpus.LEVELS["x86-64-v3"]) - {"avx2", "fma"}
    monkeypatch.setattr(cpus, "host_features", lambda architecture: old)
    said = "was exported for the CPU x86-64-v3 and needs avx2, fma, which this machine's CPU"
    with pytest.raises(ObjectFileError, match=said):
        load_module(path)


def test_code_for_this_cpu_runs_here(tmp_path: Path) -> None:
    path = write(compiled_add_one("--host-cpu native"), tmp_path / "k.so")
    assert applied(load_module(path).add_one_host) == ADDED


def test_a_loaded_function_says_what_it_lacks(files: dict[str, Path], tmp_path: Path) -> None:
    function = load_module(files[".so"]).scale_host
    with pytest.raises(StageError, match="no 'llvm' text: the function was loaded from .*k.so"):
        function.inspect_llvm()
    with pytest.raises(StageError, match="no '.o' text: the function was loaded from .*k.so"):
        function.export_to_c(tmp_path / "again.o")


def test_a_loaded_object_can_be_written_again(files: dict[str, Path], tmp_path: Path) -> None:
    function = load_module(files[".o"]).scale_host
    function.export_to_c(tmp_path / "again.o")
    assert (tmp_path / "again.o").read_bytes() == files[".o"].read_bytes()
    with pytest.raises(StageError, match="under another name"):
        function.export_to_c(tmp_path / "again.o", function_name="other")


WITHOUT_LLVM = """
import importlib.machinery, sys
class Lean(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name == "llvmlite" or name.startswith(("ferrule.compiler", "ferrule.language"))
        return None if hidden else super().find_spec(name, path, target)
sys.meta_path = [Lean if f is importlib.machinery.PathFinder else f for f in sys.meta_path]
import numpy as np
from ferrule.runtime import load_module
a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
load_module(sys.argv[1]).scale_host(a, b, factor=4.0)
print(b.tolist(), "llvmlite" in sys.modules)
"""


def test_a_library_is_loaded_and_called_without_llvm(files: dict[str, Path]) -> None:
    assert run_python(WITHOUT_LLVM, files[".so"]) == "[4.0, 4.0, 4.0] False\n"
