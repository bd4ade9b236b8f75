"""Programs in other languages: the examples are built and run, and the headers compile."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from exported import DOUBLED, applied, run_python
from tvm_ffi import libinfo

from ferrule.runtime import Function, find_runtime_libraries, load_module
from ferrule.runtime.exporting.headers import c_header, cpp_header
from ferrule.runtime.exporting.stubs import stub
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
EACH = Path(__file__).with_name("conventions.c")
CALLED = """\
c_function: 2 4 6
memref: 2 4 6
last: 3
dltensors: 6
safe_call: 12
sequence: 4 8 12, 2
first_of: 2 4 6
sized: 3
llvm_ir: 3 4 5
c_function: scale returned -1
memref: -1 -2 -3
last: 3
dltensors: 6
safe_call: k is below 0
sequence: k is below 0
first_of: 2 4 6
sized: above gave found = 4, expected from 0 to 3, the capacity of out
llvm_ir: 0 1 2
"""


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


def test_c_programs_are_clean_under_valgrind(folder: Path, conventions: list[Function]) -> None:
    """Two in one: it takes long to start.  Without valgrind it shows what they print alone."""
    need("gcc")
    for function in conventions:
        function.export_to_c(folder / f"{function.__name__}.o")
    objects = [f"{function.__name__}.o" for function in conventions]
    run("gcc", *INCLUDE, "-c", "-Dmain=scaled", "static.c", "-o", "scaled.o", folder=folder)
    program = [str(EACH), "-DBEHIND=scaled", "scaled.o", "scale.o", *objects]
    run("gcc", *STRICT, *INCLUDE, *program, *LINKED, "-o", "checked", folder=folder)
    checked = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full"]
    checker = checked if shutil.which("valgrind") else []
    assert run(*checker, "./checked", folder=folder) == CALLED + SCALED + WRONG_SIZE


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


AS_JULIA_CALLS = """
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

static TVMFFIAny text(const char* of) {
  TVMFFIByteArray bytes = {of, strlen(of)};
  TVMFFIAny made;
  memset(&made, 0, sizeof made);
  TVMFFIStringFromByteArray(&bytes, &made);
  return made;
}

static TVMFFIAny call(TVMFFIObjectHandle function, TVMFFIAny* args, int count) {
  TVMFFIAny result;
  memset(&result, 0, sizeof result);
  if (TVMFFIFunctionCall(function, args, count, &result) != 0) puts("failed");
  return result;
}

int main(void) {
  TVMFFIByteArray load = {"ffi.ModuleLoadFromFile", 22}, get = {"ffi.ModuleGetFunction", 21};
  TVMFFIObjectHandle loader = NULL, getter = NULL;
  if (TVMFFIFunctionGetGlobal(&load, &loader) != 0 || loader == NULL) return 1;
  if (TVMFFIFunctionGetGlobal(&get, &getter) != 0 || getter == NULL) return 2;

  TVMFFIAny args[3];
  memset(args, 0, sizeof args);
  args[0] = text("./scale.so");
  args[0] = call(loader, args, 1);
  args[1] = text("double_matrix");
  args[2].type_index = kTVMFFIBool; /* look into imports too */
  args[2].v_int64 = 1;
  TVMFFIAny function = call(getter, args, 3);
  if (function.type_index != kTVMFFIFunction) return 3;

  /* [1 2 3; 4 5 6] in columns */
  float a[6] = {1, 4, 2, 5, 3, 6}, b[6] = {0};
  int64_t shape[2] = {2, 3}, strides[2] = {1, 2};
  DLTensor x = {a, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0}, y = x;
  y.data = b;
  memset(args, 0, sizeof args);
  args[0].type_index = args[1].type_index = kTVMFFIDLTensorPtr;
  args[0].v_ptr = &x;
  args[1].v_ptr = &y;
  call(function.v_obj, args, 2);
  printf("%g %g %g %g %g %g\\n", b[0], b[1], b[2], b[3], b[4], b[5]);
  return 0;
}
"""


def test_a_program_that_calls_as_julia_does(folder: Path) -> None:
    """The C API as TVMFFI.jl uses it, with matrices in columns."""
    need("gcc")
    (folder / "julia.c").write_text(AS_JULIA_CALLS)
    run("gcc", *STRICT, *INCLUDE, "julia.c", *LINKED, "-o", "as_julia", folder=folder)
    assert run("./as_julia", folder=folder) == "2 8 4 10 6 12\n"


def test_julia_calls_the_functions(folder: Path) -> None:
    need("julia")
    known = subprocess.run(["julia", "-e", "using TVMFFI"], capture_output=True, check=False)
    if known.returncode != 0:
        pytest.skip("TVMFFI.jl is not installed")
    said = run("julia", "scale.jl", folder=folder).splitlines()
    assert said[:2] == ["Float32[0.0, 2.5, 5.0, 7.5]", "Float32[2.0 4.0 6.0; 8.0 10.0 12.0]"]
    assert "expected to match a.shape[0] = 4, but got 3" in said[2]


def test_jax_calls_the_function(folder: Path) -> None:
    if not all(importlib.util.find_spec(name) for name in ("jax", "jax_tvm_ffi")):
        pytest.skip("jax and jax-tvm-ffi are not installed")
    program = "import runpy; runpy.run_path('with_jax.py', run_name='__main__')"
    said = run_python(program, folder=folder)
    assert said.startswith("[ 2.5  5.   7.5 10. ]\nMismatched Tensor on argument #0 when calling: ")
    assert said.endswith("expected dtype=float32, but got dtype=int32\n")


IN_A_SYSTEM_LIBRARY = """
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

