"""Modules that import others: the import tree in a library, and the modules of other loaders."""

from __future__ import annotations

import gc
import pickle
import struct
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import tvm_ffi
from exported import ADDED, applied
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrule as fe
from ferrule.runtime import Function, ObjectFileError, load_module
from ferrule.runtime.binaries.importtree import Node, read_import_tree, write_import_tree

ONLY_MODULES = "Module.from_bytes makes one of what a loader of tvm-ffi reads"


@pytest.fixture
def loader() -> Iterator[tuple[str, list[bytes]]]:
    """A kind with a loader of its own, and the bytes that came to it."""
    kind, seen = f"tests.{uuid.uuid4().hex}", []

    def load(data: bytes) -> tvm_ffi.Module:
        seen.append(bytes(data))
        return tvm_ffi.system_lib(f"{kind}_{len(seen)}_")

    name = f"ffi.Module.load_from_bytes.{kind}"
    tvm_ffi.register_global_func(name, load)
    yield kind, seen
    tvm_ffi.registry.remove_global_func(name)


def test_a_tree_has_the_documented_bytes() -> None:
    def words(*numbers: int) -> bytes:
        return struct.pack(f"<{len(numbers)}Q", *numbers)

    nodes = (Node("_lib", b"", (1, 2)), Node("x", b"abc", (2,)), Node("yy", b"", ()))
    lists = words(4, 0, 2, 3, 3) + words(3, 1, 2, 2)
    modules = words(4) + b"_lib" + words(1) + b"x" + words(3) + b"abc" + words(2) + b"yy" + words(0)
    data = words(len(lists + modules)) + lists + modules
    assert write_import_tree(nodes) == data
    assert read_import_tree(data + b"what follows") == nodes


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "no proper list|imports one that is not among its 0"),
        ([Node("a", b"", (0,))], "module 0, of kind 'a', is in a circle"),
        ([Node("a", b"", (1,)), Node("b", b"", (0,))], "is in a circle of imports"),
        ([Node("a", b"", (3,))], "imports one that is not among its 1"),
    ],
)
def test_a_wrong_tree_is_refused(nodes: list[Node], message: str) -> None:
    with pytest.raises(ObjectFileError, match=message):
        read_import_tree(write_import_tree(nodes))


TREE = write_import_tree([Node("_lib", b"", (1, 2)), Node("x", b"abc", (2,)), Node("y", b"", ())])


