"""Programs in other languages: the examples are built and run, and the headers compile."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from exported import run_python
from tvm_ffi import libinfo

from ferrule.runtime import find_runtime_libraries
from ferrule.runtime.headers import c_header, cpp_header
from ferrule.runtime.stubs import stub
from ferrule.specs import parse_signature

EXAMPLES = Path(__file__).parents[2] / "examples" / "other_languages"
INCLUDE = [f"-I{path}" for path in libinfo.include_paths()]
LIBRARY = Path(find_runtime_libraries(enable_tvm_ffi=True)[0])
LINKED = [str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
STRICT = ["-Wall", "-Wextra", "-Werror"]

SCALED = "0 2.5 5 7.5\n"
SIGNATURE = "scale(a: Tensor([n0], float32), b: Tensor([n0], float32), factor: float32 = 2.0)"
WRONG_SIZE = (
    f"ValueError: Mismatched b.shape[0] on argument #1 when calling: `{SIGNATURE}`, expected to "
    "match a.shape[0] = 4, but got 3\n"
)


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, with what their first step exports."""
    made = shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("languages") / "examples")
    program = "import runpy; runpy.run_path('export.py', run_name='__main__')"
    said = run_python(program, folder=made)
    assert said == f"<ferrule.Function {SIGNATURE}>\n[0. 3. 6. 9.]\n"
    return made


pytestmark = pytest.mark.needs_cc


def test_a_c_program_with_the_object_inside(folder: Path) -> None:
    need("gcc")
    sources = ["static.c", "scale.o"]
    run("gcc", *STRICT, *INCLUDE, *sources, *LINKED, "-o", "static", folder=folder)
    assert run("./static", folder=folder) == SCALED + WRONG_SIZE


def test_a_c_program_is_clean_under_valgrind(folder: Path) -> None:
    need("gcc", "valgrind")
    run("gcc", *INCLUDE, "static.c", "scale.o", *LINKED, "-o", "checked", folder=folder)
    flags = ["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    assert run("valgrind", *flags, "./checked", folder=folder) == SCALED + WRONG_SIZE


def test_a_c_program_that_loads_the_library(folder: Path) -> None:
    need("gcc")
    run("gcc", *STRICT, *INCLUDE, "dynamic.c", *LINKED, "-o", "dynamic", folder=folder)
    assert run("./dynamic", "./scale.so", folder=folder) == SCALED


def test_a_cpp_program_with_the_typed_header(folder: Path) -> None:
    need("g++")
    sources = ["typed.cpp", "scale.o"]
    run("g++", "-std=c++11", *STRICT, *INCLUDE, *sources, *LINKED, "-o", "typed", folder=folder)
    said = run("./typed", folder=folder)
    assert said == (
        f"{SCALED}TypeError: Mismatched type on argument #1 when calling: `{SIGNATURE}`, expected "
        "Tensor, but got a null DLTensor pointer\n"
    )


def test_a_cpp_program_with_tvm_ffis_headers(folder: Path) -> None:
    need("g++", "cmake")
    cmake = libinfo.find_cmake_path()
    # The package asks Python where the library is.
    python = f"-DPython_EXECUTABLE={sys.executable}"
    run("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={cmake}", python, folder=folder)
    run("cmake", "--build", "build", folder=folder)
    said = run("build/tvm_ffi", "./scale.so", folder=folder)
    assert said == f"{SCALED}-0 -1 -2 -3\n"


def test_a_rust_program(folder: Path) -> None:
    need("rustc")
    link = ["-C", "link-arg=scale.o", "-L", str(LIBRARY.parent), "-l", "tvm_ffi"]
    rpath = ["-C", f"link-arg=-Wl,-rpath,{LIBRARY.parent}"]
    run("rustc", "-D", "warnings", "extern_c.rs", *link, *rpath, folder=folder)
    assert run("./extern_c", folder=folder) == WRONG_SIZE + SCALED


EVERY_KIND = [
    (
        "f(a: Tensor([n0, 8], float32), b: Optional[Tensor([n0], int8)], k: int32 = 3, s: str, "
        "u: uint64, p: Pointer(float32), c: Literal[3], yes: Literal[True], d: dtype, "
        "dev: Device, n: None, h: float16, flag: bool, double: int8, t: Tuple[int32, float32], "
        "größe: int16, result: float64) -> int32 where n0: int32",
        'Says */ and /* and more.\n\nBackslash \\ and \'"""\'.',
    ),
    ("g() -> str", None),
    ("double(g: uint8) -> float64", "A word of C."),
    ("flags(a: bool) -> bool", None),
    ("sizes(x: Shape([n0, 2]), o: Optional[int32]) -> Tensor([n0], int8) where n0: int32", None),
]
DESCRIBED = tuple((parse_signature(text), doc) for text, doc in EVERY_KIND)


def without_version(text: str) -> str:
    first, _, rest = text.partition("\n")
    return first.split("ferrule")[0] + "…\n" + rest


def test_headers_and_stubs_are_as_they_were(golden: Callable[[str, str], None]) -> None:
    golden("kinds.h", without_version(c_header("kinds", DESCRIBED)))
    golden("kinds.hpp", without_version(cpp_header("kinds", DESCRIBED)))
    golden("kinds.pyi.txt", without_version(stub(DESCRIBED)))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("kinds.h", ["gcc", "-x", "c", "-std=c11"]),
        ("kinds.h", ["g++", "-x", "c++", "-std=c++17"]),
        ("kinds.hpp", ["g++", "-x", "c++", "-std=c++11"]),
    ],
)
def test_compilers_read_the_headers(name: str, command: list[str], tmp_path: Path) -> None:
    need(command[0])
    make = c_header if name.endswith(".h") else cpp_header
    (tmp_path / name).write_text(make("kinds", DESCRIBED), encoding="utf-8")
    (tmp_path / "main").write_text(f'#include "{name}"\n#include "{name}"\n')
    flags = [*STRICT, "-Wno-unused-function", *INCLUDE, "-c", "main", "-o", "main.o"]
    run(*command, *flags, folder=tmp_path)


def test_python_reads_the_stub() -> None:
    compile(stub(DESCRIBED), "kinds.pyi", "exec")
