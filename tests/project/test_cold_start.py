"""What a process does until its first result: numbers that creep up unseen, and do not flake.

Times are the business of `benchmarks/cold_start.py`. Here are the modules that are imported, the
sources that are compiled, and what is not imported at all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ferrule as fe

BASE = """\
import sys
sys.modules["torch"] = None
import numpy as np, tvm_ffi
if {with_llvm}:
    import llvmlite.binding, llvmlite.ir
x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
compiled = []
def hook(event, given):
    # Texts that run-time code compiles, not modules.
    if event == "compile" and given[1] == "<string>":
        compiled.append(bytes(given[0] or b"").decode())
sys.addaudithook(hook)
"""
COMPILE = """\
import ferrule as fe
@fe.kernel
def add(a: fe.Tensor, b: fe.Tensor):
    i, _, _ = fe.arch.thread_idx()
    b[i] = a[i] + 1
@fe.jit
def add_one(a: fe.Tensor, b: fe.Tensor):
    add(a, b).launch(grid=1, block=a.shape[0])
made = fe.compile(add_one, x, y)
made(x, y)
"""
LOAD = """\
import ferrule as fe
fe.runtime.load_module({file!r}).add_one(x, y)
"""
REPORT = """\
import json
assert (y == x + 1).all()
names = [name for name in sys.modules if name.split(".")[0] in ("ferrule", "llvmlite")]
origin = globals()["made"].origin if "made" in globals() else None
print(json.dumps({"names": names, "compiled": compiled, "origin": origin}))
"""


def report(
    folder: Path, program: str, *, with_llvm: bool = False, cached: bool = False
) -> dict[str, Any]:
    """What a fresh process imported and compiled for a program; with a cache in the folder or
    without."""
    path = folder / "program.py"
    path.write_text(BASE.format(with_llvm=with_llvm) + program + REPORT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["FERRULE_CACHE"] = str(int(cached))
    environment["FERRULE_CACHE_DIR"] = str(folder / "cache")
    done = subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_ferrule(found: dict[str, Any]) -> set[str]:
    return {name.partition(".")[2] for name in found["names"] if name.startswith("ferrule.")}


def methods(found: dict[str, Any]) -> list[str]:
    """The methods of dataclasses that were made: those that were used."""
    return [text for text in found["compiled"] if text.startswith("def __")]


def test_a_compilation(tmp_path: Path) -> None:
    found = report(tmp_path, COMPILE, with_llvm=True)
    names = of_ferrule(found)
    # With support code as files it is 12 less, see `ferrule.compiler.support.shipped`.
    assert len(names) <= 328, len(names)
    assert names.isdisjoint(
        {
            "compiler.cuda.launcher.state",
            "compiler.describe",
            "compiler.hostcode",
            "compiler.overloading",
            "compiler.support.objects",
            "compiler.wrapper.results",
            "emulator",
            "frontends",
            "language.cachekeys",
            "language.checks",
            "language.codegen.cpu.cooperate.blocks",
            "language.codegen.cuda",
            "language.folding.regions",
            "language.lowering.control.loops",
            "language.lowering.device.mbarriers",
            "language.lowering.device.tensor_cores",
            "language.lowering.objects.compiled_calls",
            "language.lowering.objects.foreign_calls",
            "language.lowering.objects.new_containers",
            "language.lowering.objects.printing",
            "language.lowering.objects.texts",
            "language.lowering.python.assertions",
            "language.lowering.python.mathematics",
            "language.lowering.tensors.layout_functions",
            "language.lowering.tensors.reductions",
            "language.lowering.tensors.vector_functions",
            "language.lowering.tensors.vectors",
            "language.mathlib.expand",
            "language.mlir",
            "runtime.calls.gate",
            "runtime.entry.entries",
            "runtime.exporting",
            "specs.reading",
        }
    )
    assert len(methods(found)) <= 182, len(methods(found))


def test_a_function_from_the_cache(tmp_path: Path) -> None:
    """It needs neither LLVM nor what compiles."""
    report(tmp_path, COMPILE, cached=True)
    # The same file: a cached function is that of its place.
    found = report(tmp_path, COMPILE, cached=True)
    names = of_ferrule(found)
    assert "llvmlite" not in found["names"]
    assert found["origin"] == "from the cache"
    assert len(names) <= 118, len(names)
    assert len(methods(found)) <= 46, len(methods(found))
    assert names.isdisjoint(
        {
            "compiler.binding",
            "compiler.cache.remote",
            "compiler.targets",
            "language.codegen",
            "language.ir",
            "language.lowering",
            "runtime.exporting",
            "runtime.linking.lljit",
            "runtime.llvm",
        }
    )


@pytest.mark.needs_cc
def test_a_library_that_is_loaded_and_called(tmp_path: Path) -> None:
    library = tmp_path / "add_one.so"
    compiled().export_library(library)
    found = report(tmp_path, LOAD.format(file=str(library)))
    assert "llvmlite" not in found["names"]
    assert len(of_ferrule(found)) <= 76, len(of_ferrule(found))
    assert of_ferrule(found).isdisjoint({"runtime.exporting", "runtime.linking.engine"})
    assert len(methods(found)) <= 34, len(methods(found))


def test_an_object_that_is_loaded_and_called(tmp_path: Path) -> None:
    path = tmp_path / "add_one.o"
    compiled().export_to_c(path)
    found = report(tmp_path, LOAD.format(file=str(path)))
    names = of_ferrule(found)
    assert "llvmlite" not in found["names"]
    assert len(names) <= 84, len(names)
    assert len(methods(found)) <= 36, len(methods(found))
    assert names.isdisjoint(
        {"compiler", "language", "runtime.calls.gate", "runtime.exporting", "runtime.llvm"}
    )


def compiled() -> Any:
    def add_one(a: fe.Tensor, b: fe.Tensor) -> None:
        for i in range(a.shape[0]):
            b[i] = a[i] + 1

    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(add_one, vector, vector)
