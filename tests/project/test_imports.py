"""Imports go one way: specs <- runtime <- compiler <- language, frontends, emulator <- facade;
libraries are above the language, and commands above all of them.

The `ruff.toml` of each package folder holds the rule, and of each folder of the lowering; here
planted violations prove that it is found. What a table of banned names cannot say, that no part
imports the facade and that the code generator's folders go one way too, is read from the syntax
trees. Importing is lazy: `import ferrule` loads no LLVM.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PARTS = {
    "specs": "specs/ferrule/specs",
    "runtime": "runtime/ferrule/runtime",
    "compiler": "compiler/ferrule/compiler",
    "language": "compiler/ferrule/language",
    "frontends": "compiler/ferrule/frontends",
    "emulator": "compiler/ferrule/emulator",
    "libraries": "compiler/ferrule/libraries",
    "commands": "compiler/ferrule/commands",
    "cutlass": "compiler/ferrule/cutlass",
}
MAY_IMPORT = {
    "specs": {"specs"},
    "runtime": {"specs", "runtime"},
    "compiler": {"specs", "runtime", "compiler"},
    "language": {"specs", "runtime", "compiler", "language"},
    "frontends": {"specs", "runtime", "compiler", "frontends"},
    "emulator": {"specs", "runtime", "compiler", "emulator"},
    "libraries": {"specs", "runtime", "compiler", "language", "libraries"},
    "commands": {
        *("specs", "runtime", "compiler", "language", "frontends", "emulator"),
        *("libraries", "commands"),
    },
    "cutlass": {
        *("specs", "runtime", "compiler", "language", "frontends", "emulator"),
        *("libraries", "cutlass"),
    },
}
CODEGEN = "ferrule.language.codegen"
CODEGEN_MAY_IMPORT = {
    "facts": set(),
    "passes": {"facts"},
    "values": set(),
    "functions": {"facts", "values"},
    "host": {"functions", "values"},
    "cpu": {"facts", "functions", "host", "passes", "values"},
    "cuda": {"facts", "functions", "host", "passes", "values"},
}
LOWERING = "ferrule.language.lowering"
LOWERING_MAY_IMPORT = {
    "numbers": set(),
    "tensors": {"numbers"},
    "device": {"numbers", "tensors"},
    "launch": {"numbers"},
    "objects": {"numbers", "tensors"},
    "control": {"numbers", "objects"},
    "python": {"control", "device", "launch", "numbers", "objects", "tensors"},
}
# Modules beside the folders that all of them may import, and that import no folder.
CODEGEN_SHARED = {"errors"}
LOWERING_SHARED = {
    *("arguments", "closures", "context", "descriptions", "handles", "owners"),
    *("regions", "rows", "settings", "structures"),
}
LAYERS: dict[str, tuple[dict[str, set[str]], set[str]]] = {
    CODEGEN: (CODEGEN_MAY_IMPORT, CODEGEN_SHARED),
    LOWERING: (LOWERING_MAY_IMPORT, LOWERING_SHARED),
}
FOLDERS = PARTS | {name: f"{PARTS['language']}/lowering/{name}" for name in LOWERING_MAY_IMPORT}
SOURCE_ROOTS = ("compiler", "runtime", "specs")


def forbidden_statements() -> Iterator[tuple[str, str]]:
    """Each folder with a statement that it may not contain."""
    for name, allowed in LOWERING_MAY_IMPORT.items():
        for other in sorted(LOWERING_MAY_IMPORT.keys() - allowed - {name}):
            yield name, f"from {LOWERING} import {other}"
            yield name, f"from {LOWERING}.{other} import module"
            yield name, f"def function():\n    from {LOWERING}.{other}.module import name"
        yield name, f"from {LOWERING}.program import lower_program"
        yield name, "from ferrule.frontends import module"
        yield name, "from ferrule.language.codegen import module"
    for part, allowed in MAY_IMPORT.items():
        for other in sorted(PARTS.keys() - allowed):
            yield part, f"from ferrule import {other}"
            yield part, f"from ferrule.{other}.module import name"
            yield part, f"import ferrule.{other}"
        for source_root in SOURCE_ROOTS:
            yield part, f"import {source_root}"
            yield part, f"from {source_root}.ferrule import name"
        yield part, "from ..other import name"
        yield part, "import torch"
    yield "specs", "import llvmlite"
    yield "specs", "from llvmlite import ir"


def allowed_statements() -> Iterator[tuple[str, str]]:
    """Each folder with the statements that it may contain."""
    for name, allowed in LOWERING_MAY_IMPORT.items():
        for other in sorted({name, *allowed}):
            yield name, f"from {LOWERING}.{other} import module"
        for shared in sorted(LOWERING_SHARED):
            yield name, f"from {LOWERING}.{shared} import name"
    for part, allowed in MAY_IMPORT.items():
        for other in sorted(allowed):
            yield part, f"from ferrule import {other}"
            yield part, f"from ferrule.{other}.module import name"
        yield part, "from .sibling import name"
        yield part, "from . import sibling"


@pytest.fixture(scope="module")
def skeleton(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project's configuration, with a file for each statement and no other code."""
    copy = tmp_path_factory.mktemp("skeleton")
    configurations = (
        path for top in SOURCE_ROOTS for path in root.joinpath(top).rglob("ruff.toml")
    )
    for path in (root / "pyproject.toml", *configurations):
        target = copy / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for folder in (copy / each for each in FOLDERS.values()):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    (copy / "compiler/ferrule/__init__.py").touch()
    plant(copy, "bad", forbidden_statements())
    plant(copy, "good", allowed_statements())
    return copy


