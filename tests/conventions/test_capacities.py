"""Results of which only the call knows the size: allocated with a capacity, and shrunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from gpu_functions import floats
from host_memory import all_freed

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    CFunction,
    CString,
    CudaLaunch,
    DLTensors,
    HostCode,
    ReturnCode,
    Sequence,
    Sized,
    cast,
)
from ferrule.specs import Scalar, Signature, Tensor

N, K = specs.sym_int64(symbol="n"), specs.sym_int64(symbol="k")
X = Tensor("x", (N,), "int64")
TEXT = """
define i64 @keep(ptr %out, ptr %twice, ptr %x, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %k = phi i64 [ 0, %entry ], [ %l, %next ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %p = getelementptr i64, ptr %x, i64 %i
  %v = load i64, ptr %p
  %wanted = icmp ne i64 %v, 0
  br i1 %wanted, label %put, label %next
put:
  %q = getelementptr i64, ptr %out, i64 %k
  store i64 %v, ptr %q
  %r = getelementptr [2 x i64], ptr %twice, i64 %k
  store i64 %v, ptr %r
  %s = getelementptr i64, ptr %r, i64 1
  store i64 %i, ptr %s
  br label %next
next:
  %one = zext i1 %wanted to i64
  %l = add i64 %k, %one
  %j = add i64 %i, 1
  br label %head
end:
  ret i64 %k
}
define i64 @first(ptr %out, i64 %bytes, ptr %x) {
  store i64 %bytes, ptr %out
  %v = load i64, ptr %x
  ret i64 %v
}
define i32 @narrow(ptr dereferenceable(32) %out, i32 %given) {
  ret i32 %given
}
define i32 @rank(ptr %out) {
  %place = getelementptr i8, ptr %out, i64 24
  %shape = load ptr, ptr %place
  %v = load i64, ptr %shape
  %narrow = trunc i64 %v to i32
  ret i32 %narrow
}
"""
CODE = HostCode.from_llvm(TEXT)


def array(tensor: Any) -> Any:
    return np.from_dlpack(tensor)


def kept(**more: Any) -> fe.Function:
    """The numbers that are not zero, and pairs of these with their positions."""
    out = Tensor("out", (K,), "int64", capacity=N, **more)
    pairs = Tensor("pairs", (K, 2), "int64", capacity=N)
    call = CFunction("keep", [out.data, pairs.data, X.data, N], returns="int64", code=CODE)
    return compiler.build(Signature("kept", [X]), Sized(call, K), results=[out, pairs])


@pytest.fixture(scope="module")
def function() -> fe.Function:
    return kept()


def test_results_come_back_with_the_size_that_the_function_returned(function: fe.Function) -> None:
    assert str(function.signature) == (
        "kept(x: Tensor([n], int64)) -> Tuple[Tensor([k], int64), Tensor([k, 2], int64)]"
    )
    for given in ([0, 3, 0, 4, 5], [0, 0], [1, 2], []):
        numbers = np.array(given, np.int64)
        with all_freed():
            out, pairs = function(numbers)
            (where,) = np.nonzero(numbers)
            assert array(out).tolist() == numbers[where].tolist()
            assert array(pairs).tolist() == np.stack([numbers[where], where], 1).tolist()
            del out, pairs


def test_nothing_is_copied() -> None:
    """The rows behind the size are the memory's still."""
    out = Tensor("out", (K,), "int64", capacity=N, align=256)
    address = specs.Pointer("result")
    call = CFunction("memcpy", [out.data, X.data, out.nbytes], returns="pointer")
    size = CFunction("first", [out.data, out.nbytes, X.data], returns="int64", code=CODE)
    made = compiler.build(Signature("f", [X]), Sequence([call, Sized(size, K)]), results=[out])
    with all_freed():
        found, address = made(np.array([2, 7, 8], np.int64))
        # Until the size is told it is the capacity: 24 bytes.
        assert array(found).tolist() == [24, 7]
        assert array(found).__array_interface__["data"][0] == int(address.value or 0)
        assert int(address.value or 0) % 256 == 0
        del found


@pytest.mark.needs_torch
def test_torch_gets_torch_tensors_of_the_size(function: fe.Function) -> None:
    import torch

    out, pairs = function(torch.tensor([0, 5, 6]))
    assert out.tolist() == [5, 6]
    assert pairs.shape == (2, 2)
    assert (out + 1).tolist() == [6, 7]
    operator = fe.torch_op(function, "capacities::kept")
    assert operator(torch.tensor([0, 5, 6]))[0].tolist() == [5, 6]
    torch.library.opcheck(operator, (torch.tensor([0, 5, 6]),))


def test_a_number_of_the_call_is_a_capacity(tmp_path: Path) -> None:
    most = Scalar("most", "uint64")
    text, x = Tensor("text", (K,), "uint8", capacity=most.value + 1), Scalar("x", "float64")
    given = [text.data, text.nbytes, CString("%g"), x]
    call = Sized(CFunction("snprintf", given, returns="int32", variadic_from=3), K)
    written = compiler.build(Signature("written", [x, most]), call, results=[text])
    written.export_library(tmp_path / "written.so")
    for fn in (written, fe.runtime.load_module(tmp_path / "written.so").written):
        assert bytes(array(fn(0.25, 4))) == bytes(array(fn(0.25, 100))) == b"0.25"
        with pytest.raises(RuntimeError, match="snprintf gave k = 5, expected from 0 to 4, "):
            fn(1.125, 3)
        with pytest.raises(ValueError, match="most does not fit 64 bits with a sign"):
            fn(1.125, 2**64 - 1)
        with pytest.raises(ValueError, match="expected fewer than 2..62 bytes"):
            fn(1.125, 2**63 - 2)
    sized = Tensor("text", (K, most.value), "uint8", capacity=3)
    with pytest.raises(ValueError, match="or, where a call tells the size, say capacity=most.valu"):
        compiler.build(Signature("written", [x, most]), call, results=[sized])


def test_a_size_beyond_the_capacity_ends_the_call() -> None:
    out = Tensor("out", (K,), "int64", capacity=N)
    call = CFunction("first", [out.data, out.nbytes, X.data], returns="int64", code=CODE)
    first = compiler.build(Signature("f", [X]), Sized(call, K), results=[out])
    for given in (-1, 4, 1 << 62):
        message = f"first gave k = {given}, expected from 0 to 3, the capacity of out"
        with all_freed(), pytest.raises(RuntimeError, match=f"^{message}$"):
            first(np.array([given, 0, 0], np.int64))
    assert first(np.array([3, 0, 0], np.int64)).shape == (3,)


def test_sizes_have_a_width_a_divisor_and_failures() -> None:
    even = specs.sym_int(symbol="even", divisibility=2)
    given = Scalar("given", "int32")
    out = Tensor("out", (even,), "int8", capacity=32)
    code = ReturnCode(fails="negative", errors={-7: (KeyError, "no")}, value=True)
    call = CFunction("narrow", [out.data, given], returns=code, code=CODE)
    narrow = compiler.build(Signature("f", [given]), Sized(call, even), results=[out], zero=["out"])
    assert array(narrow(4)).tolist() == [0, 0, 0, 0]
    for number, error, message in (
        (3, RuntimeError, "narrow gave even = 3, expected a multiple of 2"),
        (34, RuntimeError, "expected from 0 to 32"),
        (-7, KeyError, "no"),
        (-1, RuntimeError, "narrow returned -1"),
    ):
        with all_freed(), pytest.raises(error, match=message):
            narrow(number)


def test_a_size_that_is_told_keeps_its_bounds() -> None:
    some = specs.sym_int(symbol="some", min=2, max=8)
    given, out = Scalar("given", "int32"), Tensor("out", (some,), "int8", capacity=32)
    call = CFunction("narrow", [out.data, given], returns="int32", code=CODE)
    narrow = compiler.build(Signature("f", [given]), Sized(call, some), results=[out])
    assert [narrow(number).shape for number in (2, 8)] == [(2,), (8,)]
    for number in (0, 1, 9, 32):
        message = f"^narrow gave some = {number}, expected 2 to 8$"
        with all_freed(), pytest.raises(RuntimeError, match=message):
            narrow(number)


def test_a_callee_of_dltensors_sees_the_capacity() -> None:
    out = Tensor("out", (K, 3), "int8", capacity=N + 1)
    call = DLTensors("rank", [out], returns="int32", code=CODE)
    made = compiler.build(Signature("f", [X]), Sized(call, K), results=[out])
    assert made(np.zeros(4, np.int64)).shape == (5, 3)


def test_later_steps_take_a_size_that_is_told() -> None:
    """One number tells how many bytes the next step copies; one comes back."""
    given = Scalar("given", "int32")
    m = specs.sym_int64(symbol="m")
    y = Tensor("y", (8,), "int8")
    told = Sized(CFunction("abs", [given], returns="int32"), m)
    copied = CFunction("memset", [y.data, cast(1, "int32"), cast(m, "uint64")])
    other = Sized(CFunction("div", [given, cast(2, "int32")], returns=["int32"] * 2), None, K)
    out = Tensor("out", (K,), "int8", capacity=1)
    made = compiler.build(
        Signature("f", [given, y]), Sequence([told, copied, other]), results=[out]
    )
    numbers = np.zeros(8, np.int8)
    found, half = made(5, numbers)
    assert (found.shape, half, numbers.tolist()) == ((1,), 2, [1] * 5 + [0] * 3)


def test_a_capacity_fits_the_width_of_its_symbol() -> None:
    """The size has its value until a call tells it, and goes in its own width."""
    k, n = specs.sym_int(symbol="k"), specs.sym_int64(symbol="n")
    out, count = Tensor("out", (k, 0), "int8", capacity=n), Scalar("count", "int64")
    sig = Signature("f", [specs.Shape("shape", (n,)), count])
    told = Sized(CFunction("labs", [count], returns="int64"), k)
    made = compiler.build(sig, told, results=[out])
    assert made(((1 << 31) - 1,), (1 << 31) - 1).shape == ((1 << 31) - 1, 0)
    with pytest.raises(ValueError, match="the capacity of out is 2147483648, expected at most"):
        made((1 << 31,), 1)


def test_the_size_before_the_call_is_the_capacity_whatever_its_bounds_are() -> None:
    """What overflows with the capacity ends the call, although the bounds of the size forbid it."""
    k = specs.sym_int64(symbol="k", max=4)
    out = Tensor("out", (k,), "int8", capacity=N)
    told = Sized(CFunction("abs", [cast(1, "int32")], returns="int32"), k)
    steps = [CFunction("labs", [k * (1 << 61)]), told]
    made = compiler.build(Signature("f", [X]), Sequence(steps), results=[out])
    assert made(np.zeros(1, np.int64)).shape == (1,)
    with pytest.raises(ValueError, match="of labs overflows 64 bits"):
        made(np.zeros(4, np.int64))


def test_a_convention_in_another_is_named() -> None:
    big = Tensor("big", (9,), "int8")
    call = DLTensors("rank", [big], returns="int32", code=CODE)
    out = Tensor("out", (K,), "int8", capacity=0)
    made = compiler.build(
        Signature("f", [X]),
        Sequence([Sized(call, K)], temporaries=[big]),
        results=[out],
    )
    with pytest.raises(RuntimeError, match="^rank gave k = "):
        made(np.zeros(1, np.int64))


def test_files_have_it_all(function: fe.Function, tmp_path: Path) -> None:
    function.export_library(tmp_path / "kept.so")
    loaded = fe.runtime.load_module(tmp_path / "kept.so").kept
    assert loaded.signature.text() == function.signature.text()
    assert array(loaded(np.array([0, 9], np.int64))[0]).tolist() == [9]


def test_results_on_a_gpu_shrink(fake_cuda: FakeCuda) -> None:
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .b64 x) { ret; }"
    out, n = Tensor("out", (K,), "float32", capacity=N), Scalar("many", "int32")
    launch = CudaLaunch(fe.DeviceCode.from_ptx(ptx), "k", [out.data], 1, 1)
    size = Sized(CFunction("abs", [n], returns="int32"), K)
    sig = Signature("f", [Tensor("x", (N,), "float32"), n])
    made = compiler.build(sig, Sequence([launch, size]), results=[out])
    with all_freed():
        found = made(floats(10), 4)
        assert (found.shape, str(found.device)) == ((4,), "cuda:0")
        del found
    with all_freed(), pytest.raises(RuntimeError, match="expected from 0 to 10"):
        made(floats(10), 11)


