"""C: the types of a function are those that a call gives it, for gcc and for clang."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    NULL,
    Callback,
    CString,
    Out,
    Reference,
    ReturnCode,
    Struct,
    cast,
)
from ferrule.compiler.conventions.arguments import Cast, PointerCast
from ferrule.compiler.errors import CompileError
from ferrule.frontends import c, layouts, prototypes
from ferrule.frontends.sources import Source
from ferrule.specs import Data, Pointer, Scalar, Signature, String, Tensor

pytestmark = pytest.mark.needs_cc

N = specs.sym_int64(symbol="n")
M = specs.sym_int32(symbol="m")
TYPES = """\
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
typedef float float4 __attribute__((vector_size(16)));
typedef struct { int a; } P;
struct point { double x, y; };
enum colour { RED, GREEN };
typedef uint8_t byte;
"""


@pytest.fixture(scope="module", autouse=True)
def compilers_are_asked_once() -> Iterator[None]:
    """What a compiler has answered it is not asked again: many tests have the same function."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((c, "_object"), (layouts, "_asked"), (prototypes, "_said")):
            patch.setattr(module, name, remembered(getattr(module, name)))
        yield


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which keeps its answers by what it was given."""
    kept: dict[str, Any] = {}

    def asked(*given: Any) -> Any:
        # What is shown of a source leaves its text out.
        texts = [each.text for each in given if isinstance(each, Source)]
        key = repr((given, texts, os.environ.get("CC")))
        if key not in kept:
            kept[key] = function(*given)
        return kept[key]

    return asked


@pytest.fixture(params=["gcc", "clang"])
def cc(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each compiler that is there."""
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param}")
    yield request.param


def compiled(takes: str, given: Any, cc: str | None = None, **more: Any) -> fe.Function:
    """A function with this parameter, or these, that gets these arguments."""
    arguments = given if isinstance(given, list) else [given]
    inner = [
        each.value if isinstance(each, PointerCast | Cast | CString | Reference) else each
        for each in arguments
    ]
    own = [each.tensor if isinstance(each, Data) else each for each in inner]
    params = [each for each in own if isinstance(each, Tensor | Scalar | Pointer | String)]
    signature = Signature("f", [*dict.fromkeys(params), Tensor("sizes", (M,), "int8")])
    passed = [each.data if isinstance(each, Tensor) else each for each in arguments]
    source = f"{TYPES}void f({takes}) {{}}"
    return c.compile(source, signature, arguments=passed, cc=cc, **more)


def tensor(dtype: str, *shape: Any, **more: Any) -> Tensor:
    return Tensor("x", shape or (N,), dtype, **more)


X = tensor("float32")

FITS: dict[str, list[Any]] = {
    "float* x": [X, NULL, Pointer("p"), Pointer("p", "float32")],
    "const float* restrict x": [X, tensor("float32", read_only=True)],
    "float x[]": [X],
    "float x[3][4]": [
        *(tensor("float32", 12), tensor("float32", specs.sym_int(divisibility=4))),
        tensor("float32", N, 4),
    ],
    "void* x": [X, tensor("int8"), cast(X.data, "void*")],
    "const void* x": [tensor("float64", read_only=True)],
    "double* x": [tensor("float64"), Reference(cast(1.0, "float64"), discards=True)],
    "char* x": [tensor("int8"), tensor("uint8"), cast(X.data, "char*")],
    "const char* x": [CString(String("s")), CString("text")],
    "unsigned char* x": [tensor("uint8"), cast(X.data, "unsigned char*")],
    "byte* x": [tensor("uint8"), cast(X.data, "uint8_t*"), cast(X.data, "byte *")],
    "size_t* x": [tensor("uint64")],
    "long* x": [tensor("int64")],
    "long long* x": [tensor("int64")],
    "int32_t* x": [tensor("int32")],
    "unsigned* x": [tensor("uint32")],
    "bool* x": [tensor("bool")],
    "float _Complex* x": [tensor("complex64")],
    "double _Complex* x": [tensor("complex128")],
    "float4* x": [cast(tensor("float32", align=16).data, "float4*")],
    "const float4* x": [
        cast(tensor("float32", align=16, read_only=True).data, "const float4*"),
        cast(tensor("float32", align=16).data.byte_offset(16 * N), "float4*"),
    ],
    "P* x": [cast(tensor("int32").data, "P*"), Reference(Struct([M]), discards=True)],
    "struct point* x": [cast(tensor("float64").data, "struct point*")],
    "float** x": [cast(tensor("uint64").data, "float**"), Pointer("p")],
    "intptr_t x": [X, NULL],
    "float x[2][3][4]": [tensor("float32", N, 3, 4), tensor("float32", 2, 3, 4)],
    "char* y": [cast(X.data.byte_offset(2), "char*")],
    "int (*x)(int)": [Pointer("p")],
    "int a": [Scalar("a", "int32"), M, cast(-1, "int32")],
    "unsigned a": [Scalar("a", "uint32"), cast(M, "uint32"), cast(1, "int32")],
    "size_t a": [cast(3, "int64"), 128, Scalar("a", "uint64"), cast(M, "uint64")],
    "int64_t a": [128, Scalar("a", "int64")],
    "short a": [Scalar("a", "int16")],
    "unsigned char a": [Scalar("a", "uint8"), Scalar("a", "bool")],
    "signed char a": [Scalar("a", "int8")],
    "bool a": [Scalar("a", "bool"), cast(1, "bool")],
    "float a": [Scalar("a", "float32")],
    "double a": [Scalar("a", "float64")],
    "uint16_t a": [Scalar("a", "float16"), Scalar("a", "bfloat16"), Scalar("a", "uint16")],
    "enum colour a": [Scalar("a", "int32"), Scalar("a", "uint32")],
    "P a": [Struct([cast(1, "int32")])],
    "struct point a": [Struct([cast(1.0, "float64"), cast(1.0, "float64")])],
    "float _Complex a": [Struct([cast(1.0, "float32"), cast(1.0, "float32")])],
}

