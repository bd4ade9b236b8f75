"""Exported code: what is visible, what is needed, every form, and the same bytes every time."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest
import tvm_ffi
from exported import ADDED, DOUBLED, applied, compiled_add_one

import ferrule as fe
from ferrule.runtime import Function, LinkError, StageError
from ferrule.runtime.binaries.metadata import NOTE_TYPE
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.cfunctions import C_FUNCTIONS

GPU = "--target cuda --gpu-arch sm_90a"


@pytest.fixture(scope="module")
def on_gpu() -> Function:
    return compiled_add_one(GPU)


@pytest.mark.parametrize("options", [None, GPU])
def test_an_object_shows_the_function_and_what_describes_it(
    options: str | None, tmp_path: Path
) -> None:
    compiled_add_one(options).export_to_c(tmp_path / "k.o", function_name="add_one")
    header = read_object((tmp_path / "k.o").read_bytes())
    assert sorted(header.defined) == [
        "__tvm_ffi__doc_add_one",
        "__tvm_ffi__metadata_add_one",
        "__tvm_ffi_add_one",
    ]
    assert set(header.undefined) <= {*C_FUNCTIONS, "_GLOBAL_OFFSET_TABLE_"}


def test_a_function_without_docstring_has_no_doc(scale: Function, tmp_path: Path) -> None:
    scale.export_to_c(tmp_path / "k.o")
    header = read_object((tmp_path / "k.o").read_bytes())
    assert "__tvm_ffi__doc_scale_host" not in header.defined


@pytest.mark.needs_cc
def test_tvm_ffi_reads_metadata_and_docstring(add_one: Function, tmp_path: Path) -> None:
    add_one.export_library(tmp_path / "k.so", function_name="add_one")
    module = tvm_ffi.load_module(tmp_path / "k.so")
    metadata = module.get_function_metadata("add_one")
    assert json.loads(metadata["type_schema"])["type"] == "ffi.Function"
    assert metadata["ferrule"]["signature"].startswith("add_one(a: Tensor([n0], float32")
    assert module.get_function_doc("add_one").startswith("Adds one")
    assert "größer" in module.get_function_doc("add_one")


def test_the_metadata_lists_the_images(on_gpu: Function, tmp_path: Path) -> None:
    on_gpu.export_to_c(tmp_path / "k.o")
    notes = read_object((tmp_path / "k.o").read_bytes()).notes
    (note,) = (each for each in notes if each.kind == NOTE_TYPE)
    (image,) = json.loads(note.text)["ferrule"]["target"]["images"]
    assert (image["kind"], image["arch"], len(image["kernels"])) == ("ptx", "sm_90a", 1)


@pytest.mark.parametrize("suffix", [".o", ".ll", ".bc", ".s"])
def test_the_same_function_gives_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    for path in (first, second):
        compiled_add_one().export_to_c(path, function_name="same")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.needs_cc
def test_the_same_functions_give_the_same_library(
    add_one: Function, scale: Function, tmp_path: Path
) -> None:
    for path in (tmp_path / "1.so", tmp_path / "2.so", tmp_path / "1.a", tmp_path / "2.a"):
        fe.export_library(path, [add_one, scale])
    assert (tmp_path / "1.so").read_bytes() == (tmp_path / "2.so").read_bytes()
    assert (tmp_path / "1.a").read_bytes() == (tmp_path / "2.a").read_bytes()


def test_llvm_reads_text_and_bitcode(add_one: Function, tmp_path: Path) -> None:
    add_one.export_to_c(tmp_path / "k.ll")
    add_one.export_to_c(tmp_path / "k.bc")
    context = llvm.create_context()
    text = llvm.parse_assembly((tmp_path / "k.ll").read_text(), context)
    bitcode = llvm.parse_bitcode((tmp_path / "k.bc").read_bytes(), context)
    for module in (text, bitcode):
        module.verify()
        assert not module.get_function("__tvm_ffi_add_one_host").is_declaration


@pytest.mark.needs_cc
def test_an_assembler_reads_the_assembly(add_one: Function, tmp_path: Path) -> None:
    add_one.export_to_c(tmp_path / "k.s")
    subprocess.run(["gcc", "-c", "k.s", "-o", "k.o"], cwd=tmp_path, check=True)
    assert applied(fe.runtime.load_module(tmp_path / "k.o").add_one_host) == ADDED


def test_ptx_is_that_of_the_kernels(on_gpu: Function, tmp_path: Path) -> None:
    on_gpu.export_to_c(tmp_path / "k.ptx")
    assert (tmp_path / "k.ptx").read_text() == on_gpu.inspect_ptx()


def test_a_form_that_is_missing_leaves_the_old_file(add_one: Function, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text("old")
    with pytest.raises(StageError, match="no 'ptx' text: it has no kernels for a GPU"):
        add_one.export_to_c(tmp_path / "k.ptx")
    assert (tmp_path / "k.ptx").read_text() == "old"
    assert os.listdir(tmp_path) == ["k.ptx"]


def test_a_file_is_readable_by_others(add_one: Function, tmp_path: Path) -> None:
    add_one.export_to_c(tmp_path / "k.o")
    assert stat.S_IMODE((tmp_path / "k.o").stat().st_mode) & stat.S_IRUSR


@pytest.mark.needs_cc
def test_a_hundred_objects_make_one_library(
    add_one: Function, scale: Function, tmp_path: Path
) -> None:
    functions = {f"f{i}": scale if i % 2 else add_one for i in range(100)}
    fe.export_library(tmp_path / "many.so", functions)
    module = fe.runtime.load_module(tmp_path / "many.so")
    assert list(module) == list(functions)
    assert applied(module.f0) == applied(module.f98) == ADDED
    assert applied(module.f1) == applied(module["f99"]) == DOUBLED


@pytest.mark.needs_cc
def test_a_linker_takes_the_archive(add_one: Function, scale: Function, tmp_path: Path) -> None:
    fe.export_library(tmp_path / "libk.a", [add_one, scale])
    whole = ["-Wl,--whole-archive", "libk.a", "-Wl,--no-whole-archive"]
    subprocess.run(["gcc", "-shared", "-o", "k.so", *whole], cwd=tmp_path, check=True)
    assert set(fe.runtime.load_module(tmp_path / "k.so")) == {"add_one_host", "scale_host"}
    if shutil.which("nm"):
        command = ["nm", "--print-armap", "libk.a"]
        said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert "__tvm_ffi_scale_host in scale_host.o" in said.stdout


def test_two_functions_of_one_name_are_refused(add_one: Function, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two functions are named 'add_one_host': give a dict"):
        fe.export_library(tmp_path / "k.so", [add_one, add_one])
    with pytest.raises(ValueError, match="k.so would have no function"):
        fe.export_library(tmp_path / "k.so", [])
    with pytest.raises(TypeError, match="a compiled function, from ferrule.compile, but got"):
        fe.export_library(tmp_path / "k.so", [compiled_add_one])  # type: ignore[list-item]


@pytest.mark.needs_cc
def test_a_linker_that_fails_leaves_the_old_library(
    add_one: Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.so").write_text("old")
    monkeypatch.setenv("CC", "gcc -no-such-flag")
    with pytest.raises(LinkError, match="gcc -no-such-flag -shared .* failed with status 1"):
        add_one.export_library(tmp_path / "k.so")
    assert (tmp_path / "k.so").read_text() == "old"
    assert os.listdir(tmp_path) == ["k.so"]
