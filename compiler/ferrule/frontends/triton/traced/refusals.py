"""Errors of traced functions: those of a call, which a function raises for some sizes, and the one
about a value that only a call knows."""

from __future__ import annotations

import dis
from typing import Final

from ferrule.compiler.errors import Diagnostic
from ferrule.specs import Sym
from ferrule.specs.deferred import dataclass

_MISTAKES: Final = (TypeError, AttributeError, LookupError, NameError, ImportError)
"""Errors that mean that the function itself is wrong, wherever they are raised."""

_KINDS: Final = ("ValueError", "AssertionError", "MemoryError", "RuntimeError")
"""The classes of errors that a call can raise; an error of another class is a RuntimeError."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error of each call on one path.

    `what` is the function that raises it, `symbols` are the sizes that are shown.
    """

    what: str
    kind: str
    message: str
    symbols: tuple[Sym, ...] = ()


class CallRefused(Exception):
    """A traced function refuses the calls of the current path."""

    def __init__(self, what: str, kind: str, message: str) -> None:
        super().__init__(f"{what} raises {kind}: {message}")
        self.refusal = Refusal(what, kind, message)


def refusal_of(error: Exception, what: str) -> CallRefused | None:
    """The refusal for an error that a function raises on purpose; None for a mistake in it."""
    if isinstance(error, _MISTAKES) or not _is_raised(error):
        return None
    names = [each.__name__ for each in type(error).__mro__]
    kind = next((each for each in names if each in _KINDS), "RuntimeError")
    return CallRefused(what, kind, str(error) or "an assertion does not hold")


def _is_raised(error: Exception) -> bool:
    """Whether a `raise` or `assert` outside of this package made an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or str(trace.tb_frame.f_globals.get("__name__")).startswith("ferrule."):
        return False
    code = trace.tb_frame.f_code.co_code
    return dis.opname[code[trace.tb_lasti]] == "RAISE_VARARGS"


def undecided(what: str) -> Diagnostic:
    """The error about a value that no traced function can have."""
    return Diagnostic(
        f"the value of {what} is known only at the call",
        expected="+ - * // % and comparisons of sizes, triton.cdiv, triton.next_power_of_2, "
        "math.ceil(a / b), and minimum, maximum and ceil_div of ferrule.frontends.triton",
        hint="for another choice compile several functions",
    )
