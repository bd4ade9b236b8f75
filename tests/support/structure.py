"""Measures of the source's structure: sizes, import rings, and who names which op.

    python -m tests.support.structure

prints the measures of this checkout; `tests/project/test_structure.py` holds them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

SOURCE_ROOTS: Final = ("compiler", "runtime", "specs")
_DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef


def sources(root: Path) -> dict[str, Path]:
    """The modules of the source, by their names."""
    found = {}
    for top in SOURCE_ROOTS:
        for path in sorted((root / top).rglob("*.py")):
            parts = path.relative_to(root / top).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _statements(path: Path) -> tuple[ast.stmt, ...]:
    """The statements of a module at any depth, but for those that only type checkers read."""
    return tuple(_running(ast.parse(path.read_text(encoding="utf-8"))))


def _running(node: ast.AST) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, name, ()):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.stmt):
                yield child
            yield from _running(child)


def folder_sizes(root: Path) -> Counter[str]:
    """The number of modules in each folder, `__init__.py` included."""
    return Counter(str(path.parent.relative_to(root)) for path in sources(root).values())


# ---- functions ----


def _body_lines(node: _DEFINITION) -> int:
    """The lines of a function from its first statement on, without its docstring."""
    body = node.body
    if ast.get_docstring(node, clean=False) is not None:
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def long_functions(root: Path, most: int) -> dict[str, int]:
    """The functions whose body has more lines than `most`, with the number."""
    return {
        f"{name}.{node.name}": lines
        for name, path in sources(root).items()
        for node in _statements(path)
        if isinstance(node, _DEFINITION) and (lines := _body_lines(node)) > most
    }


# ---- imports ----


def imports(root: Path) -> dict[str, set[str]]:
    """The modules that each module imports, also inside of its functions."""
    known = sources(root)
    return {name: set(_imported(path, known)) - {name} for name, path in known.items()}


def _imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node in _statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                target = inner if inner in known else node.module
                if target in known:
                    yield target


def rings(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of modules that reach each other, the largest first (Tarjan's algorithm)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        numbers[name] = lowest[name] = len(numbers)
        stack.append(name)
        for other in sorted(arrows[name]):
            if other not in numbers:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], numbers[other])
        if lowest[name] == numbers[name]:
            at = stack.index(name)
            found.append(sorted(stack[at:]))
            del stack[at:]

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10 * len(arrows)))
    try:
        for name in sorted(arrows):
            if name not in numbers:
                visit(name)
    finally:
        sys.setrecursionlimit(limit)
    return sorted((ring for ring in found if len(ring) > 1), key=len, reverse=True)


# ---- ops ----


def op_classes(root: Path) -> dict[str, str]:
    """The names of the op classes of the kernel IR, each with the module that defines it."""
    from ferrule.language.ir import ops
    from ferrule.language.ir.operation import Operation

    found = {}
    pending = list(Operation.__subclasses__())
    while pending:
        each = pending.pop()
        pending += each.__subclasses__()
        if getattr(ops, each.__name__, None) is each:
            found[each.__name__] = each.__module__
    return dict(sorted(found.items()))


def op_consumers(root: Path) -> dict[str, list[str]]:
    """The modules outside of its own that name each op class of the kernel IR.

    A module names an op as `ops.Name`, or as a name imported from its module or from `ops`; the
    list of the names in `ir/ops.py` counts like any other.
    """
    classes = op_classes(root)
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in sources(root).items():
        if name.startswith("ferrule.language"):
            for op in sorted(_named_ops(path) & classes.keys()):
                if classes[op] != name:
                    found[op].append(name)
    return {op: found[op] for op in classes}


def _named_ops(path: Path) -> set[str]:
    """The names of modules of the kernel IR that a module uses."""
    named, modules = set(), set()
    for node in _statements(path):
        match node:
            case ast.ImportFrom(module="ferrule.language.ir"):
                modules |= {alias.asname or alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module)) if module.startswith("ferrule.language.ir."):
                named |= {alias.name for alias in node.names}
    if modules:
        uses = re.compile(rf"\b(?:{'|'.join(modules)})\.(\w+)")
        named.update(uses.findall(path.read_text(encoding="utf-8")))
    return named


def main() -> None:
    """Print the measures of this checkout."""
    root = Path(__file__).parents[2]
    sizes, arrows = folder_sizes(root), imports(root)
    consumers = op_consumers(root)
    counts = sorted(map(len, consumers.values()))
    print(f"{len(arrows)} modules; largest folders: {sizes.most_common(6)}")
    print(f"functions over 50 lines: {long_functions(root, 50)}")
    found = rings(arrows)
    print(f"modules in import rings: {sum(map(len, found))}, rings {list(map(len, found))}")
    print(f"{len(counts)} ops, named elsewhere in {median(counts)} modules (median), {counts}")
    names = Counter(re.sub(r"^ferrule\.language\.", "", m) for v in consumers.values() for m in v)
    for name, count in names.most_common():
        print(f"  {count:3} {name}")


if __name__ == "__main__":
    main()
