"""`out.field`: values in structs that C functions change."""

from __future__ import annotations

import numpy as np
import pytest
from c_objects import c_object

from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    CFunction,
    CString,
    HostCode,
    Out,
    Reference,
    Sequence,
    Sized,
    Struct,
    cast,
)
from ferrule.compiler.errors import CompileError
from ferrule.frontends import c
from ferrule.specs import Signature
from ferrule.specs.params import Pointer, Scalar, Tensor

SOURCE = """
#include <stdlib.h>
#include <string.h>
static int alive;
struct part { char tag; long at; };
struct all { int a; double b; char *text; struct part part; };
int step(struct all *all, int by) {
    if (by == 0) return 1;
    all->a += by; all->b *= 2; all->part.at = all->a * 10 + all->part.tag;
    if (by > 0) { alive++; all->text = malloc(8); strcpy(all->text, "made"); }
    return by < 0 ? by : 0;
}
void drop(void *text) { alive--; free(text); }
int state(void) { return alive; }
"""
BY = Scalar("by", "int32")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> HostCode:
    return HostCode.from_object(c_object(SOURCE, tmp_path_factory.mktemp("fields")))


def fields() -> tuple[Out, Out, Out, Out, Reference]:
    a, b = Out("int32", "a", initial=5), Out("float64", "b", initial=1.5)
    text, at = Out(CString, "text", free="drop"), Out("int64", "at")
    part = Struct([cast(3, "int8"), at.field])
    return a, b, text, at, Reference(Struct([a.field, b.field, text.field, part]))


@pytest.mark.needs_cc
def test_fields_are_given_back_and_what_is_in_them_is_freed(code: HostCode) -> None:
    call = CFunction("step", [fields()[-1], BY], returns="status", code=code)
    step = compiler.build(Signature("step", [BY]), call)
    assert step.signature.text().endswith("-> Tuple[int32, float64, str, int64]")
    state = compiler.build(Signature("state", []), CFunction("state", returns="int32", code=code))
    assert step(2) == (7, 3.0, "made", 73)
    assert step(2) == (7, 3.0, "made", 73) and state() == 0
    with pytest.raises(RuntimeError, match="step returned 1$"):
        step(0)


@pytest.mark.needs_cc
def test_the_next_call_gets_what_one_has_left(code: HostCode) -> None:
    a, b, text, at, struct = fields()
    quiet = Out("pointer", "text", result=False)
    again = Reference(Struct([a.field, b.field, quiet.field, Struct([cast(0, "int8"), at.field])]))
    steps = [
        CFunction("step", [struct, BY], returns="status", code=code),
        CFunction("step", [again, cast(-1, "int32")], code=code),
        CFunction("step", [again, cast(-1, "int32")], code=code, when=specs.equal(at.value, 60)),
        CFunction("step", [again, cast(-1, "int32")], code=code, when=specs.equal(at.value, 61)),
    ]
    twice = compiler.build(Signature("twice", [BY]), Sequence(steps))
    assert twice(2) == (5, 12.0, "made", 50)
    assert twice(4) == (8, 6.0, "made", 80)
    assert text.result and b.name == "b"


@pytest.mark.needs_cc
def test_c_compares_the_fields_types() -> None:
    a, b, text, at, struct = fields()
    given = [struct, BY]
    step = c.compile(SOURCE, Signature("step", [BY]), arguments=given, returns="status")
    assert step(1)[:2] == (6, 3.0)
    wrong = Reference(Struct([a.field, at.field, text.field, Struct([cast(3, "int8"), b.field])]))
    with pytest.raises(CompileError, match="its members are .*float64 at 8, .* not .*int64 at 8"):
        c.compile(SOURCE, Signature("step", [BY]), arguments=[wrong, BY], returns="status")


@pytest.mark.needs_cc
def test_c_hands_pointers_over_as_they_are() -> None:
    p = Pointer("p", "float32")
    source = "float first(const float *p, int by) { return p[by]; }"
    first = c.compile(source, Signature("first", [p, BY]), returns="float32")
    x = np.array([1, 2], np.float32)
    assert first(x.ctypes.data, 1) == 2


def test_by_value_nothing_would_come_back() -> None:
    out = Out("int64")
    for argument in (out.field, Struct([Struct([out.field])])):
        with pytest.raises(TypeError, match="^argument #0 of f has the field of an Out in it by"):
            CFunction("f", [argument])


def test_zstd_streams_into_a_result_of_unknown_size() -> None:
    zstd = HostCode.from_library("libzstd.so.1")
    n, k = specs.sym_int64(symbol="n"), specs.sym_int64(symbol="k")
    source = Tensor("source", (n,), "uint8", read_only=True)
    to = Tensor("to", (k,), "uint8", capacity=n + 1000)
    written, read = Out("uint64", "written"), Out("uint64", "read")
    stream = Out("pointer", "stream", free="ZSTD_freeCStream", result=False)
    buffers = [
        Reference(Struct([tensor.data, tensor.nbytes, at.field]))
        for tensor, at in ((to, written), (source, read))
    ]
    arguments = [stream.value, *buffers, cast(2, "int32")]
    compress = CFunction("ZSTD_compressStream2", arguments, returns="uint64", code=zstd)
    steps = [
        CFunction("ZSTD_createCStream", returns=stream, code=zstd),
        Sized(compress, None, k, None),
    ]
    pack = compiler.build(Signature("pack", [source]), Sequence(steps), results=[to])
    packed, left, consumed = pack(np.arange(5000, dtype=np.uint64).view(np.uint8) % 7)
    assert left == 0 and consumed == 40000 and 0 < np.from_dlpack(packed).size < 5000
