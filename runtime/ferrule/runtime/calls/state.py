"""What a compiled function knows: it is in its `__dict__`, for all that look into functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import tvm_ffi

from ferrule import specs
from ferrule.runtime.artefacts import Origin
from ferrule.runtime.calls.plan import CallPlan
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.runtime.exporting.headers import Described

STATE: Final = "_ferrule_state"
"""The name of the state in a function's `__dict__`."""


@dataclass(slots=True, eq=False)
class Count:
    """The calls that Python made so far."""

    calls: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """The signature, origin and plan of a function, and what was given to `build` for it."""

    signature: specs.Signature
    origin: Origin
    plan: CallPlan
    doc: str | None
    notes: Mapping[str, Any]
    made: Count


def state_of(function: Any) -> State:
    """The state of a function.  RuntimeError for one that has no code."""
    try:
        state: State = function.__dict__[STATE]
    except KeyError:
        raise RuntimeError("this function has no code: ferrule.compile makes functions") from None
    return state


def origin_of(function: Any) -> Origin:
    """The origin of a function, which can emit its code again."""
    return state_of(function).origin


def described(function: Any) -> Described:
    """The signature and docstring of a function, for headers and stubs."""
    state = state_of(function)
    return state.signature, state.doc


def is_compiled(value: object) -> bool:
    """Whether a value is a compiled function of ferrule."""
    return isinstance(value, tvm_ffi.Function) and STATE in getattr(value, "__dict__", ())
