"""Exported texts of functions whose names, defaults and docstrings C and Python read otherwise."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import tvm_ffi

from ferrule import specs
from ferrule.runtime.exporting.headers import c_header, cpp_header, is_taken
from ferrule.runtime.exporting.stubs import stub

INCLUDE = ["-I", str(Path(tvm_ffi.__file__).parent / "include")]
WAYS = [
    ("c", ["gcc", "-x", "c", "-std=c99"]),
    ("c", ["gcc", "-x", "c", "-std=gnu17"]),
    ("c", ["g++", "-x", "c++", "-std=gnu++17"]),
    ("cpp", ["g++", "-x", "c++", "-std=c++11"]),
    ("cpp", ["g++", "-x", "c++", "-std=gnu++20"]),
]
NAMES = [
    *("NULL", "TVMFFIAny", "DLTensor", "kTVMFFIInt", "kDLCPU", "INT_MAX", "INT64_C", "UINT8_MAX"),
    *("size_t", "int32_t", "wchar_t", "memset", "memcpy", "strlen", "printf", "free", "index"),
    *("std", "errno", "main", "ferrule", "stdin", "EOF", "I", "linux", "unix", "returned"),
    *("int", "double", "new", "template", "this", "args", "status", "bool", "_Bool", "typeof"),
]
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


def compiles(kind: str, command: list[str], functions: list[specs.Signature], doc: str) -> str:
    """What the compiler says of a header of these functions; nothing where it is content."""
    make = c_header if kind == "c" else cpp_header
    text = make("taken", [(each, doc) for each in functions])
    flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only", *INCLUDE, "-"]
    done = subprocess.run(
        [*command, *flags], input=text, capture_output=True, text=True, check=False
    )
    return done.stderr


@pytest.mark.parametrize(("kind", "command"), WAYS)
def test_a_name_that_has_another_use_gets_a_suffix(kind: str, command: list[str]) -> None:
    params = tuple(specs.Scalar(name, specs.Int32) for name in NAMES)
    tensor = specs.Tensor("x", (specs.sym_int(),), specs.Float32, device="cpu")
    whole = specs.Signature("whole", (*params, tensor), result=specs.Scalar("r", specs.Int32))
    alone = [specs.Signature(name, (specs.Scalar("a", specs.Int32),)) for name in NAMES]
    assert compiles(kind, command, [whole, *alone], "") == ""


ALSO = "math.h complex.h stdio.h stdlib.h ctype.h time.h unistd.h fcntl.h".split()


@pytest.mark.parametrize(("kind", "command"), WAYS[1:3])
def test_functions_of_headers_that_a_program_includes_too(kind: str, command: list[str]) -> None:
    names = [
        *("exp", "expf", "expl", "sqrt", "pow", "log", "y1", "fmax", "cabs", "round", "fadd"),
        *("read", "write", "open", "select", "clock", "qsort", "fopen", "isalpha", "sleep"),
    ]
    alone = [specs.Signature(name, (specs.Scalar("a", specs.Float32),)) for name in names]
    make = c_header if kind == "c" else cpp_header
    includes = "".join(f"#include <{name}>\n" for name in ALSO)
    header = make("t", [(each, "") for each in alone])
    for text in (header + includes, includes + header):
        flags = ["-Wall", "-Werror", "-Wno-unused-function", "-fsyntax-only", *INCLUDE, "-"]
        done = subprocess.run([*command, *flags], input=text, capture_output=True, text=True)
        assert done.stderr == ""


@pytest.mark.parametrize(("kind", "command"), WAYS[:3])
def test_macros_of_the_headers_are_all_known(kind: str, command: list[str]) -> None:
    make = c_header if kind == "c" else cpp_header
    given = [*command, *INCLUDE, "-dM", "-E", "-"]
    found = subprocess.run(given, input=make("t", []), capture_output=True, text=True, check=True)
    plain = re.findall(r"^#define ([A-Za-z]\w*) ", found.stdout, re.MULTILINE)
    assert [name for name in plain if not is_taken(name)] == []


def test_names_that_are_nobodys_stay() -> None:
    for name in ("a", "index", "total", "strides", "memory", "string", "N", "M_TILE", "time"):
        assert not is_taken(name)


@pytest.mark.parametrize(("kind", "command"), WAYS)
def test_a_docstring_is_a_comment_whatever_it_holds(kind: str, command: list[str]) -> None:
    f = specs.Signature("f", (specs.Scalar("a", specs.Int32),))
    assert compiles(kind, command, [f], "*/ int x; /* ??/ \\\n \0 \u2028 é") == ""


def test_the_stub_is_python_whatever_it_holds() -> None:
    params = (
        specs.Scalar("a", specs.Float64, float("nan")),
        specs.Scalar("b", specs.Float64, float("inf")),
        specs.Scalar("c", specs.Float64, float("-inf")),
        specs.String("s", "a\0b"),
    )
    text = stub([(specs.Signature("f", params), 'a \0 "doc" \\ \'\'\' """')])
    namespace: dict[str, object] = {}
    exec(compile(text, "f.pyi", "exec"), namespace)
    made = namespace["f"]
    defaults = made.__defaults__  # type: ignore[attr-defined]
    assert defaults[0] != defaults[0]
    assert defaults[1:] == (float("inf"), float("-inf"), "a\0b")
    assert made.__doc__ is not None
    assert '\0 "doc" \\' in made.__doc__