MISFITS: list[tuple[str, Any, str]] = [
    ("const double* x", X, r"x.data, the address of float32, but it takes const double \*"),
    ("double* x", X, r"dtype float64, or choose .* float32; .*cast\(x.data, 'double \*'\)"),
    ("unsigned* x", tensor("int32"), "the address of int32, but it takes unsigned"),
    ("float* x", tensor("int32"), "the address of int32, but it takes float"),
    ("unsigned char* x", tensor("int8"), "the address of int8"),
    ("signed char* x", tensor("uint8"), "the address of uint8"),
    ("uint8_t* x", tensor("bool"), "the address of bool"),
    ("bool* x", tensor("uint8"), "the address of uint8"),
    ("const char* x", X, "the address of float32, but it takes const char"),
    ("float* x", tensor("float32", read_only=True), "read-only float32.*it may write there"),
    ("void* x", tensor("float32", read_only=True), "it may write there"),
    ("float4* x", cast(tensor("float32", align=16, read_only=True).data, "float4*"), "may write"),
    ("float** x", X, r"cast\(x.data, 'float \*\*'\)"),
    ("P* x", tensor("int32"), r"cast\(x.data, 'P \*'\)"),
    ("float4* x", X, "the address of float32, but it takes"),
    ("float4* x", cast(X.data, "float4*"), "a multiple of 4 bytes: say .*align="),
    ("float4* x", cast(tensor("float32", align=16).data.byte_offset(4 * N), "float4*"), "of 4"),
    ("struct point* x", cast(X.data, "struct point*"), "a multiple of 4 bytes: say"),
    ("float* x", cast(X.data, "double*"), "the pointer that it takes is 'float"),
    ("float* x", cast(X.data, "flaot*"), r"but flaot\* is no type of the source"),
    ("float x[3][4]", tensor("float32", N, 5), "the address of float32"),
    ("float x[3][4]", tensor("float32", N, M), r"its rows are \[4\]: the spec's last sizes"),
    ("float x[3][4]", tensor("float32", N, 4, strides=(M, 1)), "its strides those of rows"),
    ("float x[][4]", tensor("float32", N, 4, strides=(1, N)), "its strides those of rows"),
    ("float x[3][4]", X, "or its one size a multiple of all of them"),
    ("float x[2][3][4]", tensor("float32", 20), "or its one size a multiple of all of them"),
    ("float x[3][4]", tensor("float32", 12, strides=(2,)), "its strides those of rows"),
    ("float* x", X.data.byte_offset(2), "the offset may be inside of a float32"),
    ("long x", X, "is an intptr_t or a uintptr_t"),
    ("int64_t x", NULL, "is an intptr_t or a uintptr_t"),
    ("int (*x)(int)", X, "the address of float32"),
    ("float* x", Pointer("p", "float64"), "p, an address of float64, but it takes float"),
    ("float* x", Reference(cast(1.0, "float64")), "the address of float64.1.0., a float64"),
    ("float* x", 8, "an address is the .data of a tensor"),
    ("float x", X, "what it takes is no address"),
    ("unsigned a", Scalar("a", "int32"), r"a, an int32, but it takes .*cast\(…, 'uint32'\)"),
    ("int a", Scalar("a", "uint32"), "a, a uint32, but it takes int"),
    ("unsigned char a", Scalar("a", "int8"), "a, an int8, but it takes unsigned char"),
    ("bool a", Scalar("a", "int32"), "a, an int32, but it takes _?[Bb]ool"),
    ("int a", Scalar("a", "bool"), "a, a bool, but it takes int"),
    ("size_t a", Scalar("a", "int64"), "a, an int64, but it takes unsigned long|long unsigned"),
    ("size_t a", M, "m, an int32, but it takes"),
    ("size_t a", -1, "-1, an int64, but it takes"),
    ("short a", Scalar("a", "int32"), "but it takes short"),
    ("float a", Scalar("a", "float64"), "a, a float64, but it takes float"),
    ("float a", Scalar("a", "int32"), "a, an int32, but it takes float"),
    ("int a", Scalar("a", "float32"), "give the parameter the dtype int32"),
    ("_Float16 a", Scalar("a", "float16"), "_Float16, which cannot be passed by value"),
    ("long double a", Scalar("a", "float64"), "a, a float64, but it takes long double"),
    ("__int128 a", Scalar("a", "int64"), "a, an int64, but it takes __int128"),
    ("enum colour a", Scalar("a", "int64"), "a, an int64, but it takes enum colour"),
    ("P a", Scalar("a", "int32"), "a, an int32, but it takes P"),
    ("P a", Struct([cast(1, "int64")]), "a Struct, 8 bytes by value, but it takes P"),
    ("struct point a", Struct([cast(1.0, "float64")]), "a Struct, 8 bytes by value"),
    ("P* a", Struct([cast(1, "int32")]), r"conventions.Reference\(…\)"),
    ("int a", Struct([cast(1, "int32")]), "a Struct, 4 bytes by value, but it takes int"),
    ("char* x", CString("a"), "it may write there: .* as const, or give it a tensor of int8"),
    ("int* x", Reference(M, reads_only=True), "may write there: .* or say discards=True instead"),
    ("P* x", Reference(Struct([M]), reads_only=True), "may write there: .*say discards=True"),
]

