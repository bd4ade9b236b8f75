"""Texts of C libraries: UTF-8 or a named error; codes of which the library says what they are."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from c_objects import c_object

from ferrule import compiler
from ferrule.compiler.conventions import (
    CODE,
    Callback,
    CBytes,
    CFunction,
    CString,
    HostCode,
    Out,
    ReturnCode,
    cast,
)
from ferrule.specs import Signature
from ferrule.specs.params import Bytes, Function, Scalar

pytestmark = pytest.mark.needs_cc

SOURCE = """
#include <string.h>
const char *same(const char *text) { return text; }
void put(const char *text, char *to, unsigned long size) { strncpy(to, text, size); }
int tell(const char *text, int (*f)(const char *)) { return f(text); }
int fail(void) { return 3; }
const char *why(int code) { return code == 3 ? "caf\\xe9, closed" : "?"; }
void why_in(int code, char *to, int size) { strncpy(to, why(code), size); }
unsigned long packed(long n) { return n < 0 ? (unsigned long)n : (unsigned long)n * 2; }
unsigned is_error(unsigned long code) { return code > (unsigned long)-100; }
const char *name_of(unsigned long code) { return code == (unsigned long)-70 ? "too small" : "?"; }
_Bool is_odd(int code) { return code % 2; }
int number(int n) { return n; }
"""
DATA, F, N = Bytes("data"), Function("f"), Scalar("n", "int64")


@pytest.fixture(scope="module")
def code() -> HostCode:
    return HostCode.from_object(c_object(SOURCE))


def built(name: str, params: list[Any], arguments: list[Any], code: HostCode, returns: Any) -> Any:
    call = CFunction(name, arguments, returns=returns, code=code)
    return compiler.build(Signature(name, params), call)


def samples() -> list[bytes]:
    """Bytes at all limits of UTF-8, in sequences of up to four, and texts."""
    limits = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1]
    limits += [0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    pairs = [bytes(each) for n in (1, 2) for each in itertools.product(limits, repeat=n)]
    chosen = random.Random(1)
    longer = [bytes(chosen.choices(limits, k=n)) for n in (3, 4) for _ in range(3000)]
    texts = ["", "ä", "aä€𝄞", "€" * 50, "\U0010ffff", "\ud7ff\ue000"]
    return [*pairs, *longer, *(each.encode() for each in texts)]


def test_a_text_is_utf8_or_a_named_error(code: HostCode) -> None:
    same = built("same", [DATA], [CBytes(DATA)], code, "string")
    for data in samples():
        try:
            wanted: str | int = data.decode()
        except UnicodeDecodeError as error:
            wanted = error.start
        try:
            found: str | int = same(data + b"\0")
        except ValueError as error:
            assert str(error).startswith("same returned a text that is no UTF-8 at byte "), error
            found = int(str(error).split("byte ")[1].split(":")[0])
        assert found == wanted, data


def test_a_text_that_is_cut_ends_with_a_whole_character(code: HostCode) -> None:
    whole = "ä€𝄞e"
    for room in range(2, 14):
        given = [CBytes(DATA), Out(CString, room=room), cast(room, "uint64")]
        put = built("put", [DATA], given, code, None)
        found = put(whole.encode() + b"\0")
        assert found == whole.encode()[: room - 1].decode(errors="ignore")
        if room > 3:
            with pytest.raises(
                ValueError, match="the Out 'out' is a text that is no UTF-8 at byte 1"
            ):
                put(b"a\xc3\0")


@pytest.mark.parametrize("kept", [False, True])
def test_a_callback_says_which_text_is_none(code: HostCode, kept: bool) -> None:
    back = Callback(F, [CString], returns="int32", kept=kept)
    tell = built("tell", [DATA, F], [CBytes(DATA), back], code, "int32")
    found = tell("ä€\0".encode(), lambda text: len(text))
    assert (found[0] if kept else found) == 2
    with pytest.raises(
        ValueError, match="argument #0 of the callback f is a text that is no UTF-8"
    ):
        tell(b"ab\xff\0", lambda text: 1)


def test_a_message_of_another_encoding_is_shown_as_far_as_it_is_utf8(code: HostCode) -> None:
    places = [CFunction("why", [CODE], returns="string", code=code)]
    given = [CODE, Out(CString, room=64), cast(64, "int32")]
    places.append(CFunction("why_in", given, code=code))
    for text in places:
        fail = built("fail", [], [], code, ReturnCode(text=text))
        with pytest.raises(RuntimeError, match="^fail returned 3: caf…$"):
            fail()


IS_ERROR = ("is_error", [CODE], "uint32")


def asked(code: HostCode) -> CFunction:
    name, arguments, returns = IS_ERROR
    return CFunction(name, arguments, returns=returns, code=code)


def test_a_library_says_which_codes_are_failures(code: HostCode, tmp_path: Path) -> None:
    """As ZSTD_isError does, of a size_t."""
    text = CFunction("name_of", [CODE], returns="string", code=code)
    errors = {-9: (MemoryError, "no room")}
    kind = ReturnCode("uint64", fails=asked(code), text=text, errors=errors, value=True)
    packed = built("packed", [N], [N], code, kind)
    assert (packed(3), packed(-100), packed(1 << 62)) == (6, (1 << 64) - 100, 1 << 63)
    with pytest.raises(RuntimeError, match="^packed returned -70: too small$"):
        packed(-70)
    with pytest.raises(MemoryError, match="^no room$"):
        packed(-9)
    assert "a failure if is_error says so" in packed.inspect_ir()
    packed.export_library(str(tmp_path / "packed.so"))
    again = tvm_ffi.load_module(str(tmp_path / "packed.so")).packed
    with pytest.raises(RuntimeError, match="^packed returned -70: too small$"):
        again(-70)
    is_odd = CFunction("is_odd", [CODE], returns="bool", code=code)
    n = Scalar("n", "int32")
    even = built("number", [n], [n], code, ReturnCode(fails=is_odd, value=True))
    assert even(4) == 4
    with pytest.raises(RuntimeError, match="^number returned -3$"):
        even(-3)


@pytest.mark.parametrize(
    ("made", "error", "match"),
    [
        ({"fails": CFunction("is_odd", [CODE])}, TypeError, "a call that says whether its CODE"),
        ({"fails": CFunction("f", [], returns="int32")}, TypeError, "says whether its CODE is"),
        ({"fails": CFunction("f", [CODE], returns="float32")}, TypeError, "says whether its CODE"),
        ({"dtype": "int8", "fails": CFunction("f", [CODE], returns="bool")}, ValueError, "int8"),
        ({"dtype": "pointer", "fails": CFunction("f", [CODE], returns="bool")}, ValueError, "null"),
    ],
)
def test_what_says_nothing_of_a_code(made: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ReturnCode(**made)


def test_an_error_of_a_class_that_tvm_ffi_knows_keeps_it(code: HostCode) -> None:
    class Unlucky(Exception):
        pass

    def fails(text: str) -> int:
        raise Unlucky(f"not {text}")

    back = Callback(F, [CString], returns="int32")
    tell = built("tell", [DATA, F], [CBytes(DATA), back], code, "int32")
    with pytest.raises(Unlucky, match="^not a$"):
        tell(b"a\0", fails)
    wrapped = tvm_ffi.convert(fails)
    with pytest.raises(RuntimeError, match="^not a$"):
        tell(b"a\0", wrapped)
    tvm_ffi.register_error("Unlucky", Unlucky)
    with pytest.raises(Unlucky, match="^not a$"):
        tell(b"a\0", wrapped)
