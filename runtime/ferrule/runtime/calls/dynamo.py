"""Keeps torch's compiler out of the Python code of calls.

`torch.compile` would trace what a call does in Python for its own arguments, as if it were a part
of the program: the words of memory that it reads, and the writes that it counts.  Dynamo has a list
of packages whose functions it calls and does not trace; ferrule is put there when Dynamo is
imported, which is seldom and late.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

_RULES: Final = "torch._dynamo.trace_rules"
_PACKAGES: Final = ("ferrule", "ferrule.runtime", "ferrule.specs")


def keep_out() -> None:
    """Let Dynamo call ferrule's functions as they are, now or once it is imported."""
    rules = sys.modules.get(_RULES)
    if rules is not None:
        _list(rules)
    elif not any(isinstance(each, _Watch) for each in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


def _list(rules: ModuleType) -> None:
    for package in _PACKAGES if hasattr(rules, "add") else ():
        rules.add(package)


class _Watch:
    """A finder that waits for the import of Dynamo's rules."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != _RULES:
            return None
        sys.meta_path.remove(self)
        found = find_spec(name)
        if found is not None and found.loader is not None:
            loader: Any = _Loader(found.loader)
            found.loader = loader
        return found


class _Loader:
    """The loader of Dynamo's rules, and what follows."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._inner.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        _list(module)
