"""Exported code in a process whose types are others than when it was compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from exported import run_python

import ferrule as fe

pytestmark = pytest.mark.needs_cc

OTHER_PROCESS = """
import json, sys
import tvm_ffi
from tvm_ffi.dataclasses import py_class
from ferrule.runtime import load_module

@py_class("ferrule.test.Changed")
class Changed(tvm_ffi.Object):
    front: str
    moved: int
    retyped: str
    shrunk: bool

module, found = load_module(sys.argv[1]), {}
changed = Changed("in front", 42, "a text", True)
for name in ("moved", "retyped", "shrunk", "lost", "unset", "made", "called", "unknown"):
    try:
        found[name] = module[name](changed)
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each function gives, or raises, in another process; types are registered once."""
    dataclasses = pytest.importorskip("tvm_ffi.dataclasses")
    if not hasattr(dataclasses, "py_class"):
        pytest.skip("this tvm-ffi registers no classes of Python")

    @dataclasses.py_class("ferrule.test.Changed")
    class Changed(tvm_ffi.Object):
        moved: int
        retyped: int
        shrunk: int
        lost: int

    @dataclasses.py_class("ferrule.test.Gone")
    class Gone(tvm_ffi.Object):
        number: int

    def moved(o):
        return o.moved

    def retyped(o):
        return o.retyped

    def shrunk(o):
        return o.shrunk

    def lost(o):
        return o.lost

    def unset(o):
        o.lost = 1

    def made(o):
        return Gone(o.moved).number

    def called(o):
        return fe.make_object("ferrule.test.Changed", 1, 2, 3, 4)

    def unknown(o):
        return o.moved + Gone(1).number

    functions = [moved, retyped, shrunk, lost, unset, made, called, unknown]
    example = fe.Object["ferrule.test.Changed"]
    built = [fe.compile(function, example, options="--target cpu") for function in functions]
    path: Path = tmp_path_factory.mktemp("changed") / "library.so"
    fe.export_library(path, built)
    return dict(json.loads(run_python(OTHER_PROCESS, path).splitlines()[-1]))


def test_a_field_that_has_moved_is_found_where_it_is(found: dict[str, Any]) -> None:
    assert found["moved"] == 42


def test_a_field_of_another_type_is_an_error(found: dict[str, Any]) -> None:
    message = "TypeError: Mismatched type of o.retyped, expected int64, but got str"
    assert found["retyped"] == message
    assert found["shrunk"] == 1


def test_a_field_that_is_gone_is_an_error(found: dict[str, Any]) -> None:
    message = "AttributeError: Missing field ferrule.test.Changed.lost: the type has none"
    assert found["lost"].startswith(message)
    assert found["unset"].startswith(message)


def test_a_type_that_is_gone_is_an_error(found: dict[str, Any]) -> None:
    message = "TypeError: Unknown type ferrule.test.Gone of ferrule.test.Gone.__ffi_init__: import"
    assert found["made"].startswith(message)
    assert found["unknown"].startswith(message)
    assert found["called"].startswith("TypeError: ")
