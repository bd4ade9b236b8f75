"""The blocks of a launch and the threads of a block as loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ferrule.language.ir import ops
from ferrule.language.mlir import control

if TYPE_CHECKING:
    from ferrule.language.mlir.functions import FunctionText

AXES: Final = range(len(ops.AXES))
_OUTER_FIRST: Final = (2, 1, 0)


def locate(f: FunctionText, number: str) -> None:
    """Sets the coordinates of a block from its number."""
    t, width, height = f.t, f.coordinates["grid_dim", 0], f.coordinates["grid_dim", 1]
    rows = t.arith("divui", number, width)
    places = (t.arith("remui", number, width), t.arith("remui", rows, height))
    for axis, place in enumerate((*places, t.arith("divui", rows, height))):
        f.coordinates["block_idx", axis] = place


def threads(f: FunctionText, body: Callable[[], None], *, fails: bool) -> None:
    """Loops over the threads of a block, x innermost."""

    def along(axes: tuple[int, ...]) -> None:
        if not axes:
            body()
            return
        axis, *rest = axes

        def each(number: str) -> None:
            f.coordinates["thread_idx", axis] = number
            along(tuple(rest))

        first, end = f.t.const_i64(0), f.coordinates["block_dim", axis]
        hint = f"thread_{ops.AXES[axis]}"
        control.counted(f, first, end, each, fails=fails, hint=hint)

    along(_OUTER_FIRST)
