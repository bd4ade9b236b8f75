"""Wheels: the format, the platform tag, and the example's, installed where there is no ferrule."""

from __future__ import annotations

import base64
import csv
import email
import hashlib
import importlib.util
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tvm_ffi import libinfo

from ferrule.commands import main
from ferrule.libraries.wheel import platform_tag, wheel_bytes, wheel_name
from ferrule.runtime import ObjectFileError, find_runtime_libraries

EXAMPLE = Path(__file__).parents[2] / "examples" / "kernel_library"
LIBRARY = Path(find_runtime_libraries(enable_tvm_ffi=True)[0])

pytestmark = pytest.mark.needs_cc

SAID = """\
[-6. -3.  0.  3.  6.]
[0. 0. 0. 1. 2.]
10.0
[[0.25 0.25 0.25 0.25]
 [0.25 0.25 0.25 0.25]]
Mismatched y.shape[0] on argument #1 when calling: `scale(x: Tensor([n0], float32), \
y: Tensor([n0], float32), factor: float32 = 1.0)`, expected to match x.shape[0] = 5, but got 3
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's library and its wheel."""
    folder = tmp_path_factory.mktemp("dist")
    source = str(EXAMPLE / "kernels.py")
    try:
        assert main(["build", source, "-o", str(folder)]) == 0
        assert main(["build", source, "-o", str(folder), "--format", "wheel"]) == 0
    finally:
        sys.modules.pop("kernels", None)
        sys.path.remove(str(EXAMPLE))
    return folder


def wheel_of(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_is_one_of_pep_427(built: Path) -> None:
    wheel = wheel_of(built)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        files = {name: archive.read(name) for name in names}
    info = "activations-1.0.0.dist-info"
    assert names[-1] == f"{info}/RECORD"
    rows = list(csv.reader(io.StringIO(files[f"{info}/RECORD"].decode())))
    assert [row[0] for row in rows] == names
    for name, digest, size in rows[:-1]:
        wanted = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=")
        assert digest == f"sha256={wanted.decode()}" and int(size) == len(files[name])
    assert rows[-1][1:] == ["", ""]
    assert f"Tag: {wheel.stem.split('-', 2)[2]}\n" in files[f"{info}/WHEEL"].decode()
    metadata = files[f"{info}/METADATA"].decode()
    assert "Name: activations\nVersion: 1.0.0\nSummary: Activation functions" in metadata
    assert "Requires-Dist: apache-tvm-ffi>=0.1.0\n" in metadata
    assert "activations/py.typed" in names and "activations/include/activations.h" in names
    assert files["activations/libactivations.so"] == (built / "libactivations.so").read_bytes()
    assert '__version__ = "1.0.0"' in files["activations/__init__.py"].decode().replace("'", '"')
    stub = files["activations/__init__.pyi"].decode()
    assert stub.endswith("__version__: _Final = '1.0.0'\n")
    table = json.loads(files["activations/activations.json"])
    assert [row["name"] for row in table["functions"]][:2] == ["scale", "relu"]
    assert table["functions"][0]["parameters"][2]["default"] == "1.0"


def test_pip_installs_it_and_it_runs_without_ferrule(built: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        with zipfile.ZipFile(wheel_of(built)) as archive:
            archive.extractall(tmp_path)
    else:
        install = ["install", "--no-deps", "--no-index", "--quiet", "--target", str(tmp_path)]
        install += ["--no-compile", "--disable-pip-version-check", str(wheel_of(built))]
        subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    program = (
        # tvm-ffi imports torch where it is, which takes seconds.
        "import runpy, sys; sys.modules['ferrule'] = sys.modules['torch'] = None; "
        f"sys.path.insert(0, {str(tmp_path)!r}); "
        f"runpy.run_path({str(EXAMPLE / 'with_package.py')!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stderr == "" and done.stdout == SAID


def run(*command: Any) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_c_calls_the_library(built: Path, tmp_path: Path) -> None:
    include = [f"-I{path}" for path in (*libinfo.include_paths(), built)]
    linked = [built / "libactivations.so", LIBRARY]
    paths = [f"-Wl,-rpath,{built}:{LIBRARY.parent}", "-Wall", "-Wextra", "-Werror"]
    program = tmp_path / "with_c"
    run("cc", EXAMPLE / "with_c.c", *include, *linked, *paths, "-o", program)
    said = run(program)
    assert said.startswith("0 0 1 2, squares 5\nValueError: Mismatched y.shape[0]")


def test_rust_calls_the_library(built: Path, tmp_path: Path) -> None:
    import shutil

    if shutil.which("rustc") is None:
        pytest.skip("no rustc")
    libraries = ["-L", built, "-l", "activations", "-L", LIBRARY.parent, "-l", "tvm_ffi"]
    path = f"link-arg=-Wl,-rpath,{built}:{LIBRARY.parent}"
    program = tmp_path / "with_rust"
    run("rustc", EXAMPLE / "with_rust.rs", "-o", program, *libraries, "-C", path)
    assert run(program) == "0 0 1 2, squares 5\n"


def test_the_tag_names_the_glibc_that_the_library_asks_for(built: Path) -> None:
    import platform

    tag = platform_tag((built / "libactivations.so").read_bytes())
    kind, two, minor, machine = tag.split("_", 3)
    assert (kind, two, machine) == ("manylinux", "2", platform.machine()) and int(minor) >= 17
    # libtvm_ffi needs libstdc++, which no tag of PEP 600 in general has.
    assert platform_tag(LIBRARY.read_bytes()).startswith("linux_")
    with pytest.raises(ObjectFileError):
        platform_tag(b"no library")


def test_the_same_files_give_the_same_bytes() -> None:
    files = {"k/__init__.py": b"x = 1\n"}
    first, again = (wheel_bytes("K.k-2", "1.0", "linux_x86_64", files) for _ in range(2))
    assert first == again
    assert wheel_name("K.k-2", "1.0", "linux_x86_64") == "k_k_2-1.0-py3-none-linux_x86_64.whl"


def test_license_and_readme_are_in_the_metadata() -> None:
    readme = "# Käse\n\n    code\n"
    wheel = wheel_bytes("k", "1.0", "any", {}, license="MIT OR Apache-2.0", readme=readme)
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        found = email.message_from_bytes(archive.read("k-1.0.dist-info/METADATA"))
    assert found["Metadata-Version"] == "2.4"
    assert found["License-Expression"] == "MIT OR Apache-2.0"
    assert found["Description-Content-Type"] == "text/markdown; charset=UTF-8"
    assert found.get_payload(decode=True) == readme.encode()
