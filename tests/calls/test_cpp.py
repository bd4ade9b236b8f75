"""Values to and from functions written in C++ with tvm-ffi's own headers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from tvm_ffi import cpp

import ferrule as fe
from ferrule.specs import params

pytestmark = pytest.mark.skipif(
    not (shutil.which("c++") and shutil.which("ninja")), reason="C++ needs a compiler and ninja"
)

HEAP = "a string of more than seven bytes \u4f60"
CODE = """
#include <csignal>
#include <tvm/ffi/tvm_ffi.h>
namespace ffi = tvm::ffi;

ffi::String join(ffi::String a, ffi::String b) { return a + b; }
ffi::Bytes same_bytes(ffi::Bytes data) { return data; }
int64_t first_size(ffi::TensorView a) { return a.size(0); }
ffi::Tensor itself(ffi::Tensor a) { return a; }
ffi::Array<ffi::Any> several(int64_t i, double x, ffi::String s) {
  return ffi::Array<ffi::Any>({ffi::Any(i), ffi::Any(x), ffi::Any(s)});
}
ffi::Optional<int64_t> half(int64_t i) {
  if (i % 2) return std::nullopt;
  return i / 2;
}
ffi::Any call(ffi::Function f, int64_t x) { return f(x); }
void fail(ffi::String s) { TVM_FFI_THROW(IndexError) << "no " << s; }
void interrupted() {
  std::raise(SIGINT);
  if (TVMFFIEnvCheckSignals() != 0) throw ffi::EnvErrorAlreadySet();
}
"""
NAMES = [
    *("join", "same_bytes", "first_size", "itself", "several", "half", "call", "fail"),
    "interrupted",
]


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    built: Any = cpp.load_inline("ferrule_calls", cpp_sources=CODE, functions=NAMES)
    for name in NAMES:
        tvm_ffi.register_global_func(f"ferrule.test.cpp.{name}", built[name])
    yield built
    for name in NAMES:
        tvm_ffi.registry.remove_global_func(f"ferrule.test.cpp.{name}")


def vector(symbol: str = "n") -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol=symbol),))


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options="--target cpu")


def called(name: str, *args: Any, result: Any = None) -> Any:
    return fe.call(f"ferrule.test.cpp.{name}", *args, result=result)


def test_strings_and_bytes(module: Any) -> None:
    def host(s, b):
        both = called("join", s, HEAP, result=str)
        short = called("join", "ab", "c", result=str)
        return both, short, short == "abc", called("same_bytes", b, result=bytes)

    function = compiled(host, "s", b"b")
    for text, data in (("", b""), ("1234567", b"\0" * 7), ("12345678", b"\0ab" * 9), (HEAP, b"\0")):
        assert function(text, data) == (text + HEAP, "abc", True, data)


def test_tensors(module: Any) -> None:
    def host(a):
        t = fe.empty((a.shape[0], 2), fe.Float32)
        t[:] = 3
        like = fe.make_fake_compact_tensor(
            fe.Float32, (fe.sym_int(symbol="m"), 2), stride_order=(1, 0)
        )
        again = called("itself", t, result=like)
        return again, called("first_size", a, result=fe.Int32)

    tensor, size = compiled(host, vector())(np.zeros(5, np.float32))
    assert (np.from_dlpack(tensor).tolist(), size) == ([[3, 3]] * 5, 5)


def test_containers_and_optionals(module: Any) -> None:
    def host(i: fe.Int32, s):
        j, x, text = called("several", i, 0.5, s, result=(fe.Int32, fe.Float64, str))
        found = called(
            "half", i, result=fe.specs.params.Optional("h", params.Scalar("h", fe.Int32))
        )
        if found is None:
            return -j, x, text
        return found, x, text

    function = compiled(host, 1, "s")
    assert function(8, HEAP) == (4, 0.5, HEAP)
    assert function(7, "") == (-7, 0.5, "")


def test_errors_and_calls_back(module: Any) -> None:
    def host(x: fe.Int64):
        return x * 2

    inner = compiled(host, 1)

    def outer(f, s):
        if s == "fail":
            called("fail", s)
        return called("call", f, 20, result=fe.Int32) + 2

    function = compiled(outer, params.Function("f"), "s")
    assert function(inner, "go") == 42
    assert module["call"](inner, 4) == 8
    with pytest.raises(IndexError, match="no fail"):
        function(inner, "fail")
    with pytest.raises(ValueError, match="odd"):
        function(tvm_ffi.convert(_odd), "go")


def _odd(x: int) -> int:
    raise ValueError(f"odd {x}")


def test_a_signal_that_the_callee_sees_is_the_error(module: Any, interruptible: None) -> None:
    def with_a_function(f):
        called("interrupted")

    def plain(n: fe.Int32):
        called("interrupted")

    for host, example, value in (
        (with_a_function, params.Function("f"), print),
        (plain, 1, 1),
    ):
        with pytest.raises(KeyboardInterrupt):
            compiled(host, example)(value)
