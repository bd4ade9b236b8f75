"""Modules of a library of Triton kernels, imported as far as they can be without a GPU.

Each statement of a module runs by itself: one that fails, as it asks for a GPU or for a package
that is not installed, leaves a stand-in behind each name that it would have bound.  So the kernels
of a file are there with the decorators that they have in it, whatever else the file needs.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import triton


class Missing:
    """What stands for an object that could not be made: it can be called, called as a decorator,
    asked for attributes, and is false."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        if len(given) != 1 or named or isinstance(given[0], Missing):
            return self
        is_decorated = callable(given[0]) or isinstance(given[0], triton.KernelInterface)
        return given[0] if is_decorated else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: object) -> Any:
        return self

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return (object,)


MISSING = Missing()
_TRITON = {"triton": "triton", "tl": "triton.language"}
"""Libraries import these through modules of their own, which ask for a GPU."""


class Tolerant(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules below a folder, and runs them statement by statement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module of a file or a folder."""
        place = self.folder.joinpath(*name.split("."))
        if not name.isidentifier() and not all(map(str.isidentifier, name.split("."))):
            return None
        if place.is_dir() and (place / "__init__.py").is_file():
            return self._spec(name, place / "__init__.py", [str(place)])
        if place.is_dir() and "." in name:
            return self._spec(name, None, [str(place)])
        file = place.with_suffix(".py")
        return self._spec(name, file, None) if file.is_file() else None

    def _spec(self, name: str, file: Path | None, within: Any) -> importlib.machinery.ModuleSpec:
        where = None if file is None else str(file)
        found = importlib.machinery.ModuleSpec(name, self, origin=where, is_package=bool(within))
        found.submodule_search_locations = within
        found.has_location = file is not None
        return found

    def exec_module(self, module: ModuleType) -> None:
        """Run a module; the outermost package's own statements are left out."""
        spec = module.__spec__
        assert spec is not None
        if spec.origin is None or ("." not in spec.name and spec.submodule_search_locations):
            return
        text = Path(spec.origin).read_text(encoding="utf-8", errors="replace")
        for statement in ast.parse(text, spec.origin).body:
            run(statement, spec.origin, vars(module))


def run(statement: ast.stmt, file: str, names: dict[str, Any]) -> None:
    """Run a statement of a module, or bind its names to stand-ins."""
    if isinstance(statement, ast.If | ast.Try | ast.With):
        if _try(statement, file, names):
            return
        for inner in statement.body:
            run(inner, file, names)
    elif not _try(statement, file, names):
        for each in _bound(statement):
            names.setdefault(each, MISSING)
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for each in _TRITON.keys() & set(_bound(statement)):
            names[each] = importlib.import_module(_TRITON[each])


def _try(statement: ast.stmt, file: str, names: dict[str, Any]) -> bool:
    try:
        exec(compile(ast.Module([statement], []), file, "exec"), names)
    except (Exception, SystemExit):
        return False
    return True


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Import(names=names):
            yield from ((each.asname or each.name).partition(".")[0] for each in names)
        case ast.ImportFrom(names=names):
            yield from (each.asname or each.name for each in names)
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign() | ast.AnnAssign():
            for each in ast.walk(statement):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    yield each.id


def modules_of(folder: Path) -> Iterator[ModuleType]:
    """The modules below a folder whose text has a kernel of Triton."""
    sys.meta_path.insert(0, Tolerant(folder))
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text(encoding="utf-8", errors="replace")
        if "triton" not in text or ".jit" not in text:
            continue
        parts = file.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not all(map(str.isidentifier, name.split("."))):
            continue
        try:
            yield importlib.import_module(name)
        except (Exception, SystemExit) as error:
            print(f"{name}: cannot be imported, {type(error).__name__}: {error}", file=sys.stderr)
