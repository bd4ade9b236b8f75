"""`Out`: what C functions write through pointers, and what calls make of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_objects import c_object

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    CODE,
    NULL,
    Array,
    CBytes,
    CFunction,
    CString,
    DLTensors,
    HostCode,
    Length,
    Memref,
    Out,
    Reference,
    ReturnCode,
    Sequence,
    Struct,
    cast,
)
from ferrule.specs import Signature
from ferrule.specs.params import Pointer, Scalar, String, Tensor

N = specs.sym_int(symbol="n")
X = Tensor("x", (N,), "float32")
K = Scalar("k", "int32")

SOURCE = """
#include <stdlib.h>
#include <string.h>
static int alive, freed;
int add(long *to, int by) { *to += by; return by < 0; }
void fill(float *x, long n) { for (long i = 0; i < n; i++) x[i] = i; }
int make(char **text, int k) {
    if (k == 0) { *text = 0; return 0; }
    alive++;
    *text = malloc(100);
    memset(*text, 'a', 99);
    (*text)[k < 0 ? 99 : k] = 0;
    return k < 0 ? k : 0;
}
void drop(void *text) { alive--; freed++; free(text); }
int state(void) { return alive * 100 + freed; }
struct inner { char tag; int *code; };
struct box { long k; struct inner inner; char **text; long *all[2]; };
int store(const struct box *box, int fails) {
    *box->inner.code = box->k; *box->all[0] += 1; *box->all[1] += 2;
    make(box->text, 3);
    return fails;
}
typedef struct { int a; double b; } pair;
void _mlir_ciface_both(pair *made, long *to) { made->a = 1; made->b = 0.5; *to = 7; }
int same(int k) { return k; }
unsigned long given(unsigned long value) { return value; }
double as_double(double value) { return value; }
void numbers(_Bool *a, signed char *b, unsigned short *c, unsigned long *d, float *e, double *f,
             void **g) {
    *a = !*a; *b -= 100; *c += 1; *d -= 1; *e *= 2; *f /= 2; *g = (char*)*g + 1;
}
"""


@pytest.fixture(scope="module")
def code() -> HostCode:
    return HostCode.from_object(c_object(SOURCE))


def build(name: str, params: list[Any], call: Any, **more: Any) -> fe.Function:
    return compiler.build(Signature(name, params), call, **more)


def test_frexp_and_its_exponent() -> None:
    x = Scalar("x", "float64")
    frexp = build("frexp", [x], CFunction("frexp", [x, Out("int32")], returns="float64"))
    assert frexp.signature.text() == "frexp(x: float64) -> Tuple[float64, int32]"
    assert frexp(-12.0) == (-0.75, 4)


@pytest.mark.needs_cc
def test_every_type_arrives_and_comes_back(code: HostCode) -> None:
    kinds = ("bool", "int8", "uint16", "uint64", "float32", "float64")
    initial = (K, -28, 65535, 0, 0.25, K, NULL)
    names = (*(each[:3] + each[-1:] for each in kinds), "address")
    pairs = zip((*kinds, "pointer"), names, initial, strict=True)
    outs = [Out(kind, name, initial=first) for kind, name, first in pairs if kind != "bool"]
    call = CFunction("numbers", [Out("bool", "flag"), *outs], code=code)
    got = build("numbers", [K], call)(3)
    assert [getattr(each, "value", each) for each in got] == [
        True, -128, 0, 2**64 - 1, 0.5, 1.5, 1,
    ]  # fmt: skip


@pytest.mark.needs_cc
@pytest.mark.parametrize("convention", [CFunction, DLTensors])
def test_fields_of_structs_are_given_back_and_freed(code: HostCode, convention: Any) -> None:
    """At any depth, once if a place stands there twice, and read by a ReturnCode."""
    count, text = Out("int64", "count"), Out(CString, "text", free="drop")
    inner = Struct([cast(7, "int8"), info := Out("int32", "info")])
    box = Struct([cast(K, "int64"), inner, text, Array([count, count])])
    returns = ReturnCode("int32", errors={5: OSError}, text=text)
    store = convention(
        "store", [Reference(box, True), cast(K, "int32")], returns=returns, code=code
    )
    state = CFunction("state", returns="int32", code=code)
    fn = build("f", [K], Sequence([state, store]))
    assert fn.signature.text() == "f(k: int32) -> Tuple[int32, int32, str, int64]"
    assert fn(0) == (0, 0, "aaa", 3)
    with pytest.raises(OSError, match="^store returned 5: aaa$"):
        fn(5)
    assert fn(0)[0] == 2
    code_of = convention("store", [Reference(box, True), cast(0, "int32")], code=code)
    checked = CFunction("same", [K], returns=ReturnCode(of=info), code=code)
    with pytest.raises(RuntimeError, match="same left 3 in info"):
        build("f", [K], Sequence([code_of, checked]))(3)


@pytest.mark.needs_cc
def test_a_memref_function_with_several_results_gives_it_back(code: HostCode) -> None:
    both = Memref("both", [Out("int64", "to")], returns=["int32", "float64"], code=code)
    fn = build("f", [], both)
    assert fn.signature.text() == "f() -> Tuple[int32, float64, int64]" and fn() == (1, 0.5, 7)


@pytest.mark.needs_cc
def test_all_bits_of_a_uint64_are_handed_on(code: HostCode) -> None:
    u = Scalar("u", "uint64")
    value = Out("uint64", "value", initial=u)
    calls = [
        CFunction("given", [value.value], returns="uint64", code=code),
        CFunction("given", [cast(value.value, "uint64")], returns="uint64", code=code),
        CFunction("as_double", [cast(value.value, "float64")], returns="float64", code=code),
    ]
    fn = build("f", [u], Sequence([CFunction("state", [value], code=code), *calls]))
    for number in (0, 1 << 63, (1 << 64) - 1):
        assert fn(number) == (number, number, number, float(number))


@pytest.mark.needs_cc
def test_all_calls_share_the_place_and_the_value_is_a_size_and_a_condition(code: HostCode) -> None:
    total = Out("int64", "total", initial=N)
    add = CFunction("add", [total, K], code=code)
    more = CFunction("add", [total, cast(total.value, "int32")], code=code, when=total.value > 5)
    room = Tensor("room", (total.value,), "float32")
    fill = CFunction("fill", [room.data, total.value], code=code)
    first = CFunction(
        "memcpy", [X.data, room.data.byte_offset(4 * total.value - 4), cast(4, "uint64")]
    )
    steps = [add, more, Sequence([fill, first], temporaries=[room])]
    fn = build("f", [X, K], Sequence(steps))
    x = np.zeros(3, np.float32)
    assert "-> int64" in fn.signature.text()
    assert (fn(x, 1), x[0]) == (4, 3)
    assert (fn(x, 4), x[0]) == (14, 13)
    with pytest.raises(ValueError, match=r"Invalid shape\[0\] of room, expected at least 0"):
        fn(x, -7)


@pytest.mark.needs_cc
@pytest.mark.parametrize("given_back", [True, False])
def test_a_text_is_copied_and_freed_once_on_every_way(code: HostCode, given_back: bool) -> None:
    """Short and long ones, null, and where the call, or one behind it, fails."""
    text = Out(CString, "text", free="drop", result=given_back)
    make = CFunction(
        "make", [text, K], returns=ReturnCode(errors={-3: OSError}, text=text), code=code
    )
    state = CFunction("state", returns="int32", code=code)
    later = CFunction("add", [Out("int64", result=False), cast(50, "int32")], code=code)
    fn = build("f", [K], Sequence([state, make, later]))
    seen = []
    for k in (3, 60, 0, -3, -4, 5):
        try:
            seen.append(fn(k))
        except (OSError, RuntimeError) as error:
            seen.append(str(error))
    null = "the Out 'text' is a null pointer, not a string"
    a = "a" * 99
    said = [f"make returned -3: {a}", f"make returned -4: {a}"]
    if given_back:
        assert seen == [(0, "aaa"), (1, "a" * 60), null, *said, (4, "aaaaa")]
    else:
        assert seen == [0, 1, 2, *said, 4]


@pytest.mark.needs_cc
def test_outs_work_from_a_file_and_as_text(code: HostCode, tmp_path: Path) -> None:
    text = Out(CString, "text", free="drop")
    call = CFunction("make", [text, K], returns=ReturnCode(text=text), code=code)
    fn = build("made", [K], call)
    fn.export_library(str(tmp_path / "made.so"))
    again = fe.runtime.load_module(str(tmp_path / "made.so"))
    assert again.made(2) == "aa" and again.made.signature.text() == "made(k: int32) -> str"
    with pytest.raises(RuntimeError, match="make returned -1: aaa"):
        again.made(-1)
    frees = Out(CString, free="drop", free_code=HostCode.undefined())
    undefined = CFunction("make", [frees, K], code=HostCode.undefined())
    for form in ("llvm", "mlir"):
        written = compiler.emit_wrapper(Signature("made", [K]), undefined, form=form)  # type: ignore[arg-type]
        assert "drop" in written


P, S = Pointer("p"), String("s")
OUT = Out("int32", "later")
FREED = Out("pointer", "freed", free="free")
ANSWER = Out("float64", "answer")
TEXT = Out(CString, "why")


@pytest.mark.parametrize(
    ("made", "error", "match"),
    [
        (lambda: Out(3), TypeError, "Out: expected a dtype, 'pointer' or CString, but got 3"),
        (lambda: Out("int"), ValueError, "int"),
        (lambda: Out("int32", "a b"), ValueError, "name must be an identifier, but got 'a b'"),
        (lambda: Out("int8", initial=200), ValueError, r"200 does not fit int8, \[-128, 127\]"),
        (lambda: Out("int8", initial=0.5), TypeError, "expected a number for int8"),
        (lambda: Out("pointer", initial=0), TypeError, "an address begins as NULL"),
        (lambda: Out("int32", free="free"), ValueError, "a number has nothing that free"),
        (lambda: Out("pointer", free=3), TypeError, "free is the name of a function"),
        (lambda: Out("pointer", result="no"), TypeError, "result must be True or False"),
        (lambda: ReturnCode(of=Out("float32")), ValueError, "the Out 'out' is no integer"),
        (lambda: ReturnCode("int32", of=Out("int32")), ValueError, "the Out has the code"),
        (lambda: ReturnCode(text="x"), TypeError, r"text is CFunction\(…, returns='string'\)"),
        (lambda: ReturnCode(text=Out("pointer")), TypeError, r"is an Out\(CString\)"),
        (lambda: ReturnCode("pointer", fails="zero"), ValueError, "a pointer fails='null'"),
        (lambda: ReturnCode("pointer", errors={1: (OSError, "")}), ValueError, "has no code"),
        (lambda: ReturnCode(value=Out("int64")), ValueError, "returns int32, but the Out 'out' is"),
        (lambda: ReturnCode("bool"), ValueError, "but got bool: a _Bool comes back as a 'uint8'"),
        (lambda: ANSWER.value > 3, TypeError, "the Out 'answer', a float64 is no size"),  # type: ignore[operator]
        (
            lambda: Tensor("t", (ANSWER.value,), "int8"),  # type: ignore[arg-type]
            TypeError,
            "int or a symbolic int, but got the value of the Out 'answer', a float64$",
        ),
        (lambda: specs.present(FREED.value), TypeError, "got the value of the Out 'freed'"),  # type: ignore[arg-type]
        (lambda: ReturnCode(errors={3: OSError}), TypeError, "an error is written as"),
        (lambda: ReturnCode(errno=True, errors={-1: (OSError, "")}), ValueError, "errno is never"),
    ],
)
def test_what_is_refused_where_it_is_written(
    made: Callable[[], Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        made()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda: Sequence([CFunction("abs", [OUT.value]), CFunction("f", [OUT])]),
            ValueError,
            r"the Out 'later' has no value before a call that lists it",
        ),
        (lambda: CFunction("abs", [OUT.value]), ValueError, "the symbol later is in no parameter"),
        (
            lambda: CFunction("free", [FREED.value]),
            ValueError,
            "the Out 'freed' has no value before a call",
        ),
        (
            lambda: Sequence([CFunction("time", [FREED]), CFunction("time", [FREED])]),
            ValueError,
            "two calls write to the Out 'freed', whose value free frees once",
        ),
        (
            lambda: CFunction("abs", [CODE]),
            ValueError,
            "is CODE, which only the text of a ReturnCode",
        ),
        (
            lambda: CFunction("abs", [N], returns=OUT, when=N > 3),
            ValueError,
            "can give nothing back",
        ),
        (
            lambda: CFunction("time", [OUT], returns=OUT),
            ValueError,
            "returns to the Out 'later' and",
        ),
        (
            lambda: CFunction("time", [Reference(Struct([OUT]))], returns=OUT),
            ValueError,
            "returns to the Out 'later' and",
        ),
        (
            lambda: CFunction("abs", [cast(1, "int32")], returns=ReturnCode(of=OUT)),
            ValueError,
            "abs: the code of its ReturnCode: the Out 'later' has no value before a call",
        ),
        (
            lambda: CFunction("abs", [cast(1, "int32")], returns=ReturnCode(text=TEXT)),
            ValueError,
            "f: the text of a ReturnCode: the Out 'why' has no value before a call",
        ),
    ],
)
def test_what_is_refused_where_it_is_built(
    call: Callable[[], Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        build("f", [X], call())


def test_a_text_in_a_buffer_is_cut_and_may_be_in_a_struct() -> None:
    text, room = specs.String("text"), Out(CString, room=6)
    call = CFunction(
        "strncpy", [room, CString(text), cast(6, "uint64")], returns=ReturnCode("pointer")
    )
    length = CFunction("strlen", [room.value], returns="int32")
    f = build("f", [text], Sequence([call, length]))
    assert [f(each) for each in ("", "short", "longer", "\u00e9")] == [
        ("", 0), ("short", 5), ("longe", 5), ("\u00e9", 2),
    ]  # fmt: skip
    names = [Out(CString, name, room=65) for name in ("sysname", "nodename", "release")]
    fields = [*(each.field for each in names), *(Out(CString, result=False, room=65).field,) * 3]
    uname = CFunction("uname", [Reference(Struct(fields))], returns="status")
    assert build("uname", [], uname)() == tuple(os.uname()[:3])


def test_a_buffer_is_zeros_at_first_and_aligned_as_chars_are() -> None:
    head = "define void @f(ptr noalias %s dereferenceable(6) %%p)"
    ir = f"{head} {{\n store i8 65, ptr %%p\n ret void\n}}"

    def made(room: int, align: str = "") -> fe.Function:
        code = HostCode.from_llvm(ir % align)
        return build("f", [], CFunction("f", [Out(CString, room=room)], code=code))

    assert made(6)() == "A"
    with pytest.raises(fe.CompileError, match="align 16.* but out is promised at one of 1 alone"):
        made(16, "align 16")
    with pytest.raises(fe.CompileError, match="6 bytes"):
        made(5)


def test_a_text_in_a_buffer_tells_why_a_call_failed() -> None:
    """Of an earlier call, or of one that is made for it; an empty one says nothing."""
    text, room = specs.String("text"), Out(CString, result=False, room=40)
    wrote = CFunction("snprintf", [room, cast(40, "uint64"), CString(text)], variadic_from=3)
    fails = CFunction("abs", [cast(-3, "int32")], returns=ReturnCode(text=room))
    f = build("f", [text], Sequence([wrote, fails]))
    for given, said in (("why not", "abs returned 3: why not"), ("", "abs returned 3")):
        with pytest.raises(RuntimeError, match=f"^{said}$"):
            f(given)
    with pytest.raises(ValueError, match="the text of a ReturnCode: the Out 'out' has no value"):
        build("f", [], fails)


@pytest.mark.needs_cc
def test_buffers_and_the_parts_of_bytes_are_compared_with_types_of_c() -> None:
    data, room, k = specs.Bytes("data"), Out(CString, "room", room=10), Out("int32", "k")
    held = Reference(Struct([k.field, room.field, cast(1.0, "float64")]))
    source = """
    #include <string.h>
    struct item { int k; %s name[%d]; double v; };
    void fill(struct item *to) { strcpy((char *)to->name, "hi"); to->k = 3; }
    int last(int size, const unsigned char *data) { return data[size - 1]; }
    void one(char *text) { text[0] = 'x'; }
    void other(char **text) { }
    """

    def made(name: str, *given: Any, params: tuple[Any, ...] = (), like: Any = ("char", 10)) -> Any:
        returns = "int32" if name == "last" else None
        signature = Signature(name, list(params))
        return fe.frontends.c.compile(source % like, signature, arguments=given, returns=returns)

    parts = Length(data, "int32"), CBytes(data)
    assert made("last", *parts, params=(data,))(b"abc") == ord("c")
    assert made("one", room)() == "x"
    assert made("fill", held)() == made("fill", held, like=("unsigned char", 10))() == (3, "hi")
    wrong = {
        r"but it takes struct item \*\n.*12 of int8 at 4.* and not \[int32 at 0, 10 of int8 at 4": (
            lambda: made("fill", held, like=("char", 12))
        ),
        r"is the Out 'room', a buffer of 10 bytes, but it takes char \*\*": (
            lambda: made("other", room)
        ),
        "is the length of data, a uint64, but it takes int": (
            lambda: made("last", Length(data), parts[1], params=(data,))
        ),
        r"is a CBytes, the address of data, but it takes char \*\n": (
            lambda: made("one", CBytes(data), params=(data,))
        ),
    }
    for said, make in wrong.items():
        with pytest.raises(fe.CompileError, match=said):
            make()


def test_a_length_that_does_not_fit_is_refused() -> None:
    """No test has bytes of two GiB, so the check is looked at."""
    data = specs.Bytes("data")
    call = CFunction("f", [Length(data, "int32")], code=HostCode.undefined())
    text = compiler.emit_wrapper(Signature("f", [data]), call)
    said = "argument #0 of f is {}, the length of data, which does not fit int32".split("{}")
    assert all(each in text for each in said) and re.search(r"icmp ugt i64 .*, 2147483647", text)
    two = build("two", [data], CFunction("abs", [Length(data, "int32")], returns="int32"))
    assert two(b"abc") == 3


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Length(3), TypeError, "Length: expected a Bytes or String of the signature, but"),
        (lambda: CBytes(X), TypeError, "CBytes: expected a Bytes or String of the signature, but"),
        (lambda: Length(specs.Bytes("b"), "int8"), ValueError, "an integer of 32 or 64 bits, but"),
        (lambda: Out(CString, room=1), ValueError, "an int from 2 to 65536, but got 1"),
        (lambda: Out(CString, room="9"), ValueError, "more is the .data of a result or temporary"),
        (lambda: Out("int32", room=9), ValueError, "room is the size of a buffer for a CString"),
        (lambda: Out(CString, room=9, free="free"), ValueError, "no initial address and is not fr"),
        (
            lambda: CFunction("time", [], returns=Out(CString, room=9)),
            ValueError,
            "time: the Out 'out' is a buffer, to which no function returns",
        ),
        (
            lambda: ReturnCode(text=CFunction("time", [])),
            TypeError,
            r"text is CFunction\(…, returns='string'\), one that writes it to an Out",
        ),
    ],
)
def test_a_buffer_is_for_texts(make: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def library(name: str) -> HostCode:
    try:
        return HostCode.from_library(name)
    except fe.CompileError:
        pytest.skip(f"{name} is not installed")


def test_zstd_streams_with_positions_and_its_own_texts() -> None:
    """The context is made and freed in the call; both positions come back."""
    zstd, m = library("libzstd.so.1"), specs.sym_int(symbol="m")
    to, source = Tensor("to", (N,), "uint8"), Tensor("source", (m,), "uint8")
    sizes = [cast(N, "uint64"), source.data, cast(m, "uint64")]
    text = CFunction("ZSTD_getErrorName", [CODE], returns="string", code=zstd)
    fails = ReturnCode("int64", fails="negative", value=True, text=text)
    given = [to.data, *sizes, cast(3, "int32")]
    compress = build("c", [to, source], CFunction("ZSTD_compress", given, returns=fails, code=zstd))

    context = Out("pointer", "context", free="ZSTD_freeDCtx", result=False)
    written, read = Out("uint64", "written"), Out("uint64", "read")
    places = [context.value, to.data, sizes[0], written, *sizes[1:], read]
    stream = "ZSTD_decompressStream_simpleArgs"
    steps = [
        CFunction("ZSTD_createDCtx", returns=context, code=zstd),
        CFunction(
            stream, places, returns=ReturnCode("int64", fails="negative", text=text), code=zstd
        ),
    ]
    expand = build("d", [to, source], Sequence(steps))
    data, packed, back = np.arange(200) % 7, np.zeros(300, np.uint8), np.zeros(150, np.uint8)
    size = compress(packed, data.astype(np.uint8))
    wrote, consumed = expand(back, packed[:size].copy())
    assert wrote == 150 and 0 < consumed <= size
    np.testing.assert_array_equal(back, data[:150])
    with pytest.raises(RuntimeError, match=f"{stream} returned -10: Unknown frame descriptor"):
        expand(back, np.ones(20, np.uint8))
