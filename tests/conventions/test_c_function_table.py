"""The table of `docs/conventions/c_functions.md`: each row is built and called."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_objects import c_compiler

from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.conventions import CFunction, HostCode
from ferrule.specs import Param, Signature
from ferrule.specs.params import Bytes, Function, Optional, Pointer, Scalar, String, Tensor

PAGE = Path(__file__).parents[2] / "docs" / "conventions" / "c_functions.md"
ROW = re.compile(r"^\| (`[^|]*[a-z_]+\(.*) \| `((?:CFunction|Sequence)\(.*)` \|$", re.MULTILINE)
DECLARED = re.compile(r"`([^`]*\([^`]*\))`")
NAME = re.compile(r"^[^(]*?(\w+)\(")

DEFINED = {
    "mean": "{ double all = 0; for (int i = 0; i < n; i++) all += x[i]; return all / n; }",
    "scale": "{ for (size_t i = 0; i < n; i++) x[i] *= k; }",
    "cumulate": "{ float all = 0; for (long i = 0; i < n; i++) out[i] = all += x[i]; }",
    "trace": "{ double all = 0; for (int i = 0; i < rows && i < columns; i++) "
    "all += a[i * ld + i]; return all; }",
    "rest": "{ float all = 0; for (int i = 0; i < n; i++) all += x[i]; return all; }",
    "reverse": "{ char *c = items, kept[8]; for (size_t i = 0, j = bytes - size; i < j; "
    "i += size, j -= size) { memcpy(kept, c + i, size); memcpy(c + i, c + j, size); "
    "memcpy(c + j, kept, size); } }",
    "widest": "{ float all = 0; for (int i = 0; i < n; i++) { "
    "float v = absolute && x[i] < 0 ? -x[i] : x[i]; if (v > all) all = v; } return all; }",
    "mix": "{ return from + (mode == LOUD ? 50 : 0); }",
    "length": "{ return strlen(text); }",
    "checksum": "{ unsigned all = 0; for (long i = 0; i < size; i++) "
    "all += ((const unsigned char*)data)[i]; return all; }",
    "digits": "{ int all = 0; for (int i = 0; i < size; i++) all += data[i] <= '9'; return all; }",
    "version": '{ return "1.2"; }',
    "shouted": "{ if (!*text) return 0; char *made = made_text(text); "
    "for (char *c = made; *c; c++) *c &= ~32; return made; }",
    "check": "{ return k < 0 ? 22 : 0; }",
    "take": "{ return wanted > 4 ? -7 : wanted; }",
    "allowed": "{ return n < 5; }",
    "create": "{ static int made; made = n; return n < 5 ? &made : 0; }",
    "touch": '{ errno = strcmp(text, "gone") ? EACCES : ENOENT; return *text == \'+\' ? 0 : -1; }',
    "sized": "{ return n < 5 ? 2 * n : (size_t)-7; }",
    "is_error": "{ return code > (size_t)-100; }",
    "verify": "{ return n < 5 ? 0 : -3; }",
    "text_of": '{ return code == -3 ? "too many" : 0; }',
    "parse": '{ *message = made_text("no number"); return *text == \'1\' ? 0 : 1; }',
    "called": '{ return snprintf(name, size, "a long name"); }',
    "opened": "{ return n < 5 ? 0 : -3; }",
    "why": '{ snprintf(text, size, "for reason %d", -code); }',
    "solve": "{ *info = *n < 5 ? 0 : *n; if (!*info) x[0] = 1; }",
    "split": "{ *exponent = (int)k; return k - *exponent; }",
    "range": "{ *low = *high = x[0]; for (int i = 1; i < n; i++) { "
    "if (x[i] < *low) *low = x[i]; if (x[i] > *high) *high = x[i]; } }",
    "advance": "{ *position += 10; }",
    "start": "{ *handle = made_text(\"\"); return fails; }",
    "start_at": "{ return made_text(n == 4 ? \"four\" : \"some\"); }",
    "used": "{ return k + (((char*)handle)[0] == 'f' ? 0.5f : 0); }",
    "release": "{ alive--; free(item); }",
    "bound": "{ return n + 3; }",
    "pack": "{ memset(to, 1, most); return most * 100 + n; }",
    "skip": "{ if (none) abort(); }",
    "norm": "{ return sqrt(point.i * point.i + point.v * point.v); }",
    "middle": "{ struct point made = {n / 2, n / 2.0}; return made; }",
    "far": "{ return point->i * point->v; }",
    "moved": "{ point->i += 10; return point->v *= 2; }",
    "turn": "{ return z * I; }",
    "print": "{ va_list rest; va_start(rest, form); int all = vsnprintf(out, size, form, rest); "
    "va_end(rest); return all; }",
    "integrate": "{ double all = 0; for (int i = 0; i < n; i++) all += f(i + 0.5); return all; }",
    "each": '{ int i = 0; while (i < n && !f(user, i, i ? "more" : 0)) i++; return i; }',
    "watch": "{ if (maybe) maybe(n / 2.0f); return maybe != 0; }",
    "hooked": "{ handle(); return 1; }",
}  # fmt: skip
NAMED = {
    "unsigned is_error(size_t)": "unsigned is_error(size_t code)",
    "void *start_at(int)": "void *start_at(int n)",
    "float used(void*, int)": "",
    "void release(void*)": "void release(void *item)",
    "long pack(const float*, int, char*, size_t)": "long pack(const float *x, int n, char *to, "
    "size_t most)",
}
HEAD = """
#include <complex.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum mode { QUIET, LOUD };
struct point { int i; double v; };
int alive, fails;
static char *made_text(const char *text) {
    alive++;
    return strcpy(malloc(strlen(text) + 1), text);
}
int how_many_are_alive(void) { return alive; }
void fail_from_now_on(int how) { fails = how; }
"""

N, M = (specs.sym_int(symbol=name) for name in ("n", "m"))
PARAMS: dict[str, Param] = {
    "x": Tensor("x", (N,), "float32"),
    "a": Tensor("a", (M, N), "float32"),
    "k": Scalar("k", "float32"),
    "flag": Scalar("flag", "bool"),
    "text": String("text"),
    "data": Bytes("data"),
    "handle": Pointer("handle"),
    "f": Function("f"),
    "maybe": Optional("maybe", Function("maybe")),
}
OUT = {
    "cumulate": Tensor("out", (N,), "float32"),
    "print": Tensor("out", (N,), "int8"),
}
NAMES: dict[str, Any] = {**vars(conventions), **PARAMS, "Tensor": Tensor, "n": N, "m": M}


def rows() -> dict[str, tuple[list[str], str]]:
    """The declarations and the call of each row, by the first function's name; the last row for
    `used` alone has its own name."""
    found = {}
    for left, right in ROW.findall(PAGE.read_text()):
        declared = DECLARED.findall(left)
        name = NAME.match(declared[0])
        assert name is not None, left
        found[name[1]] = declared, right
    return found


ROWS = rows()


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> HostCode:
    declared = [each for found, _ in ROWS.values() for each in found]
    lines = [NAMED.get(each, each) for each in declared]
    made = {NAME.match(each)[1]: each for each in lines if each}  # type: ignore[index]
    bodies = [f"{each} {DEFINED[name]}" for name, each in made.items()]
    folder = tmp_path_factory.mktemp("table")
    (folder / "table.c").write_text(HEAD + "\n".join(bodies))
    library = folder / "libtable.so"
    options = ["-O1", "-fPIC", "-shared", str(folder / "table.c"), "-o", str(library), "-lm"]
    subprocess.run([c_compiler(), *options], check=True)
    return HostCode.from_library(library)


X = np.array([1, -2, 3, 5], np.float32)
LONG = np.ones(6, np.float32)
HOOK = ctypes.CFUNCTYPE(None)(lambda: None)
FIRST: list[Any] = []


def raises(kind: type[Exception], text: str, *given: Any) -> Callable[..., None]:
    def call(fn: Any) -> None:
        with pytest.raises(kind, match=text):
            fn(*given)

    return call


def equal(wanted: Any, *given: Any) -> Callable[..., None]:
    def call(fn: Any) -> None:
        got = fn(*given)
        pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
        for value, expected in pairs:
            array = np.from_dlpack(value) if hasattr(value, "__dlpack__") else value
            np.testing.assert_allclose(array, expected, rtol=1e-6)

    return call


def same(wanted: Any, *given: Any) -> Callable[..., None]:
    def call(fn: Any) -> None:
        got = fn(*given)
        assert (getattr(got, "value", got) or 0) == wanted and got is not None

    return call


def changed(wanted: Any, *more: Any) -> Callable[..., None]:
    def call(fn: Any) -> None:
        given = X.copy()
        assert fn(given, *more) is None
        np.testing.assert_array_equal(given, wanted)

    return call


def there(fn: Any) -> None:
    assert fn(3).value


CASES: dict[str, list[Callable[..., None]]] = {
    "mean": [equal(1.75, X)],
    "scale": [changed(X * 2, 2.0)],
    "cumulate": [equal(np.cumsum(X), X)],
    "trace": [equal(5, np.arange(8, dtype=np.float32).reshape(2, 4))],
    "rest": [equal(8, X)],
    "reverse": [changed(X[::-1])],
    "widest": [equal(5, X, True), equal(2, -X[:2] - 0, False), equal(2, X[1:2], True)],
    "mix": [same(250)],
    "length": [same(5, "groß"), raises(ValueError, "zero in it", "a\0b")],
    "checksum": [same(6, b"\1\2\3")],
    "digits": [same(2, b"a1\0")],
    "version": [same("1.2")],
    "shouted": [same("LOUDLY", "loudly"), raises(RuntimeError,
        "the Out 'out' is a null pointer, not a string", "")],
    "check": [raises(RuntimeError, "check returned 22$", -1.0)],
    "take": [same(4, X), raises(RuntimeError, "take returned -7$", LONG)],
    "allowed": [raises(PermissionError, "^too many$", LONG)],
    "create": [raises(RuntimeError, "create returned a null pointer$", LONG)],
    "touch": [
        raises(FileNotFoundError, "^touch failed, errno 2: No such file or directory$", "gone"),
        raises(RuntimeError, "^touch failed, errno 13: Permission denied$", "there"),
    ],
    "sized": [same(8, X), raises(RuntimeError, "^sized returned -7$", LONG)],
    "verify": [raises(RuntimeError, "^verify returned -3: too many$", LONG)],
    "parse": [raises(RuntimeError, "^parse returned 1: no number$", "x")],
    "called": [same("a long ")],
    "opened": [raises(RuntimeError, "^opened returned -3: for reason 3$", LONG)],
    "solve": [changed([1, -2, 3, 5]), raises(RuntimeError, "solve left 6 in info$", LONG)],
    "split": [equal((0.5, 3), 3.5)],
    "range": [equal((-2, 5), X)],
    "advance": [same(14, X)],
    "start": [],  # below
    "used": [same(3.5, ctypes.cast(ctypes.c_char_p(b"f"), ctypes.c_void_p))],
    "start_at": [same(2.5, X), same(2, LONG)],
    "bound": [same(704, X)],
    "skip": [changed(X)],
    "norm": [same(5)],
    "middle": [equal((2, 2.0), X), equal((3, 3.0), LONG)],
    "far": [same(16, X)],
    "moved": [equal((8, 14), X)],
    "turn": [equal((-2, 1))],
    "print": [equal(([50, 46, 53, 0], 3), X, 2.5)],
    "integrate": [equal(8, lambda value: value, X)],
    "each": [
        same(3, lambda i, name: FIRST.append(name) or i == 3, X),
        raises(ZeroDivisionError, "division", lambda i, name: 0 // (2 - i), X),
    ],
    "watch": [same(1, FIRST.append, X), same(0, None, X)],
    "hooked": [same(1, ctypes.cast(HOOK, ctypes.c_void_p))],
}  # fmt: skip
ORDER = ("f", "maybe", "x", "a", "k", "flag", "text", "data", "handle")


def test_the_table_has_a_row_for_each_case_and_at_least_thirty() -> None:
    assert len(ROWS) >= 30 and set(ROWS) == set(CASES)


def built(name: str, code: HostCode) -> Any:
    call = ROWS[name][1]
    used = set(re.findall(r"(?<!\.)\b\w+\b(?!=)", re.sub(r'"[^"]*"', "", call)))
    inner = {each: PARAMS[each] for each in ORDER if each in used}
    if "n" in used and not {"x", "a"} & set(inner):
        inner["x"] = PARAMS["x"]
    names: dict[str, Any] = {**NAMES, "out": OUT.get(name)}
    libc = {"strerror"}

    def c_function(function: str, *given: Any, **more: Any) -> CFunction:
        found = HostCode.from_library(None) if function in libc else code
        return CFunction(function, *given, code=found, **more)

    convention = eval(call, {**names, "CFunction": c_function})
    results = [OUT[name]] if name in OUT else []
    params = [inner[each] for each in ORDER if each in inner]
    return compiler.build(Signature(name, params), convention, results=results)


def alive(code: HostCode) -> int:
    counted = CFunction("how_many_are_alive", returns="int32", code=code)
    return int(compiler.build(Signature("alive", []), counted)())


@pytest.mark.needs_cc
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name]])
def test_the_row_does_what_it_says(name: str, code: HostCode) -> None:
    fn = built(name, code)
    for case in CASES[name]:
        case(fn)
    assert alive(code) == 0


@pytest.mark.needs_cc
def test_a_pointer_that_is_given_back_is_freed_where_the_call_fails(code: HostCode) -> None:
    start, fail = built("start", code), CFunction("fail_from_now_on", [N], code=code)
    set_failing = compiler.build(Signature("fail", [specs.params.Shape("how", (N,))]), fail)
    made = start()
    assert made.value and alive(code) == 1
    set_failing((3,))
    with pytest.raises(RuntimeError, match="^start returned 3$"):
        start()
    set_failing((0,))
    assert alive(code) == 1
    release = CFunction("release", [PARAMS["handle"]], code=code)
    compiler.build(Signature("release", [PARAMS["handle"]]), release)(made)
    assert alive(code) == 0
