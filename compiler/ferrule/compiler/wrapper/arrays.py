"""Comparison of arrays of 64-bit numbers in memory, two numbers at once.

The sizes and strides of a tensor are right if they equal the sizes and strides of an accepted
tensor with the same dims.  This takes one branch for all of them instead of one for each: branches
that are not taken limit the speed of a wrapper with many tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferrule.compiler.wrapper.hot import Hot
from ferrule.runtime.llvm.layouts import I64
from ferrule.runtime.llvm.writer import Value, Writer, i32

PAIR = 2
_ALL_LANES = (1 << 4) - 1


def pairs(writer: Writer, array: Value, count: int) -> Iterator[Value]:
    """All numbers of an array of at least two; if `count` is odd, the last two overlap the
    others."""
    for start in range(0, count, PAIR):
        at = writer.index(array, I64, min(start, count - PAIR))
        yield writer.load_pair(at)


def require_equal(hot: Hot, found: Iterable[Value], wanted: Iterable[Value]) -> None:
    """Go on only if all pairs are equal."""
    writer, same = hot.writer, None
    for left, right in zip(found, wanted, strict=True):
        equal = writer.equal_lanes(left, right)
        same = equal if same is None else writer.binary("and", same, equal, "same")
    assert same is not None
    # As an i32, because fast instruction selection needs one more jump for other widths.
    lanes = writer.cast("zext", writer.cast("bitcast", same, "i4"), "i32", "lanes")
    hot.require(writer.icmp("eq", lanes, i32(_ALL_LANES)))
