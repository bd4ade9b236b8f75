"""The file of the library, as the system's loader and the processor see it."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

import pytest

from ferrule.emulator.driver.library.elf import MACHINES, TABLE, shared_library, stub
from ferrule.emulator.driver.library.loaded import symbols
from ferrule.emulator.driver.library.names import FUNCTIONS
from ferrule.runtime.binaries.elf import FileType, Machine, read_header, read_segments

NAMES = ("one", "two", "cuThree_v2")


@pytest.mark.parametrize("machine", MACHINES)
def test_our_own_reader_reads_it(machine: Machine) -> None:
    data = shared_library("libthing.so.1", NAMES, machine)
    header = read_header(data, FileType.LIBRARY)
    assert header.machine is machine
    segments = read_segments(data, header)
    assert [each.kind for each in segments[:3]] == [1, 1, 2]
    for each in segments[:2]:
        assert each.offset % each.align == each.address % each.align


def test_it_is_loaded_and_jumps(tmp_path: Path) -> None:
    import platform

    if platform.machine() != "x86_64":
        pytest.skip("the file is made for x86-64 here")
    path = tmp_path / "libthing.so.1"
    path.write_bytes(shared_library("libthing.so.1", NAMES, Machine.X86_64))
    library = ctypes.CDLL(str(path))
    table = (ctypes.c_size_t * len(NAMES)).in_dll(library, TABLE)
    assert [getattr(library, name)() for name in NAMES] == [4, 4, 4]
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    made = [kind(lambda x, by=by: x + by) for by in (10, 20, 30)]
    for i, each in enumerate(made):
        table[i] = ctypes.cast(each, ctypes.c_void_p).value or 0
    assert [getattr(library, name)(i) for i, name in enumerate(NAMES)] == [10, 21, 32]
    with pytest.raises(AttributeError):
        _ = library.four


def test_a_processor_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="must be one of x86_64, aarch64, but got riscv64"):
        shared_library("libthing.so.1", NAMES, Machine.RISCV64)


def test_code_of_x86_64() -> None:
    code = stub(Machine.X86_64, 0x2000, 0x4567)
    (distance,) = struct.unpack("<i", code[7:11])
    assert code[:7] == bytes.fromhex("f30f1efa 488b05") and 0x2000 + 11 + distance == 0x4567
    # test rax, rax; jz 1f; jmp *rax; 1: mov eax, 4; ret
    assert code[11:24] == bytes.fromhex("4885c0 7402 ffe0 b804000000 c3")


@pytest.mark.parametrize(("at", "place"), [(0x12340, 0x40F58), (0x1FFC, 0x20000), (0x40, 0x90008)])
def test_code_of_aarch64(at: int, place: int) -> None:
    """Read as the manual of the architecture writes adrp and ldr down."""
    words = struct.unpack("<7I", stub(Machine.AARCH64, at, place)[:28])
    adrp, ldr = words[1:3]
    assert adrp & 0x9F00001F == 0x90000010
    pages = (adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3
    assert ldr & 0xFFC003FF == 0xF9400210
    assert (at + 4 & ~0xFFF) + (pages << 12) + (ldr >> 10 & 0xFFF) * 8 == place
    # bti c; …; cbz x16, 1f; br x16; 1: mov w0, #4; ret
    assert words[0] == 0xD503245F
    assert words[3:] == (0xB4000050, 0xD61F0200, 0x52800080, 0xD65F03C0)


def test_every_symbol_stands_once() -> None:
    names = symbols()
    forms = [form for each in FUNCTIONS.values() for form in each]
    assert {form.symbol for form in forms} <= set(names)
    assert names["cuLaunchKernel_ptsz"] == "cuLaunchKernel"
    assert names["cuMemcpyHtoD_v2_ptds"] == "cuMemcpyHtoD_v2"
