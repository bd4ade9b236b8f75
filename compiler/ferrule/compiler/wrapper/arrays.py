"""Arrays of 64-bit numbers in memory, compared as they are, two numbers at once.

The sizes and strides of a tensor are right where they equal those of one that was accepted with
the same dims.  That takes a branch for all of them, not one for each: branches that are not taken
are what bounds a wrapper of many tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferrule.compiler.wrapper.hot import Hot
from ferrule.runtime.llvm.layouts import I64
from ferrule.runtime.llvm.writer import Value, Writer, i32

PAIR = 2
_ALL_LANES = (1 << 4) - 1


def pairs(writer: Writer, array: Value, count: int) -> Iterator[Value]:
    """All numbers of an array of at least two; the last two overlap others where `count` is odd."""
    for start in range(0, count, PAIR):
        at = writer.index(array, I64, min(start, count - PAIR))
        yield writer.load_pair(at)


def require_equal(hot: Hot, found: Iterable[Value], wanted: Iterable[Value]) -> None:
    """Go on only where all pairs are the same."""
    writer, same = hot.writer, None
    for left, right in zip(found, wanted, strict=True):
        equal = writer.equal_lanes(left, right)
        same = equal if same is None else writer.binary("and", same, equal, "same")
    assert same is not None
    # As an i32, because for other widths fast instruction selection needs one more jump.
    lanes = writer.cast("zext", writer.cast("bitcast", same, "i4"), "i32", "lanes")
    hot.require(writer.icmp("eq", lanes, i32(_ALL_LANES)))
