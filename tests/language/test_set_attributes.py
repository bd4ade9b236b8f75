"""Objects that exist while compiling, and that a compiled function changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch

VECTOR = fe.make_fake_compact_tensor(fe.Int32, (8,))
FACTORS = [1]


@fe.kernel
def listed(c: fe.Tensor):
    c[0] = c[0] * 10 + FACTORS[0]


class Adder:
    """A kernel that reads what its host function sets, as generators of kernels are written."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def configure(self) -> None:
        self.steps = 2 * self.factor

    @fe.jit
    def __call__(self, c: fe.Tensor):
        self.dtype = c.element_type
        self.factor += 1
        self.configure()
        self.kernel(c).launch(grid=1, block=8)
        self.steps = 1
        self.kernel(c).launch(grid=1, block=8)
        self.kernel(c).launch(grid=1, block=8)

    @fe.kernel
    def kernel(self, c: fe.Tensor):
        t = arch.thread_idx()[0]
        c[t] = c[t] + self.dtype(self.steps)


def compiled(function: Any, *more: Any) -> Any:
    return fe.compile(function, VECTOR, *more, options="--target cpu")


def test_a_kernel_reads_what_was_set_before_its_launch() -> None:
    adder, c = Adder(3), np.zeros(8, np.int32)
    function = compiled(adder)
    function(c)
    assert (c == 8 + 1 + 1).all()
    assert (adder.factor, adder.steps, adder.dtype) == (4, 1, fe.Int32)
    # Two kernels: the second and third launch run the same.
    assert function.inspect_ir().count("kernel @") == 2


def test_a_launch_sees_what_was_put_into_a_list() -> None:
    def host(c: fe.Tensor):
        FACTORS[0] = 1
        listed(c).launch(grid=1, block=1)
        FACTORS[0] = 2
        listed(c).launch(grid=1, block=1)
        FACTORS.append(3)
        listed(c).launch(grid=1, block=1)
        del_last = FACTORS.pop()
        FACTORS[0] = del_last
        listed(c).launch(grid=1, block=1)

    c = np.zeros(8, np.int32)
    function = compiled(fe.jit(host))
    function(c)
    assert c[0] == 1223
    assert function.inspect_ir().count("kernel @") == 3


def test_run_time_values_in_an_object_of_the_function() -> None:
    def host(c: fe.Tensor, n: fe.Int32):
        own = Adder(3)
        own.factor = n * 2
        own.factor += 1
        c[0] = own.factor

    c = np.zeros(8, np.int32)
    compiled(fe.jit(host), fe.Int32(0))(c, 7)
    assert c[0] == 15


@dataclass(frozen=True)
class Pair:
    x: int


OUTSIDE = Adder(1)


def in_a_branch(c: fe.Tensor, n: fe.Int32):
    own = Adder(3)
    if n > 3:
        own.factor = 5
    c[0] = own.factor


def in_a_loop(c: fe.Tensor, n: fe.Int32):
    own = Adder(3)
    for _ in range(n):
        own.factor += 1
    c[0] = own.factor


def outside(c: fe.Tensor, n: fe.Int32):
    OUTSIDE.factor = n


def of_a_module(c: fe.Tensor, n: fe.Int32):
    np.factor = 3


def of_a_class(c: fe.Tensor, n: fe.Int32):
    Adder.factor = 3


def of_a_number(c: fe.Tensor, n: fe.Int32):
    n.factor = 3


def of_a_record(c: fe.Tensor, n: fe.Int32):
    pair = Pair(3)
    pair.x = 4


def of_an_int(c: fe.Tensor, n: fe.Int32):
    one = 1
    one.factor = 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (in_a_branch, "the Adder 'own' is changed inside a run-time branch or loop"),
        (in_a_loop, "the Adder 'own' is changed inside a run-time branch or loop"),
        (outside, "a run-time value is put into a Adder that was made outside"),
        (of_a_module, "(module) has no attributes to assign to"),
        (of_a_class, "has no attributes to assign to"),
        (of_a_number, "a run-time int32 has no attributes to assign to"),
        (of_a_record, "make a new object: pair = dataclasses.replace(pair, x=...)"),
        (of_an_int, "AttributeError at compile time: 'int' object has no attribute 'factor'"),
    ],
)
def test_what_cannot_be_changed(function: Any, message: str) -> None:
    with pytest.raises(fe.CompileError) as found:
        compiled(fe.jit(function), fe.Int32(0))
    assert message in str(found.value)
