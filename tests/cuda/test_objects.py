"""Objects that launch: what they need from outside, and that they stand alone."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from cuda_body import NAME, Args, Launches, code
from cuda_device import FakeCuda
from wrapper_calls import Wrapped, forge

from ferrule.compiler import assemble, targets
from ferrule.compiler.cuda.launcher.support import ENTRIES
from ferrule.compiler.support.library import CHECKS, CUDA, Need, support_data
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.cfunctions import C_FUNCTIONS, Library

FOUND_AT_RUN_TIME = {"dlopen", "dlsym", "dlerror"}


def test_no_symbol_beyond_the_list() -> None:
    found = read_object(code()[1].data)
    assert set(found.defined) == {f"__tvm_ffi_{NAME}"}
    needed = set(found.undefined) - {"_GLOBAL_OFFSET_TABLE_"}
    assert needed <= set(C_FUNCTIONS)
    assert FOUND_AT_RUN_TIME <= needed
    assert all(C_FUNCTIONS[name].library is Library.LIBC for name in FOUND_AT_RUN_TIME)


def test_an_object_without_kernels_has_nothing_of_it() -> None:
    here = targets.host()
    found = read_object(Wrapped().origin.emit("f", here.cpu, here.triple).data)
    assert not FOUND_AT_RUN_TIME & set(found.undefined)


def test_the_same_body_gives_the_same_bytes() -> None:
    here, module = targets.host(), code()[0].module
    again = assemble.assemble(module, NAME, here.cpu, here.triple)
    assert again.data == code()[1].data


def test_the_cold_code_is_carried_as_bytes() -> None:
    """Assembly, which a compilation would have to parse again, is for other formats than ELF."""
    for support in (CHECKS, CUDA):
        data = support_data((Need(support),), targets.host_triple())
        assert ".ascii" in data and "call" not in data.replace(".Lferrule_", "")
        assert all(f".set {entry}," in data for entry in support.entries)


def test_assembly_shows_the_cold_code() -> None:
    text = code()[0].text("asm")
    assert all(f"{entry}:" in text for entry in ENTRIES)


@pytest.mark.needs_cc
def test_a_shared_library_launches(fake_cuda: FakeCuda, tmp_path: Path) -> None:
    path = tmp_path / "launches.so"
    Launches().function.export_library(path)
    library = ctypes.CDLL(str(path))
    forged, result = forge(list(Args(device=1))), ctypes.create_string_buffer(16)
    assert library[f"__tvm_ffi_{NAME}"](None, forged.args, len(list(Args())), result) == 0
    assert [launch.kernel for launch in fake_cuda.launches()] == ["first"]


def test_two_images_stand_in_one_module() -> None:
    """Each launcher has a state of its own."""
    from ferrule.compiler.cuda.launcher.launch import Launcher
    from ferrule.runtime.llvm.emitter import Emitter

    emitter = Emitter("two")
    Launcher(emitter, b"one", ["f"])
    Launcher(emitter, b"two", ["f"])
    states = [name for name in emitter.module.globals if name.startswith("cuda.state")]
    assert len(states) == 2
