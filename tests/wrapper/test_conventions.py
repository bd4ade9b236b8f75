"""Calling conventions written by hand: C functions with flat arguments."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from ferrule import specs
from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body
from ferrule.compiler.conventions import FlatCall, Narrow
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.runtime import Function
from ferrule.runtime.engine import Engine
from ferrule.runtime.function import load_function, make_function
from ferrule.specs import Dim, Signature, sym_int
from ferrule.specs.params import Optional, Pointer, Scalar, Tensor, Tuple

AXPY = """
define void @axpy(ptr %x, ptr %y, i32 %n, float %alpha) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %xi = getelementptr float, ptr %x, i32 %i
  %yi = getelementptr float, ptr %y, i32 %i
  %a = load float, ptr %xi
  %b = load float, ptr %yi
  %p = fmul float %a, %alpha
  %s = fadd float %b, %p
  store float %s, ptr %yi
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""
N = sym_int(symbol="n")
WIDE = sym_int(64, symbol="wide")


def tensor(name: str, *shape: Dim, **more: Any) -> Tensor:
    return Tensor(name, shape, "float32", device="cpu", **more)


def origin_of(signature: Signature, convention: FlatCall, text: str = "") -> CompiledOrigin:
    body = Body(text, convention.symbol, ())
    return CompiledOrigin(host_module(signature, body, convention=convention), "")


def build(signature: Signature, convention: FlatCall, text: str) -> Function:
    """A function that calls what a module of LLVM IR defines."""
    origin, here = origin_of(signature, convention, text), targets.host()
    return load_function(origin.emit(signature.name, here.cpu, here.triple), signature, origin)


def linked(signature: Signature, convention: FlatCall, target: Any) -> Function:
    """A function that calls a C function of this process."""
    origin, here = origin_of(signature, convention), targets.host()
    code = origin.emit(signature.name, here.cpu, here.triple)
    address = ctypes.cast(target, ctypes.c_void_p).value
    engine = Engine.load(code, {convention.symbol: address or 0})
    place = engine.address(code.symbol)
    return make_function(place, signature, origin, owner=(engine, target))


def test_a_function_of_llvm_ir() -> None:
    sig = Signature("axpy", [tensor("x", N), tensor("y", N), Scalar("alpha", "float32")])
    x, y = sig["x"], sig["y"]
    assert isinstance(x, Tensor) and isinstance(y, Tensor)
    call = FlatCall("axpy", (x.data, y.data, x.shape[0], sig["alpha"]))
    function = build(sig, call, AXPY)
    a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    function(a, b, 2)
    np.testing.assert_array_equal(b, [1, 3, 5, 7])
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\] on argument #1"):
        function(a, b[:3].copy(), 2)


def test_another_export_name_keeps_the_convention(tmp_path: Path) -> None:
    sig = Signature("axpy", [tensor("x", N), Scalar("alpha", "float32")])
    x = sig["x"]
    assert isinstance(x, Tensor)
    function = build(sig, FlatCall("axpy", (x.data, x.data, N, sig["alpha"])), AXPY)
    if shutil.which("cc") is None:
        pytest.skip("linking a library needs a C compiler")
    function.export_library(tmp_path / "lib.so", "other")
    loaded = tvm_ffi.load_module(str(tmp_path / "lib.so"))
    values = np.ones(3, np.float32)
    loaded.other(values, 4.0)
    assert values.tolist() == [5, 5, 5]


SEEN = ctypes.CFUNCTYPE(None, ctypes.c_int32, *[ctypes.c_int64] * 5)


