"""Damaged files: none ends the process, and none of ferrule's own gives a wrong result."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from damaged_files import CRASHED, REFUSED, RIGHT, WRONG, damaged, loads, outcomes
from exported import DOUBLED, applied

import ferrule as fe
from ferrule.runtime import Function, ObjectFileError, load_module
from ferrule.runtime.binaries import digest, elf
from ferrule.runtime.binaries.archive import read_archive
from ferrule.runtime.binaries.dynamic import Tag
from ferrule.runtime.binaries.elf import ARCHIVE
from ferrule.runtime.binaries.soundness import check_library

SEEDS = range(150)
FOREIGN = """
int counter;
static const char *names[2] = {"a", "b"};
extern void *malloc(unsigned long);
int __tvm_ffi_three(void *h, const void *a, int n, void *r) {
  ((int *)r)[0] = 1;
  ((long *)r)[1] = 3 + counter;
  return malloc(3) == 0 || names[0][0] == 0;
}
"""

linked = pytest.param(".so", marks=pytest.mark.needs_cc)
every_form = pytest.mark.parametrize("suffix", [".o", ".a", linked])


@pytest.fixture(scope="module")
def folder(scale: Function, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


def written(scale: Function, path: Path) -> bytes:
    if path.suffix == ".o":
        scale.export_to_c(path)
    else:
        scale.export_library(path)
    return path.read_bytes()


def doubles(data: bytes) -> bool:
    return applied(load_module(data).scale_host) == DOUBLED


@every_form
def test_no_damaged_file_crashes_or_is_wrong(scale: Function, suffix: str, folder: Path) -> None:
    data = written(scale, folder / f"k{suffix}")
    found = outcomes(data, SEEDS, doubles)
    assert [each for each in found if each.kind in (WRONG, CRASHED)] == []
    assert sum(each.kind == REFUSED for each in found) > len(SEEDS) // 2
    # What is changed and right is not loaded: headers of sections, and gaps.
    right = [each.seed for each in found if each.kind == RIGHT]
    assert suffix != ".o" or all(damaged(data, seed) == data for seed in right)


@pytest.mark.needs_cc
def test_no_damaged_object_of_others_crashes(tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text(FOREIGN)
    command = ["gcc", "-c", "-fPIC", "-o", "k.o", "k.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    found = outcomes((tmp_path / "k.o").read_bytes(), SEEDS, loads)
    assert [each for each in found if each.kind in (WRONG, CRASHED)] == []


def test_the_fuzzer_sees_a_crash() -> None:
    data = bytes(range(256)) * 8
    changed = [damaged(data, seed) for seed in range(6)]

    def dies(given: bytes) -> bool:
        if given == changed[3]:
            os.kill(os.getpid(), 9)
        return given == changed[4]

    wanted = [CRASHED if each == changed[3] else WRONG for each in changed]
    wanted[4] = RIGHT
    assert [each.kind for each in outcomes(data, range(6), dies)] == wanted


# ---- digests ----


@every_form
def test_every_bit_of_the_code_counts(scale: Function, suffix: str, folder: Path) -> None:
    data = written(scale, folder / f"k{suffix}")
    at = data.index(b"Mismatched")
    for bit in range(8):
        changed = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
        (folder / "changed").write_bytes(changed)
        said = "changed: the file is damaged: its bytes are not those .* FERRULE_VERIFY=0"
        with pytest.raises(ObjectFileError, match=said):
            load_module(folder / "changed")


@every_form
def test_every_bit_of_the_digest_and_its_note_counts(
    scale: Function, suffix: str, folder: Path
) -> None:
    data = written(scale, folder / f"k{suffix}")
    kind = b"lib:" if suffix == ".so" else b"obj:"
    start = data.index(digest.EMPTY_NOTE[:20] + kind)
    whole = elf_of(data)
    at = whole.index(digest.EMPTY_NOTE[:20] + kind)
    assert digest.check_digest(whole)
    for bit in range(8 * len(digest.EMPTY_NOTE)):
        changed = bytearray(whole)
        changed[at + bit // 8] ^= 1 << bit % 8
        with pytest.raises(ObjectFileError, match="the file is damaged"):
            digest.check_digest(bytes(changed))
    for byte in (0, 4, 8, 12):
        changed = bytearray(data)
        changed[start + byte] ^= 1
        with pytest.raises(ObjectFileError):
            load_module(bytes(changed))


def elf_of(data: bytes) -> bytes:
    """The file itself, or the first member of an archive that has a digest."""
    if not data.startswith(ARCHIVE):
        return data
    return next(each for each in read_archive(data) if digest.EMPTY_NOTE[:20] in each)


def test_the_switch(scale: Function, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(scale, folder / "k.o")
    changed = data.replace(b"Mismatched", b"Mistreated")
    assert len(changed) == len(data) and changed != data
    for value, loaded in (("0", True), ("1", False), ("", False)):
        monkeypatch.setenv("FERRULE_VERIFY", value)
        if loaded:
            assert doubles(changed)
        else:
            with pytest.raises(ObjectFileError, match="the file is damaged"):
                load_module(changed)
    monkeypatch.setenv("FERRULE_VERIFY", "off")
    with pytest.raises(ValueError, match="FERRULE_VERIFY must be 0 or 1, but is 'off'"):
        load_module(data)


@pytest.mark.needs_cc
def test_a_stripped_library_is_still_whole(scale: Function, tmp_path: Path) -> None:
    written(scale, tmp_path / "k.so")
    for tool in (["strip"], ["strip", "-g"], ["objcopy", "--strip-all"]):
        if shutil.which(tool[0]) is None:
            pytest.skip(f"there is no {tool[0]}")
        shutil.copy(tmp_path / "k.so", tmp_path / "s.so")
        subprocess.run([*tool, "s.so"], cwd=tmp_path, check=True)
        data = (tmp_path / "s.so").read_bytes()
        assert digest.check_digest(data)
        assert doubles(data)


@pytest.mark.needs_cc
def test_a_library_without_section_headers(scale: Function, tmp_path: Path) -> None:
    data = bytearray(written(scale, tmp_path / "k.so"))
    start = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 0, 0, 0)
    assert doubles(bytes(data[:start]))


@pytest.mark.needs_cc
def test_what_others_linked_has_no_digest(scale: Function, tmp_path: Path) -> None:
    written(scale, tmp_path / "k.o")
    fe.export_library(tmp_path / "two.a", {"f": scale, "g": scale})
    for name, sources in (
        ("one", ["k.o"]),
        ("two", ["-Wl,--whole-archive", "two.a", "-Wl,--no-whole-archive"]),
    ):
        command = ["gcc", "-shared", "-o", f"{name}.so", *sources]
        subprocess.run(command, cwd=tmp_path, check=True)
        data = (tmp_path / f"{name}.so").read_bytes()
        assert digest.is_marked(data) and not digest.check_digest(data)
        module = load_module(tmp_path / f"{name}.so")
        assert all(applied(module[each]) == DOUBLED for each in module)
    command = ["ld", "-r", "-o", "again.o", "k.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(ObjectFileError, match="if a tool changed it on purpose"):
        load_module(tmp_path / "again.o")


@pytest.mark.needs_cc
def test_several_objects_in_one_library(scale: Function, tmp_path: Path) -> None:
    path = tmp_path / "k.so"
    fe.export_library(path, {"f": scale, "g": scale})
    data = path.read_bytes()
    assert digest.check_digest(data) and data.count(b"lib:") == 1 and data.count(b"obj:") == 1
    fe.export_library(path, {"f": scale, "g": scale})
    assert path.read_bytes() == data


# ---- objects and libraries that end the process of who trusts them ----


def sections_of(data: bytes) -> list[elf.Section]:
    header = elf.read_header(data, elf.FileType(data[16]))
    return [elf.read_section(data, at) for at in header.sections]


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


@pytest.fixture
def foreign(tmp_path: Path) -> bytes:
    (tmp_path / "k.c").write_text(FOREIGN)
    subprocess.run(["gcc", "-c", "-fPIC", "-o", "k.o", "k.c"], cwd=tmp_path, check=True)
    return (tmp_path / "k.o").read_bytes()


@pytest.mark.needs_cc
def test_a_symbol_of_what_is_not_loaded_is_refused(foreign: bytes) -> None:
    sections = sections_of(foreign)
    table = next(each for each in sections if each.kind == elf.SHT_SYMTAB)
    comment = next(i for i, each in enumerate(sections) if i and not each.flags & elf.SHF_ALLOC)
    names = foreign[sections[table.link].offset :]
    for i, fields in enumerate(elf.entries(elf.SYMBOL, foreign, table)):
        if elf.read_name(names, fields[0]) == "malloc":
            bad = patched(foreign, table.offset + i * elf.SYMBOL.size + 6, "<H", comment)
            with pytest.raises(ObjectFileError, match="of section .*, which is not loaded"):
                load_module(bad)


@pytest.mark.needs_cc
def test_two_symbols_of_one_name_are_refused(foreign: bytes) -> None:
    sections = sections_of(foreign)
    table = next(each for each in sections if each.kind == elf.SHT_SYMTAB)
    found = list(elf.entries(elf.SYMBOL, foreign, table))
    seen = [i for i, each in enumerate(found) if each[1] >> 4]
    same = found[seen[0]][0]
    bad = patched(foreign, table.offset + seen[1] * elf.SYMBOL.size, "<I", same)
    with pytest.raises(ObjectFileError, match="two symbols are named"):
        load_module(bad)


@pytest.mark.needs_cc
def test_a_damaged_name_of_a_member_hides_no_function(scale: Function, tmp_path: Path) -> None:
    fe.export_library(tmp_path / "two.a", {"f": scale, "g": scale})
    two = (tmp_path / "two.a").read_bytes()
    second = two.rindex(b"/5   ")
    changed = two[:second] + b"/ " + two[second + 2 :]
    assert list(load_module(changed)) == ["f", "g"]


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("tag", "value"),
    [
        (Tag.STRTAB, 1 << 40),
        (Tag.SYMTAB, 0x7FFF_FFFF),
        (Tag.RELA, 3),
        (Tag.RELASZ, 1 << 30),
        (Tag.JMPREL, 1 << 50),
        (Tag.INIT_ARRAY, 1 << 30),
        (Tag.INIT, 1),
        (Tag.GNU_HASH, 1 << 33),
        (Tag.VERNEED, 8),
        (Tag.VERSYM, 1 << 32),
        (Tag.RELACOUNT, 1 << 20),
        (Tag.NEEDED, 1 << 20),
    ],
)
def test_a_damaged_dynamic_section_is_refused(
    tag: Tag, value: int, scale: Function, tmp_path: Path
) -> None:
    written(scale, tmp_path / "k.o")
    subprocess.run(["gcc", "-shared", "-o", "k.so", "k.o"], cwd=tmp_path, check=True)
    data = (tmp_path / "k.so").read_bytes()
    check_library(data)
    header = elf.read_header(data, elf.FileType.LIBRARY)
    dynamic = next(each for each in elf.read_segments(data, header) if each.kind == elf.PT_DYNAMIC)
    for at in range(dynamic.offset, dynamic.offset + dynamic.size, 16):
        if struct.unpack_from("<Q", data, at)[0] == tag:
            with pytest.raises(ObjectFileError):
                load_module(patched(data, at + 8, "<Q", value))
            return
    pytest.skip(f"the linker writes no {tag.name}")
