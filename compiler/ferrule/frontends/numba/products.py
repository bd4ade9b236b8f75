"""Products of matrices and vectors, which Numba calls of SciPy's BLAS by names of its own.

Here they are loops: each element of a product is the sum of its terms in their order, so results
may differ from those of a BLAS in the last bits.  Matrices are in column-major order, as in BLAS;
Numba's factors alpha and beta are always 1 and 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from llvmlite import ir

from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F64, I8, I32, I64, PTR
from ferrule.specs.deferred import dataclass

PREFIX: Final = "numba_xx"
"""The prefix of the functions' names."""
PRODUCTS: Final = ("numba_xxgemm", "numba_xxgemv", "numba_xxdot")
_F32: Final = ir.FloatType()
_VOID: Final = ir.VoidType()


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A matrix in memory: the distances of its rows and of its columns, in elements."""

    start: ir.Value
    row: ir.Value
    column: ir.Value

    def at(self, e: Emitter, i: ir.Value, j: ir.Value) -> ir.Value:
        """The number of an element."""
        b = e.builder
        return b.add(b.mul(i, self.row), b.mul(j, self.column))


@dataclass(frozen=True, slots=True)
class _Kind:
    """The elements of one kind, by BLAS's letter: a float, or a complex number as two floats."""

    letter: str
    part: ir.Type
    parts: int

    def load(self, e: Emitter, at: ir.Value, number: ir.Value) -> list[ir.Value]:
        """The parts of an element."""
        first = e.builder.mul(number, e.const_i64(self.parts))
        return [
            e.load(e.index(at, self.part, e.builder.add(first, e.const_i64(i))), self.part)
            for i in range(self.parts)
        ]

    def store(self, e: Emitter, values: list[ir.Value], at: ir.Value, number: ir.Value) -> None:
        """Store the parts of an element."""
        first = e.builder.mul(number, e.const_i64(self.parts))
        for i, value in enumerate(values):
            e.store(value, e.index(at, self.part, e.builder.add(first, e.const_i64(i))))

    def zero(self) -> list[ir.Value]:
        """The parts of a zero."""
        return [ir.Constant(self.part, 0.0)] * self.parts

    def with_product(
        self, e: Emitter, total: list[ir.Value], x: list[ir.Value], y: list[ir.Value]
    ) -> list[ir.Value]:
        """A sum with one more product."""
        b = e.builder
        if self.parts == 1:
            return [b.fadd(total[0], b.fmul(x[0], y[0]))]
        real = b.fsub(b.fmul(x[0], y[0]), b.fmul(x[1], y[1]))
        imaginary = b.fadd(b.fmul(x[0], y[1]), b.fmul(x[1], y[0]))
        return [b.fadd(total[0], real), b.fadd(total[1], imaginary)]

    def conjugate(self, e: Emitter, x: list[ir.Value], flag: ir.Value) -> list[ir.Value]:
        """An element, or its conjugate where the flag is set."""
        if self.parts == 1:
            return x
        return [x[0], e.select(flag, e.builder.fneg(x[1]), x[1])]


_KINDS: Final = (
    _Kind("s", _F32, 1),
    _Kind("d", F64, 1),
    _Kind("c", _F32, 2),
    _Kind("z", F64, 2),
)


def products() -> str:
    """The functions as LLVM IR.  Each returns 0."""
    e = Emitter("products")
    for kind in _KINDS:
        _product(e, kind)
    _gemm(e)
    _gemv(e)
    _dot(e)
    return e.text()


def _product(e: Emitter, kind: _Kind) -> None:
    """`c[i, j] = sum(a[i, t] * b[t, j])`; `by_rows` chooses the order of the loops, which suits
    matrices `a` with compact rows, and `flip` takes the conjugates of `a`."""
    names = "by_rows flip m n k a a.row a.column b b.row b.column c c.column".split()
    taken = [ir.IntType(1)] * 2 + [I64] * 3 + [PTR, I64, I64] * 2 + [PTR, I64]
    with e.define(_name(kind), _VOID, taken, names=names, linkage="internal") as function:
        by_rows, flip, m, n, k, *rest = function.args
        a, b = _Matrix(*rest[:3]), _Matrix(*rest[3:6])
        c = _Matrix(rest[6], e.const_i64(1), rest[7])
        with e.builder.if_else(by_rows) as (rows, columns):
            with rows:
                _by_rows(e, kind, (m, n, k), (a, b, c), flip)
            with columns:
                _by_columns(e, kind, (m, n, k), (a, b, c), flip)
        e.ret()


