"""The faults of threads that do not cooperate as an op of `threads` requires: a DivergenceError.

Every target that detects this uses these messages, and so does the reference interpreter.
"""

from __future__ import annotations

from ferrule.compiler.artefacts import Fault, Location, literal
from ferrule.language.ir.operation import Synchronising

KIND = "DivergenceError"


def absent(kernel: str, op: Synchronising) -> Fault:
    """Threads for which an op waits did not arrive, and cannot arrive any more.

    Its values: the number of threads that arrived, and the number it waits for; the block x, y, z;
    the first missing thread, x, y, z, but not for a barrier with a count.  For a barrier in shared
    memory: the number of waiting threads, of threads in the block, and the first missing one.
    """
    if op.meets == "phase":
        return Fault(
            KIND,
            f"{_place(kernel, op)} waits for a phase that cannot end any more: {{}} of {{}} threads"
            " of block ({}, {}, {}) wait there, the first is thread ({}, {}, {})",
            op.location,
        )
    if op.meets == "some":
        # The op does not determine which threads should arrive, only how many.
        return Fault(
            KIND,
            f"{_place(kernel, op)} was reached by {{}} of the {{}} threads that it waits for, in"
            " block ({}, {}, {})",
            op.location,
        )
    return Fault(
        KIND,
        f"{_place(kernel, op)} was reached by {{}} of {{}} threads of block ({{}}, {{}}, {{}}):"
        " the first that did not is thread ({}, {}, {})",
        op.location,
    )


def excluded(kernel: str, op: Synchronising) -> Fault:
    """A thread runs an op whose mask does not include it.

    Its values: the mask; the block x, y, z; the thread x, y, z.
    """
    return Fault(
        KIND,
        f"{_place(kernel, op)} has the mask {{}}, without the lane of the thread that runs it,"
        " in block ({}, {}, {}): thread ({}, {}, {})",
        op.location,
    )


def partial_warps(kernel: str) -> Fault:
    """A kernel multiplies matrices with blocks that do not consist of whole warps; its value: the
    number of threads."""
    return Fault(
        KIND,
        f"{literal(kernel)}: mma() and ldmatrix() need whole warps, but a block has {{}} threads",
    )


def _place(kernel: str, op: Synchronising) -> str:
    return literal(f"{kernel}: {op.called}{_at(op.location)}")


def _at(location: Location | None) -> str:
    return "" if location is None else f" at {location.file}:{location.line}"
