"""C headers: what becomes of the functions that they declare, and how they are refused."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, HostCode, Out, ReturnCode, Struct
from ferrule.compiler.errors import CompileError
from ferrule.frontends import c

pytest.importorskip("pycparser", reason="pycparser is not installed")

ZLIB = """
typedef unsigned char Bytef;
typedef unsigned long uLong;
const char * zlibVersion(void);
uLong crc32(uLong crc, const Bytef *buf, unsigned int len);
int compress(Bytef *dest, uLong *destLen, const Bytef *source, uLong sourceLen);
uLong compressBound(uLong sourceLen);
"""
SIZES: dict[str, Any] = {
    "crc32.buf": "len",
    "dest": "destLen",
    "source": "sourceLen",
}
LIB = """\
#include "lib.h"
struct box { int value; };
static struct box one = {7};
struct box *open_box(const char *name, struct box **also) {
  *also = &one;
  one.value = name[0];
  return &one;
}
int look(const struct box *in) { return in->value; }
double total(int n, const double x[n]) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i];
  return s;
}
void swap(pair *p, unsigned long count) {
  for (unsigned long i = 0; i < count; i++) { double t = p[i][0]; p[i][0] = p[i][1]; p[i][1] = t; }
}
int rank_of(enum colour which) { return which + 1; }
void first(float v[2], void *any) { v[0] = any ? 1 : -1; }
void grid(int rows, int cols, float *m) { for (int i = 0; i < rows * cols; i++) m[i] = i; }
void copy(const float *restrict a, float *restrict b, long n) {
  for (long i = 0; i < n; i++) b[i] = a[i];
}
int each(int (*visit)(int), int n) { return visit(n); }
point moved(point p) { return p; }
int last(const int *n) { return *n; }
double corner(int n, int m, const point p[n], const double x[n][m]) { return p[0].y + x[1][0]; }
"""
HEADER = """\
#ifndef LIB_H
#define LIB_H
#include <stdio.h>
#define API extern __attribute__((visibility("default")))
struct box;
typedef double pair[2];
typedef struct { int x, y; } point;
enum colour { RED, GREEN };
API struct box *open_box(const char *name, struct box **also);
API int look(const struct box *in);
API double total(int n, const double x[n]);
API void swap(pair *p, unsigned long count);
API int rank_of(enum colour);
API void first(float v[2], void *any);
API void grid(int rows, int cols, float *m);
API void copy(const float *__restrict a, float *__restrict b, long n);
API int each(int (*visit)(int), int n);
API point moved(point p);
API int say(const char *format, ...);
API int gone(int);
API int last(const int *n);
API double corner(int n, int m, const point p[n], const double x[n][m]);
API long double wide(long double);
static inline int hidden(int a) { return ({ int b = a; b; }); }
#endif
"""
OWN_SIZES: dict[str, Any] = {
    "also": 1,
    "p": "count",
    "any": None,
    "m": ("rows", "cols"),
    "copy.a": "n",
    "copy.b": "n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A header, and its shared library."""
    made = tmp_path_factory.mktemp("headers")
    (made / "lib.h").write_text(HEADER.replace("({ int b = a; b; })", "a"))
    (made / "lib.c").write_text(LIB)
    cc = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if cc is None:
        pytest.skip("no C compiler")
    command = [cc, "-shared", "-fPIC", "-w", str(made / "lib.c"), "-o", str(made / "lib.so")]
    subprocess.run(command, check=True)
    return made


@pytest.fixture(scope="module")
def lib(folder: Path) -> Any:
    return c.library(folder / "lib.h", folder / "lib.so", sizes=OWN_SIZES)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.needs_cc
