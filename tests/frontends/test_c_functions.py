"""Functions as arguments and results of C: callbacks are what C calls, and bytes are bytes."""

from __future__ import annotations

from typing import Any

import pytest

import ferrule as fe
from ferrule.compiler.conventions import (
    NULL,
    Callback,
    CBytes,
    FunctionPointer,
    Out,
    Reference,
    Struct,
)
from ferrule.compiler.conventions.c.texts import CString
from ferrule.compiler.errors import CompileError
from ferrule.specs import Bytes, Function, Scalar, Signature

F = Function("f")
B = Bytes("b")


def compiled(source: str, arguments: list[Any], returns: Any = None, params: Any = (F,)) -> Any:
    signature = Signature("g", list(params))
    return fe.frontends.c.compile(source, signature, arguments=arguments, returns=returns)


def back(params: list[Any], returns: Any = "int32", **more: Any) -> Callback:
    return Callback(F, params, returns=returns, **more)


def test_a_callback_that_is_what_c_calls() -> None:
    source = "int g(int (*f)(long)) { return f(1L << 40); }"
    assert compiled(source, [back(["int64"])], "int32")(lambda i: i >> 40) == 1
    source = "int g(int (*f)(void*, unsigned), void* u) { return f(u, 4000000000u) == 7; }"
    both = back(["uint32"], context=0)
    assert compiled(source, [both, both.user_data], "int32")(lambda i: 7 * (i == 4000000000)) == 1
    source = 'void g(void (*f)(const char*, const int*)) { f("hi", 0); }'
    seen: list[Any] = []
    compiled(source, [back([CString, "pointer"], None)])(lambda text, at: seen.append(text))
    assert seen == ["hi"]
    source = "enum e { A = 2 }; int g(enum e (*f)(enum e)) { return f(A); }"
    assert compiled(source, [back(["uint32"], "uint32")], "int32")(lambda e: e + 1) == 3


@pytest.mark.parametrize(
    ("c_type", "callback", "said"),
    [
        ("int (*f)(long)", back(["int32"]), "C calls it with long int as argument #0"),
        ("int (*f)(int)", back(["uint32"]), "C calls it with int as argument #0"),
        ("int (*f)(double)", back(["int64"]), "C calls it with double as argument #0"),
        ("int (*f)(int*)", back(["int64"]), r"C calls it with int \* as argument #0"),
        ("int (*f)(int)", back(["pointer"]), "C calls it with int as argument #0"),
        ("int (*f)(int*)", back([CString]), r"C calls it with int \* as argument #0"),
        ("int (*f)(struct s)", back(["int32"]), "C calls it with struct s as argument #0"),
        ("int (*f)(int, int)", back(["int32"]), "C calls it with 2 arguments"),
        ("int (*f)(int)", back([], context=0), "C calls it with int as argument #0"),
        ("double (*f)(int)", back(["int32"]), "C wants double back"),
        ("int (*f)(int)", back(["int32"], None), "C wants int back"),
        ("long* f", back(["int32"]), "it takes no function"),
        ("const char* f", back(["int32"]), "it takes no function"),
    ],
)
def test_a_callback_that_is_another_function(c_type: str, callback: Any, said: str) -> None:
    source = f"struct s {{ int x; }}; int g({c_type}, void* u) {{ return 0; }}"
    context = NULL if callback.context is None else callback.user_data
    with pytest.raises(CompileError, match=said):
        compiled(source, [callback, context], "int32")


def test_a_context_goes_where_c_hands_it_through() -> None:
    source = "int g(int (*f)(void*, int), void* u) { return f(u, 1); }"
    callback = back(["int32"], context=0)
    with pytest.raises(CompileError, match="user_data of the callback f, but it takes int"):
        compiled(source, [callback.user_data, callback], "int32")
    with pytest.raises(CompileError, match="no C function gets its user_data"):
        compiled(source, [callback, NULL], "int32")


def test_functions_in_structs() -> None:
    source = """
    struct s { double (*f)(double, void*); void* u; };
    double g(const struct s* p) { return p->f(3, p->u); }
    """
    callback = Callback(F, ["float64"], returns="float64", context=1)
    struct = Reference(Struct([callback, callback.user_data]), reads_only=True)
    assert compiled(source, [struct], "float64")(lambda x: 2 * x) == 6
    code = fe.frontends.c.module("double twice(double x, void* u) { return 2 * x; }", name="t.c")
    struct = Reference(Struct([FunctionPointer("twice", code=code), NULL]), reads_only=True)
    assert compiled(source, [struct], "float64", ())() == 6


PICK = "int one(int x) { return x; } int (*g(double d))(int) { return d > 1 ? one : 0; }"
SET = "void (*g(int s, void (*h)(int)))(int) { return h; }"
ROWS = "double (*g(int n))[2] { static double rows[3][2]; return rows; }"


def test_a_function_that_returns_a_function_or_rows() -> None:
    """C writes its parameters inside of its result."""
    number, wide = Scalar("n", "int32"), Scalar("d", "float64")
    assert compiled(PICK, [wide], "pointer", [wide])(2.0).value
    assert not compiled(PICK, [wide], "pointer", [wide])(0.0).value
    with pytest.raises(CompileError, match="n, an int32, but it takes double"):
        compiled(PICK, [number], "pointer", [number])
    with pytest.raises(CompileError, match="2 in all, but the call gives it 1"):
        compiled(SET, [number], "pointer", [number])
    assert compiled(ROWS, [number], "pointer", [number])(1).value


def test_bytes_are_no_other_array() -> None:
    for c_type in ("char", "signed char", "unsigned char", "void"):
        source = f"int g(const {c_type}* x) {{ return *(const char*)x; }}"
        assert compiled(source, [CBytes(B)], "int32", [B])(b"a") == 97
    for c_type in ("double", "int", "char*"):
        with pytest.raises(CompileError, match="bytes are no array of"):
            compiled(f"int g({c_type} const* x) {{ return 0; }}", [CBytes(B)], "int32", [B])


def test_a_text_that_c_sets_is_a_text() -> None:
    source = 'void g(const char** x) { *x = "hi"; }'
    assert compiled(source, [Out(CString)], None, ())() == "hi"
    with pytest.raises(CompileError, match=r"it takes int \*\*"):
        compiled("void g(int** x) { *x = 0; }", [Out(CString)], None, ())