@settings(max_examples=200, deadline=None)
@given(
    cut=st.integers(0, len(TREE)),
    made=st.lists(st.tuples(st.integers(0, len(TREE) - 1), st.integers(0, 255)), max_size=4),
)
def test_any_tree_is_harmless(cut: int, made: list[tuple[int, int]]) -> None:
    changed = bytearray(TREE)
    for offset, value in made:
        changed[offset] = value
    with suppress(ObjectFileError):
        read_import_tree(bytes(changed[:cut]))


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"\x0b" + bytes(7) + b"ferrule.ptx", b"\xff" * 8, "a part of 18446744073709551615 bytes"),
        (b"ferrule.ptx", b"\xfferrule", r"a module is of the kind b'\\xfferrule.ptx'"),
    ],
)
def test_a_library_with_a_damaged_tree_is_refused_before_tvm_ffi_reads_it(
    old: bytes,
    new: bytes,
    message: str,
    add_one: Function,
    ptx: fe.Module,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FERRULE_VERIFY", "0")
    fe.Module([add_one], imports=[ptx]).write_to_file(tmp_path / "k.so")
    data = bytearray((tmp_path / "k.so").read_bytes())
    assert data.count(old) == 1
    at = data.index(old)
    data[at : at + len(new)] = new
    with pytest.raises(ObjectFileError, match=message):
        load_module(data)


@pytest.mark.needs_cc
@pytest.mark.parametrize("suffix", [".so", ".a"])
def test_a_module_is_loaded_with_what_it_imports(
    suffix: str, add_one: Function, ptx: fe.Module, tmp_path: Path
) -> None:
    module = fe.Module([add_one], imports=[ptx])
    module.write_to_file(tmp_path / f"k{suffix}")
    loaded = load_module(tmp_path / f"k{suffix}")
    (imported,) = loaded.imports
    assert loaded.kind in ("library", "archive") and imported.kind == "ferrule.ptx"
    assert applied(loaded.add_one_host) == ADDED
    assert list(imported) == ["first", "second"] and imported.data == ptx.data
    assert loaded.implements_function("first", query_imports=True)
    assert not loaded.implements_function("first")
    assert loaded.get_function("first", query_imports=True) is imported.first
    loaded.write_to_file(tmp_path / f"again{suffix}")
    again = (tmp_path / f"again{suffix}").read_bytes()
    assert again == (tmp_path / f"k{suffix}").read_bytes()
    module.write_to_file(tmp_path / f"same{suffix}")
    assert again == (tmp_path / f"same{suffix}").read_bytes()


@pytest.mark.needs_cc
@pytest.mark.parametrize("suffix", [".so", ".a"])
def test_tvm_ffi_loads_what_a_module_imports(
    suffix: str, add_one: Function, ptx: fe.Module, tmp_path: Path
) -> None:
    fe.Module([add_one], imports=[ptx]).write_to_file(tmp_path / f"k{suffix}")
    module = tvm_ffi.load_module(tmp_path / f"k{suffix}")
    (imported,) = module.imports
    assert module.kind == imported.kind == "library"
    assert applied(module.add_one_host) == ADDED
    assert module.get_function("second", query_imports=True) is not None
    metadata = imported.get_function_metadata("first")
    assert metadata["ferrule"]["signature"].startswith("first(a: Pointer(float32), b: float32, g")


@pytest.mark.needs_cc
def test_a_kind_of_somebody_else_has_their_loader(
    add_one: Function, loader: tuple[str, list[bytes]], tmp_path: Path
) -> None:
    kind, seen = loader
    inner = fe.Module.from_bytes(kind, b"inner")
    outer = fe.Module.from_bytes(kind, b"outer", imports=[inner])
    fe.Module([add_one], imports=[outer, inner]).write_to_file(tmp_path / "k.so")
    module = tvm_ffi.load_module(tmp_path / "k.so")
    assert (len(module.imports), seen) == (2, [b"outer", b"inner"])
    loaded = load_module(tmp_path / "k.so")
    assert [child.data for child in loaded.imports] == [b"outer", b"inner"]
    assert loaded.imports[0].imports == (loaded.imports[1],)
    assert not loaded.implements_function("f", query_imports=True)
    with pytest.raises(KeyError, match="has no function 'f'"):
        inner["f"]


@pytest.mark.needs_cc
def test_a_kind_without_a_loader_gives_the_documented_error(
    add_one: Function, tmp_path: Path
) -> None:
    unknown = fe.Module.from_bytes("tests.unknown", b"x")
    fe.Module([add_one], imports=[unknown]).write_to_file(tmp_path / "k.so")
    for load in (tvm_ffi.load_module, load_module):
        with pytest.raises(RuntimeError, match=r"\{tests.unknown\} but a loader of that name is"):
            load(tmp_path / "k.so")
    with pytest.raises(RuntimeError, match="no loader here: .*load_from_bytes.tests.unknown"):
        unknown.implements_function("f")


@pytest.mark.needs_cc
def test_what_is_no_code_can_be_the_root(
    add_one: Function, ptx: fe.Module, loader: tuple[str, list[bytes]], tmp_path: Path
) -> None:
    root = fe.Module.from_bytes(loader[0], b"root", imports=[fe.Module([add_one]), ptx])
    root.write_to_file(tmp_path / "k.so")
    loaded = load_module(tmp_path / "k.so")
    assert [child.kind for child in loaded.imports] == ["library", "ferrule.ptx"]
    assert (loaded.kind, loaded.data) == (loader[0], b"root")
    assert applied(loaded.get_function("add_one_host", query_imports=True)) == ADDED
    assert applied(tvm_ffi.load_module(tmp_path / "k.so").imports[0].add_one_host) == ADDED
    circle = fe.Module([add_one], imports=[root])
    with pytest.raises(ValueError, match="cannot be one library: a module that is no code imports"):
        circle.write_to_file(tmp_path / "k.so")


@pytest.mark.needs_cc
def test_kernels_alone_make_a_library_and_import_nothing(
    ptx: fe.Module, add_one: Function, tmp_path: Path
) -> None:
    ptx.write_to_file(tmp_path / "alone.so")
    assert list(load_module(tmp_path / "alone.so")) == ["first", "second"]
    with pytest.raises(ValueError, match="a module of kind ferrule.ptx imports nothing"):
        fe.Module.from_bytes("ferrule.ptx", ptx.data or b"", imports=[fe.Module([add_one])])


@pytest.mark.needs_cc
def test_code_that_imports_code_is_one_library(
    add_one: Function, scale: Function, tmp_path: Path
) -> None:
    inner = fe.Module([scale])
    fe.Module([add_one], imports=[inner]).write_to_file(tmp_path / "k.so")
    loaded = load_module(tmp_path / "k.so")
    assert (list(loaded), loaded.imports) == (["add_one_host", "scale_host"], ())
    assert b"__tvm_ffi__library_bin" not in (tmp_path / "k.so").read_bytes()
    other = fe.Module({"add_one_host": scale}, imports=[fe.Module([add_one])])
    with pytest.raises(ValueError, match="two of the modules have a function 'add_one_host'"):
        other.write_to_file(tmp_path / "k.so")


@pytest.mark.needs_cc
def test_a_module_of_a_system_library_has_its_imports(add_one: Function, ptx: fe.Module) -> None:
    prefix = f"tests_{uuid.uuid4().hex}_"
    module = fe.Module([add_one], imports=[ptx]).system_lib(prefix)
    assert applied(module.add_one_host) == ADDED
    assert module.get_function("first", query_imports=True) is not None


def test_an_object_cannot_have_imports(add_one: Function, ptx: fe.Module, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 functions that imports others is written to a file"):
        fe.Module([add_one], imports=[ptx]).write_to_file(tmp_path / "k.o")
    with pytest.raises(TypeError, match=f"a tvm_ffi.Module, but got 3; {ONLY_MODULES}"):
        fe.Module([add_one], imports=[3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="cannot be of kind '_lib'"):
        fe.Module.from_bytes("_lib", b"")


@pytest.mark.needs_cc
def test_modules_with_imports_can_be_pickled(
    add_one: Function, ptx: fe.Module, tmp_path: Path
) -> None:
    module = fe.Module([add_one], imports=[ptx])
    module.write_to_file(tmp_path / "k.so")
    for each in (module, load_module(tmp_path / "k.so")):
        again = pickle.loads(pickle.dumps(each))
        assert applied(again.add_one_host) == ADDED
        assert (again.kind, again.imports[0].data) == (each.kind, ptx.data)


@pytest.mark.needs_cc
def test_a_library_with_imports_goes_when_nobody_holds_it(
    ptx: fe.Module, add_one: Function, tmp_path: Path
) -> None:
    def libraries() -> int:
        return Path("/proc/self/maps").read_text().count("library.so")

    fe.Module([add_one], imports=[ptx]).write_to_file(tmp_path / "k.so")
    before = libraries()
    function = load_module(tmp_path / "k.so").add_one_host
    assert applied(function) == ADDED and libraries() > before
    del function
    gc.collect()
    assert libraries() == before


@pytest.mark.needs_cc
def test_a_linker_takes_the_object_of_the_tree(
    ptx: fe.Module, add_one: Function, tmp_path: Path
) -> None:
    fe.Module([add_one], imports=[ptx]).write_to_file(tmp_path / "k.a")
    whole = ["-Wl,--whole-archive", "k.a", "-Wl,--no-whole-archive", "-Wl,--fatal-warnings"]
    subprocess.run(["gcc", "-shared", "-o", "k.so", *whole], cwd=tmp_path, check=True)
    assert load_module(tmp_path / "k.so").imports[0].data == ptx.data
