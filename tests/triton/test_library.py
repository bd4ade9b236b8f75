"""examples/triton_library: a library of Triton kernels, built, executed on emulated GPUs, called.

In every run a small part: one dtype of some kernels for one architecture, and the operators of
PyTorch. `--hypothesis-profile=nightly` builds and executes all of it for three architectures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tvm_ffi import libinfo

from ferrule.runtime import find_runtime_libraries

EXAMPLE = Path(__file__).parents[2] / "examples" / "triton_library"
SUPPORT = Path(__file__).parents[1] / "support"
TVM_FFI = Path(find_runtime_libraries(enable_tvm_ffi=True)[0])

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]


def said(program: str, *arguments: str) -> dict[str, str]:
    """What a program of tests/support prints, by the words before the colon."""
    paths = os.pathsep.join((str(SUPPORT), str(EXAMPLE), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SUPPORT / f"{program}.py", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "FERRULE_GPU": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def checked(arch: str, dtype: str, *names: str) -> None:
    found = said("emulated_rows", arch, dtype, *names)
    assert found and all(each.split(",")[0] == "right" for each in found.values()), found


def test_some_kernels_are_right() -> None:
    checked("sm_80", "bf16", "rms_norm 4096", "cross_entropy", "rope", "refused")


@pytest.mark.nightly
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_every_kernel_is_right(arch: str, dtype: str) -> None:
    checked(arch, dtype)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with a small build of the library, and what was said of its operators."""
    folder = tmp_path_factory.mktemp("rows")
    return folder, said("emulated_row_operators", str(folder))


def test_operators_have_gradients(small: tuple[Path, dict[str, str]]) -> None:
    found = dict(small[1])
    assert found.pop("schema") == "rows::swiglu(Tensor a, Tensor b, Tensor(a!) y) -> ()"
    assert len(found) == 7 and set(found.values()) == {"right"}, found


def run(*command: Any) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cpp_calls_the_library(small: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no c++")
    folder, program = small[0], tmp_path / "with_cpp"
    include = [f"-I{path}" for path in (*libinfo.include_paths(), folder)]
    linked = [folder / "librows.so", TVM_FFI, "-ldl", f"-Wl,-rpath,{folder}:{TVM_FFI.parent}"]
    strict = ["-Wall", "-Wextra", "-Werror"]
    run("c++", *strict, EXAMPLE / "with_cpp.cpp", *include, *linked, "-o", program)
    first, second, last = run(program).splitlines()
    assert "Mismatched y.shape[0]" in first or first == "ValueError"
    assert second == "ValueError" and last in ("no GPU", "silu(1) * 1 = 0.731059")


def test_rust_calls_the_library(small: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    if shutil.which("rustc") is None:
        pytest.skip("no rustc")
    folder, program = small[0], tmp_path / "with_rust"
    words = ["-L", folder, "-l", "rows", "-L", TVM_FFI.parent, "-l", "tvm_ffi"]
    for each in ("--no-as-needed", f"-rpath,{folder}:{TVM_FFI.parent}"):
        words += ["-C", f"link-arg=-Wl,{each}"]
    run("rustc", EXAMPLE / "with_rust.rs", "-o", program, *words)
    assert "Mismatched y.shape[1] on argument #2" in run(program)


@pytest.mark.nightly
def test_the_whole_builds_into_a_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "ferrule", "build", EXAMPLE / "rows.py"]
    run(*command, "-o", tmp_path, "-j", "4", "--format", "wheel")
    (wheel,) = tmp_path.glob("rows-1.0.0-py3-none-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        table = archive.read("rows/rows.json").decode()
    assert {"rows/librows.so", "rows/librows_torch.so", "rows/include/rows.hpp"} <= {*names}
    assert all(arch in table for arch in ("sm_80", "sm_90a", "sm_100a"))