def test_sizes_are_evaluated() -> None:
    sig = Signature("f", [tensor("x", N, WIDE, strides=(WIDE * 2, 1))])
    x = sig["x"]
    assert isinstance(x, Tensor)
    seen: list[tuple[int, ...]] = []
    target = SEEN(lambda *values: seen.append(values))
    call = FlatCall("record", (*x.shape, *x.strides, N * WIDE // 2 - 7, -7))
    linked(sig, call, target)(np.zeros((3, 8), np.float32)[:, :4])
    assert seen == [(3, 4, 8, 1, -1, -7)]


NARROW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32)


def test_a_size_that_does_not_fit_is_refused() -> None:
    sig = Signature("f", [specs.params.Shape("s", (WIDE, N))])
    seen: list[tuple[int, ...]] = []
    target = NARROW(lambda *values: seen.append(values) or 0)
    function = linked(sig, FlatCall("record", (Narrow(WIDE), Narrow(N * WIDE)), "status"), target)
    function((5, 3))
    assert seen == [(5, 15)]
    with pytest.raises(ValueError, match="argument #0 of record, wide, does not fit its type"):
        function((1 << 31, 1))
    with pytest.raises(ValueError, match=r"argument #1 of record, n \* wide, does not fit"):
        function((1 << 20, 1 << 20))
    assert len(seen) == 1


def test_an_expression_that_overflows_is_refused() -> None:
    sig = Signature("f", [specs.params.Shape("s", (WIDE,))])
    target = ctypes.CFUNCTYPE(None, ctypes.c_int64)(lambda value: None)
    function = linked(sig, FlatCall("record", (WIDE * WIDE,)), target)
    function((1 << 31,))
    with pytest.raises(ValueError, match=r"argument #0 of record, wide \* wide, does not fit"):
        function((1 << 32,))


def test_a_status_is_an_error() -> None:
    sig = Signature("f", [Scalar("code", "int32")])
    target = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda code: code)
    function = linked(sig, FlatCall("record", (sig["code"],), "status"), target)
    function(0)
    with pytest.raises(RuntimeError, match="record returned -7"):
        function(-7)


SCALARS = """
#include <stdint.h>
#include <stddef.h>
void record(double* out, _Bool a, int8_t b, uint8_t c, int16_t d, uint16_t e, uint64_t f,
            float g, double h, void* p, int8_t has, int8_t item, float inside) {
    double values[] = {a, b, c, d, e, f, g, h, p == NULL, has, item, inside};
    for (int i = 0; i < 12; i++) out[i] = values[i];
}
"""


def test_scalars_arrive_as_c_passes_them(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "record.c", tmp_path / "record.so"
    source.write_text(SCALARS)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
    kinds = "bool int8 uint8 int16 uint16 uint64 float32 float64".split()
    out = Tensor("out", (12,), "float64", device="cpu")
    inside = Scalar("0", "float32")
    sig = Signature(
        "f",
        [
            out,
            *(Scalar(name, kind) for name, kind in zip("abcdefgh", kinds, strict=True)),
            Pointer("p"),
            Optional("o", Scalar("o", "int8")),
            Tuple("t", (inside,)),
        ],
    )
    parameters = [sig[name] for name in "abcdefghpo"]
    call = FlatCall("record", (out.data, *parameters, inside))
    values = np.zeros(12)
    function = linked(sig, call, ctypes.CDLL(str(library)).record)
    function(values, True, -3, 200, -300, 60000, 1 << 62, 0.5, 0.1, None, -5, (1.25,))
    wanted = [1, -3, 200, -300, 60000, float(1 << 62), 0.5, 0.1, 1, 1, -5, 1.25]
    np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize("argument", [True, "x", 1.5, None, Narrow(Scalar("k", "int32"))])  # type: ignore[arg-type]
def test_what_is_no_argument(argument: Any) -> None:
    with pytest.raises(TypeError, match="argument #0 of f must be a parameter, its .data, or"):
        FlatCall("f", (argument,))


@pytest.mark.parametrize("symbol", ["", "no name", "llvm.trap", "größe", "f(", "1f"])
def test_what_is_no_symbol(symbol: str) -> None:
    with pytest.raises(ValueError, match="is no name of a C function"):
        FlatCall(symbol, ())


def test_arguments_of_another_signature() -> None:
    sig = Signature("f", [tensor("x", N)])
    other = tensor("z", WIDE)
    for argument, match in (
        (other.data, "Tensor.*is in no parameter of f"),
        (WIDE, "the symbol wide is in no parameter of f"),
        (WIDE + 1, "the symbol wide is in no parameter of f"),
    ):
        with pytest.raises(ValueError, match=match):
            origin_of(sig, FlatCall("f", (argument,)))


def test_equal_items_cannot_be_told_apart() -> None:
    sig = Signature("f", [Tuple(name, (Scalar("0", "int32"),)) for name in "tu"])
    with pytest.raises(ValueError, match="stands at several places of f"):
        origin_of(sig, FlatCall("f", (Scalar("0", "int32"),)))