LAID_OUT = """\
#include <stdint.h>
typedef float v4 __attribute__((vector_size(16)));
struct mixed { float a; int b; };
struct one { double a; };
struct inner { struct mixed m; short c[2]; float* p; };
union either { float f; int i; };
struct wrapped { union either u; };
struct vectors { v4 a; };
struct bits { int a : 3; };
struct wide { long double a; };
struct __attribute__((packed)) tight { char c; int a; char z[3]; };
struct apart { long a[2]; } __attribute__((aligned(16)));
typedef long double _Complex wider;
struct unsign { unsigned a; int b; };
struct flags { _Bool a; unsigned char b; };
enum names { one_name };
struct named { enum names a; };
typedef const float floats;
struct points { float* a; floats* b; const void* c; };
struct far { float** a; };
struct outer { struct points p; };
"""
F, J = cast(1.0, "float32"), cast(1, "int32")
D, L = cast(1.0, "float64"), cast(1, "int64")
U, N_NATURAL, S = cast(1, "uint32"), cast(M, "int32"), Scalar("s", "int32")
READ, WIDE = Tensor("r", (N,), "float32", read_only=True), Tensor("w", (N,), "float64")
LAID: list[tuple[str, Any, str | None]] = [
    ("struct mixed a", Struct([F, J]), None),
    (
        "struct mixed a",
        Struct([J, F]),
        r"members are \[float32 at 0, int32 at 4\], and not \[int32",
    ),
    ("struct one a", Struct([D]), None),
    ("struct one a", Struct([L]), r"members are \[float64 at 0\], and not \[int64"),
    ("struct one a", Struct([F, F]), r"members are \[float64 at 0\], and not \[float32 at 0, f"),
    ("double _Complex a", Struct([D, D]), None),
    ("double _Complex a", Struct([L, L]), "its members are"),
    ("struct inner a", Struct([F, J, cast(1, "int16"), cast(2, "int16"), X.data]), None),
    ("struct inner a", Struct([F, J, J, X.data]), "its members are"),
    ("v4 a", Struct([F, F, F, F]), "a vector is no Struct"),
    ("struct vectors a", Struct([F, F, F, F]), "a vector is no Struct"),
    ("union either a", Struct([F]), "a union is no Struct"),
    ("struct wrapped a", Struct([F]), "a union is no Struct"),
    ("struct bits a", Struct([J]), "a bit-field is no member"),
    ("struct wide a", Struct([D, D]), r"\[float128 at 0\]"),
    ("wider a", Struct([D, D, D, D]), r"\[float128 at 0, float128 at 16\]"),
    ("struct tight a", Struct([cast(1, "int8"), J]), "int8 at 0, int32 at 1"),
    ("struct apart a", Struct([L, L]), "aligned to 16"),
    ("struct mixed* a", Reference(Struct([F, J]), discards=True), None),
    ("const struct mixed* a", Reference(Struct([F, J])), None),
    ("const struct mixed* a", Reference(Struct([F, J, F, J]), reads_only=True), None),
    ("struct mixed* a", Reference(Struct([F])), "what it takes is of 8 bytes"),
    ("struct mixed* a", Reference(Struct([J, F])), "its members are"),
    ("float* a", Reference(Struct([F, F]), discards=True), None),
    ("float* a", Reference(Struct([F, J])), "its members are"),
    ("void* a", Reference(Struct([F, J]), discards=True), None),
    ("struct unsign a", Struct([U, J]), None),
    ("struct unsign a", Struct([N_NATURAL, J]), None),
    ("struct unsign a", Struct([S, J]), "byte 0 is unsigned int, but it gets s, an int32;"),
    ("struct unsign a", Struct([U, U]), r"byte 4 is int, but .* a uint32; .*cast\(…, 'int32'"),
    ("struct unsign* a", Reference(Struct([S, J])), "byte 0 is unsigned int"),
    ("struct unsign* a", Reference(Struct([U, J, U, U])), "byte 12 is int"),
    ("struct flags a", Struct([cast(1, "bool"), cast(1, "uint8")]), None),
    ("struct flags a", Struct([cast(1, "int8"), cast(1, "uint8")]), "byte 0 is bool"),
    ("struct named a", Struct([U]), None),
    ("struct named a", Struct([J]), None),
    ("struct points a", Struct([X.data, X.data, X.data]), None),
    ("struct points a", Struct([X.data, READ.data, READ.data]), None),
    ("struct points a", Struct([READ.data, X.data, X.data]), "byte 0 .*it may write there"),
    ("struct points* a", Reference(Struct([READ.data, X.data, X.data])), "it may write there"),
    ("struct points a", Struct([X.data, WIDE.data, X.data]), "give the tensor the dtype float32"),
    ("struct points a", Struct([cast(WIDE.data, "float*"), WIDE.data, X.data]), "byte 8 is"),
    ("struct points a", Struct([cast(WIDE.data, "float*"), X.data, WIDE.data]), None),
    ("struct points a", Struct([Pointer("p"), X.data, X.data]), None),
    ("struct far a", Struct([X.data]), "byte 0 is void\\*\\*"),
    ("struct far a", Struct([cast(X.data, "float**")]), None),
    ("struct outer a", Struct([Struct([READ.data, X.data, X.data])]), "it may write there"),
    ("unsigned char* a", Reference(Struct([F, J]), discards=True), None),
    ("struct unknown* a", Reference(Struct([F, J]), discards=True), None),
]


@pytest.mark.parametrize(("takes", "given", "said"), LAID)
@pytest.mark.filterwarnings("ignore::ferrule.compiler.BuildWarning")
def test_a_struct_has_the_members_that_are_taken(
    takes: str, given: Any, said: str | None, cc: str
) -> None:
    signature = Signature("f", [X, Tensor("sizes", (M,), "int8"), READ, WIDE, Pointer("p"), S])
    source = f"{LAID_OUT}void f({takes}) {{}}"
    if said is None:
        assert c.compile(source, signature, arguments=[given], cc=cc)
        return
    with pytest.raises(CompileError, match=f"(?s)argument #0 of f is a .*{said}"):
        c.compile(source, signature, arguments=[given], cc=cc)


@pytest.mark.parametrize(
    ("result", "returns", "said"),
    [
        ("struct mixed", ["float32", "int32"], None),
        ("struct mixed", ["int32", "float32"], "float32 at 0, int32 at 4"),
        ("struct one", ["int64"], "float64 at 0"),
        ("double _Complex", ["float64", "float64"], None),
        ("long double _Complex", ["float64"] * 4, "float128"),
        ("v4", ["float32"] * 4, "v"),
        ("union either", ["float32"], "a union is no Struct"),
        ("struct wide", ["float64", "float64"], "float128"),
    ],
)
def test_a_struct_that_is_returned_has_the_members_that_are_expected(
    result: str, returns: Any, said: str | None, cc: str
) -> None:
    source = (
        f"{LAID_OUT}{result} f(void) {{ {result} x; __builtin_memset(&x, 0, sizeof x); return x; }}"
    )
    if said is None:
        made = c.compile(source, Signature("f", []), returns=returns, cc=cc)
        assert list(made()) == [0] * len(returns)
        return
    with pytest.raises(CompileError, match=f"(?s)f returns .*{said}"):
        c.compile(source, Signature("f", []), returns=returns, cc=cc)


@pytest.mark.parametrize("takes", FITS)
def test_what_fits_is_compiled(takes: str, cc: str) -> None:
    for given in FITS[takes]:
        assert compiled(takes, given, cc), given


@pytest.mark.parametrize(("takes", "given", "said"), MISFITS)
def test_what_does_not_fit_is_refused(takes: str, given: Any, said: str, cc: str) -> None:
    with pytest.raises(CompileError, match=f"(?s){said}"):
        compiled(takes, given, cc)


def test_a_size_is_as_good_for_an_unsigned_number(cc: str) -> None:
    x = tensor("float32")
    assert compiled("float* x, size_t n", [x, N], cc)
    assert compiled("float* x, size_t n", [x, x.nbytes], cc)
    assert compiled("float* x, unsigned m", [tensor("float32", M), M], cc)
    with pytest.raises(CompileError, match="argument #1 of f is n - 1, an int64, but it takes"):
        compiled("float* x, size_t n", [x, N - 1], cc)
    strided = Tensor("x", (4,), "float32", strides=(specs.sym_int64(symbol="s"),))
    with pytest.raises(CompileError, match="argument #1 of f is s, an int64, but it takes"):
        compiled("float* x, size_t s", [strided, strided.strides[0]], cc)