def test_zlib_compresses_with_its_sizes_from_arrays(tmp_path: Path) -> None:
    found = c.library(ZLIB, "libz.so.1", sizes=SIZES, returns={"compress": "status"})
    data, room = np.frombuffer(b"again " * 50, np.uint8).copy(), np.zeros(400, np.uint8)
    assert str(found.compress.signature) == (
        "compress(dest: Tensor([destLen], uint8), source: Tensor([sourceLen], uint8))"
        " -> Tensor([], uint64)"
    )
    size = int(np.from_dlpack(found.compress(room, data)))
    assert zlib.decompress(room[:size].tobytes()) == data.tobytes()
    with pytest.raises(RuntimeError, match="compress returned -5"):
        found.compress(room[:3], data)
    assert found.crc32(0, data) == zlib.crc32(data)
    assert found.zlibVersion() == zlib.ZLIB_RUNTIME_VERSION
    found.crc32.export_library(tmp_path / "crc.so")
    again = tvm_ffi.load_module(str(tmp_path / "crc.so")).crc32
    assert again(0, data) == zlib.crc32(data)


def test_without_a_compiler_declarations_alone_are_read(no_compiler: None) -> None:
    text = "#pragma once\nint f(int);"
    found = c.library(f"/* {text} */{ZLIB}", "libz.so.1", sizes=SIZES)
    assert found.crc32(0, np.arange(9, dtype=np.uint8)) == zlib.crc32(bytes(range(9)))
    with pytest.raises(CompileError, match=r"has directives .* there is none\n.*the text of the"):
        c.library(text, "libz.so.1")


def test_handles_arrays_texts_and_enums(lib: Any) -> None:
    also = np.zeros(1, np.uint64)
    handle = lib.open_box("Abc", also)
    assert handle.value == also[0]
    assert lib.look(handle) == ord("A")
    assert str(lib.signatures["look"]) == "look(in_: Pointer())"
    assert lib.total(np.array([1.0, 2.5])) == 3.5
    pairs = np.arange(6.0).reshape(3, 2)
    lib.swap(pairs)
    assert pairs.tolist() == [[1, 0], [3, 2], [5, 4]]
    assert lib.rank_of(1) == 2
    short = np.zeros(2, np.float32)
    lib.first(short, None)
    assert short[0] == -1
    matrix = np.zeros((2, 3), np.float32)
    lib.grid(matrix)
    assert matrix.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_place_that_c_writes_to_is_given_back(folder: Path) -> None:
    sizes = {**OWN_SIZES, "also": Out("pointer", "also")}
    found = c.library(folder / "lib.h", folder / "lib.so", sizes=sizes)
    assert str(found.open_box.signature) == "open_box(name: str) -> Tuple[Pointer(), Pointer()]"
    handle, also = found.open_box("Abc")
    assert handle.value == also.value and found.look(also) == ord("A")
    wrong = {"open_box.also": Out("int32", "also")}
    few = c.library(folder / "lib.h", folder / "lib.so", functions=["open_box"], sizes=wrong)
    with pytest.raises(CompileError, match="is the Out 'also', the address of int32, but it takes"):
        few.open_box("Abc")


def test_what_the_header_says_is_checked_at_the_call(lib: Any) -> None:
    with pytest.raises(ValueError, match=r"Mismatched v\.shape\[0\] .*expected to be 2"):
        lib.first(np.zeros(3, np.float32), None)
    a = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="overlap"):
        lib.copy(a[:3], a[1:])
    with pytest.raises(ValueError, match="b.shape"):
        lib.copy(a, np.zeros(3, np.float32))


def test_an_array_of_structs_is_an_address(lib: Any) -> None:
    wanted = "corner(p: Pointer(), x: Tensor([n, m], float64)) -> float64"
    assert str(lib.corner.signature) == wanted
    points, rows = np.array([[1, 2]], np.int32), np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 0.0]])
    assert lib.corner(points.ctypes.data, rows) == 2.5


