"""The arguments of a launch as a recorded grid gets them."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any


class Asked(dict[str, Any]):
    """The arguments of a grid, which remembers the `names` that were read.

    A heuristic computes its constant where the grid reads it: what it decides by sizes is then
    decided for the grid, and is nothing to a grid that does without.
    """

    def __init__(
        self, given: Mapping[str, Any], heuristics: Mapping[str, Callable[..., Any]]
    ) -> None:
        super().__init__(given)
        self.names: set[str] = set()
        self._heuristics = {k: each for k, each in heuristics.items() if k not in given}

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        heuristic = self._heuristics.pop(name, None)
        if heuristic is not None:
            self[name] = heuristic(self)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The argument of this name."""
        return self[name] if name in self else default

    def __contains__(self, name: object) -> bool:
        return name in self._heuristics or super().__contains__(name)

    # `{**meta}` asks for all of them, and gets the heuristics' values too.

    def _computed(self) -> dict[str, Any]:
        for name in (*self._heuristics, *super().keys()):
            self[name]
        return self

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self._computed())

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """The names of all arguments."""
        return dict.keys(self._computed())

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """All arguments."""
        return dict.values(self._computed())

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """All arguments by their names."""
        return dict.items(self._computed())
