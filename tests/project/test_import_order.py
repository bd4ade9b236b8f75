"""Every module of ferrule can be imported first, whatever was imported before it.

Which module is imported first matters only in rings of imports: outside of them a module finds all
others whole.  So the imports at the top of modules are read from the syntax trees, and the modules
in rings are imported, each in a process of its own that has nothing of ferrule yet.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE_ROOTS = ("compiler", "runtime", "specs")

# Forks for each module; tvm_ffi's wish for PyTorch, which takes two seconds, is not granted.
IMPORT_EACH = """
import importlib, os, sys, traceback
sys.modules["torch"] = None
import llvmlite.binding, tvm_ffi
for module in sys.argv[1:]:
    assert not any(name.split(".")[0] == "ferrule" for name in sys.modules)
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(module)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(module)
"""


def modules_of(root: Path) -> dict[str, Path]:
    """The file of each module of ferrule."""
    found = {}
    for folder in (root / each for each in SOURCE_ROOTS):
        for path in sorted(folder.glob("ferrule/**/*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def run_at_once(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that importing a module runs; of a block those inside, too."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                continue
            case ast.If(test=ast.Name("TYPE_CHECKING"), orelse=orelse):
                yield from run_at_once(orelse)
                continue
        yield statement
        for block in ("body", "orelse", "finalbody"):
            yield from run_at_once(getattr(statement, block, []))
        for handler in getattr(statement, "handlers", []):
            yield from run_at_once(handler.body)


def imported_by(module: str, path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules that a module imports where it is imported, with the packages around them.

    Those around itself are not among them unless it names them: they are there before it.
    """
    named: set[str] = set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for statement in run_at_once(ast.parse(path.read_text(encoding="utf-8")).body):
        match statement:
            case ast.Import(names=names):
                named.update(alias.name for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                around = package.split(".")[: package.count(".") + 2 - level] if level else []
                source = ".".join([*around, *([base] if base else [])])
                named.update((source, *(f"{source}.{alias.name}" for alias in names)))
    named = {name for name in named if name in modules}
    implied = {around for name in named for around in packages_around(name)}
    return (named | {each for each in implied if not f"{module}.".startswith(f"{each}.")}) - {
        module
    }


def packages_around(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def in_rings(imports: dict[str, set[str]]) -> list[str]:
    """The modules that import themselves, through others."""
    return [module for module in imports if module in reached_from(module, imports)]


def reached_from(module: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = [module]
    while todo:
        new = imports.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def failures(modules: list[str], paths: list[str]) -> tuple[list[str], str]:
    """Those of the modules that cannot be imported first, and why."""
    code = f"import sys; sys.path[:0] = {paths}\n{IMPORT_EACH}"
    command = [sys.executable, "-c", code, *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_every_module_can_be_imported_first(root: Path) -> None:
    modules = modules_of(root)
    imports = {module: imported_by(module, path, modules) for module, path in modules.items()}
    paths = [str(root / each) for each in SOURCE_ROOTS]
    failed, why = failures(in_rings(imports), paths)
    assert not failed, why


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_a_ring_that_cannot_be_entered_everywhere_is_found(tmp_path: Path) -> None:
    """As `folds` could not: its table needs what is not there yet where it is imported first."""
    package = tmp_path / "compiler/ferrule/planted"
    package.mkdir(parents=True)
    for name, text in {
        "ferrule/__init__": "",
        "ferrule/planted/__init__": "",
        "ferrule/planted/folds": "from ferrule.planted import table\ndef total(): ...",
        "ferrule/planted/table": "from ferrule.planted import folds\nTABLE = [folds.total]",
        "ferrule/planted/alone": "def later():\n    from ferrule.planted import alone",
    }.items():
        (tmp_path / f"compiler/{name}.py").write_text(text + "\n")
    modules = modules_of(tmp_path)
    imports = {module: imported_by(module, path, modules) for module, path in modules.items()}
    rings = in_rings(imports)
    assert set(rings) == {"ferrule.planted.folds", "ferrule.planted.table"}
    failed, why = failures(rings, [str(tmp_path / "compiler")])
    assert failed == ["ferrule.planted.folds"]
    assert "has no attribute 'total'" in why