ROWS_LIB = """\
#include "rows.h"
double trace(int n, double a[n][n]) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i][i];
  return s;
}
double pick(int n, int m, const double a[][n][m]) { return a[1][n - 1][m - 1]; }
double near(int n, const double a[n + 1]) { return a[0]; }
void turn(int n, double _Complex *z) { for (int i = 0; i < n; i++) z[i] *= 1.0i; }
int reds(enum colour *c, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += c[i] == RED;
  return s;
}
int flags(const flags_t *f, int n) { return n && f[0] == HIGH; }
flags_t high(void) { return HIGH; }
int wide(long double *x) { return 0; }
int plain(int a) { return a + 1; }
int maybe(odd_t *o) { return o->x; }
int odd(_Float16 _Complex x) { return 0; }
"""
ROWS_HEADER = """\
enum colour { GREEN, RED = 1 << 2 };
typedef enum { LOW = 1, HIGH = 0x80000000u } flags_t;
typedef struct { int x : 3; int __attribute__((aligned(8))) y; _BitInt(9) z; } odd_t;
double trace(int n, double a[n][n]);
double pick(int n, int m, const double a[][n][m]);
double near(int n, const double a[n + 1]);
void turn(int n, double _Complex *z);
int reds(enum colour *c, int n);
int flags(const flags_t *f, int n);
flags_t high(void);
int wide(long double *x);
[[deprecated]] int plain(int a);
int maybe(odd_t *o);
_BitInt(9) narrow(_BitInt(9) x);
int after(int a);
"""


@pytest.fixture(scope="module")
def rows_lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows")
    (made / "rows.h").write_text(ROWS_HEADER)
    cc = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if cc is None:
        pytest.skip("no C compiler")
    plain = ROWS_HEADER.replace("_BitInt(9) z", "int z").replace("_BitInt(9)", "int")
    plain = plain.replace("[[deprecated]]", "")
    (made / "rows.c").write_text(
        ROWS_LIB.replace('#include "rows.h"', plain).replace(
            "int odd(_Float16 _Complex x) { return 0; }", ""
        )
    )
    command = [cc, "-shared", "-fPIC", "-w", str(made / "rows.c"), "-o", str(made / "rows.so")]
    subprocess.run(command, check=True)
    return made


def test_rows_with_sizes_of_the_call(rows_lib: Path) -> None:
    """An array of arrays is checked as far as the header says its lengths."""
    kept = {"trace", "pick", "near", "turn", "reds", "flags", "high", "wide"}
    text = "\n".join(
        line for line in ROWS_HEADER.splitlines()
        if any(f" {each}(" in line for each in kept) or line.startswith(("enum", "typedef enum"))
    )  # fmt: skip
    sizes = {"pick.a": 2, "turn.z": "n", "c": "n", "f": "n"}
    lib = c.library(text, rows_lib / "rows.so", sizes=sizes)
    assert str(lib.trace.signature) == "trace(a: Tensor([n, n], float64)) -> float64"
    assert lib.trace(np.arange(9.0).reshape(3, 3)) == 12
    with pytest.raises(ValueError, match=r"a\.shape"):
        lib.trace(np.ones((2, 3)))
    assert lib.pick(np.arange(12.0).reshape(2, 2, 3)) == 11
    z = np.array([1, 2j])
    lib.turn(z)
    assert z.tolist() == [1j, -2]
    assert lib.reds(np.array([4, 0, 4], np.int32)) == 2
    assert lib.flags(np.array([1 << 31], np.uint32)) == 1
    assert lib.high() == 1 << 31
    assert set(lib.left_out) == {"near", "wide"}
    assert lib.left_out["wide"].startswith("it takes x, an address of long double: sizes=")


