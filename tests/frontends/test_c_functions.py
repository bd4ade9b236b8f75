"""Functions as arguments and results of C: callbacks are what C calls, and bytes are bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.conventions import (
    NULL,
    Callback,
    CBytes,
    FunctionPointer,
    HostCode,
    Out,
    Reference,
    Struct,
    cast,
)
from ferrule.compiler.conventions.c.texts import CString
from ferrule.compiler.errors import CompileError
from ferrule.specs import Bytes, Function, Scalar, Signature, Tensor, sym_int

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
    twice = FunctionPointer("twice", ["float64", "pointer"], returns="float64", code=code)
    struct = Reference(Struct([twice, NULL]), reads_only=True)
    assert compiled(source, [struct], "float64", ())() == 6


CALLED = """
struct s { double (*f)(double, void*); };
double g(const struct s* p) { return p->f(3, 0); }
"""


def in_struct(function: Any) -> list[Any]:
    return [Reference(Struct([function]), reads_only=True)]


def test_functions_in_structs_are_what_c_calls() -> None:
    """The types of members are known from debugging information alone."""
    for params in (["float64"], ["int64"], [], ["float32"]):
        callback = Callback(F, params, returns="float64", context=len(params))
        listed = [Reference(Struct([callback]), reads_only=True), callback.user_data]
        source = CALLED.replace("* p)", "* p, void* u)").replace("3, 0", "3, u")
        if params == ["float64"]:
            assert compiled(source, listed, "float64")(lambda x: x + 1) == 4
            continue
        with pytest.raises(CompileError, match="(?s)address of a function, .* C calls it with"):
            compiled(source, listed, "float64")
    callback = Callback(F, ["float64"], returns="int64", context=1)
    with pytest.raises(CompileError, match="C wants float64 back"):
        compiled(CALLED, in_struct(callback), "float64")


IR = "define double @twice(double %x, ptr %u) {\n %y = fadd double %x, %x\n ret double %y\n}"


def test_a_function_of_c_is_what_c_calls() -> None:
    code = fe.frontends.c.module("double twice(double x, void* u) { return 2 * x; }", name="t.c")
    twice = FunctionPointer("twice", code=code)
    assert compiled(f"double twice(double, int*); {CALLED}", in_struct(twice), "float64", ())() == 6
    with pytest.raises(CompileError, match=r"nobody knows what it takes: FunctionPointer\(…, par"):
        compiled(CALLED, in_struct(twice), "float64", ())
    for declared in ("double twice(float, void*);", "int twice(double, void*);"):
        with pytest.raises(CompileError, match="C calls it with float64 as|C wants float64 back"):
            compiled(f"{declared} {CALLED}", in_struct(twice), "float64", ())
    said = FunctionPointer("twice", ["int64", "pointer"], returns="float64", code=code)
    with pytest.raises(CompileError, match="C calls it with float64 as argument #0"):
        compiled(CALLED, in_struct(said), "float64", ())
    direct = "#include <stdlib.h>\nint g(int (*f)(int)) { return f(-3); }"
    assert compiled(direct, [FunctionPointer("abs")], "int32", ())() == 3
    with pytest.raises(CompileError, match="(?s)the function labs, .* C calls it with int32"):
        compiled(direct, [FunctionPointer("labs")], "int32", ())


def test_a_function_of_llvm_ir_is_what_c_calls() -> None:
    ir = HostCode.from_llvm(IR)
    assert compiled(CALLED, in_struct(FunctionPointer("twice", code=ir)), "float64", ())() == 6
    other = HostCode.from_llvm(IR.replace("%u", "%u, i32 %n"))
    with pytest.raises(CompileError, match="C calls it with 2 arguments"):
        compiled(CALLED, in_struct(FunctionPointer("twice", code=other)), "float64", ())
    with pytest.raises(CompileError, match="C calls it with 1 arguments"):
        direct = "int g(int (*f)(int)) { return f(-3); }"
        compiled(direct, [FunctionPointer("twice", code=ir)], "int32", ())
    said = FunctionPointer("twice", ["int64", "pointer"], returns="float64", code=ir)
    with pytest.raises(CompileError, match="the function twice of the code does not take"):
        compiled(CALLED.replace("(double, v", "(long, v"), in_struct(said), "float64", ())
    with pytest.raises(ValueError, match="it returns something: say params"):
        FunctionPointer("twice", returns="float64", code=ir)


@pytest.mark.parametrize(
    ("source", "own", "said"),
    [
        ("int g(int (*f)(enum e)) { return f(A); }", (["int64"], "int32"), "an enum of 32 bits"),
        ("int g(int (*f)(enum e)) { return f(A); }", (["int8"], "int32"), "values from -2 to 300"),
        ("int g(int (*f)(enum e)) { return f(A); }", (["uint32"], "int32"), "an enum of 32 bits"),
        ("int g(enum e (*f)(int)) { return f(1); }", (["int32"], "int8"), "C wants an enum of 32"),
        ("int g(int (*f)(t)) { t v = {0}; return f(v); }", (["int32"], "int32"), "a struct of 8 b"),
        ("int g(t (*f)(int)) { return f(1).x; }", (["int32"], "int32"), "C wants a struct of 8"),
    ],
)
def test_what_a_name_is_is_asked(source: str, own: Any, said: str) -> None:
    """Neither the values of an enum nor a typedef of a struct are in the names of types."""
    types = "enum e { A = -2, B = 300 }; typedef struct { int x, y; } t;"
    with pytest.raises(CompileError, match=said):
        compiled(f"{types} {source}", [back(*own)], "int32")


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


INTS = Tensor("i", (sym_int(symbol="n"),), "int32")
ENUM = "enum e { A = -1, B };"
PAIR = "typedef struct { int a, b; } pair;"


def struct(*fields: Any) -> list[Any]:
    return [Reference(Struct(list(fields)), reads_only=True)]


def written(*fields: Any) -> list[Any]:
    return [Reference(Struct(list(fields)))]


@pytest.mark.parametrize(
    ("source", "given", "returns", "wanted"),
    [
        (f"{ENUM} void g(enum e *x) {{ *x = A; }}", [Out("int32")], None, -1),
        ("void g(unsigned char *x) { *x = 65; }", [Out(CString, room=4)], None, "A"),
        ("int g(const int *const *x) { return **x; }",
            [Reference(INTS.data, reads_only=True)], "int32", 7),
        ("int g(const void *const *x) { return *(int *)*x; }",
            [Reference(INTS.data, reads_only=True)], "int32", 7),
        ("typedef unsigned long at; struct s { at a; }; int g(const struct s *x)"
            " { return *(int *)x->a; }", struct(INTS.data), "int32", 7),
        ("struct s { int *a; }; int g(const struct s *x) { return !x->a; }",
            struct(NULL), "int32", 1),
        (f"{ENUM} struct s {{ enum e a; }}; void g(struct s *x) {{ x->a = A; }}",
            written(Out("int32").field), None, -1),
        (f"{ENUM} struct s {{ enum e a; }}; struct s g(void) {{ struct s v = {{A}}; return v; }}",
            [], ["int32"], -1),
    ],
)  # fmt: skip
def test_what_c_writes_and_returns_has_its_values(
    source: str, given: list[Any], returns: Any, wanted: Any
) -> None:
    uses_array = any("'i'" in repr(each) for each in given)
    call = compiled(source, given, returns, (INTS,) if uses_array else ())
    assert call(*([np.array([7], np.int32)] if uses_array else [])) == wanted


@pytest.mark.parametrize(
    ("source", "given", "returns", "said"),
    [
        (f"{ENUM} void g(enum e *x) {{}}", [Out("uint32")], None, "values from -1 to 0"),
        (f"{ENUM} void g(enum e *x) {{}}", [Out("int64")], None, "an enum of 32 bits"),
        (f"{PAIR} void g(pair *x) {{}}", [Out("int32")], None, "points to is no number"),
        ("struct s; void g(struct s *x) {}", [Out("int32")], None, "points to is no number"),
        ("void g(int *x) {}", [Out(CString, room=4)], None, "bytes are no array of int"),
        ("char **g(void) { return 0; }", [], "string", r"returns an address of char\*, but"),
        ("int g(const float *const *x) { return 0; }",
            [Reference(INTS.data, reads_only=True)], "int32", r"points to is no int32\*"),
        ("struct s { long a; }; int g(const struct s *x) { return 0; }",
            struct(INTS.data), "int32", "integer that is an address is a uintptr_t"),
        ("struct s { unsigned long a; }; int g(const struct s *x) { return 0; }",
            struct(INTS.data), "int32", "integer that is an address is a uintptr_t"),
        ("struct s { int *a; }; int g(const struct s *x) { return 0; }",
            struct(cast(1, "int64")), "int32", "an address is the .data of a tensor"),
        (f"{ENUM} struct s {{ enum e a; }}; void g(struct s *x) {{}}",
            written(Out("uint32").field), None, "values from -1 to 0"),
        (f"{ENUM} struct s {{ enum e *a; }}; void g(const struct s *x) {{}}",
            struct(Out("uint32")), None, "values from -1 to 0"),
        (f"{ENUM} struct s {{ enum e a; }}; struct s g(void) {{ struct s v = {{A}}; return v; }}",
            [], ["uint32"], "member #0 is enum32 from -1 to 0"),
        (f"{PAIR} pair g(void) {{ pair v = {{1, 2}}; return v; }}",
            [], ["int32", "uint32"], "member #1 is int32, but the call expects uint32"),
    ],
)  # fmt: skip
def test_what_c_writes_and_returns_is_compared(
    source: str, given: list[Any], returns: Any, said: str
) -> None:
    with pytest.raises(CompileError, match=said):
        compiled(source, given, returns, (INTS,))
