"""The package of a wheel: functions with names, defaults, docstrings and Python's tuples."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

import ferrule as fe
from ferrule.libraries.package import package_text
from ferrule.specs import Signature, parse_signature

CPU = "--target cpu"


@fe.jit
def zip(len: fe.Int32, _unpack: fe.Float32 = float("inf"), _zip: fe.Boolean = True) -> Any:
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
        fe.compile(zip, fe.Int32(1), fe.Float32(1.0), True, options=CPU),
        fe.compile(minus, fe.Int32(1), fe.Int32(1), options=CPU),
    )
    found = package.zip(3)
    assert found == (3, (float("inf"), (3, True)))
    assert type(found) is tuple and type(found[1][1]) is tuple
    assert package.zip(len=4, _zip=False, _unpack=0.5) == (4, (0.5, (4, False)))
    assert package.minus(5) == 3 and package.minus(x=5, y=1) == 4
    assert package.__all__ == ["minus", "zip"]
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
