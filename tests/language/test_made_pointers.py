"""Pointers of run-time addresses, and tensors whose layout a kernel computes."""

from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"


@fe.kernel
def gathered_kernel(table: fe.Tensor, out: fe.Tensor):
    """Row g of `out` is the matrix of the table, transposed, plus one; it is doubled there."""
    for group in range(table.shape[0]):
        at = fe.make_ptr(fe.Float32, table[group, 0], fe.AddressSpace.gmem, assumed_align=4)
        rows, columns = fe.Int32(table[group, 1]), fe.Int32(table[group, 2])
        layout = fe.make_layout((rows, columns), stride=(columns, fe.Int32(1)))
        matrix = fe.make_tensor(at, layout)
        for i in range(rows):
            for j in range(columns):
                out[group, j * rows + i] = matrix[i, j] + 1
                matrix[i, j] = matrix[i, j] * 2


@fe.jit
def gathered(table: fe.Tensor, out: fe.Tensor):
    gathered_kernel(table, out).launch(grid=1, block=1)


def test_tensors_behind_addresses_of_a_table() -> None:
    matrices = [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((4, 1), np.float32)]
    before = [each.copy() for each in matrices]
    table = np.array([[each.ctypes.data, *each.shape] for each in matrices], np.int64)
    out = np.zeros((2, 6), np.float32)
    fe.compile(gathered, table, out, options=CPU)(table, out)
    for each, old, row in zip(matrices, before, out, strict=True):
        np.testing.assert_array_equal(row[: old.size], old.T.ravel() + 1)
        np.testing.assert_array_equal(each, old * 2)


@fe.jit
def through(a: fe.Tensor, out: fe.Tensor):
    p = fe.make_ptr(fe.Float32, a.iterator.toint(), assumed_align=4)
    p[1] = 5.0
    out[0] = a[1]  # the same memory, which the write through the pointer has changed


def test_a_pointer_is_the_memory_of_its_tensor() -> None:
    a, out = np.zeros(2, np.float32), np.zeros(1, np.float32)
    fe.compile(through, a, out, options=CPU)(a, out)
    assert out[0] == 5


@fe.kernel
def aliased_kernel(a: fe.Tensor, out: fe.Tensor):
    p = fe.make_ptr(fe.Float32, a.iterator.toint(), assumed_align=4)
    out[0] = a[0]
    p[0] = 3.0
    out[1] = a[0]


@fe.jit
def aliased(a: fe.Tensor, out: fe.Tensor):
    aliased_kernel(a, out).launch(grid=1, block=1)


def test_memory_behind_a_pointer_is_not_taken_for_constant() -> None:
    floats = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    compiled = fe.compile(aliased, floats, floats, options="--target cuda --gpu-arch sm_80")
    text = compiled.inspect_ptx() if hasattr(compiled, "inspect_ptx") else compiled.__ptx__
    assert "ld.global" in text and ".nc" not in text


WRONG: dict[str, Any] = {
    "make_ptr into": lambda a: fe.make_ptr(fe.Float32, a, fe.AddressSpace.rmem),
    "is known only in a kernel": lambda a: fe.make_ptr(fe.Float32, a, fe.AddressSpace.smem),
    "the address of make_ptr is": lambda a: fe.make_ptr(fe.Float32, fe.Float32(1.5)),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_pointers(message: str) -> None:
    make = WRONG[message]

    @fe.jit
    def wrong(a: fe.Int64):
        make(a)

    with pytest.raises(fe.CompileError, match=message):
        fe.compile(wrong, fe.Int64(0), options=CPU)


@fe.kernel
def elected_kernel(out: fe.Tensor):
    with fe.arch.elect_one():
        out[fe.arch.warp_idx()] = fe.arch.thread_idx()[0] + 1


@fe.jit
def elected(out: fe.Tensor):
    elected_kernel(out).launch(grid=1, block=96)


def test_with_elect_one_is_an_if() -> None:
    out = np.zeros(3, np.int32)
    fe.compile(elected, out, options=CPU)(out)
    assert out.tolist() == [1, 33, 65]


def doubled(n: int) -> Any:
    """Ordinary Python, called while compiling, that makes a number of a dtype and computes."""
    return fe.Int32(n) * 2, n + 1


@fe.jit
def of_typed(out: fe.Tensor):
    out[0], out[1] = doubled(20)


def test_numbers_of_dtypes_have_operators_in_functions_that_python_could_run() -> None:
    out = np.zeros(2, np.int32)
    fe.compile(of_typed, out, options=CPU)(out)
    assert out.tolist() == [40, 21]
