"""The object reader: right about good objects, and never surprised by bad ones."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import binding

from ferrule.runtime import ObjectFileError
from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.objectfile import Machine, read_object
from ferrule.runtime.linking.engine import host_machine

from .conftest import ECHO, FAIL, compile_text

OBJECT = elf.FileType.OBJECT

_TEXT = ECHO.format(name="echo") + FAIL.format(name="fail", size=11, kind="ValueError")
_DATA = compile_text(
    _TEXT + "\n@table = global [2 x ptr] [ptr @__tvm_ffi_echo, ptr @free]\n"
    "declare void @free(ptr)\n"
    "@shadow = hidden global i32 1\n",
    "echo",
).data
_SECTIONS = struct.unpack_from("<Q", _DATA, 40)[0]


def test_symbols() -> None:
    found = read_object(_DATA)
    assert found.machine is host_machine()
    assert set(found.defined) == {"__tvm_ffi_echo", "__tvm_ffi_fail", "table"}
    assert set(found.undefined) == {
        "TVMFFIAnyViewToOwnedAny",
        "TVMFFIErrorSetRaisedFromCStrParts",
        "free",
    }


@pytest.mark.parametrize(
    ("triple", "machine"),
    [
        ("x86_64-unknown-linux-gnu", Machine.X86_64),
        ("aarch64-unknown-linux-gnu", Machine.AARCH64),
    ],
)
def test_machines(triple: str, machine: Machine) -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    assert read_object(compile_text(_TEXT, "echo", triple).data).machine is machine


def _patched(offset: int, form: str, value: int) -> bytes:
    data = bytearray(_DATA)
    struct.pack_into(form, data, offset, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "got no bytes"),
        (b"#!/bin/sh\n", "got bytes that begin with 23 21"),
        (b"!<arch>\nfoo", r"got an archive \(.a\)"),
        (b"BC\xc0\xde1234", "got LLVM bitcode"),
        (b"\xcf\xfa\xed\xfe" + bytes(60), "got a Mach-O file"),
        (_DATA[:40], "cut off: the ELF header is at 0 and takes 64 bytes, but there are 40"),
        (_DATA[:-1], "cut off: the section headers"),
        (_patched(4, "<B", 1), "another class of ELF"),
        (_patched(5, "<B", 2), "another class of ELF"),
        (_patched(16, "<H", 3), "wanted a relocatable object .*, got a shared library"),
        (_patched(16, "<H", 2), "got an executable"),
        (_patched(18, "<H", 40), "wanted code for x86_64, aarch64 or riscv64, got ELF machine 40"),
        (_patched(40, "<Q", 1 << 63), "cut off"),
        (_patched(58, "<H", 63), "wanted section headers of 64 bytes"),
        (_patched(60, "<H", 0), "wanted section headers of 64 bytes, got 0"),
        (_patched(62, "<H", 0xDD00), "the names of sections: section 56576 of"),
        (_patched(62, "<H", 2), "the names of sections: wanted a section of type 3, got"),
        (_patched(_SECTIONS + 64, "<I", 1 << 20), "a section's name is outside the table of"),
    ],
)
def test_what_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ObjectFileError, match=message):
        read_object(data)


@pytest.mark.skipif(host_machine() is not Machine.X86_64, reason="kinds of x86-64")
@pytest.mark.parametrize(
    ("kind", "message"),
    [(11, "got a relocation R_X86_64_32S: compile it with -fPIC"), (19, "is of kind 19, which")],
)
def test_a_relocation_on_which_llvm_ends_the_process_is_refused(kind: int, message: str) -> None:
    header = elf.read_header(_DATA, elf.FileType.OBJECT)
    sections = [elf.read_section(_DATA, offset) for offset in header.sections]
    table = next(
        section
        for section in sections
        if section.kind == elf.SHT_RELA and sections[section.info].flags & elf.SHF_ALLOC
    )
    with pytest.raises(ObjectFileError, match=message):
        read_object(_patched(table.offset + 8, "<I", kind))


def test_thread_local_data_is_refused() -> None:
    text = _TEXT + "\n@own = thread_local global i32 1\n"
    with pytest.raises(ObjectFileError, match="thread-local data: link the object into a shared"):
        read_object(compile_text(text, "echo").data)


def _harmless(data: bytes) -> None:
    try:
        read_object(data)
    except ObjectFileError:
        pass


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(_DATA)))
def test_truncation_is_harmless(length: int) -> None:
    with pytest.raises(ObjectFileError) if length < len(_DATA) else _nothing():
        read_object(_DATA[:length])


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(_DATA) - 1), st.integers(0, 255)), max_size=8))
def test_changed_bytes_are_harmless(changes: list[tuple[int, int]]) -> None:
    data = bytearray(_DATA)
    for offset, value in changes:
        data[offset] = value
    _harmless(bytes(data))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_harmless(data: bytes) -> None:
    _harmless(data)
    _harmless(_DATA[:64] + data)


@pytest.mark.parametrize("short", [1, 3])
def test_a_relocation_past_the_end_of_its_section(short: int) -> None:
    """LLVM would write there."""
    data = bytearray(_DATA)
    sections = [elf.read_section(_DATA, at) for at in elf.read_header(_DATA, OBJECT).sections]
    for section in sections:
        if section.kind == elf.SHT_RELA and sections[section.info].flags & elf.SHF_ALLOC:
            struct.pack_into("<Q", data, section.offset, sections[section.info].size - short)
            break
    with pytest.raises(ObjectFileError, match="reaches past its section of"):
        read_object(bytes(data))