def test_an_odd_declaration_is_left_out_alone(rows_lib: Path) -> None:
    lib = c.library(rows_lib / "rows.h", rows_lib / "rows.so", sizes={"trace.a": "n"})
    reasons = dict(lib.left_out)
    assert "trace" in dir(lib)
    for name in ("plain", "narrow"):
        assert reasons[name].startswith("its declaration cannot be read: ")
        assert "rows.h" not in reasons[name]
    assert "maybe" not in reasons
    with pytest.raises(CompileError, match=r"narrow cannot be called\n  hint: defines=\{…\}"):
        c.library(rows_lib / "rows.h", rows_lib / "rows.so", functions=["narrow"])
    with pytest.raises(CompileError, match="narrow cannot be called"):
        c.library(rows_lib / "rows.h", rows_lib / "rows.so", sizes={"narrow.x": None})


def test_an_odd_declaration_without_a_compiler(no_compiler: None) -> None:
    text = (
        "_BitInt(9) narrow(int);\ntypedef struct { _BitInt(9) x; } t;\nint abs(int); int puts(t *);"
    )
    lib = c.library(text, None)
    assert sorted(lib.signatures) == ["abs", "puts"]
    assert "puts(arg0: Pointer())" in str(lib.signatures["puts"])
    assert list(lib.left_out) == ["narrow"]


def test_what_is_left_out_has_a_reason(lib: Any, folder: Path) -> None:
    assert dict(lib.left_out) == {
        "each": "it takes visit, the address of a function: callbacks={'each.visit': …} names the "
        "void* of its context, or None",
        "moved": "it takes p, point, by value: write the call yourself, conventions.CFunction with "
        "Struct([…]) of its members",
        "say": "the library does not have it",
        "gone": "the library does not have it",
        "last": "it takes n, an address of constant int32: sizes={'last.n': …} says how many, None "
        "that it is any address",
        "wide": "the library does not have it",
    }
    assert "total" in dir(lib) and "12" not in dir(lib)
    assert repr(lib) == f"<Library {folder}/lib.h: 9 functions, 6 left out>"
    with pytest.raises(AttributeError, match="each is left out: it takes visit, the address"):
        lib.each  # noqa: B018
    with pytest.raises(AttributeError, match="has no function totall; there are total"):
        lib.totall  # noqa: B018
    with pytest.raises(CompileError, match="each cannot be called\n.*each: it takes visit"):
        c.library(folder / "lib.h", folder / "lib.so", functions=["each"])


def test_one_function_is_chosen_also_of_an_included_header(folder: Path) -> None:
    found = c.library(folder / "lib.h", None, functions=["puts"])
    assert str(found.signatures["puts"]).startswith("puts(")
    assert dir(found).count("total") == 0
    (folder / "all.h").write_text('#include "lib.h"\n')
    with pytest.raises(CompileError, match=r"(?s)declares no functions itself.*functions=.*wide"):
        c.library(folder / "all.h", None)


def test_an_installed_header_may_have_a_folder(folder: Path) -> None:
    named = f"{folder.name}/lib.h"
    found = c.library(named, folder / "lib.so", include_paths=[folder.parent], sizes=OWN_SIZES)
    assert found.rank_of(1) == 2
    with pytest.raises(CompileError, match="nowhere/lib.h"):
        c.library("nowhere/lib.h", folder / "lib.so")


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        (
            {"sizes": {"crc32.buffer": "len"}},
            ValueError,
            "crc32 takes crc, buf, len, and no buffer",
        ),
        ({"sizes": {"crc32.buf": "size"}}, ValueError, "crc32 takes crc, buf, len, and no size"),
        ({"sizes": {"crc33.buf": "len"}}, ValueError, "has no 'crc33'; there are crc32"),
        ({"sizes": {"crc32.len": 3}}, ValueError, "'crc32.len': len is no address"),
        ({"sizes": {"buf": "size"}}, ValueError, "no function .* an address buf and size"),
        ({"sizes": {"crc32.buf": 1.5}}, TypeError, "wanted the name of a parameter, a number"),
        ({"sizes": {"crc32.buf": -1}}, ValueError, "a size is never negative"),
        ({"sizes": {"crc32.buf": ()}}, TypeError, "wanted the name of a parameter"),
        ({"sizes": ["crc32"]}, TypeError, "sizes must be a dict"),
        ({"sizes": {3: 4}}, TypeError, "3 is no name of a parameter"),
        ({"sizes": {"compress.dest": "source"}}, ValueError, "source as .* which is no size"),
        ({"functions": ["crc"]}, ValueError, "declares no 'crc'; there are crc32"),
        ({"functions": "crc32"}, TypeError, "functions"),
        ({"returns": {"nothing": "status"}}, ValueError, "returns: .* has no 'nothing'"),
        ({"library": "libnowhere.so.1"}, CompileError, "libnowhere"),
        ({"header": "/nowhere/zlib.h"}, OSError, "no such file"),
        ({"header": "int f(int;"}, CompileError, "cannot be read"),
        ({"header": "typedef int a;"}, CompileError, "declares no functions"),
    ],
)
def test_what_is_wrong_is_said(more: dict[str, Any], kind: type[Exception], message: str) -> None:
    given = {"header": ZLIB, "library": "libz.so.1", **more}
    with pytest.raises(kind, match=message):
        c.library(given.pop("header"), given.pop("library"), **given)