def test_rows_lie_as_far_apart_as_the_call_says(cc: str) -> None:
    takes = "long n, float x[][n]"
    square = tensor("float32", N, 4)
    assert compiled(takes, [4, square], cc)
    assert compiled(takes, [cast(M, "int64"), tensor("float32", N, M)], cc)
    pitched = tensor("float32", N, 4, strides=(M, 1))
    assert compiled(takes, [cast(M, "int64"), pitched], cc)
    assert compiled(takes, [Scalar("n", "int64"), pitched], cc)
    with pytest.raises(CompileError, match="its rows lie m elements apart, which is none of the"):
        compiled(takes, [4, pitched], cc)
    with pytest.raises(CompileError, match="its rows lie 4 elements apart"):
        compiled(takes, [3, square], cc)


def test_flags_that_hide_or_raise_warnings_change_nothing(cc: str) -> None:
    for flags in (["-Werror", "-Wall"], ["-w"], ["-fdiagnostics-color=always"], ["-std=c99"]):
        assert compiled("float* x", X, cc, flags=flags)
        with pytest.raises(CompileError, match="the address of float32, but it takes double"):
            compiled("double* x", X, cc, flags=flags)


def test_all_parameters_are_compared_where_one_is_a_struct(cc: str) -> None:
    struct = Struct([cast(1, "int32")])
    assert compiled("P a, float* x", [struct, X], cc)
    with pytest.raises(CompileError, match="argument #1 of f is x.data, the address of float32"):
        compiled("P a, double* x", [struct, X], cc)
    with pytest.raises(CompileError, match="f takes P, float .*: 2 in all, .* gives it 1"):
        compiled("P a, float* x", [struct], cc)


def test_a_function_without_a_prototype_says_nothing_of_its_parameters(cc: str) -> None:
    source, signature = "int f() { return 3; }", Signature("f", [Scalar("a", "int32")])
    assert c.compile(source, signature, returns="int32", cc=cc, flags=["-std=c11"])(1) == 3
    with pytest.raises(CompileError, match="f returns int, but the call expects float64"):
        c.compile(source, signature, returns="float64", cc=cc, flags=["-std=c11"])


@pytest.mark.parametrize("own", ["float", "short", "signed char", "_Bool"])
def test_a_function_without_a_prototype_takes_promoted_numbers(own: str, cc: str) -> None:
    dtype = {"float": "float32", "short": "int16", "_Bool": "bool"}.get(own, "int8")
    wide = "float64" if own == "float" else "int32"
    source = f"double f(a, b) {own} a; int b; {{ return a * b; }}"
    more: Any = {"returns": "float64", "cc": cc, "flags": ["-std=gnu89"]}
    a, b = Scalar("a", dtype), Scalar("b", "int32")
    with pytest.raises(CompileError, match=f"an? {dtype}, .* takes it as {wide}"):
        c.compile(source, Signature("f", [a, b]), **more)
    made = c.compile(source, Signature("f", [a, b]), arguments=[cast(a, wide), b], **more)
    assert made(1, 2) == 2.0


def test_dots_are_said_and_are_there(cc: str) -> None:
    with pytest.raises(CompileError, match="f takes any number of arguments"):
        compiled("int a, ...", Scalar("a", "int32"), cc)
    assert compiled("int a, ...", [Scalar("a", "int32"), 1], cc, variadic_from=1)
    with pytest.raises(CompileError, match=r"f has no `\.\.\.`"):
        compiled("int a", [Scalar("a", "int32")], cc, variadic_from=1)


def test_a_function_that_a_macro_hides_is_compared(cc: str) -> None:
    signature = Signature("f", [Scalar("a", "int64")])
    source = "#define f(a, b) a\nint (f)(long a) { return a; }"
    assert c.compile(source, signature, returns="int32", cc=cc)(4) == 4


def test_the_dots_begin_where_the_function_says(cc: str) -> None:
    for start in (0, 2):
        with pytest.raises(CompileError, match=f"1 parameters before.*variadic_from={start}"):
            compiled("int a, ...", [Scalar("a", "int32"), 1], cc, variadic_from=start)


def test_a_function_of_windows_is_refused(cc: str) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("ms_abi is one of x86-64")
    signature = Signature("f", [Scalar("a", "int32")])
    for abi in ("ms_abi", "sysv_abi"):
        source = f"__attribute__(({abi})) int f(int a) {{ return a; }}"
        if abi == "sysv_abi":
            assert c.compile(source, signature, returns="int32", cc=cc)(7) == 7
            continue
        with pytest.raises(CompileError, match="f is declared ms_abi"):
            c.compile(source, signature, returns="int32", cc=cc)


def test_one_address_is_not_restrict_twice(cc: str) -> None:
    x = tensor("float32")
    takes = "const float* restrict a, {}float* restrict b"
    with pytest.raises(CompileError, match="#0 and argument #1 of f are the same address"):
        compiled(takes.format(""), [x, x], cc)
    assert compiled(takes.format("const "), [x, x], cc)
    assert compiled(takes.format(""), [x, x], cc, apart=[])
    assert compiled(takes.format(""), [x, x.data.byte_offset(8)], cc)


RETURNING = f"{TYPES}RESULT f(int a) {{ RESULT x; __builtin_memset(&x, 0, sizeof x); return x; }}"


@pytest.mark.parametrize(
    ("result", "returns", "said"),
    [
        (
            "unsigned",
            "int32",
            "f returns unsigned int, but .* int32\n  hint: .*='uint32'",
        ),
        ("int", "uint32", "f returns int, but the call expects uint32"),
        ("uint8_t", "int8", "f returns unsigned char"),
        ("size_t", "int64", "f returns unsigned long"),
        ("P", "int32", "f returns a struct, but the call expects int32"),
        ("P", None, "f returns a struct, but the call expects nothing"),
        ("P", ["int64"], "f returns a struct of another size"),
        ("enum colour", "float32", "f returns unsigned int, but the call expects float32"),
        ("_Float16", "float16", "f returns _Float16, but"),
        ("int*", "string", "f returns an address of int, but the call expects a string"),
        ("unsigned", ReturnCode(fails="negative"), "f returns unsigned int, which is never neg"),
    ],
)
def test_what_is_returned_is_compared(result: str, returns: Any, said: str, cc: str) -> None:
    source = (
        f"{TYPES}{result} f(int a) {{ {result} x; __builtin_memset(&x, 0, sizeof x); return x; }}"
    )
    signature = Signature("f", [Scalar("a", "int32")])
    with pytest.raises(CompileError, match=said):
        c.compile(source, signature, returns=returns, cc=cc)


