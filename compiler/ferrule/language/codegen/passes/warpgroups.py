"""Products of warpgroups for targets without them: each thread computes its elements of D.

A thread reads the rows of A and the columns of B that it needs from shared memory itself.  A in
registers comes from the three other lanes that share these rows, by shuffles.  Sums are float32, or
int32, which wraps, in the order of k.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ferrule.language.faces.tensor_cores import CORE_ROW, SharedMatrix
from ferrule.language.ir import ops, tensor_cores
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, DType, Float32, Int32, Int64, Uint32

_LANES: Final = 4
"""Lanes that share a row of a matrix."""
_ROWS: Final = 8
_CHUNK: Final = 4
"""The lowest bit of an address that a swizzle changes."""
_SWIZZLE_ROW: Final = 7
"""The lowest of the bits that it is combined with."""
_UNBOUNDED: Final = (1 << 63) - 1


def multiply(b: Builder, op: ops.WarpgroupMma, thread: ops.Value) -> None:
    """Emits a product of the thread with this number in its block."""
    dtype = Float32 if op.d.tensor.dtype.kind == "float" else Int32
    lane = _rest(b, thread, ops.WARP_SIZE)
    group, t = _divided(b, lane, _LANES), _rest(b, lane, _LANES)
    warp = _rest(b, _divided(b, thread, ops.WARP_SIZE), _LANES)
    first = _plus(b, _times(b, warp, 2 * _ROWS), group)
    left = b.fragment(_own(dtype, 2 * op.depth), "rows")
    if op.of_a is None:
        _gather(b, op, left, group)
    else:
        matrix = _Matrix(b, op.a, op.of_a, dtype)
        for half in (0, 1):
            row = _plus(b, first, _number(b, _ROWS * half))
            with _loop(b, op.depth) as k:
                b.store(left, (_plus(b, k, _number(b, op.depth * half)),), matrix.at(row, k))
    right = _Matrix(b, op.b, op.of_b, dtype)
    with _loop(b, op.columns // _ROWS) as j:
        for half in (0, 1):
            column = _plus(b, _times(b, j, _ROWS), _times(b, t, 2))
            _column(b, op, left, right, _plus(b, column, _number(b, half)), (j, half))


def _column(
    b: Builder,
    op: ops.WarpgroupMma,
    left: ops.Value,
    right: _Matrix,
    column: ops.Value,
    place: tuple[ops.Value, int],
) -> None:
    """The two elements of the thread in a column of D."""
    dtype = left.tensor.dtype
    places = [_plus(b, _times(b, place[0], 4), _number(b, 2 * half + place[1])) for half in (0, 1)]
    zero = b.cast(dtype, _number(b, 0))
    initial = [b.select(op.accumulate, b.cast(dtype, b.load(op.d, (at,))), zero) for at in places]
    k = ops.Value(Int32, "k")
    carried = tuple(ops.Value(dtype, "sum") for _ in initial)
    results = tuple(ops.Value(dtype, "sum") for _ in initial)
    with b.region() as body:
        factor = right.at(column, k)
        sums = [
            b.binary(
                "add",
                total,
                b.binary("mul", b.load(left, (_plus(b, k, _number(b, op.depth * half)),)), factor),
            )
            for half, total in enumerate(carried)
        ]
    bounds = (_number(b, 0), _number(b, op.depth), _number(b, 1))
    b.append(ops.For(results, k, *bounds, tuple(initial), carried, body.freeze(*sums)))
    for at, total in zip(places, results, strict=True):
        b.store(op.d, (at,), b.cast(op.d.tensor.dtype, total))


def _gather(b: Builder, op: ops.WarpgroupMma, left: ops.Value, group: ops.Value) -> None:
    """Both rows of A, from the fragments of the lanes that have them."""
    w = tensor_cores.words(op.a)
    mask, clamp = b.constant(Uint32, 0xFFFFFFFF), _number(b, ops.WARP_SIZE - 1)
    with _loop(b, _LANES) as other:
        lane = _plus(b, _times(b, group, _LANES), other)
        first = _times(b, other, w)
        for position in range(tensor_cores.fragment_size(op.a)):
            word, j = divmod(position, w)
            own = b.load(op.a, (_number(b, position),))
            value = b.shuffle("idx", own, lane, mask, clamp, op.location)
            k = _plus(b, first, _number(b, 4 * w * (word // 2) + j + op.depth * (word % 2)))
            b.store(left, (k,), b.cast(left.tensor.dtype, value))


class _Matrix:
    """A matrix in shared memory."""

    def __init__(
        self, b: Builder, pointer: ops.Value, layout: SharedMatrix | None, dtype: DType
    ) -> None:
        assert layout is not None
        self.b, self.layout, self.dtype = b, layout, dtype
        of = pointer.tensor
        self.size: Final = of.dtype.itemsize
        self.elements: Final = b.view(
            pointer, TensorType(of.dtype, (_UNBOUNDED,), (1,), of.align, of.space)
        )
        self.address: Final = ops.Value(Int64, "address")
        b.append(ops.Address(self.address, pointer))

    def at(self, mn: ops.Value, k: ops.Value) -> ops.Value:
        """An element, in the dtype of the sums."""
        b = self.b
        offset = b.cast(Int64, self._offset(mn, k))
        bits = self.layout.swizzle.bit_length() - 5  # 1, 2 or 3 for 32, 64 and 128 bytes
        if self.layout.swizzle:
            there = b.binary("add", self.address, offset)
            row = b.binary("shr", there, b.constant(Int64, _SWIZZLE_ROW))
            low = b.binary("and", row, b.constant(Int64, (1 << bits) - 1))
            changed = b.binary("xor", there, b.binary("shl", low, b.constant(Int64, _CHUNK)))
            offset = b.binary("sub", changed, self.address)
        index = b.binary("shr", offset, b.constant(Int64, self.size.bit_length() - 1))
        return b.cast(self.dtype, b.load(self.elements, (index,)))

    def _offset(self, mn: ops.Value, k: ops.Value) -> ops.Value:
        """Of an element in bytes before the swizzle; see `SharedMatrix`."""
        b, layout, span = self.b, self.layout, self.layout.swizzle or CORE_ROW
        outer, inner = (k, mn) if layout.major == "mn" else (mn, k)
        byte = _times(b, inner, self.size)
        far = layout.leading
        if layout.major == "mn" and not layout.swizzle:
            groups, far = layout.leading, layout.stride
        else:
            groups = layout.stride
        parts = [
            _times(b, _divided(b, outer, _ROWS), groups),
            _times(b, _rest(b, outer, _ROWS), span),
            _times(b, _divided(b, byte, span), far),
            _rest(b, byte, span),
        ]
        total = parts[0]
        for part in parts[1:]:
            total = _plus(b, total, part)
        return total


def _own(dtype: DType, size: int) -> TensorType:
    return TensorType(dtype, (size,), (1,), 16, AddressSpace.rmem)


@contextmanager
def _loop(b: Builder, count: int) -> Iterator[ops.Value]:
    """A loop over so many indices; what is emitted inside is its body."""
    index = ops.Value(Int32, "index")
    with b.region() as body:
        yield index
    zero, stop, one = (_number(b, value) for value in (0, count, 1))
    b.append(ops.For((), index, zero, stop, one, (), (), body.freeze()))


def _number(b: Builder, value: int) -> ops.Value:
    return b.constant(Int32, value)


def _plus(b: Builder, value: ops.Value, more: ops.Value) -> ops.Value:
    return b.binary("add", value, more)


def _times(b: Builder, value: ops.Value, by: int) -> ops.Value:
    return b.binary("mul", value, _number(b, by))


def _divided(b: Builder, value: ops.Value, by: int) -> ops.Value:
    """The quotient of a number that is not negative by a power of 2."""
    return b.binary("shr", value, _number(b, by.bit_length() - 1))


def _rest(b: Builder, value: ops.Value, by: int) -> ops.Value:
    """The remainder."""
    return b.binary("and", value, _number(b, by - 1))
