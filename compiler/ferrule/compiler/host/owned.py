"""The objects and values that a body owns, and the two functions of a body that owns some.

`ferrule_body` has a table with a slot for each object that the body makes or receives.  It calls
`inner`, which does the work and gets the address of the table first, and releases the contents of
the table afterwards, also after an error.  On success the caller gets references of its own to the
returned objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler.support.entries import KEEP, LET_GO, RELEASE
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, I32, I64, PTR, VOID
from ferrule.specs.deferred import dataclass

SYMBOL: Final = "ferrule_body"
WORDS: Final = ANY.size // 8
"""The 8-byte words of a tvm-ffi value in a table of them."""
_SLOTS: Final = ir.FunctionType(VOID, [PTR, I64])


def clear(e: Emitter, table: ir.Value, count: int) -> None:
    """Store null in this number of slots."""
    for position in range(count):
        e.store(e.null(), e.index(table, PTR, position))


def release(e: Emitter, table: ir.Value, count: int) -> None:
    """Release the handles of a table; null stays null."""
    e.call(e.symbol(LET_GO, _SLOTS), [table, e.const_i64(count)])


def retain(e: Emitter, status: ir.Value, results: ir.Value, slots: Sequence[int]) -> None:
    """If the call succeeded, add references for the caller to the objects in these slots."""
    if not slots:
        return
    with e.if_then(e.icmp("eq", status, ir.Constant(I32, 0)), likely=True):
        for slot in slots:
            keep(e, results, slot)


def keep(e: Emitter, table: ir.Value, slot: int = 0) -> None:
    """Add a reference to the object in a slot."""
    e.call(e.symbol(KEEP, _SLOTS), [table, e.const_i64(slot)])


def set_none(e: Emitter, values: ir.Value, count: int) -> None:
    """Set this number of tvm-ffi values to None."""
    for position in range(count):
        value = e.index(values, ANY, position)
        for name in ("head", "v_int64"):
            e.store_field(value, ANY, name, e.const_i64(0))


def release_values(e: Emitter, values: ir.Value, count: int) -> None:
    """Release what tvm-ffi values refer to; the values themselves stay as they are."""
    e.call(e.symbol(RELEASE, _SLOTS), [values, e.const_i64(count)])


def declare_inner(
    e: Emitter,
    types: Sequence[ir.Type],
    names: Sequence[str],
    *,
    table: str = "tensors",
    attributes: Sequence[str] = (),
) -> ir.Function:
    """Declare the function that does the work, whose first argument has the name `table`."""
    return e.declare(
        "inner",
        I32,
        [PTR, *types],
        names=[table, *names],
        linkage="internal",
        attributes=("nounwind", *attributes),
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """The code of `ferrule_body` around the call of `inner`.

    `objects`: the slots of the table for handles; `values`: places for tvm-ffi values, in the
    table, or at `kept` if the caller keeps them, who then has them after success.  `returned`: the
    slots of the results, at `results`, that are objects.  `cells`: a table without slots still has
    so many, for bodies whose `inner` computes addresses in it.
    """

    objects: int
    values: int = 0
    kept: ir.Value | None = None
    results: ir.Value | None = None
    returned: Sequence[int] = ()
    cells: int = 0

    def emit(
        self, e: Emitter, inner: ir.Function, arguments: Sequence[ir.Value], table: str = "tensors"
    ) -> None:
        """Emit it up to the `ret`; `inner` takes the table, with this name, and these arguments."""
        slots = max(self.objects, self.cells)
        inside = self.values if self.kept is None else 0
        place = e.null()
        if slots + inside:
            place = e.alloca(I64, slots + WORDS * inside, name=table)
        clear(e, place, slots)
        values = e.index(place, I64, slots) if inside else self.kept
        if inside:
            set_none(e, values, self.values)
        status = e.call(inner, [place, *arguments], "status")
        results = self.results if self.returned else None
        retain(e, status, e.null() if results is None else results, self.returned)
        self._release_values(e, status, values)
        if self.objects:
            release(e, place, self.objects)
        e.ret(status)

    def _release_values(self, e: Emitter, status: ir.Value, values: ir.Value | None) -> None:
        if values is None or not self.values:
            return
        if self.kept is None:
            release_values(e, values, self.values)
            return
        with e.if_then(e.icmp("ne", status, ir.Constant(I32, 0)), likely=False):
            release_values(e, values, self.values)
            set_none(e, values, self.values)
