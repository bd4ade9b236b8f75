"""Dataclasses and named tuples of run-time values, their methods, and callables of all kinds."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest
from agreement import run_all_ways
from plain_python import Program, collect, f32, i32, zeros

import ferrule as fe

PROGRAMS: list[Program] = []
program = collect(PROGRAMS)


@dataclass(frozen=True)
class Vector:
    x: fe.Float32
    y: fe.Float32 = 1.0
    tag: str = "v"
    more: tuple[int, ...] = field(default_factory=lambda: (1, 2))

    def __post_init__(self):
        assert len(self.tag) > 0

    def __add__(self, other):
        if isinstance(other, Vector):
            return Vector(self.x + other.x, self.y + other.y, self.tag, self.more)
        return Vector(self.x + other, self.y + other)

    __radd__ = __add__

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __lt__(self, other):
        return self.x < other.x

    def __mul__(self, other):
        if isinstance(other, Vector):
            return NotImplemented
        return Vector(self.x * other, self.y * other)

    def __call__(self, k):
        return self.x + k

    def scaled(self, by=2):
        return dataclasses.replace(self, x=self.x * by)

    @property
    def norm2(self):
        return self.x * self.x + self.y * self.y

    @staticmethod
    def unit(x):
        return Vector(x, 0.0)

    @classmethod
    def diagonal(cls, x):
        return cls(x, x)


class Pair(NamedTuple):
    a: fe.Int32
    b: float

    def total(self):
        return self.a + self.b


@dataclass
class Nested:
    inner: Vector
    pair: Pair
    count: int = 0


def longer(p, q):
    if p.norm2 > q.norm2:
        return p
    return q


@program(f32(1, 2, 3, 4), zeros(8))
def carried_through_branches_and_loops(a, out):
    p = Vector(a[0])
    for i in range(a.shape[0]):
        q = Vector(a[i], 2.0)
        p = p + q
        if q < Vector.unit(0.5):
            continue
        if i == 2:
            p = p.scaled()
        p = 1 + p
    out[0], out[1] = p.x, p.y
    out[2] = longer(p, -p.scaled(3)).norm2
    out[3] = (Vector.diagonal(a[0]) * a[1]).y
    out[4] = len(p.tag) + p.more[1]
    out[5] = 1 if p == Vector(p.x, p.y, p.tag, p.more) else 2
    out[6] = 1 if Vector(a[0], a[1]) != Vector(a[0], a[1]) else 2


@program(f32(1, 5, 3), zeros(4))
def nested_objects(a, out):
    state = Nested(Vector(a[0], a[1]), Pair(1, a[2]))
    while state.count < 3:
        inner = state.inner if state.inner.x > 3 else state.inner + 1
        state = Nested(inner, Pair(state.pair.a * 2, state.pair.b), state.count + 1)
    out[0], out[1] = state.inner.x, state.inner.y
    out[2], out[3] = state.pair.total(), state.count


@program(f32(1, 2, 3), zeros(4))
def everything_that_can_be_called(a, out):
    p = Vector(a[0], a[1])
    add = functools.partial(lambda x, y, z=0: x + y * z, a[0])
    out[0] = add(a[1], z=a[2])
    out[1] = p(a[2]) + p.scaled(by=3)(1)
    method = p.scaled
    out[2] = method(5).x + Pair(2, a[0]).total()
    out[3] = functools.partial(longer, p)(Vector(a[2])).norm2


@program(i32(4, 9), zeros(2, dtype=np.int32))
def jit_functions_call_each_other(a, out):
    out[0] = larger(a[0], a[1])
    fill(out, 1, larger(a[0], 5))


@fe.jit
def larger(x, y):
    if x > y:
        return x
    return y


@fe.jit
def fill(out, i, x):
    out[i] = x


@fe.kernel
def calling_kernel(a, out):
    i = fe.arch.thread_idx()[0]
    out[i] = larger(a[i], 5)


def launches(a, out):
    calling_kernel(a, out).launch(grid=1, block=2)


def test_jit_functions_are_called_from_kernels() -> None:
    run_all_ways(launches, (i32(4, 9), zeros(2, dtype=np.int32)), plain=False)


@fe.kernel
def taking_objects(out, p, pair, state):
    i = fe.arch.thread_idx()[0]
    out[i] = p.norm2 + pair.total() + state.inner.x * state.count


@program(f32(1, 2, 3), zeros(2))
def kernels_take_objects(a, out):
    p = Vector(a[0], a[1])
    state = Nested(Vector(a[2]), Pair(1, 2.0), 7)
    taking_objects(out, p, Pair(3, a[2]), state).launch(grid=1, block=1)
    taking_objects(out, -p, Pair(4, a[2]), state).launch(grid=1, block=2)


@pytest.mark.parametrize(
    "each", [p for p in PROGRAMS if "jit" not in p[0].__name__], ids=lambda p: p[0].__name__
)
def test_program(each: Program) -> None:
    run_all_ways(*each, tolerance=1e-6)


def test_jit_functions_call_each_other() -> None:
    ((function, arguments),) = [p for p in PROGRAMS if "jit" in p[0].__name__]
    run_all_ways(function, arguments, plain=False)


class Point(NamedTuple):
    x: fe.Int32
    y: fe.Int32 = 7


def test_named_tuples_replace_items_and_become_dicts() -> None:
    @fe.jit
    def moved(n: fe.Int32):
        p = Point(n)._replace(x=n + 1)
        d = p._asdict()
        return p.x * 100 + d["y"]

    assert moved(2) == 307

    @fe.jit
    def unknown(n: fe.Int32):
        return Point(n)._replace(z=n)

    with pytest.raises(fe.CompileError, match="Point has no field 'z'"):
        unknown(1)
