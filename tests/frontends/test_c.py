"""C: what becomes of it, and how it is refused."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_python import called_bare

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.conventions import CFunction, ReturnCode, Struct, cast
from ferrule.compiler.errors import CompileError
from ferrule.frontends import c
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.specs import Scalar, Signature, String, Tensor

pytestmark = pytest.mark.needs_cc

N = specs.sym_int(symbol="n")
SIGNATURE = Signature(
    "axpy",
    [Tensor("x", (N,), "float32"), Tensor("y", (N,), "float32"), Scalar("a", "float32")],
)
ARGUMENTS = [SIGNATURE["x"].data, SIGNATURE["y"].data, cast(N, "int64"), SIGNATURE["a"]]
AXPY = """\
#include <stdint.h>

void axpy(const float* x, float* y, int64_t n, float a) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i] BONUS;
}
"""


def axpy(**more: Any) -> fe.Function:
    given = {"arguments": ARGUMENTS, "defines": {"BONUS": ""}} | more
    return c.compile(AXPY, SIGNATURE, **given)


def called(function: Any) -> list[float]:
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    function(x, y, 2.0)
    return y.tolist()


def test_a_c_function_gets_checked_arguments() -> None:
    fn = axpy()
    assert called(fn) == [1, 3, 5, 7]
    assert called(axpy(defines={"BONUS": "+ 1"})) == [2, 4, 6, 8]
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\] on argument #1"):
        fn(np.zeros(3, np.float32), np.zeros(4, np.float32), 2.0)


def test_arguments_are_those_of_the_signature_unless_they_are_listed() -> None:
    signature = Signature("least", [Scalar("a", "int32"), Scalar("b", "int32")])
    source = "int least(int a, int b) { return a < b ? a : b; }"
    least = c.compile(source, signature, returns="int32", doc="The lesser one.")
    assert least(3, -4) == -4
    assert str(least.__doc__).endswith("The lesser one.")
    with pytest.raises(CompileError, match="how the parameter 'p' is passed is not known"):
        c.compile(source, Signature("least", [String("p")]))


def test_a_code_that_is_returned_can_be_an_error() -> None:
    source = "int f(int a) { return a - 3; }"
    failing = c.compile(
        source,
        Signature("f", [Scalar("a", "int32")]),
        returns=ReturnCode(errors={1: (ValueError, "wanted less than 4")}),
    )
    assert failing(3) is None
    with pytest.raises(ValueError, match="wanted less than 4"):
        failing(4)


def test_a_file_finds_its_own_headers(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#define FACTOR 3\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.h").write_text("#define PLUS 4\n")
    file = tmp_path / "f.c"
    file.write_text(
        '#include "own.h"\n#include <other.h>\nint f(int a) { return a * FACTOR + PLUS; }'
    )
    signature = Signature("f", [Scalar("a", "int32")])
    f = c.compile(file, signature, returns="int32", include_paths=[tmp_path / "more"])
    assert f(2) == 10
    with pytest.raises(CompileError, match=r"f\.c:2.*other\.h[\s\S]*hint: include_paths=\[…\] l"):
        c.compile(str(file), signature)


def test_one_source_serves_several_functions() -> None:
    code = c.module("int twice(int a) { return 2 * a; } int thrice(int a) { return 3 * a; }")
    signature = Signature("f", [Scalar("a", "int32")])
    for name, factor in (("twice", 2), ("thrice", 3)):
        called = CFunction(name, [signature["a"]], returns="int32", code=code)
        assert compiler.build(signature, called)(7) == 7 * factor
    with pytest.raises(CompileError, match="no function four; there are: thrice, twice"):
        compiler.build(signature, CFunction("four", code=code))


def test_a_library_that_is_named_has_what_the_code_calls() -> None:
    source = """
    unsigned long crc32(unsigned long, const void*, unsigned);
    unsigned sum(const void* data, unsigned n) { return crc32(0, data, n); }
    """
    signature = Signature("sum", [Tensor("x", (N,), "uint8")])
    try:
        fn = c.compile(
            source,
            signature,
            arguments=[signature["x"].data, cast(N, "uint32")],
            returns="uint32",
            libraries=["libz.so.1"],
        )
    except CompileError as error:
        pytest.skip(f"there is no zlib: {error}")
    data = np.arange(200, dtype=np.uint8)
    assert fn(data) == zlib.crc32(data.tobytes())


# ---- export ----


def test_what_is_exported_needs_neither_ferrule_nor_the_source(tmp_path: Path) -> None:
    axpy().export_to_c(tmp_path / "axpy.o")
    code = """
