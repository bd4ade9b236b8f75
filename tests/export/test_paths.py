"""Files and where they are: long names, links, permissions, pipes, no PATH, libraries of others."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from exported import DOUBLED, WITHOUT_TORCH, applied, run_python

import ferrule as fe
from ferrule import specs
from ferrule.compiler import build
from ferrule.compiler.conventions import CFunction, HostCode
from ferrule.runtime import Function, load_module
from ferrule.specs import Signature


def written(function: Function, path: Any) -> None:
    if os.fsdecode(path).endswith(".o"):
        function.export_to_c(path)
    else:
        function.export_library(path)


every_form = pytest.mark.parametrize(
    "suffix", [".o", ".a", pytest.param(".so", marks=pytest.mark.needs_cc)]
)


@every_form
def test_the_longest_names(scale: Function, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / ("x" * (255 - len(suffix)) + suffix)
    for _ in range(2):
        written(scale, path)
    assert applied(load_module(path).scale_host) == DOUBLED
    assert os.listdir(tmp_path) == [path.name]
    with pytest.raises(OSError, match="File name too long"):
        written(scale, path.with_name("x" + path.name))
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.needs_cc
def test_the_longest_functions(scale: Function, tmp_path: Path) -> None:
    name = "f" * 300
    for suffix in (".o", ".a", ".so"):
        path = tmp_path / f"k{suffix}"
        if suffix == ".o":
            scale.export_to_c(path, name)
        else:
            scale.export_library(path, name)
        assert applied(load_module(path)[name]) == DOUBLED


@every_form
def test_a_link_is_written_through(scale: Function, suffix: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / f"real{suffix}", tmp_path / f"link{suffix}"
    link.symlink_to(Path("there") / real.name)
    for _ in range(2):  # to no file, and to one
        written(scale, link)
        assert link.is_symlink() and not real.is_symlink()
        assert applied(load_module(real).scale_host) == DOUBLED
    assert sorted(os.listdir(tmp_path)) == [link.name, "there"]


def test_links_that_lead_nowhere(scale: Function, tmp_path: Path) -> None:
    (tmp_path / "loop.o").symlink_to("loop.o")
    (tmp_path / "lost.o").symlink_to("nowhere/k.o")
    with pytest.raises(OSError, match="the link leads to itself.*loop.o"):
        scale.export_to_c(tmp_path / "loop.o")
    with pytest.raises(FileNotFoundError, match="leads into a folder that there is not, .*nowhere"):
        scale.export_to_c(tmp_path / "lost.o")


@every_form
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o444])
def test_a_file_keeps_its_permissions(
    scale: Function, suffix: str, mode: int, tmp_path: Path
) -> None:
    path = tmp_path / f"k{suffix}"
    path.write_text("old")
    path.chmod(mode)
    written(scale, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert applied(load_module(path).scale_host) == DOUBLED


def test_a_hard_link_is_broken(scale: Function, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "k.o").hardlink_to(tmp_path / "old")
    scale.export_to_c(tmp_path / "k.o")
    assert (tmp_path / "old").read_text() == "old"
    assert applied(load_module(tmp_path / "k.o").scale_host) == DOUBLED


@every_form
def test_what_is_no_file_is_refused(scale: Function, suffix: str, tmp_path: Path) -> None:
    pipe, folder = tmp_path / f"pipe{suffix}", tmp_path / f"folder{suffix}"
    os.mkfifo(pipe)
    folder.mkdir()
    with pytest.raises(OSError, match="a device, a pipe or a socket cannot be replaced.*pipe"):
        written(scale, pipe)
    with pytest.raises(IsADirectoryError, match="a folder cannot be replaced by a file.*folder"):
        written(scale, folder)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(OSError, match="it is no file: a device, a pipe or a socket"):
        load_module(pipe)
    with pytest.raises(IsADirectoryError):
        load_module(folder)
    assert sorted(os.listdir(tmp_path)) == sorted([pipe.name, folder.name])


class Named:
    """What gives a path as bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> bytes:
        return os.fsencode(self._path)


