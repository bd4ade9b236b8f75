"""What a frontend says whose package is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ferrule.frontends import cutile, numba, packages, tilelang, warp


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("numba", lambda: numba.compile(len), "numba"),
        ("numba_cuda", lambda: numba.compile(len, target="sm_90"), "numba-cuda"),
        ("warp", lambda: warp.compile(len, dim=1), "warp"),
        ("cuda.tile", lambda: cutile.compile(len, [], grid=1, target="sm_90"), "cutile"),
        ("tilelang", lambda: tilelang.compile(len, target="sm_90"), "tilelang"),
    ],
)
def test_a_missing_package_names_its_extra(
    module: str, call: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'ferrule\[{extra}\]'") as caught:
        call()
    assert caught.value.name == module


def test_a_folder_of_the_same_name_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_framework").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="some_framework.*is a folder"):
        packages.load("some_framework", "some")


def test_frontends_import_no_framework_and_no_llvm() -> None:
    code = """
import sys
from ferrule.frontends import c, cuda, cutile, files, numba, tilelang, warp
heavy = {"llvmlite", "tvm_ffi", "torch", "warp", "tilelang", "cuda"}
print({name.partition(".")[0] for name in sys.modules} & heavy)
print("numba" in sys.modules)
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, text=True, env=environment) == "set()\nFalse\n"
