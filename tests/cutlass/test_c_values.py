"""Objects whose values are in memory of C, as programs for CuTe DSL write them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.cutlass import mlir as llvm

CPU = "--target cpu"
I32 = llvm.IntegerType.get_signless(32)


class View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int32 * 2),
        ("scale", ctypes.c_double),
    ]


class ViewValue(llvm.Value):
    """What the compiled function has of a view."""

    def __init__(self, value: Any, factor: int) -> None:
        super().__init__(value)
        self.factor = factor

    @property
    def data(self) -> Any:
        return fe.make_ptr(fe.Float32, llvm.extractvalue(llvm.PointerType.get(), self, [0]))

    @property
    def shape(self) -> Any:
        shape = llvm.extractvalue(llvm.StructType.get_literal([I32, I32]), self, [1])
        return tuple(llvm.extractvalue(I32, shape, [i]) for i in range(2))

    @property
    def scale(self) -> Any:
        return llvm.extractvalue(fe.Float64, self, [2]) * self.factor


class Argument:
    def __init__(self, view: Any, rank: int = 2, factor: int = 1) -> None:
        self.view, self.rank, self.factor = view, rank, factor

    def __get_mlir_types__(self) -> Any:
        shape = llvm.StructType.get_literal([I32] * self.rank)
        return [llvm.StructType.get_literal([llvm.PointerType.get(), shape, fe.Float64]), fe.Int8]

    def __c_pointers__(self) -> Any:
        return [ctypes.addressof(self.view), ctypes.pointer(ctypes.c_int8(-3))]

    def __new_from_mlir_values__(self, values: Any) -> Any:
        return ViewValue(values[0], self.factor), values[1]


@fe.jit
def summed(argument, out: fe.Tensor):
    view, offset = argument
    tensor = fe.make_tensor(view.data, fe.make_layout(view.shape, stride=(view.shape[1], 1)))
    total = fe.Float64(0)
    for i in range(view.shape[0]):
        for j in range(view.shape[1]):
            total += tensor[i, j] * (j + 1)
    out[0] = total * view.scale + offset


def expected(array: Any, scale: float) -> float:
    return float((array * (np.arange(array.shape[1]) + 1)).sum() * scale - 3)


def test_values_are_read_at_each_call() -> None:
    array, out = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(1)
    view = View(array.ctypes.data, (2, 3), 0.5)
    compiled = fe.compile(summed, Argument(view), out, options=CPU)
    compiled(Argument(view), out)
    assert out[0] == expected(array, 0.5)
    other = np.full((4, 2), 7, np.float32)
    compiled(Argument(View(other.ctypes.data, (4, 2), -2.0)), out)
    assert out[0] == expected(other, -2.0)
    compiled((((other.ctypes.data, (4, 2), 1.0), -3)), out)  # the values themselves
    assert out[0] == expected(other, 1.0)


def test_a_direct_call_knows_the_object_that_makes_its_values() -> None:
    array, out = np.ones((2, 2), np.float32), np.zeros(1)
    view = View(array.ctypes.data, (2, 2), 1.0)
    for factor in (1, 3, 1):
        summed(Argument(view, factor=factor), out)
        assert out[0] == expected(array, factor)


def test_what_a_call_cannot_read_is_refused() -> None:
    array, out = np.ones((2, 2), np.float32), np.zeros(1)
    view = View(array.ctypes.data, (2, 2), 1.0)
    compiled = fe.compile(summed, Argument(view), out, options=CPU)
    with pytest.raises(
        TypeError, match=r"Mismatched Argument on argument #0 .* but got {pointer, {int32}, "
    ):
        compiled(Argument(view, rank=1), out)

    class Elsewhere(Argument):
        def __c_pointers__(self) -> Any:
            return [self.view, ctypes.pointer(ctypes.c_int8())]

    buffer = (ctypes.c_byte * 64)()
    odd = ctypes.addressof(buffer) | 1
    with pytest.raises(ValueError, match=r"an address that is a multiple of 8 .* got 0x"):
        compiled(Elsewhere(odd), out)
    for wrong in (0, None, True, "here"):
        with pytest.raises(TypeError, match=r"an address of __c_pointers__: an int or a pointer"):
            compiled(Elsewhere(wrong), out)

    class Fewer(Argument):
        def __c_pointers__(self) -> Any:
            return [ctypes.addressof(self.view)]

    with pytest.raises(ValueError, match=r"expected 2 addresses of __c_pointers__, but got 1"):
        compiled(Fewer(view), out)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (3, "is no list of types"),
        (["i32"], "which is no type of C: a dtype such as fe.Int32"),
        ([fe.Float16], "no value of type float16 is read from memory of C"),
    ],
)
def test_what_is_no_type_of_c_is_an_error(types: Any, message: str) -> None:
    class Wrong(Argument):
        def __get_mlir_types__(self) -> Any:
            return types

    with pytest.raises(fe.CompileError, match=message):
        fe.compile(summed, Wrong(None), np.zeros(1), options=CPU)


def test_a_field_has_the_type_that_is_asked_for() -> None:
    @fe.jit
    def other(argument, out: fe.Tensor):
        out[0] = llvm.extractvalue(fe.Int64, argument[0], [1, 0])

    view = View(0, (2, 2), 1.0)
    with pytest.raises(fe.CompileError, match=r"the field \[1, 0\] is not of the type"):
        fe.compile(other, Argument(view), np.zeros(1), options=CPU)
    with pytest.raises(ValueError, match="packed"):
        llvm.StructType.get_literal([I32], packed=True)
    with pytest.raises(ValueError, match="address space"):
        llvm.PointerType.get(3)
    with pytest.raises(TypeError, match="no type of a field"):
        llvm.StructType.get_literal(["i32"]).__ferrule_spec__("s")