def sized(out: Tensor, *sizes: Any) -> Any:
    call = CFunction("first", [out.data, 8, X.data], returns="int64", code=CODE)
    return compiler.build(Signature("f", [X]), Sized(call, *sizes), results=[out])


OUT = Tensor("out", (K,), "int64", capacity=N)
VOID = CFunction("abort")
ABS = CFunction("abs", [1], returns="int32")


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: Tensor("t", (4,), "int8", capacity=8), ValueError, "a symbol as its first size"),
        (lambda: Tensor("t", (), "int8", capacity=8), ValueError, "but it is without dims"),
        (lambda: Tensor("t", (K,), "int8", capacity=-1), ValueError, "from 0 to"),
        (lambda: Tensor("t", (K,), "int8", capacity="8"), TypeError, "capacity must be an int"),  # type: ignore[arg-type]
        (lambda: Tensor("t", (K,), "int8", capacity=K + 1), ValueError, "known after the call"),
        (lambda: Tensor("t", (K, K), "int8", capacity=4), ValueError, "known after the call"),
        (
            lambda: Tensor("t", (K, 4), "int8", capacity=4, strides=(1, K)),
            ValueError,
            "compact and row-major",
        ),
        (lambda: Signature("f", [OUT]), ValueError, "'out' has a capacity, which only a result"),
        (lambda: Sequence([ABS], temporaries=[OUT]), ValueError, "temporary 'out' has a capacity"),
        (lambda: Sized(ABS), ValueError, "value that the call gives back, 1, but got 0"),
        (lambda: Sized(ABS, None), ValueError, "at least one value, but all are None"),
        (lambda: Sized(VOID, K), ValueError, "gives back, 0, but got 1"),
        (lambda: Sized(ABS, 3), TypeError, "a size is a symbol"),  # type: ignore[arg-type]
        (lambda: Sized("abs", K), TypeError, "must be a calling convention"),  # type: ignore[arg-type]
        (lambda: Sized(CFunction("cos", [], returns="float64"), K), ValueError, "is an integer"),
        (lambda: Sized(CFunction("f", when=N > 0), K), ValueError, "may not be made"),
        (lambda: sized(OUT, N), ValueError, "n is told already"),
        (lambda: sized(OUT, specs.sym_int64(symbol="j")), ValueError, "nothing tells the size k"),
        (
            lambda: sized(Tensor("out", (K,), "int64", capacity=specs.sym_int64()), K),
            ValueError,
            "of the result 'out' is in no parameter",
        ),
        (
            lambda: sized(Tensor("out", (N,), "int64", capacity=4), K),
            ValueError,
            "the arguments tell its size n",
        ),
        (
            lambda: compiler.build(
                Signature("f", [X]),
                Sequence([Sized(ABS, K), Sized(ABS, K)]),
                results=[OUT],
            ),
            ValueError,
            "k is told already",
        ),
        (
            lambda: compiler.build(
                Signature("f", [X]),
                Sequence([Sequence([Sized(ABS, K)], when=N > 0)]),
                results=[OUT],
            ),
            ValueError,
            "a call that may not be made cannot tell k",
        ),
        (
            lambda: compiler.build(
                Signature("f", [X]),
                Sized(ABS, K),
                results=[OUT, Tensor("more", (K,), "int8", capacity=4)],
            ),
            ValueError,
            "out and more have one size, but not one capacity",
        ),
    ],
)
def test_what_cannot_be_is_refused(made: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made()
