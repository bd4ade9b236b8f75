"""Export: files appear whole, under names that C and tvm-ffi accept."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi

from ferrule.runtime import LinkError
from ferrule.runtime.binaries.objectfile import read_object

from .conftest import Maker


def test_object(make: Maker, tmp_path: Path) -> None:
    add = make.add()
    add.export_to_c(tmp_path / "add.o")
    add.export_to_c(str(tmp_path / "other.o"), function_name="my_add2")
    assert read_object((tmp_path / "add.o").read_bytes()).defined == ("__tvm_ffi_add",)
    assert read_object((tmp_path / "other.o").read_bytes()).defined == ("__tvm_ffi_my_add2",)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["add.o", "other.o"]
    assert stat.S_IMODE((tmp_path / "add.o").stat().st_mode) & stat.S_IRUSR


def test_file_is_replaced(make: Maker, tmp_path: Path) -> None:
    target = tmp_path / "add.o"
    target.write_text("old")
    make.add().export_to_c(target)
    assert read_object(target.read_bytes()).defined == ("__tvm_ffi_add",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "must be a C identifier, but got ''"),
        ("2fast", "must be a C identifier"),
        ("a-b", "must be a C identifier"),
        ("naïve", "must be a C identifier"),
        ("a\n", "must be a C identifier"),
        ("_library_bin", "must not begin with an underscore, but got '_library_bin'"),
    ],
)
def test_names(make: Maker, tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make.add().export_to_c(tmp_path / "x.o", function_name=name)
    assert list(tmp_path.iterdir()) == []


def test_suffixes_and_folders(make: Maker, tmp_path: Path) -> None:
    add = make.add()
    with pytest.raises(ValueError, match=r"writes \.o .*\.mlir files, but got the suffix '\.obj'"):
        add.export_to_c(tmp_path / "x.obj")
    with pytest.raises(ValueError, match=r"writes \.so \.a files.*export_to_c writes \.o"):
        add.export_library(tmp_path / "x.o")
    with pytest.raises(ValueError, match=r"export_header writes \.h \.hpp files"):
        add.export_header(tmp_path / "x.o")
    with pytest.raises(ValueError, match=r"export_stub writes \.pyi files"):
        add.export_stub(tmp_path / "x.py")
    with pytest.raises(FileNotFoundError, match="no folder .*nowhere"):
        add.export_to_c(tmp_path / "nowhere" / "x.o")


@pytest.mark.needs_cc
def test_library(make: Maker, tmp_path: Path) -> None:
    path = tmp_path / "libadd.so"
    make.add().export_library(path, function_name="sum")
    module = tvm_ffi.load_module(path)
    assert module.get_function("sum")(3, 4) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["libadd.so"]


def test_without_a_compiler(make: Maker, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkError, match=r"cc, .* or ld is not on PATH.*cc -shared -o "):
        make.add().export_library(tmp_path / "x.so")
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(LinkError, match="CC=no-such-compiler is not on PATH"):
        make.add().export_library(tmp_path / "x.so")


def test_compiler_that_fails(make: Maker, tmp_path: Path, monkeypatch: Any) -> None:
    failing = shutil.which("false")
    if failing is None:
        pytest.skip("no program named false")
    monkeypatch.setenv("CC", failing)
    with pytest.raises(LinkError, match="failed with status 1"):
        make.add().export_library(tmp_path / "x.so")
    assert list(tmp_path.iterdir()) == []