def _by_rows(e: Emitter, kind: _Kind, sizes: Any, matrices: Any, flip: ir.Value) -> None:
    """One element after the other."""
    (m, n, k), (a, b, c) = sizes, matrices
    sums = e.alloca(kind.part, kind.parts, name="sum")
    zero = e.const_i64(0)
    with e.loop(n, name="j") as j, e.loop(m, name="i") as i:
        kind.store(e, kind.zero(), sums, zero)
        with e.loop(k, name="term") as t:
            x = kind.conjugate(e, kind.load(e, a.start, a.at(e, i, t)), flip)
            y = kind.load(e, b.start, b.at(e, t, j))
            kind.store(e, kind.with_product(e, kind.load(e, sums, zero), x, y), sums, zero)
        kind.store(e, kind.load(e, sums, zero), c.start, c.at(e, i, j))


def _by_columns(e: Emitter, kind: _Kind, sizes: Any, matrices: Any, flip: ir.Value) -> None:
    """All elements of a column at once, which vectorises where the columns of `a` are compact."""
    (m, n, k), (a, b, c) = sizes, matrices
    with e.loop(n, name="j") as j:
        with e.loop(m, name="i") as i:
            kind.store(e, kind.zero(), c.start, c.at(e, i, j))
        with e.loop(k, name="term") as t:
            y = kind.load(e, b.start, b.at(e, t, j))
            with e.loop(m, name="i") as i:
                x = kind.conjugate(e, kind.load(e, a.start, a.at(e, i, t)), flip)
                total = kind.load(e, c.start, c.at(e, i, j))
                kind.store(e, kind.with_product(e, total, x, y), c.start, c.at(e, i, j))


def _name(kind: _Kind) -> str:
    return f"product.{kind.letter}"


@contextmanager
def _function(e: Emitter, name: str, taken: list[ir.Type]) -> Iterator[list[ir.Value]]:
    """A function that returns 0."""
    with e.define(name, I32, taken) as function:
        yield list(function.args)
        e.ret(e.const_i32(0))


def _call(e: Emitter, letter: ir.Value, given: list[ir.Value]) -> None:
    """Call the product of the elements' kind."""
    for kind in _KINDS:
        with e.if_then(e.icmp("eq", letter, ir.Constant(I8, ord(kind.letter)))):
            e.call(e.module.globals[_name(kind)], given)


def _laid_out(e: Emitter, start: ir.Value, wide: ir.Value, turned: ir.Value) -> list[ir.Value]:
    """A matrix with columns `wide` elements apart; its transpose if it is `turned`."""
    one = e.const_i64(1)
    return [start, e.select(turned, wide, one), e.select(turned, one, wide)]


def _is_turned(e: Emitter, letter: ir.Value) -> ir.Value:
    return e.icmp("eq", letter, ir.Constant(I8, ord("t")))


def _gemm(e: Emitter) -> None:
    taken = [I8] * 3 + [I64] * 3 + [PTR, PTR, I64, PTR, I64, PTR, PTR, I64]
    with _function(e, "numba_xxgemm", taken) as given:
        letter, a_way, b_way, m, n, k, _, a, a_wide, b, b_wide, _, c, c_wide = given
        turned = _is_turned(e, a_way)
        left = _laid_out(e, a, a_wide, turned)
        right = _laid_out(e, b, b_wide, _is_turned(e, b_way))
        sizes = [m, n, k]
        _call(e, letter, [turned, e.const_i1(False), *sizes, *left, *right, c, c_wide])


def _gemv(e: Emitter) -> None:
    with _function(e, "numba_xxgemv", [I8, I8, I64, I64, PTR, PTR, I64, PTR, PTR, PTR]) as given:
        letter, way, rows, columns, _, a, wide, x, _, y = given
        turned, one = _is_turned(e, way), e.const_i64(1)
        m, k = e.select(turned, columns, rows), e.select(turned, rows, columns)
        left = _laid_out(e, a, wide, turned)
        _call(e, letter, [turned, e.const_i1(False), m, one, k, *left, x, one, k, y, m])


def _dot(e: Emitter) -> None:
    with _function(e, "numba_xxdot", [I8, I8, I64, PTR, PTR, PTR]) as given:
        letter, conjugate, n, x, y, out = given
        flip, one = e.icmp("ne", conjugate, ir.Constant(I8, 0)), e.const_i64(1)
        left, right = [x, n, one], [y, one, n]
        _call(e, letter, [e.const_i1(True), flip, one, one, n, *left, *right, out, one])
