"""The readers of libraries and archives: right about good files, never surprised by bad ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferrule.runtime import Function, ObjectFileError
from ferrule.runtime.binaries.archive import read_archive, write_archive
from ferrule.runtime.binaries.libraryfile import read_library
from ferrule.runtime.linking.engine import host_machine

some = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
changes = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=8)


@pytest.fixture(scope="module")
def library(add_one: Function, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("library") / "k.so"
    add_one.export_library(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def archive(add_one: Function, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("archive") / "k.a"
    add_one.export_library(path)
    return path.read_bytes()


@pytest.mark.needs_cc
def test_what_a_library_says(library: bytes) -> None:
    found = read_library(library)
    assert found.machine is host_machine()
    assert {name for name in found.defined if name.startswith("__tvm_ffi_")} == {
        "__tvm_ffi_add_one_host",
        "__tvm_ffi__metadata_add_one_host",
        "__tvm_ffi__doc_add_one_host",
    }
    assert [note.kind for note in found.notes if note.owner == "ferrule"] == [1, 2]


def test_an_archive_gives_back_its_objects(add_one: Function, tmp_path: Path) -> None:
    add_one.export_to_c(tmp_path / "k.o")
    data = (tmp_path / "k.o").read_bytes()
    objects = {"a.o": data, "a_long_name_that_takes_more_room.o": data + b"\0"}
    assert list(read_archive(write_archive(objects))) == [*objects.values()]
    assert list(read_archive(write_archive({}))) == []


def altered(data: bytes, made: list[tuple[int, int]]) -> bytes:
    changed = bytearray(data)
    for offset, value in made:
        changed[offset % len(changed)] = value
    return bytes(changed)


def harmless(read: Callable[[bytes], object], data: bytes) -> None:
    with suppress(ObjectFileError):
        read(data)


@pytest.mark.needs_cc
@some
@given(made=changes, part=st.floats(0, 1), junk=st.binary(max_size=300))
def test_any_library_is_harmless(
    library: bytes, made: list[tuple[int, int]], part: float, junk: bytes
) -> None:
    harmless(read_library, altered(library, made))
    harmless(read_library, altered(library[:1024], made) + library[1024:])
    harmless(read_library, library[:64] + junk)
    harmless(read_library, library[: int(part * len(library))])


@some
@given(made=changes, part=st.floats(0, 1), junk=st.binary(max_size=300))
def test_any_archive_is_harmless(
    archive: bytes, made: list[tuple[int, int]], part: float, junk: bytes
) -> None:
    for data in (
        altered(archive, made),
        altered(archive[:1024], made) + archive[1024:],
        archive[: int(part * len(archive))],
        archive[:8] + junk,
    ):
        harmless(lambda whole: list(read_archive(whole)), data)


@pytest.mark.needs_cc
@pytest.mark.parametrize("part", [0.0, 0.001, 0.2, 0.9])
def test_a_library_that_was_cut_off_is_refused(library: bytes, part: float) -> None:
    with pytest.raises(ObjectFileError):
        read_library(library[: int(part * len(library))])