@pytest.mark.needs_cc
def test_an_array_is_no_less_than_the_header_says(tmp_path: Path) -> None:
    (tmp_path / "pipe.h").write_text("int pipe(int ends[2]);\n")
    for size in (1, (1,), Out("int32")):
        with pytest.raises(ValueError, match="pipe takes ends as an array of 2, but it is given 1"):
            c.library(tmp_path / "pipe.h", None, sizes={"pipe.ends": size})
    found = c.library(tmp_path / "pipe.h", None, sizes={"pipe.ends": 3})
    assert "[3]" in str(found.signatures["pipe"])


@pytest.mark.needs_cc
def test_a_header_that_the_compiler_rejects_is_shown_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "bad.h").write_text("#include <nowhere.h>\nint f(int);\n")
    with pytest.raises(CompileError, match=r"nowhere\.h[^$]*include_paths=\[…\]"):
        c.library(tmp_path / "bad.h", "libz.so.1")


@pytest.mark.needs_cc
def test_codes_of_errors_are_those_of_c_functions() -> None:
    full = ReturnCode(errors={-5: (ValueError, "dest is too short")})
    found = c.library(ZLIB, "libz.so.1", sizes=SIZES, returns={"compress": full})
    with pytest.raises(ValueError, match="dest is too short"):
        found.compress(np.zeros(1, np.uint8), np.zeros(9, np.uint8))