@pytest.mark.parametrize(
    ("result", "returns"),
    [("unsigned", "uint32"), ("char", "int8"), ("P", ["int32"]), ("enum colour", "int32"),
     ("unsigned", "status"), ("uint16_t", "float16"), ("float*", "pointer"), ("char*", "string"),
     ("int", ReturnCode(fails="negative"))],
)  # fmt: skip
def test_what_is_returned_fits(result: str, returns: Any, cc: str) -> None:
    source = (
        f"{TYPES}{result} f(int a) {{ {result} x; __builtin_memset(&x, 0, sizeof x); return x; }}"
    )
    signature = Signature("f", [Scalar("a", "int32")])
    assert c.compile(source, signature, returns=returns, cc=cc)


def test_a_cast_address_is_handed_over_as_it_is(cc: str) -> None:
    source = f"{TYPES}void f(P* x, long n) {{ for (long i = 0; i < n; ++i) x[i].a *= 3; }}"
    x = tensor("int32")
    f = c.compile(source, Signature("f", [x]), arguments=[cast(x.data, "P*"), N], cc=cc)
    given = np.arange(4, dtype=np.int32)
    f(given)
    assert given.tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("pointer", ["float4", "", "float*; int", "4*", "float* x"])
def test_a_pointer_of_a_cast_is_one(pointer: str) -> None:
    with pytest.raises(ValueError, match="an address becomes a pointer in C's words"):
        cast(X.data, pointer)
    with pytest.raises(TypeError, match="an address becomes a pointer, such as 'float4"):
        cast(X.data, np.float32)  # type: ignore[call-overload]


def test_a_header_is_a_source(tmp_path: Path, cc: str) -> None:
    file = tmp_path / "twice.h"
    file.write_text("static int factor = 2;\nint twice(int a) { return factor * a; }\n")
    signature = Signature("twice", [Scalar("a", "int32")])
    assert c.compile(file, signature, returns="int32", cc=cc)(4) == 8


def test_c_plus_plus_is_compared_too(tmp_path: Path, cc: str) -> None:
    file = tmp_path / "f.cpp"
    file.write_text('extern "C" void f(const float* x, bool b) {}\n')
    signature = Signature("f", [X, Scalar("b", "bool")])
    assert c.compile(file, signature, cc=cc)
    with pytest.raises(CompileError, match="argument #0 of f is x.data, the address of float64"):
        c.compile(file, Signature("f", [tensor("float64"), Scalar("b", "bool")]), cc=cc)


HEADERS = {"std::complex": "complex", "std::unique_ptr": "memory", "Pair": "tuple"}
"""Headers of classes; each takes a second of every compilation."""
CLASSES = """
struct Plain { double x; Plain() = default; Plain(double v) : x(v) {} };
struct Left { double x; ~Left() {} };
struct Copied { double x; Copied(const Copied& other) : x(other.x) {} };
struct Moved { double x; Moved(double v) : x(v) {} Moved(Moved&& other) : x(other.x) {} };
struct Virtual { virtual double get() { return 0; } };
struct Within { Left left; };
struct Derived : Left {};
enum class Shade : short { DARK };
"""
ITS_PAIR = "using Pair = std::tuple<float, float>;\n"


def cpp(folder: Path, code: str, signature: Signature, **more: Any) -> fe.Function:
    """A function of C++ behind these classes."""
    file = folder / "f.cpp"
    headers = "".join(f"#include <{HEADERS[name]}>\n" for name in HEADERS if name in code)
    more_classes = ITS_PAIR if "Pair" in code else ""
    file.write_text(f'{headers}{CLASSES}{more_classes}extern "C" {code}')
    return c.compile(file, signature, **more)


@pytest.mark.parametrize(
    "name",
    ["Left", "Copied", "Moved", "Virtual", "Within", "Derived", "Pair", "std::unique_ptr<int>"],
)
def test_a_class_that_is_handed_over_by_its_address_is_no_struct(name: str, tmp_path: Path) -> None:
    d = Scalar("d", "float64")
    with pytest.raises(CompileError, match="(?s)argument #0 of f .* of its own .* take its"):
        cpp(tmp_path, f"void f({name} v) {{}}", Signature("f", [d]), arguments=[Struct([d])])
    code = f"{name} f(double d) {{ __builtin_trap(); }}"
    with pytest.raises(CompileError, match=r"(?s)f returns .* of its own .* write its members"):
        cpp(tmp_path, code, Signature("f", [d]), returns=["float64"])


def test_a_class_that_is_copied_as_its_bytes_is_a_struct(tmp_path: Path) -> None:
    d, more = Scalar("d", "float64"), {"returns": "float64"}
    code = "double f(Plain v, std::complex<double> w) { return v.x + w.imag(); }"
    arguments = [Struct([d]), Struct([d, d])]
    assert cpp(tmp_path, code, Signature("f", [d]), arguments=arguments, **more)(2.5) == 5.0
    code = "Plain f(double d) { return d; }"
    assert cpp(tmp_path, code, Signature("f", [d]), returns=["float64"])(2.5) == 2.5


def test_what_a_function_of_references_returns_is_compared(tmp_path: Path) -> None:
    signature, code = Signature("f", [X]), "Plain f(const float& x) { return x; }"
    with pytest.raises(CompileError, match="f returns a struct, but the call expects float64"):
        cpp(tmp_path, code, signature, returns="float64")


def test_a_reference_takes_no_address_that_may_be_null(tmp_path: Path) -> None:
    p, code = Pointer("p", "float32"), "float f(const float& x) { return x; }"
    for given in (p, NULL, cast(p, "float*")):
        with pytest.raises(CompileError, match="(?s)argument #0 of f is .* never null"):
            cpp(tmp_path, code, Signature("f", [p]), arguments=[given], returns="float32")
    sure = Pointer("p", "float32", nullable=False)
    assert cpp(tmp_path, code, Signature("f", [sure]), arguments=[sure], returns="float32")
    pointer = "float f(const float* x) { return x ? *x : 1; }"
    f = cpp(tmp_path, pointer, Signature("f", [p]), arguments=[p], returns="float32")
    assert f(None) == 1


def test_an_enum_of_c_plus_plus_that_is_returned_is_its_integer(tmp_path: Path) -> None:
    code = "Shade f(double d) { return Shade(short(d)); }"
    signature = Signature("f", [Scalar("d", "float64")])
    assert cpp(tmp_path, code, signature, returns="int16")(-3.0) == -3
    with pytest.raises(CompileError, match="f returns short, but the call expects int64"):
        cpp(tmp_path, code, signature, returns="int64")


# ---- memory that is not shared ----

SHIFT = """
void f(const float* restrict x, float* restrict y, const float* z, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] + z[i];
}
"""


