"""The package of a wheel: functions with names, defaults, docstrings and Python's tuples."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import ferrule as fe
from ferrule.libraries.package import package_text
from ferrule.runtime.exporting.stubs import stub
from ferrule.specs import Signature, parse_signature

CPU = "--target cpu"


INFINITE = float("inf")


@fe.jit
def float(x: fe.Int32) -> fe.Int32:
    return x


@fe.jit
def zip(len: fe.Int32, _unpack: fe.Float32 = INFINITE, _zip: fe.Boolean = True) -> Any:
    """Its names are those of the package's own code, and of \"\"\"quotes\"\"\" with \\\\."""
    return len, (_unpack, (len, _zip))


@fe.jit
def minus(x: fe.Int32, y: fe.Int32 = 2) -> fe.Int32:
    return x - y


def imported(tmp_path: Path, *functions: Any) -> types.ModuleType:
    """The package of these functions, executed without ferrule's help."""
    fe.export_library(tmp_path / "libk.so", list(functions))
    described = [(function.signature, function.__doc__) for function in functions]
    text = package_text("k", "libk.so", "", described)
    module = types.ModuleType("k")
    module.__file__ = str(tmp_path / "__init__.py")
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


@pytest.mark.needs_cc
def test_names_defaults_and_tuples(tmp_path: Path) -> None:
    package = imported(
        tmp_path,
        fe.compile(float, fe.Int32(1), options=CPU),
        fe.compile(zip, fe.Int32(1), fe.Float32(1.0), True, options=CPU),
        fe.compile(minus, fe.Int32(1), fe.Int32(1), options=CPU),
    )
    found = package.zip(3)
    assert found == (3, (INFINITE, (3, True)))
    assert type(found) is tuple and type(found[1][1]) is tuple
    assert package.zip(len=4, _zip=False, _unpack=0.5) == (4, (0.5, (4, False)))
    assert package.minus(5) == 3 and package.minus(x=5, y=1) == 4
    assert package.__all__ == ["float", "minus", "zip"]
    assert package.float(3) == 3
    assert "quotes" in package.zip.__doc__
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        package.minus()
    with pytest.raises(TypeError, match="x"):
        package.minus("five")


def test_a_word_of_python_is_no_name() -> None:
    with pytest.raises(ValueError, match="'lambda'"):
        package_text("k", "libk.so", "", [(minus_signature().renamed("lambda"), None)])


def minus_signature() -> Signature:
    return parse_signature("minus(x: int32)")


def test_a_stub_of_functions_with_names_of_types(tmp_path: Path) -> None:
    """A type checker reads it: annotations mean the types."""
    pytest.importorskip("mypy")
    texts = [
        "int(x: Tensor([4], float32), y: int32 = 3) -> int32",
        "str(x: str, y: bytes = b'') -> str",
        "float(x: float32) -> Tuple[int32, float32]",
        "plain(x: Tensor([4], float32)) -> Tensor([4], float32)",
    ]
    signatures = [parse_signature(text) for text in texts]
    text = stub([(signature, None) for signature in signatures])
    assert "__all__ = ['float', 'int', 'plain', 'str']" in text
    assert "def int(x: _Tensor, y: _builtins.int = 3) -> _builtins.int:" in text
    assert "-> tuple[_builtins.int, _builtins.float]:" in text
    (tmp_path / "k.pyi").write_text(text)
    (tmp_path / "use.py").write_text(
        "import k\n"
        "class Array:\n"
        "    def __dlpack__(self, /, *, stream: int | None = None) -> object: ...\n"
        "reveal_type(k.int(Array(), 3))\n"
        "reveal_type(k.float(1.0))\n"
        "k.plain(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "use.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert 'note: Revealed type is "int"' in done.stdout.replace("builtins.", "")
    assert "tuple[int, float]" in done.stdout.replace("builtins.", "")
    assert done.stdout.count(" error: ") == 1 and 'expected "_Tensor"' in done.stdout