def plant(copy: Path, prefix: str, statements: Iterator[tuple[str, str]]) -> None:
    for number, (name, statement) in enumerate(statements):
        (copy / FOLDERS[name] / f"{prefix}_{number}.py").write_text(statement + "\n")


@pytest.fixture(scope="module")
def refused(skeleton: Path) -> set[str]:
    """The files of the skeleton in which ruff finds an import that is not allowed."""
    pytest.importorskip("ruff", reason="ruff is not installed")
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "TID"]
    done = subprocess.run(
        [*command, "--output-format", "concise", "."],
        cwd=skeleton,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    lines = (line for line in done.stdout.splitlines() if ".py:" in line)
    return {Path(line.split(":", 1)[0]).as_posix() for line in lines}


def test_a_planted_violation_is_found(refused: set[str]) -> None:
    missed = [
        (name, statement)
        for number, (name, statement) in enumerate(forbidden_statements())
        if f"{FOLDERS[name]}/bad_{number}.py" not in refused
    ]
    assert not missed


def test_what_is_allowed_is_not_refused(refused: set[str]) -> None:
    assert not [path for path in refused if "/good_" in path]


def test_every_part_has_a_table_of_its_own(root: Path) -> None:
    for folder in PARTS.values():
        nearest = next(p for p in (root / folder, *(root / folder).parents) if has_table(p))
        assert nearest.is_relative_to(root / folder.split("/")[0])


def has_table(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("ruff.toml", "pyproject.toml"))


def imported_names(tree: ast.Module) -> Iterator[str]:
    """The dotted names that a module imports absolutely."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                pass


@pytest.mark.parametrize("part", PARTS)
def test_no_part_imports_the_facade(root: Path, part: str) -> None:
    for path in (root / PARTS[part]).rglob("*.py"):
        for name in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
            first, _, rest = name.partition(".")
            assert first != "ferrule" or rest.split(".")[0] in MAY_IMPORT[part], f"{path}: {name}"


@pytest.mark.parametrize("package", LAYERS)
def test_a_folder_knows_only_those_above_it(root: Path, package: str) -> None:
    """Of the code generator and of the lowering, also inside of functions."""
    may_import, shared = LAYERS[package]
    folder = root / PARTS["language"] / package.rpartition(".")[2]
    found = {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}
    assert found == may_import.keys()
    allowed = {name: {name, *others, *shared} for name, others in may_import.items()}
    for name, known in (allowed | dict.fromkeys(shared, shared)).items():
        for path in (*(folder / name).rglob("*.py"), *folder.glob(f"{name}.py")):
            for imported in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
                other = imported.removeprefix(f"{package}.").split(".")[0]
                assert not imported.startswith(package) or other in known, f"{path}: {imported}"


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("ferrule", ("llvmlite", "ferrule.emulator")),
        ("ferrule.runtime", ("llvmlite", "ferrule.emulator")),
        ("ferrule.specs", ("llvmlite", "tvm_ffi", "torch")),
    ],
)
def test_importing_is_lazy(root: Path, module: str, absent: tuple[str, ...]) -> None:
    """In a process of its own, with the source roots on the path as in a bare checkout."""
    paths = [str(root / source_root) for source_root in SOURCE_ROOTS]
    # PyTorch is tvm_ffi's wish, which takes two seconds; only one module must do without both.
    first = "sys.modules.pop('torch', 0)" if "torch" in absent else "sys.modules['torch'] = None"
    code = f"import sys; {first}; sys.path[:0] = {paths}; import {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not set(absent) & set(done.stdout.split())


COMPILED = """
import sys
sys.modules["torch"] = None
from emulated_program import add_one, fake, fe
fe.compile(add_one, fake, fake, options="--target cuda --gpu-arch sm_90a")
print(*sys.modules)
"""


def test_a_compilation_for_a_gpu_imports_no_emulator(root: Path) -> None:
    paths = [*(str(root / each) for each in SOURCE_ROOTS), str(root / "tests/support")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "FERRULE_GPU": ""}
    command = [sys.executable, "-c", COMPILED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "llvmlite" in done.stdout and "ferrule.emulator" not in done.stdout.split()