def shifting(cc: str, source: str = SHIFT, **more: Any) -> fe.Function:
    x, y, z = (Tensor(name, (N,), "float32") for name in "xyz")
    signature = Signature("f", [x, y, z])
    return c.compile(source, signature, arguments=[x.data, y.data, z.data, N], cc=cc, **more)


def test_what_is_restrict_shares_no_memory_with_what_is_written(cc: str) -> None:
    f, room, other = shifting(cc), np.zeros(9, np.float32), np.ones(8, np.float32)
    for x, y, z in ((room[1:], room[:-1], other), (other, room[1:], room[:-1])):
        with pytest.raises(
            ValueError, match="y.* overlap in memory, .*: the code declares an addr"
        ):
            f(x, y, z)
    f(other, room[1:], other)
    assert room.tolist() == [0] + [2] * 8
    f(other[:0], other[:0], other[:0])
    assert f.notes["assumes"] == ["x shares no memory with y", "y shares no memory with z"]


@pytest.mark.parametrize(
    "takes",
    [
        "const float* __restrict__ x, float* __restrict y",
        "const float* x, rp<float> y",
        "const float& __restrict__ x, float* y",
    ],
)
def test_restrict_is_read_of_c_plus_plus(takes: str, tmp_path: Path) -> None:
    x, y = Tensor("x", (N,), "float32"), Tensor("y", (N,), "float32")
    file, room = tmp_path / "f.cpp", np.zeros(5, np.float32)
    before = "template <class T> using rp = T* __restrict__; struct Other { void f(float*); };"
    body = f"{before}\nvoid Other::f(float*) {{}}\n"
    file.write_text(f'{body}extern "C" void f({takes}) {{}}')
    for flags in (["-O2"], ["-O0", "-g"]):
        f = c.compile(file, Signature("f", [x, y]), flags=flags)
        with pytest.raises(ValueError, match="x and y overlap|y.* overlap in memory"):
            f(room[1:], room[:-1])
        f(room[:2], room[2:4])
    plain = (
        takes.replace("__restrict__", "").replace("__restrict", "").replace("rp<float>", "float*")
    )
    file.write_text(f'{body}extern "C" void f({plain}) {{}}')
    c.compile(file, Signature("f", [x, y]))(room[1:], room[:-1])


PAIR = """
typedef float* restrict out;
struct inner { long n; out y; };
struct pair { const float* x; struct inner rest; };
struct two { float* y[2]; };
struct one { float* restrict y[1]; };
void f(%s) {}
"""


@pytest.mark.parametrize(
    ("takes", "arguments"),
    [
        ("struct pair p", lambda x, y: [Struct([x, Struct([N, y])])]),
        ("const struct pair* p", lambda x, y: [Reference(Struct([x, Struct([N, y])]), True)]),
        ("struct inner i, const float* x", lambda x, y: [Struct([N, y]), x]),
        ("const float* restrict x, struct two s", lambda x, y: [x, Struct([y, y])]),
        ("const float* x, struct one s", lambda x, y: [x, Struct([y])]),
    ],
)
def test_members_that_are_restrict_share_no_memory(cc: str, takes: str, arguments: Any) -> None:
    x, y = Tensor("x", (N,), "float32"), Tensor("y", (N,), "float32")
    room, given = np.zeros(5, np.float32), arguments(x.data, y.data)
    f = c.compile(PAIR % takes, Signature("f", [x, y]), arguments=given, cc=cc)
    with pytest.raises(ValueError, match="[xy] and [xy] overlap in memory"):
        f(room[1:], room[:-1])
    f(room[:2], room[2:4])
    plain = (PAIR % takes).replace("restrict", "")
    c.compile(plain, Signature("f", [x, y]), arguments=given, cc=cc)(room[1:], room[:-1])
    asked = c.compile(PAIR % takes, Signature("f", [x, y]), arguments=given, apart=[], cc=cc)
    asked(room[1:], room[:-1])


def test_members_that_are_read_alone_may_share(cc: str) -> None:
    x, y = Tensor("x", (N,), "float32"), Tensor("y", (N,), "float32")
    code = "struct s { const float* restrict x; const float* restrict y; }; void f(struct s s) {}"
    room = np.zeros(5, np.float32)
    f = c.compile(code, Signature("f", [x, y]), arguments=[Struct([x.data, y.data])], cc=cc)
    f(room[1:], room[:-1])


def test_one_address_is_not_given_to_members_that_are_restrict(cc: str) -> None:
    x = Tensor("x", (N,), "float32")
    code = "struct s { float* restrict x; float* y; }; void f(struct s s) {}"
    said = "the member at byte 0 of argument #0 and the member at byte 8 .* are the same address"
    with pytest.raises(CompileError, match=said):
        c.compile(code, Signature("f", [x]), arguments=[Struct([x.data, x.data])], cc=cc)


def test_restrict_is_read_behind_what_becomes_several_parameters(cc: str) -> None:
    """A string becomes two parameters, so that those behind it stand one further."""
    x, y = Tensor("x", (N,), "float32"), Tensor("y", (N,), "float32")
    code = "void f(const char* s, long n, const float* x, float* restrict y) {}"
    name, room = specs.String("name"), np.zeros(5, np.float32)
    f = c.compile(code, Signature("f", [name, x, y]), arguments=[name, x.data, y.data], cc=cc)
    with pytest.raises(ValueError, match="overlap in memory"):
        f("a", room[1:], room[:-1])
    optional = specs.Optional("y", y)
    code = "void f(const float* x, _Bool has_y, float* restrict y) {}"
    g = c.compile(code, Signature("f", [x, optional]), arguments=[x.data, optional], cc=cc)
    g(room, None)
    with pytest.raises(ValueError, match="overlap in memory"):
        g(room[1:], room[:-1])


K = cast(1, "int32")
ALIGNED = """
typedef float wide __attribute__((aligned(32)));
typedef float row[4] __attribute__((aligned(32)));
typedef float eight __attribute__((vector_size(32)));
struct of_wide { wide* x; int n; };
struct of_eight { int n; const eight* x[1]; };
struct own { const float* x; } __attribute__((aligned(32)));
"""


@pytest.mark.parametrize(
    ("takes", "arguments"),
    [
        ("row* x", lambda x: [x.data]),
        ("struct of_wide s", lambda x: [Struct([x.data, K])]),
        ("const struct of_wide* s", lambda x: [Reference(Struct([x.data, K]))]),
        ("struct of_eight s", lambda x: [Struct([K, cast(x.data, "const eight*")])]),
    ],
)
def test_what_arrays_and_members_are_aligned_to_is_compared(
    cc: str, takes: str, arguments: Any
) -> None:
    code = f"{ALIGNED} void f({takes}) {{}}"
    for align in (4, 16, 32):
        x = Tensor("x", (N, 4), "float32", align=align)
        given = arguments(x)
        compiled = partial(c.compile, code, Signature("f", [x]), arguments=given, cc=cc)
        if align == 32:
            compiled()
            continue
        with pytest.raises(CompileError, match=f"multiple of {align} bytes: say align=32"):
            compiled()