@every_form
def test_paths_of_bytes(scale: Function, suffix: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b\udcff{suffix}"
    written(scale, os.fsencode(first))
    written(scale, Named(second))
    assert first.read_bytes() == second.read_bytes()
    assert applied(load_module(Named(second)).scale_host) == DOUBLED
    fe.Module([scale]).write_to_file(os.fsencode(tmp_path / "again.a"))
    scale.export_header(Named(tmp_path / "k.h"))
    scale.export_stub(os.fsencode(tmp_path / "k.pyi"))
    with pytest.raises(TypeError, match="expected the path of a file, but got 3"):
        scale.export_to_c(3) if suffix == ".o" else scale.export_library(3)  # type: ignore[arg-type]


EXPORT = """
import os, sys
sys.path[:0] = sys.argv[2].split(os.pathsep)
import ferrule as fe
from ferrule.runtime import load_module

@fe.jit
def host(n: fe.Int64):
    return n + 1

fe.compile(host, 1).export_library(sys.argv[1])
print(load_module(sys.argv[1]).host(4), "PATH" in os.environ)
"""


@pytest.mark.needs_cc
def test_without_a_path(tmp_path: Path) -> None:
    if not any(shutil.which(name, path=os.defpath) for name in ("cc", "gcc", "clang")):
        pytest.skip(f"no C compiler in {os.defpath}")
    (tmp_path / "program.py").write_text(WITHOUT_TORCH + EXPORT)
    command = [sys.executable, tmp_path / "program.py", tmp_path / "k.so"]
    done = subprocess.run(
        [*command, os.pathsep.join(filter(None, sys.path))],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("5 False\n", 0), done.stderr


TWICE = "double twice(double x) { return 2 * x; }\n"
CALL = """
import sys
from ferrule.runtime import load_module
print(load_module(sys.argv[1]).doubled(4.0))
"""
PLAIN = """
import sys, tvm_ffi
print(tvm_ffi.load_module(sys.argv[1]).doubled(4.0))
"""


def doubled(library: str | Path) -> Function:
    x = specs.Scalar("x", specs.Float64)
    call = CFunction("twice", [x], returns="float64", code=HostCode.from_library(library))
    return build(Signature("doubled", [x]), call)


def made(path: Path, *flags: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text(TWICE)
    command = ["cc", "-shared", "-fPIC", "-o", str(path), str(source), *flags]
    subprocess.run(command, check=True)
    return path


@pytest.mark.needs_cc
@pytest.mark.parametrize("flags", [[], ["-Wl,-soname,libtwice.so"]])
def test_a_library_given_by_its_path_is_found_again(flags: list[str], tmp_path: Path) -> None:
    library = made(tmp_path / "lib" / "libtwice.so", *flags)
    function = doubled(library)
    for suffix in (".o", ".a", ".so"):
        written(function, tmp_path / f"k{suffix}")
        assert run_python(CALL, tmp_path / f"k{suffix}") == "8.0\n"
    assert run_python(PLAIN, tmp_path / "k.so") == "8.0\n"


@pytest.mark.needs_cc
def test_a_library_that_is_moved_along_is_found_beside(tmp_path: Path) -> None:
    library = made(tmp_path / "lib" / "libtwice.so", "-Wl,-soname,libtwice.so")
    doubled(library).export_library(tmp_path / "k.so")
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "k.so").rename(moved / "k.so")
    library.rename(moved / "libtwice.so")
    assert run_python(CALL, moved / "k.so") == run_python(PLAIN, moved / "k.so") == "8.0\n"


@pytest.mark.needs_cc
def test_a_relative_path_holds_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "lib" / "librelative.so")
    monkeypatch.chdir(tmp_path)
    function = doubled("lib/librelative.so")
    (tmp_path / "other").mkdir()
    for suffix in (".o", ".so"):
        written(function, tmp_path / f"k{suffix}")
        assert run_python(CALL, tmp_path / f"k{suffix}", folder=tmp_path / "other") == "8.0\n"
