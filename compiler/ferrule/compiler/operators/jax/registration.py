"""Handlers in XLA's registry, and what keeps their code alive.

XLA takes no handler out of its registry, so that what is registered stays until the process ends.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ferrule.compiler.operators.jax.handler import handler_module
from ferrule.compiler.operators.jax.plans import PLATFORMS, Plan
from ferrule.runtime import Function
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.linking.engine import Engine, host_triple
from ferrule.runtime.llvm.native import compile_native
from ferrule.specs.deferred import dataclass

_SYMBOL: Final = f"{SYMBOL_PREFIX}jax_call"
_TARGET: Final = "ferrule_target"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Registered:
    """A handler under its name in XLA; the code lives as long as this object."""

    name: str
    made: tuple[str, ...]
    function: Function
    engine: Engine


_REGISTERED: Final[dict[str, Registered]] = {}
_LOCK: Final = ForkLock()


def registered(plan: Plan, function: Function, name: str | None) -> str:
    """The name of the handler in XLA, which is registered unless it is.

    Raises ValueError for the name of another handler, and TypeError or ValueError for no name.
    """
    made = tuple(each.name for each in plan.arguments if each.made)
    with _LOCK:
        chosen = _chosen(function, made, name)
        if chosen not in _REGISTERED:
            _register(plan, function, chosen, made)
    return chosen


def _chosen(function: Function, made: tuple[str, ...], name: str | None) -> str:
    if name is None:
        for known in _REGISTERED.values():
            if known.function is function and known.made == made:
                return known.name
        return _free(f"ferrule.{function.name}")
    if not isinstance(name, str):
        raise TypeError(f"jax_call: name must be a text, but got {name!r}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"jax_call: the name of a handler has ASCII letters, digits and _ . : -, but got "
            f"{name!r}"
        )
    taken = _REGISTERED.get(name)
    if taken is not None and (taken.function is not function or taken.made != made):
        raise ValueError(
            f"jax_call: XLA has a handler {name!r} of {taken.function.signature}, and keeps it; "
            f"choose another name"
        )
    return name


def _free(name: str) -> str:
    names = (name if i == 0 else f"{name}.{i}" for i in range(len(_REGISTERED) + 1))
    return next(each for each in names if each not in _REGISTERED)


def _register(plan: Plan, function: Function, name: str, made: tuple[str, ...]) -> None:
    import jax

    text = handler_module(plan, _SYMBOL, _TARGET, host_triple())
    code = compile_native(_SYMBOL.removeprefix(SYMBOL_PREFIX), text)
    engine = Engine.load(code, {_TARGET: function.call_plan.code})
    capsule = _capsule(engine.address(_SYMBOL))
    jax.ffi.register_ffi_target(name, capsule, platform=PLATFORMS[plan.device])
    _REGISTERED[name] = Registered(name, made, function, engine)


def _capsule(address: int) -> Any:
    import ctypes

    import jax

    return jax.ffi.pycapsule(ctypes.c_void_p(address))