x, y = numpy.arange(4, dtype="float32"), numpy.ones(4, "float32")
module.axpy(x, y, 2.0)
print(y.tolist())
"""
    assert called_bare([tmp_path / "axpy.o"], "", code) == "[1.0, 3.0, 5.0, 7.0]\n"


# ---- what is refused ----


def test_an_error_has_the_lines_of_the_compiler() -> None:
    with pytest.raises(CompileError) as caught:
        c.compile(
            "int f(int a) {\n  return a + missing;\n}", Signature("f", [Scalar("a", "int32")])
        )
    head, *lines = str(caught.value).splitlines()
    assert head.startswith("f.c cannot be compiled by ")
    assert any(line.startswith("f.c:2:14: error: ") and "missing" in line for line in lines)
    assert any(line.endswith("  return a + missing;") for line in lines)
    assert any(line.strip(" |").startswith("^") for line in lines)


def test_long_lines_of_generated_code_are_cut_and_extensions_of_clang_named() -> None:
    long = "a = a * a; " * 100
    text = f"typedef float v __attribute__((ext_vector_type(4))); void f(v a) {{ {long}missing; }}"
    with pytest.raises(CompileError) as caught:
        c.module(text, cc="gcc")
    *lines, hint = str(caught.value).splitlines()
    assert max(map(len, lines)) < 310 and any(line.endswith(" …") for line in lines)
    assert hint.startswith("  hint: ext_vector_type is an extension of clang: cc='clang', or CC=c")


def test_code_that_only_a_loader_can_run_is_refused() -> None:
    said = r"own\.c: .* it has thread-local data.*\n  hint: only a loader .* cc -shared -fPIC makes"
    with pytest.raises(CompileError, match=said):
        c.module("static __thread int z; int f(int a) { return z += a; }", name="own.c")
    lazy = "static __thread int z; int f(int a) { return z += a; } int g(int a) { return a + 1; }"
    assert c.compile(lazy, Signature("g", [Scalar("a", "int32")]), returns="int32")(4) == 5
    with pytest.raises(CompileError, match=r"own\.c: .* needs nowhere, which is neither in the"):
        c.module("int nowhere(void); int f(int a) { return nowhere(); }", name="own.c")


def test_a_function_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        CompileError, match="axpy.c: .*the code has no function axpi; there are: axpy"
    ):
        axpy(function="axpi")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"flags": "-O3"}, r"flags must be a list of texts, such as \['-O3'\]"),
        ({"libraries": "libz.so.1"}, r"libraries must be a list, such as \['libz.so.1'\]"),
        ({"defines": ["BONUS"]}, "defines must be a dict, such as {'N': 4}"),
        ({"cc": ["gcc"]}, "cc must be the command of a compiler, such as 'gcc'"),
        ({"arguments": SIGNATURE["x"].data}, "the arguments of axpy must be in a list, but got x."),
    ],
)
def test_words_of_another_kind_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        axpy(**more)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            None,
            r"axpy takes .*: 4 in all, but the call gives it 3\n.*\n  note: the list: #0 x.data",
        ),
        ([*ARGUMENTS, 4], "axpy takes .*: 4 in all, but the call gives it 5"),
        (
            [*ARGUMENTS[:2], N, ARGUMENTS[3]],
            "argument #2 of axpy is n, an int32, but it takes long.*cast\\(…, 'int64'\\)",
        ),
        (
            [*ARGUMENTS[:3], cast(SIGNATURE["a"], "float64")],
            "argument #3 of axpy is .*, a float64, but it takes float",
        ),
        (
            [ARGUMENTS[0], *ARGUMENTS[2:0:-1], ARGUMENTS[3]],
            "argument #1 of axpy is int64.n., an int64, but it takes float",
        ),
    ],
)
def test_what_the_function_takes_is_compared_with_the_call(arguments: Any, said: str) -> None:
    with pytest.raises(CompileError, match=f"(?s){said}"):
        axpy(arguments=arguments)


RETURNED = """
struct s { double a, b, c; };
struct s three(int a) { struct s x = {a, 2, 3}; return x; }
float less(int a) { return a; }
void none(int a) {}
long many(int a) { return a; }
char* text(int a) { return "text"; }
_Complex float two(int a) { return a; }
_Bool yes(int a) { return a; }
long double wide(int a) { return a; }
"""


@pytest.mark.parametrize(
    ("name", "returns", "said"),
    [
        ("less", "float64", "less returns float, but .* float64\n  hint: write returns='float32'"),
        ("none", "int32", "none returns void, but .* int32\n  hint: write returns=None"),
        ("many", "status", "many returns long, but the call expects int32"),
        ("text", "int32", "text returns a pointer, but the call expects int32"),
        ("wide", None, "wide returns long double, but the call expects nothing"),
        ("three", None, r"three returns a struct, but .* nothing\n  hint: list the dtypes"),
        ("three", ["float64"] * 2, "a struct of another size, but .* a struct of 16 bytes"),
        ("less", ["float32"], "less returns float, but the call expects a struct of 4 bytes"),
    ],
)
def test_what_the_function_returns_is_compared(name: str, returns: Any, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        returned(name, returns)


@pytest.mark.parametrize(
    ("name", "returns", "value"),
    [
        ("three", ["float64"] * 3, (7, 2, 3)),
        ("two", ["float32"] * 2, (7, 0)),
        ("text", "string", "text"),
        ("yes", "bool", True),
        ("many", None, None),
    ],
)
def test_what_fits_comes_back(name: str, returns: Any, value: Any) -> None:
    assert returned(name, returns)(7) == value


def returned(name: str, returns: Any) -> fe.Function:
    return c.compile(RETURNED, Signature(name, [Scalar("a", "int32")]), returns=returns)


def test_structs_by_value_are_passed_to_a_source() -> None:
    signature = Signature("less", [Scalar("a", "int32"), Scalar("b", "float32")])
    source = "struct s { int a; float b; }; float less(struct s x) { return x.a - x.b; }"
    struct = Struct([signature["a"], signature["b"]])
    less = c.compile(source, signature, arguments=[struct], returns="float32")
    assert less(4, 1.5) == 2.5


def test_a_function_with_dots_says_where_these_begin() -> None:
    source = """
    double last(int n, ...) {
      __builtin_va_list rest;
      __builtin_va_start(rest, n);
      return __builtin_va_arg(rest, double);
    }
    """
    signature = Signature("last", [Scalar("n", "int32"), Scalar("x", "float64")])
    assert c.compile(source, signature, returns="float64", variadic_from=1)(1, 2.5) == 2.5


def test_macros_have_names_and_values() -> None:
    with pytest.raises(ValueError, match="defines: 'A B' is no name of a macro"):
        axpy(defines={"A B": 1})
    with pytest.raises(
        TypeError, match="the macro BONUS is None: write True for 1, '' for nothing"
    ):
        axpy(defines={"BONUS": None})


def test_a_signature_comes_second() -> None:
    with pytest.raises(TypeError, match="signature must be a specs.Signature.* but got str"):
        c.compile(SIGNATURE, AXPY)  # type: ignore[arg-type]


def test_a_compiler_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match="no C compiler 'no-such-cc', which cc names\n  hint: "):
        axpy(cc="no-such-cc")
    with pytest.raises(CompileError, match='cc is "gcc \'", which is no command: No closing'):
        axpy(cc="gcc '")
    monkeypatch.setenv("CC", "no-such-cc -O1")
    with pytest.raises(CompileError, match="which the environment variable CC names"):
        axpy()
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CompileError, match="there is no C compiler: install clang or gcc, or name"):
        axpy()


WHOLE_FILE = """\
#include <stdio.h>
#include <stdlib.h>

