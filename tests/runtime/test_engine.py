"""The engine: loads what it should, refuses the rest before LLVM sees it, and lets memory go."""

from __future__ import annotations

import ctypes
import gc
import os
import weakref
from pathlib import Path

import pytest
from llvmlite import binding

from ferrule.runtime import Engine, ObjectCode, ObjectFileError
from ferrule.runtime.binaries.objectfile import Machine, read_object
from ferrule.runtime.cfunctions import C_FUNCTIONS
from ferrule.runtime.linking import lljit
from ferrule.runtime.linking.engine import c_address, host_baseline_cpu, host_machine, host_triple

from .conftest import COUNT, compile_text

_FOREIGN = {
    Machine.X86_64: "aarch64-unknown-linux-gnu",
    Machine.AARCH64: "x86_64-unknown-linux-gnu",
}


def test_every_c_function_has_an_address() -> None:
    assert all(c_address(name) for name in C_FUNCTIONS)


def test_load_and_call(count_code: ObjectCode) -> None:
    engine = Engine.load(count_code)
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
    )
    result = (ctypes.c_int64 * 2)()
    assert kind(engine.address("__tvm_ffi_count"))(None, None, 7, ctypes.addressof(result)) == 0
    assert list(result) == [1, 7]
    assert "ferrule.Engine count" in repr(engine)
    with pytest.raises(KeyError, match="defines no nothing, it defines __tvm_ffi_count"):
        engine.address("nothing")


def test_unknown_symbol_is_named() -> None:
    text = "declare i32 @mystery()\ndefine i32 @f() {\n %r = call i32 @mystery()\n ret i32 %r\n}"
    code = compile_text(text, "f")
    with pytest.raises(ObjectFileError, match="needs the symbol mystery"):
        Engine.load(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 42)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    engine = Engine.load(code, {"mystery": address})
    assert ctypes.CFUNCTYPE(ctypes.c_int)(engine.address("f"))() == 42


def test_foreign_object_is_refused() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    code = compile_text(COUNT.format(name="count"), "count", _FOREIGN[host_machine()])
    with pytest.raises(ObjectFileError, match="the machine of this process, got one for"):
        Engine.load(code)


@pytest.mark.parametrize("keep", [0, 3, 64, 400])
def test_truncated_object_is_refused(count_code: ObjectCode, keep: int) -> None:
    with pytest.raises(ObjectFileError):
        Engine.load(ObjectCode("count", count_code.data[:keep], "", ""))


def test_same_names_do_not_collide(count_code: ObjectCode) -> None:
    first, second = Engine.load(count_code), Engine.load(count_code)
    assert first.address("__tvm_ffi_count") != second.address("__tvm_ffi_count")


def test_engine_goes_when_nobody_holds_it(count_code: ObjectCode) -> None:
    engine = Engine.load(count_code)
    gone = weakref.ref(engine)
    del engine
    assert gone() is None


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_does_not_grow(count_code: ObjectCode) -> None:
    for _ in range(100):
        Engine.load(count_code)
    gc.collect()
    before = _resident()
    for _ in range(400):
        Engine.load(count_code)
    gc.collect()
    # A kept object would take at least a page of code and one of data.
    assert _resident() - before < 400 * 2048


def test_host() -> None:
    assert host_triple().split("-")[0] in ("x86_64", "aarch64", "arm64")
    assert host_baseline_cpu() in ("x86-64", "generic")


def test_llvm_maps_an_object_in_one_piece(
    count_code: ObjectCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM's older linker maps sections one by one, and ends a process in which they are far
    apart, as they can be behind gigabytes of CUDA libraries."""
    asked = []
    make = binding.create_lljit_compiler

    def seen(machine: object, **options: bool) -> object:
        asked.append(options)
        return make(machine, **options)

    monkeypatch.setattr(binding, "create_lljit_compiler", seen)
    header = read_object(count_code.data)
    lljit.link(count_code.data, header.machine, {}, header.defined)
    assert asked == [{"use_jit_link": True}]
