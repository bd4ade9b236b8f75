"""The text that people read is compiled again: the same results, the same sizes refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import emulated_mlir
import numpy as np
import pytest
from lowered import matrix, vector
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule.compiler.errors import CompileError

pytestmark = needs_mlir


def again(function: fe.Function, **more: Any) -> fe.Function:
    """The function that the text of another one describes."""
    return fe.frontends.mlir.compile(function.inspect_mlir(), **more)


def both(function: Callable[..., Any], *examples: Any) -> tuple[fe.Function, fe.Function]:
    first = fe.compile(function, *examples, options="--target cpu")
    return first, again(first)


def control(
    x: fe.Tensor, out: fe.Tensor, low: fe.Int32, high: fe.Int64, up: fe.Boolean
) -> fe.Int64:
    """Loops of each kind, branches, carried values."""
    found, steps = fe.Int64(0), fe.Int64(0)
    for i in range(low, x.shape[0], 2):
        if x[i] > 1 and up:
            found += i
        elif x[i] < -1:
            found -= high
    for k in range(3, -4, -3):
        found = found * 2 + k
    value = fe.Float32(1)
    while value < 100 and steps < high:
        value = value * 2 + x[0]
        steps += 1
    out[0] = value
    out[1] = fe.Float32(found) / fe.Float32(high)
    return found


def narrow(x: fe.Tensor, flags: fe.Tensor, out: fe.Tensor, factor: fe.Float16):
    """Halves, bools in memory, conversions that saturate, memory of its own."""
    kept = fe.make_rmem_tensor((2, 2), fe.Float32)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            flags[i, j] = x[i, j] * factor > 2
            kept[i % 2, j % 2] += fe.Float32(fe.Int8(x[i, j] * 100))
    out[0] = x[1, 2] + kept[1, 0]
    out[1] = kept[0, 1]


def made(x: fe.Tensor):
    """New tensors: one that it returns, one that it does not."""
    double = fe.empty_like(x)
    double[:] = x[:] * 2
    y = fe.empty_like(x)
    y[:] = double[:] + x[:]
    return y, x.shape[0]


def test_a_function_of_numbers_and_loops() -> None:
    first, second = both(
        control, vector(), fe.make_fake_compact_tensor(fe.Float32, (2,)), 1, fe.Int64(1), True
    )
    x = np.array([0.5, 2, -3, 4, -5, 6, 0.25], np.float32)
    for arguments in ((0, 7, True), (1, 3, False), (-1 + 1, -2, True)):
        outs = [np.zeros(2, np.float32) for _ in range(2)]
        found = [f(x, out, *arguments) for f, out in zip((first, second), outs, strict=True)]
        assert found[0] == found[1]
        np.testing.assert_array_equal(*outs)


def test_a_function_of_halves_and_bools() -> None:
    flags = fe.make_fake_compact_tensor(fe.Boolean, (4, 3), stride_order=(1, 0))
    x = fe.make_fake_tensor(fe.Float16, (4, 3), stride=(fe.sym_int(), 1))
    first, second = both(
        narrow, x, flags, fe.make_fake_compact_tensor(fe.Float32, (2,)), fe.Float16(1)
    )
    assert "memref<4x3xi1>" in first.inspect_mlir()
    assert "memref<4x3xf16, strided<[?, 1]>>" in first.inspect_mlir()
    values = np.linspace(-3, 3, 20, dtype=np.float16).reshape(4, 5)[:, :3]
    found = []
    for function in (first, second):
        out, mask = np.zeros(2, np.float32), np.zeros((4, 3), bool)
        function(values, mask, out, 1.5)
        found.append((out, mask))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_what_is_new_is_returned() -> None:
    first, second = both(made, vector())
    x = np.arange(5, dtype=np.float32)
    (y, n), (again_y, again_n) = first(x), second(x)
    np.testing.assert_array_equal(np.from_dlpack(y), np.from_dlpack(again_y))
    assert n == again_n == 5
    assert str(second.signature).startswith("made(x: Tensor([n0], float32))")


def test_what_the_signature_promises_is_asserted() -> None:
    n = fe.sym_int(divisibility=4, symbol="n")

    def add(a: fe.Tensor, b: fe.Tensor):
        for i in range(a.shape[0]):
            b[i] += a[i] + a[i + a.shape[0]]

    first = fe.compile(
        add,
        fe.make_fake_compact_tensor(fe.Float32, (n * 2,)),
        fe.make_fake_compact_tensor(fe.Float32, (n,)),
        options="--target cpu",
    )
    second = again(first)
    for sizes, said in (((8, 8), "a.shape"), ((6, 3), "multiple of 4")):
        arguments = [np.zeros(size, np.float32) for size in sizes]
        with pytest.raises(ValueError):
            first(*arguments)
        with pytest.raises((ValueError, RuntimeError), match=said):
            second(*arguments)


def test_kernels_and_launches_give_the_same_on_a_gpu() -> None:
    """Also reductions in subgroups, for which there are no kernels of the language, and what is
    around launches."""
    command = [sys.executable, emulated_mlir.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wanted = [
        *emulated_mlir.REDUCED,
        "steps",
        "kernel",
        "vectors",
        "unsigned",
        *emulated_mlir.SHAPES,
        "assert",
    ]
    assert done.stdout.split() == wanted, done.stderr


def test_unsigned_integers_stay_unsigned() -> None:
    def host(x: fe.Tensor, n: fe.Uint32):
        y = fe.empty_like(x)
        y[:] = x[:] // n
        return y, n - 1

    first, second = both(host, vector(fe.Uint64), fe.Uint32(1))
    said = (
        r"\(x: Tensor\(\[n0?\], uint64\), n: uint32\) -> Tuple\[Tensor\(\[n1?\], uint64\), uint32\]"
    )
    for function in (first, second):
        assert re.search(said, str(function.signature))
    x = np.array([2**64 - 1, 7], np.uint64)
    (y, less), (again_y, again_less) = first(x, 2), second(x, 2)
    np.testing.assert_array_equal(np.from_dlpack(y), np.from_dlpack(again_y))
    assert less == again_less == 1
    assert first(x, 0)[1] == second(x, 0)[1] == 2**32 - 1


def test_sizes_that_the_text_asserts_may_not_be_given_away() -> None:
    text = emulated_mlir.example("swiglu").inspect_mlir()
    n, m = fe.sym_int(), fe.sym_int()
    specs = {"x": fe.make_fake_compact_tensor(fe.Float16, (n, m), stride_order=(1, 0))}
    with pytest.raises(CompileError, match=r"@swiglu asserts something of x.shape\[1\] that its"):
        fe.frontends.mlir.compile(text, target="sm_90a", specs=specs)


def test_objects_are_pointers_and_cannot_be_compiled_again() -> None:
    def host(x: fe.Tensor, names: fe.Array[fe.Int64]):
        return fe.call("their.sum", x, names[0], result=int)

    function = fe.compile(host, vector(), None, options="--target cpu")
    with pytest.raises(CompileError, match="the argument 'names' of @host is !llvm.ptr"):
        again(function)


def test_columns_and_strides_are_asserted_too() -> None:
    def transposed(a: fe.Tensor, b: fe.Tensor):
        b[:] = a[:]

    a = fe.make_fake_compact_tensor(fe.Float32, (3, 4), stride_order=(0, 1))
    first, second = both(transposed, a, matrix())
    assert "memref<3x4xf32, strided<[1, 3]>>" in first.inspect_mlir()
    x, out = (
        np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)),
        np.zeros((3, 4), "f4"),
    )
    second(x, out)
    np.testing.assert_array_equal(out, x)