static int table[3] = {5, 6, 7};
static int calls;
static int twice(int i) { return 2 * table[i]; }
static int thrice(int i) { return 3 * table[i]; }
static int (*const ways[])(int) = {twice, thrice};
extern int nobody_has_this(int);

static void log_line(const char* line) {
  FILE* file = fopen("log.txt", "w");
  fputs(line, file);
  fclose(file);
}
int pick(int way, int i) { ++calls; return ways[way](i); }
int count(void) { return calls; }
int logged(int i) { log_line("unused only here"); return nobody_has_this(i); }
char huge[1 << 20] = {1};
char* all_of_it(void) { return huge; }
"""


def _choices() -> Signature:
    return Signature("pick", [Scalar("way", "int32"), Scalar("i", "int32")])


def test_of_a_file_only_what_the_function_needs_is_exported(tmp_path: Path) -> None:
    signature = _choices()
    fn = c.compile(WHOLE_FILE, signature, returns="int32")
    assert [fn(way, i) for way in (0, 1) for i in range(3)] == [10, 12, 14, 15, 18, 21]
    fn.export_to_c(tmp_path / "pick.o")
    data = (tmp_path / "pick.o").read_bytes()
    found = read_object(data)
    assert [name for name in found.defined if not name.startswith("__tvm_ffi_")] == []
    assert not {"fopen", "fputs", "fclose", "nobody_has_this"} & set(found.undefined)
    assert len(data) < 100_000 and b"unused only here" not in data
    with pytest.raises(CompileError, match="nobody_has_this"):
        c.compile(WHOLE_FILE, Signature("logged", [Scalar("i", "int32")]), returns="int32")


def test_functions_of_a_module_share_their_data() -> None:
    with pytest.raises(CompileError, match="nobody_has_this"):
        c.module(WHOLE_FILE)
    code = c.module(WHOLE_FILE, functions=["pick", "count"])
    signature = _choices()
    way, i = signature.params
    steps = [CFunction("pick", [way, i], returns="int32", code=code)] * 2
    both = conventions.Sequence([*steps, CFunction("count", returns="int32", code=code)])
    fn = compiler.build(signature, both)
    assert (fn(1, 2), fn(0, 0)) == ((21, 21, 2), (10, 10, 4))
    with pytest.raises(CompileError, match="has no function logged; there are: count, pick"):
        compiler.build(signature, CFunction("logged", [i], returns="int32", code=code))


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ("pick", r"functions must be a list, such as \['pick'\], but got 'pick'"),
        ([3], "functions: expected the name of a function, but got 3"),
        (["pock"], "has no function pock; there are: all_of_it, count, logged, pick"),
    ],
)
def test_functions_that_are_no_names_of_it_are_refused(functions: Any, said: str) -> None:
    with pytest.raises((CompileError, TypeError), match=said):
        c.module(WHOLE_FILE, functions=functions)
    codes = [b"\x7fELF", b"\x7fELF "]
    if functions == ["pock"]:
        with pytest.raises(ValueError, match=r"functions=\['pock'\] is for a single object"):
            conventions.HostCode.from_object(codes, functions=functions)