def test_numbers_and_structs_by_address_are_aligned_as_they_are_taken(cc: str) -> None:
    k = Scalar("k", "int32")
    code = "typedef int wide __attribute__((aligned(32))); void f(wide* x) {}"
    with pytest.raises(CompileError, match="multiple of 4 bytes"):
        c.compile(code, Signature("f", [k]), arguments=[Reference(k)], cc=cc)
    x = Tensor("x", (N,), "float32")
    fields = [x.data, NULL, NULL, NULL]
    code = f"{ALIGNED} void f(struct own* s) {{}}"
    with pytest.raises(CompileError, match=r"aligned to 32: Struct\(\[…\], align=32\)"):
        c.compile(code, Signature("f", [x]), arguments=[Reference(Struct(fields))], cc=cc)
    own = Reference(Struct([x.data], align=32), discards=True)
    c.compile(code, Signature("f", [x]), arguments=[own], cc=cc)(np.ones(3, np.float32))


def test_a_typedef_may_ask_for_less(cc: str) -> None:
    code = "typedef double low __attribute__((aligned(1))); void f(low* x) {}"
    x = Tensor("x", (N,), "float64", align=8)
    c.compile(code, Signature("f", [x]), cc=cc)


def test_addresses_behind_an_address_are_restrict(cc: str) -> None:
    x, y = Tensor("x", (N,), "float32"), Tensor("y", (N,), "float32")
    given, room = [Reference(Struct([x.data, y.data]), discards=True)], np.zeros(5, np.float32)
    code = "void f(float* restrict* p) {}"
    f = c.compile(code, Signature("f", [x, y]), arguments=given, cc=cc)
    with pytest.raises(ValueError, match="overlap in memory"):
        f(room[1:], room[:-1])


@pytest.mark.parametrize(
    ("around", "function"),
    [
        ('namespace N {{ extern "C" {} }}', "f"),
        ('extern "C" {{ namespace N {{ namespace M {{ {} }} }} }}', "f"),
        ('namespace {{ extern "C" {{ {} }} }}', "f"),
        ('inline namespace V1 {{ extern "C" {} }}', "f"),
        ("{}", "_Z1fPdPf"),
        ("namespace N {{ {} }}", "_ZN1N1fEPdPf"),
        ("struct S {{ static {} }}; auto used = &S::f;", "_ZN1S1fEPdPf"),
    ],
)
def test_functions_in_namespaces_and_with_mangled_names_are_compared(
    around: str, function: str, tmp_path: Path
) -> None:
    x, y = Tensor("x", (N,), "float64"), Tensor("y", (N,), "float32")
    file, room = tmp_path / "f.cpp", np.zeros(8, np.float64)
    file.write_text(around.format("void f(double* x, float* __restrict__ y) {}"))
    compiled = partial(c.compile, file, function=function, flags=["-O1"])
    with pytest.raises(ValueError, match="overlap in memory"):
        compiled(Signature("f", [x, y]))(room, room.view(np.float32)[:8])
    with pytest.raises(CompileError, match=r"#0 of .*f is x.data, the address of float32, but"):
        compiled(Signature("f", [Tensor("x", (N,), "float32"), y]))
    with pytest.raises(CompileError, match="2 in all, but the call gives it 1"):
        compiled(Signature("f", [x]))


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    x, file = Tensor("x", (N,), "float32"), tmp_path / "f.cpp"
    file.write_text("namespace N { void f(double*) {} void f(float*) {} }")
    with pytest.warns(compiler.BuildWarning, match="what _ZN1N1fEPd takes cannot be compared"):
        c.compile(file, Signature("f", [x]), function="_ZN1N1fEPd")


@pytest.mark.parametrize(
    "takes",
    [
        "wide* x",
        "wide& x",
        "row* x",
        "lanes* x, cast",
        "four& x, cast",
    ],
)
def test_alignments_of_c_plus_plus_are_compared(takes: str, tmp_path: Path) -> None:
    file = tmp_path / "f.cpp"
    takes, _, is_cast = takes.partition(", ")
    file.write_text(
        f"""
    using wide [[gnu::aligned(32)]] = float;
    typedef float row[8] __attribute__((aligned(32)));
    typedef float lanes __attribute__((vector_size(32)));
    struct alignas(32) four {{ float x[8]; }};
    extern "C" void f({takes}) {{}}
    """
    )
    for align in (16, 32):
        x = Tensor("x", (N, 8), "float32", align=align)
        given = cast(x.data, f"{takes.split()[0].rstrip('*&')}*") if is_cast else x.data
        compiled = partial(c.compile, file, Signature("f", [x]), arguments=[given])
        if align == 32:
            compiled()
            continue
        with pytest.raises(CompileError, match="multiple of 16 bytes"):
            compiled()


@pytest.mark.parametrize("takes", ["const wide* x", "wide_pointer x", "const struct block* x"])
def test_what_a_typedef_aligns_is_compared(cc: str, takes: str) -> None:
    code = f"""
    typedef float wide __attribute__((aligned(32)));
    typedef wide* wide_pointer;
    struct block {{ float x[4]; }} __attribute__((aligned(32)));
    void f({takes}) {{}}
    """
    of_struct = "struct" in takes
    for align in (4, 16, 32):
        x = Tensor("x", (N,), "float32", align=align)
        given = x.data if not of_struct else cast(x.data, "const struct block*")
        compiled = partial(c.compile, code, Signature("f", [x]), arguments=[given], cc=cc)
        if align == 32:
            compiled()
            continue
        with pytest.raises(CompileError, match=f"multiple of {align} bytes: say (align=32|more)"):
            compiled()


def test_what_is_read_alone_may_be_shared(cc: str) -> None:
    f, x, y = shifting(cc), np.ones(4, np.float32), np.zeros(4, np.float32)
    f(x, y, x)
    assert y.tolist() == [2] * 4


def test_a_source_without_restrict_takes_what_overlaps(cc: str) -> None:
    plain, room = SHIFT.replace("restrict", ""), np.zeros(5, np.float32)
    shifting(cc, plain)(room[1:], room[:-1], room[1:])
    x, y, _ = shifting(cc, plain).signature.params
    with pytest.raises(TypeError, match="apart"):
        shifting(cc, plain, apart="xy")
    own = Tensor("x", (N,), "float32"), Tensor("y", (N,), "float32")
    f = c.compile(
        "void f(float* x, float* y, long n) {}",
        Signature("f", [*own]),
        arguments=[own[0].data, own[1].data, N],
        apart=own,
        cc=cc,
    )
    with pytest.raises(ValueError, match="x and y overlap in memory"):
        f(room[1:], room[:-1])