CALLS = """\
enum level { LOW = -1, HIGH = 200 };
typedef double (*reduce)(const char *name, int n, const float *x, void *user, enum level level);
double walk(reduce visit, void *user, int n, const float *x);
int plain(int visit(long), long from);
int two(int (*visit)(void *what, void *user), void *user);
int odd(int (*visit)(long double), void *user);
int any(int (*visit)(const char *, ...), void *user);
int keep(int (*visit)(int, void *), void *user);
int call(int n);
"""
CALLS_LIB = (
    CALLS
    + """
double walk(reduce visit, void *user, int n, const float *x) {
  return visit("h\u00e4", n, x, user, LOW);
}
int plain(int visit(long), long from) { return visit(from) + 1; }
int two(int (*visit)(void *what, void *user), void *user) { return visit((void *)8, user); }
int odd(int (*visit)(long double), void *user) { return 0; }
int any(int (*visit)(const char *, ...), void *user) { return 0; }
static int (*kept)(int, void *);
static void *kept_user;
int keep(int (*visit)(int, void *), void *user) { kept = visit; kept_user = user; return 5; }
int call(int n) { return kept(n, kept_user); }
"""
)
CALLBACKS: dict[str, Any] = {
    "walk.visit": "user",
    "plain.visit": None,
    "two.visit": ("user", 1),
    "odd.visit": None,
    "any.visit": None,
    "keep.visit": "user",
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("calls")
    (made / "calls.c").write_text(CALLS_LIB, encoding="utf-8")
    cc = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if cc is None:
        pytest.skip("no C compiler")
    command = [cc, "-shared", "-fPIC", "-w", str(made / "calls.c"), "-o", str(made / "calls.so")]
    subprocess.run(command, check=True)
    return made / "calls.so"


def test_callbacks_have_the_types_of_the_header(calls: Path) -> None:
    lib = c.library(CALLS, calls, sizes={"walk.x": "n"}, callbacks=CALLBACKS)
    wanted = "walk(visit: Function, x: Tensor([n], float32)) -> float64"
    assert str(lib.walk.signature) == wanted
    seen: list[Any] = []

    def visit(name: str, n: int, x: Any, level: int) -> float:
        seen.append((name, n, level))
        return 2.5 * n

    assert lib.walk(visit, np.ones(3, np.float32)) == 7.5
    assert seen == [("hä", 3, -1)]
    assert lib.plain(lambda n: n // 2, 1 << 20) == (1 << 19) + 1
    assert lib.two(lambda what: what.value + 1) == 9
    with pytest.raises(ZeroDivisionError):
        lib.two(lambda what: 1 // 0)
    assert dict(lib.left_out) == {
        "odd": "it takes visit, a function with a number or struct that no dtype is",
        "any": "it takes visit, a function of any number of arguments",
    }


def test_a_callback_that_the_library_keeps_has_a_handle(calls: Path) -> None:
    lib = c.library(CALLS, calls, sizes={"walk.x": "n"}, callbacks=CALLBACKS, kept=["keep"])
    assert str(lib.keep.signature) == "keep(visit: Function) -> Tuple[int32, Function]"
    kept, handle = lib.keep(lambda n: n + 1)
    assert (kept, lib.call(3)) == (5, 4)
    del handle
    gc.collect()
    assert lib.call(3) == 0
    with pytest.raises(
        ValueError, match=r"kept: .* callbacks=\{…\} has none of the function 'call'"
    ):
        c.library(CALLS, calls, callbacks=CALLBACKS, kept=["call"])
    with pytest.raises(TypeError, match="kept"):
        c.library(CALLS, calls, callbacks=CALLBACKS, kept="keep")


@pytest.mark.parametrize(
    ("callbacks", "kind", "message"),
    [
        ({"walk.visit": "x"}, ValueError, r"walk has no void\* x"),
        ({"walk.visit": "gone"}, ValueError, r"walk has no void\* gone"),
        ({"walk.user": None}, ValueError, "walk has user, which is no function"),
        ({"walk.what": None}, ValueError, "walk takes visit, user, n, x, and no what"),
        ({"walks.visit": None}, ValueError, "has no 'walks'"),
        ({"two.visit": "user"}, ValueError, r"2 parameters of void\*, at \[0, 1\]: \('user', pos"),
        ({"walk.visit": ("user", 0)}, ValueError, r"what C calls has a void\* at \[3\]"),
        ({"visit": None}, TypeError, "'visit' is no function and parameter"),
        ({"walk.visit": 3}, TypeError, "wanted the name of the void"),
        (["walk.visit"], TypeError, "callbacks must be a dict"),
    ],
)
def test_what_is_no_context(
    calls: Path, callbacks: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        c.library(CALLS, calls, sizes={"walk.x": "n"}, callbacks=callbacks)


def test_a_null_handle_is_refused_unless_it_is_allowed(tmp_path: Path) -> None:
    header = "struct box { int value; }; int value_of(struct box *box);"
    body = "int value_of(struct box *box) { return box ? box->value : -1; }"
    (tmp_path / "box.c").write_text(f"{header.partition('int value_of')[0]} {body}")
    cc = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if cc is None:
        pytest.skip("no C compiler")
    command = [cc, "-shared", "-fPIC", str(tmp_path / "box.c"), "-o", str(tmp_path / "box.so")]
    subprocess.run(command, check=True)
    lib = c.library(header, tmp_path / "box.so")
    seven = np.array([7], np.int32)
    assert lib.value_of(seven.ctypes.data) == 7
    for null in (None, 0, ctypes.c_void_p()):
        with pytest.raises(ValueError, match="expected an address, but got a null pointer"):
            lib.value_of(null)
    lib = c.library(header, tmp_path / "box.so", sizes={"value_of.box": None})
    assert lib.value_of(None) == -1


VALUES = """
struct point { int x; double y; };
typedef struct { float r, g, b, a; } color;
typedef struct { int quot; int rem; } halves;
union u { int i; float f; };
struct big { double v[9]; };
double norm(struct point p);
color mix(color a, color b);
halves divide(int a, int b);
double _Complex turn(double _Complex z);
float _Complex turnf(float _Complex z);
struct big made(int k);
int chosen(union u v);
long double same(long double x);
"""
VALUES_OF = """
double norm(struct point p) { return p.x + p.y; }
color mix(color a, color b) { color c = {a.r + b.r, a.g + b.g, a.b + b.b, a.a + b.a}; return c; }
halves divide(int a, int b) { halves h = {a / b, a % b}; return h; }
double _Complex turn(double _Complex z) { return z * 1.0iF; }
float _Complex turnf(float _Complex z) { return z * 1.0iF; }
struct big made(int k) { struct big b = {{k, 1}}; return b; }
int chosen(union u v) { return v.i; }
long double same(long double x) { return x; }
"""


def test_values_without_a_parameter_say_what_to_write_and_that_is_right(tmp_path: Path) -> None:
    (tmp_path / "values.c").write_text(VALUES + VALUES_OF)
    cc = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if cc is None:
        pytest.skip("no C compiler")
    command = [cc, "-shared", "-fPIC", str(tmp_path / "values.c"), "-o"]
    subprocess.run([*command, str(tmp_path / "values.so")], check=True)
    left = dict(c.library(VALUES, tmp_path / "values.so").left_out)
    said = ("Struct([…])", "Struct([…])", "the members", "Struct([re", "Struct([re", "the members")
    for name, words in zip(("norm", "mix", "divide", "turn", "turnf", "made"), said, strict=True):
        assert "by value" in left[name] or "it returns" in left[name]
        assert ("CFunction with returns=" in left[name]) == (name in ("divide", "made"))
        assert words in left[name]
    for name in ("chosen", "same"):
        assert "let a function in C take or return its address" in left[name]

    code = HostCode.from_library(str(tmp_path / "values.so"))
    k, m = (specs.Scalar(name, "int32") for name in "km")
    x, y = (specs.Scalar(name, "float64") for name in "xy")
    parts = [specs.Scalar(name, "float32") for name in "abcdefgh"]

    def call(name: str, params: list[Any], given: list[Any], returns: Any) -> Any:
        made = CFunction(name, given, returns=returns, code=code)
        return compiler.build(specs.Signature(name, params), made)

    assert call("norm", [k, y], [Struct([k, y])], "float64")(1, 2.5) == 3.5
    mixed = call("mix", parts, [Struct(parts[:4]), Struct(parts[4:])], ["float32"] * 4)
    assert mixed(*range(8)) == (4, 6, 8, 10)
    assert call("divide", [k, m], [k, m], ["int32"] * 2)(7, 3) == (2, 1)
    assert call("turn", [x, y], [Struct([x, y])], ["float64"] * 2)(1, 2) == (-2, 1)
    assert call("turnf", parts[:2], [Struct(parts[:2])], ["float32"] * 2)(1, 2) == (-2, 1)
    assert call("made", [k], [k], ["float64"] * 9)(7) == (7, 1, 0, 0, 0, 0, 0, 0, 0)
