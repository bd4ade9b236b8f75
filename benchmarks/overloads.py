"""What the choice among overloads costs.

    python benchmarks/overloads.py [--quick] [--json FILE]

Each row calls a function by itself and as a candidate of an overload, with the same array.  The
functions read nothing and write one element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import subjects
from harness import (
    FULL,
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Table,
    arguments,
    call_side,
    finish,
    measure,
)

import ferrule as fe

ALONE: Final = "by itself"
CHOSEN: Final = "in an overload"
DTYPES: Final = (
    *(fe.Int8, fe.Int16, fe.Int32, fe.Int64),
    *(fe.Float16, fe.Uint16, fe.Float32, fe.Float64),
)


@fe.jit
def one(a: fe.Tensor):
    a[0] = 1


def vector(dtype: Any, divisibility: int = 1, **options: Any) -> Any:
    """A fake tensor of one symbolic dim."""
    shape = (fe.sym_int(divisibility=divisibility),)
    return fe.make_fake_compact_tensor(dtype, shape, **options)


def build(*examples: Any) -> fe.Function:
    """`one` for these examples."""
    return fe.compile(one, *examples, options=subjects.OPTIONS)


def dtype_rows(effort: Effort) -> Iterator[Row]:
    """Candidates that take tensors of other dtypes, so that one alone can be right."""
    functions = [build(vector(dtype)) for dtype in DTYPES]
    for count in (2, len(DTYPES)):
        both = fe.overload(functions[:count])
        for place in (0, count - 1):
            array = np.zeros(16, DTYPES[place].name)
            sides = [
                call_side(ALONE, functions[place], (array,), effort),
                call_side(CHOSEN, both, (array,), effort),
            ]
            yield measure(f"candidate {place + 1} of {count}, by dtype", sides, effort)


def special_rows(effort: Effort) -> Iterator[Row]:
    """A special case before the general one, which could take every call of it."""
    special, general = build(vector(fe.Float32, 4, assumed_align=16)), build(vector(fe.Float32))
    both = fe.overload([special, general])
    for name, function, size in (("aligned", special, 16), ("any", general, 15)):
        array = np.zeros(size, np.float32)
        sides = [
            call_side(ALONE, function, (array,), effort),
            call_side(CHOSEN, both, (array,), effort),
        ]
        yield measure(f"a multiple of 4, else any: {name}", sides, effort)


def _nanoseconds(row: Row) -> float | None:
    """What the choice adds to a call."""
    difference = row.difference(CHOSEN, ALONE)
    return None if difference is None else difference * NS.scale


def run(effort: Effort) -> Result:
    """Measure all of it."""
    rows = (*dtype_rows(effort), *special_rows(effort))
    goals = [Goal(row.name, 10, _nanoseconds(row), "ns") for row in rows if "of 8" not in row.name]
    return Result((Table("Overloads", NS, rows, (CHOSEN, ALONE)),), tuple(goals))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What the choice among overloads costs", argv)
    finish("overloads", run(QUICK if given.quick else FULL), given)


if __name__ == "__main__":
    main()
