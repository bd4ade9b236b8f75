"""Which axes of a mesh the values of a `shard_map` differ along.

JAX follows it in the types of arrays, and takes the results of a call of XLA for the same on all
devices. A result depends on all arguments, so it differs where one of them does; the cast of an
argument makes JAX sum its gradients over the devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Axes = frozenset[str]


def axes_of(arrays: Iterable[Any]) -> Axes:
    """The axes along which one of the arrays differs."""
    return frozenset().union(*map(_varying, arrays))


def varied(array: Any, axes: Axes) -> Any:
    """The array, for JAX one that differs along all these axes."""
    import jax

    missing = tuple(sorted(axes - _varying(array)))
    if not missing:
        return array
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, missing, to="varying")
    return jax.lax.pvary(array, missing)


def _varying(array: Any) -> Axes:
    import jax

    typed: Any = jax.typeof(array) if hasattr(jax, "typeof") else None
    kind = getattr(typed, "mat", None)  # JAX 0.8 and before has `vma` in the type itself
    found = getattr(typed, "vma", None) if kind is None else kind.varying
    return frozenset(found or ())