def test_an_empty_list_asks_for_no_check(cc: str) -> None:
    room = np.zeros(5, np.float32)
    shifting(cc, apart=[])(room[1:], room[:-1], room[1:])


def test_a_result_is_apart_by_itself(cc: str) -> None:
    x, y = Tensor("x", (N,), "float32"), Tensor("y", (N,), "float32")
    source = "void f(const float* restrict x, float* restrict y, long n) { y[0] = x[0] + 1; }"
    f = c.compile(source, Signature("f", [x]), arguments=[x.data, y.data, N], results=[y], cc=cc)
    assert np.from_dlpack(f(np.ones(1, np.float32))).tolist() == [2]


# ---- what nobody gets ----


def test_an_int_that_nobody_gets_is_a_remark(cc: str) -> None:
    with pytest.warns(compiler.BuildWarning, match="f: f returns an int that nobody gets"):
        f = c.compile("int f(int a) { return -1; }", Signature("f", [Scalar("a", "int32")]), cc=cc)
    assert f(1) is None
    assert f.notes["remarks"][0].endswith("returns='int32' gives it back")


def test_a_result_is_named_or_a_spec_outside_of_the_signature() -> None:
    y = Tensor("y", (N,), "float32")
    source = "void f(const float* x, float* y, int n) { for (; n--;) y[n] = x[n] + 1; }"
    whole = Signature("f", [X, y, Scalar("n", "int32")], keyword_only=2)
    f = c.compile(source, whole, results=["y"])
    assert str(f.signature).startswith("f(x: Tensor([n], float32), *, n: int32) -> ")
    assert np.from_dlpack(f(np.ones(2, np.float32), n=2)).tolist() == [2, 2]
    with pytest.raises(CompileError, match="results names .z."):
        c.compile(source, whole, results=["z"])
    with pytest.raises(TypeError, match="a result is a Tensor, but got 3"):
        c.compile(source, whole, results=[3])  # type: ignore[list-item]


def test_debugging_information_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "named.cc"
    source.write_text(
        "namespace N { struct P { int k; double d; };\n"
        "double f(P p, const P* q, double* __restrict__ y) { return p.d + q->d + *y; } }\n"
    )
    read: list[Any] = []
    entries = layouts._entries

    def counted(sections: Any) -> Any:
        read.append(sections)
        return entries(sections)

    monkeypatch.setattr(layouts, "_entries", counted)
    k, d = Scalar("k", "int32"), Scalar("d", "float64")
    y = Tensor("y", (2,), "float64")
    point = Struct([k, d])
    fn = c.compile(
        source, Signature("f", [k, d, y]), function="_ZN1N1fENS_1PEPKS0_Pd", returns="float64",
        arguments=[point, Reference(point, reads_only=True), y.data], cc="g++",
    )  # fmt: skip
    assert fn(1, 2.0, np.array([3.0, 4.0])) == 7.0
    assert len(read) == 1
    with pytest.raises(CompileError, match="its members are"):
        c.compile(
            source, Signature("f", [k, d, y]), function="_ZN1N1fENS_1PEPKS0_Pd", returns="float64",
            arguments=[Struct([d, k]), Reference(point, reads_only=True), y.data], cc="g++",
        )  # fmt: skip


def test_rows_of_a_length_that_a_call_says_are_no_tensor_with_one_size(cc: str) -> None:
    source = "void f(long n, long m, double a[n][m]) { a[n - 1][m - 1] = 1; }"
    flat, square = Tensor("a", (N,), "float64"), Tensor("a", (N, fe.sym_int(symbol="k")), "float64")
    m = Scalar("m", "int64")

    def built(array: Tensor, given: Any) -> fe.Function:
        return c.compile(source, Signature("f", [m, array]), arguments=[N, m, given], cc=cc)

    with pytest.raises(CompileError, match=r"(?s)a.data.*with as many sizes; .*'double\*'"):
        built(flat, flat.data)
    assert built(flat, cast(flat.data, "double*"))
    assert built(square, square.data)


def test_places_and_callbacks_are_compared_with_the_types() -> None:
    """`Out` by what it points to, `Callback` as any address of a function."""
    f, i = specs.Function("f"), Out("int32", "i")
    each = Callback(f, ["pointer"], returns="int32")
    signature = Signature("f", [f])
    takes = "int *i, void **p, char **text, size_t *n, int (*f)(void*)"
    source = f"{TYPES}int f({takes}) {{ return *i; }}"
    outs = [i, Out("pointer", "p"), Out(CString, "text", result=False), Out("uint64", "n")]
    made = c.compile(source, signature, arguments=[*outs, each], returns="status")
    assert made.signature.text().startswith("f(f: Function) -> Tuple[int32, Pointer(), uint64]")
    returned = c.compile("int g(void) { return 3; }", Signature("g", []), returns=Out("int32"))
    assert returned() == 3
    for position, wrong, match in (
        (0, Out("float32", "i"), "the Out 'i', the address of float32, but it takes int"),
        (0, Out("pointer", "i"), "the Out 'i', the address of an address, but it takes int"),
        (1, Out("int32", "i"), "the address of int32, but it takes void"),
    ):
        arguments = [*outs, each]
        arguments[position] = wrong
        with pytest.raises(CompileError, match=match):
            c.compile(source, signature, arguments=arguments, returns="status")


@pytest.mark.parametrize(
    ("values", "fits", "others"),
    [
        ("A", ("int32", "uint32"), ("int64", "int8")),
        ("A = -2, B", ("int32",), ("uint32", "int16")),
        ("A, B = 0x80000001", ("uint32",), ("int32",)),
        ("A = -1, B = 0x80000001", ("int64",), ("uint32", "uint64")),
    ],
)
def test_an_enum_is_an_integer_that_has_its_values(
    values: str, fits: tuple[str, ...], others: tuple[str, ...]
) -> None:
    source = f"enum e {{ {values} }}; enum e f(void) {{ return A; }}"
    for dtype in fits:
        first = int(values.split(",")[0].partition("= ")[2] or "0")
        assert fe.frontends.c.compile(source, Signature("f", []), returns=dtype)() == first
    for dtype in others:
        with pytest.raises(CompileError, match=r"values from -?\d+ to|, but the call expects"):
            fe.frontends.c.compile(source, Signature("f", []), returns=dtype)
