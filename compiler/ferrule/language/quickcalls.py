"""Direct calls of a `@jit` function whose code is known: a key of the arguments that is made fast.

To bind the arguments, to derive their specs and to compare these takes a hundred microseconds. Of
most arguments less tells the same: of an array its dtype, sizes and strides, of a number its class.
So a call that has gone the whole way leaves the function behind a key of these, and the next like
it finds it.

The key has all that decides which function a call gets. Where that is more than is said here, there
is no key, and the call goes the whole way: other classes of arguments, tensors on a GPU (whose
target depends on the environment), calls without a tensor by position (theirs does too), `*args`.
"""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from ferrule.language.dependencies.snapshots import Same, snapshot
from ferrule.specs.deferred import dataclass

_PLAIN: Final = frozenset({int, float, bool, str, bytes, types.NoneType})
"""Classes of arguments that are known by their class, unless the parameter is a constant."""

_CONSTANTS: Final = frozenset({int, bool, str, types.NoneType})
"""Classes whose values are equal exactly if they compile to the same."""

_Key = tuple[object, ...]


@dataclass(slots=True, eq=False)
class QuickCalls:
    """Functions of a `@jit` function by the key of a call.

    `constants` are the positions and names of parameters that are known when it is compiled;
    `names` are names in its annotations, with their values.
    """

    constants: frozenset[int | str]
    names: tuple[tuple[dict[str, Any], str, Any], ...]
    known: dict[_Key, tuple[Any, Any]]

    @classmethod
    def of(cls, function: Any, constants: Mapping[str, Any]) -> QuickCalls | None:
        """None for a function whose annotations depend on more than global names."""
        code = function.__code__
        if code.co_flags & 0x0C:  # *args, **kwargs
            return None
        names = _annotated(function)
        if names is None:
            return None
        places = {code.co_varnames.index(name) for name in constants}
        return cls(frozenset({*places, *constants}), names, {})

    def extends(self, other: QuickCalls) -> bool:
        """Whether keys of the other are keys of this one."""
        same = len(self.names) == len(other.names) and all(
            mine[0] is theirs[0] and mine[1] == theirs[1] and mine[2] is theirs[2]
            for mine, theirs in zip(self.names, other.names, strict=False)
        )
        return same and self.constants == other.constants

    def find(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The function for a call, if it is known and nothing around it has changed; else None."""
        key = self.key(args, kwargs)
        if key is None:
            return None
        found = self.known.get(key)
        if found is None:
            return None
        for namespace, name, value in self.names:
            if namespace.get(name) is not value:
                return None
        function, witness = found
        return function if witness.same() or witness.unchanged() else None

    def keep(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], function: Any, witness: Any
    ) -> None:
        """Let calls with arguments like these find the function."""
        key = self.key(args, kwargs)
        if key is not None:
            self.known[key] = (function, witness)

    def key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Key | None:
        """The key of a call; None if it has none."""
        parts: list[object] = []
        if self.constants:
            given = enumerate(args)
            plain = tuple(value for i, value in given if i not in self.constants)
            if not self._add_constants(parts, args, kwargs):
                return None
            args, kwargs = plain, {k: v for k, v in kwargs.items() if k not in self.constants}
        before = len(parts)
        if not _add(parts, args) or len(parts) == before + len(args):  # without a tensor
            return None
        for name, value in kwargs.items():
            parts.append(name)
            if not _add(parts, (value,)):
                return None
        return tuple(parts)

    def _add_constants(
        self, parts: list[object], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> bool:
        """Add the values that are known when the function is compiled; False if one has no key."""
        given = [*enumerate(args), *kwargs.items()]
        constants = [(place, value) for place, value in given if place in self.constants]
        return all(_add_constant(parts, place, value) for place, value in constants)

    def without_constants(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that the compiled function takes."""
        kept = tuple(value for i, value in enumerate(args) if i not in self.constants)
        return kept, {k: v for k, v in kwargs.items() if k not in self.constants}


def _add(parts: list[object], values: tuple[Any, ...]) -> bool:
    """Add what decides the parameters of these arguments; False if it is more than is known.

    A tensor adds three parts, anything else one.
    """
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            parts += (value.dtype, value.shape, value.strides)
        elif kind in _PLAIN:
            parts.append(kind)
        elif not _add_torch(parts, kind, value):
            return False
    return True


def _add_constant(parts: list[object], place: int | str, value: Any) -> bool:
    kind = type(value)
    if kind in _CONSTANTS:
        parts += (place, kind, value)
        return True
    if kind is float:
        parts += (place, kind, value.hex())  # 0.0 is not -0.0
        return True
    known = snapshot(value)
    if isinstance(known, Same):  # the witness knows what was read of it
        parts += (place, known)
        return True
    return False


def _add_torch(parts: list[object], kind: type, value: Any) -> bool:
    """Add an ordinary torch tensor on the CPU; False for anything else."""
    torch = sys.modules.get("torch")
    if torch is None or kind is not getattr(torch, "Tensor", None):
        return False
    if not value.is_cpu or value.layout is not torch.strided or value.is_neg():
        return False
    parts += (value.dtype, value.shape, value.stride())
    return True


def _annotated(
    function: Callable[..., Any],
) -> tuple[tuple[dict[str, Any], str, Any], ...] | None:
    """The names in a function's annotations that are text, and their values; None if one of them
    is no global name."""
    namespace = function.__globals__
    found: dict[str, tuple[dict[str, Any], str, Any]] = {}
    for text in function.__annotations__.values():
        for name in _names_in(text):
            if name in function.__code__.co_freevars:
                return None
            holder = namespace if name in namespace else vars(builtins)
            if name not in holder:
                return None
            found[name] = (holder, name, holder[name])
    return tuple(found.values())


def _names_in(text: Any) -> Iterator[str]:
    if isinstance(text, str):
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Name):
                yield node.id