static TVMFFIAny call(const char* name, TVMFFIAny* args, int count) {
  TVMFFIByteArray key = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  TVMFFIAny result;
  memset(&result, 0, sizeof result);
  if (TVMFFIFunctionGetGlobal(&key, &function) != 0) return result;
  if (TVMFFIFunctionCall(function, args, count, &result) != 0) puts("failed");
  return result;
}

int main(void) {
  float a[4] = {0, 1, 2, 3}, b[4] = {0};
  int64_t shape[1] = {4}, strides[1] = {1};
  DLTensor x = {a, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0}, y = x;
  TVMFFIAny args[3], result;
  y.data = b;
  memset(args, 0, sizeof args);
  memset(&result, 0, sizeof result);
  args[0].type_index = kTVMFFIRawStr;
  args[0].v_c_str = "mine_";
  args[0] = call("ffi.SystemLib", args, 1);
  args[1].type_index = kTVMFFIRawStr;
  args[1].v_c_str = "scale_host";
  args[2].type_index = kTVMFFIBool;
  TVMFFIAny documented = call("ffi.ModuleGetFunctionMetadata", args, 3);
  TVMFFIAny function = call("ffi.ModuleGetFunction", args, 3);
  args[0].type_index = args[1].type_index = kTVMFFIDLTensorPtr;
  args[0].v_ptr = &x;
  args[1].v_ptr = &y;
  args[2].type_index = kTVMFFIFloat;
  args[2].v_float64 = 2.5;
  if (function.type_index != kTVMFFIFunction) return 2;
  if (TVMFFIFunctionCall(function.v_obj, args, 3, &result) != 0) return 1;
  printf("%d %g %g %g %g\\n", documented.type_index >= kTVMFFIStr, b[0], b[1], b[2], b[3]);
  return 0;
}
"""


def test_a_program_finds_what_is_linked_in_as_a_system_library(
    scale: Function, tmp_path: Path
) -> None:
    need("gcc")
    scale.export_to_c(tmp_path / "k.o", system_lib="mine_")
    (tmp_path / "main.c").write_text(IN_A_SYSTEM_LIBRARY)
    run("gcc", *INCLUDE, "main.c", "k.o", *LINKED, "-o", "main", folder=tmp_path)
    assert run("./main", folder=tmp_path) == f"1 {SCALED}"


def test_an_object_of_a_system_library_is_loaded_too(scale: Function, tmp_path: Path) -> None:
    scale.export_to_c(tmp_path / "k.o", system_lib="")
    assert applied(load_module(tmp_path / "k.o").scale_host) == DOUBLED
    with pytest.raises(ValueError, match="system_lib must be letters, digits and _, but got 'a b'"):
        scale.export_to_c(tmp_path / "k.o", system_lib="a b")


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
