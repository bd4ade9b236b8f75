"""Functions of a text, and functions whose text nobody kept."""

from __future__ import annotations

import gc
import linecache
import subprocess
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import ferrule as fe

N = fe.sym_int()
VECTOR = fe.make_fake_compact_tensor(fe.Float32, (N,))

TEXT = """
@fe.kernel
def scale_kernel(x: fe.Tensor, a: fe.Float32):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        x[i] = SCALE(x[i]) * a


@fe.jit
def scale(x: fe.Tensor, a: fe.Float32):
    assert x.shape[0] > 1, "too short"
    scale_kernel(x, a).launch(grid=fe.ceil_div(x.shape[0], 64), block=64)


SCALE = lambda v: v + 1.0
"""


def test_functions_of_a_text_are_compiled_and_errors_show_its_lines() -> None:
    names = fe.from_source(TEXT, filename="layer.dsl")
    scale = fe.compile(names["scale"], VECTOR, 1.0)
    x = np.arange(3, dtype=np.float32)
    scale(x, 2.0)
    assert x.tolist() == [2, 4, 6]
    with pytest.raises(Exception, match="too short") as caught:
        scale(x[:1], 2.0)
    shown = "".join(traceback.format_exception(caught.value))
    assert 'File "layer.dsl", line 11, in scale\n    assert x.shape[0] > 1, "too short"' in shown


def test_a_namespace_is_filled_and_texts_of_one_name_are_apart() -> None:
    space: dict[str, Any] = {"fe": fe, "k": 3.0}
    text = "@fe.jit\ndef f(x: fe.Tensor):\n    x[0] = {}\n"
    assert fe.from_source(text.format("k"), space, filename="g.py") is space
    first = space["f"]
    second = fe.from_source(text.format("k + 1.0"), space, filename="g.py")["f"]
    again = fe.from_source(text.format("k"), space, filename="g.py")["f"]
    for function, value in ((first, 3), (second, 4), (again, 3)):
        x = np.zeros(2, np.float32)
        fe.compile(function, VECTOR)(x)
        assert x[0] == value
    wrong = fe.from_source(text.format("k +\\\n  nothing"), space, filename="g.py")["f"]
    with pytest.raises(fe.CompileError, match=r"(?s)g.py#\w{12}., line [34].*nothing"):
        fe.compile(wrong, VECTOR)


def test_a_text_is_kept_whatever_is_cleared_and_goes_with_its_functions() -> None:
    names = fe.from_source("@fe.jit\ndef f(x: fe.Tensor):\n    x[0] = 1.0\n", filename="kept")
    linecache.clearcache()
    fe.compile(names["f"], VECTOR)
    text = "def unused():\n    return 1\n"
    (name,) = {fe.from_source(text)["unused"].__code__.co_filename}
    names = fe.from_source(text)
    assert linecache.getline(name, 2) == "    return 1\n"
    del names
    gc.collect()
    assert linecache.getline(name, 2) == ""


def test_equal_texts_are_one_entry_of_the_cache(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("FERRULE_CACHE", "1")
    monkeypatch.setenv("FERRULE_CACHE_DIR", str(tmp_path))
    program = """
import ferrule as fe, sys
f = fe.from_source("@fe.jit\\ndef f(x: fe.Tensor):\\n    x[0] = " + sys.argv[1] + "\\n")["f"]
g = fe.compile(f, fe.make_fake_compact_tensor(fe.Float32, (4,)))
print("llvmlite.binding" in sys.modules)
"""
    for value, compiled in (("1.0", "True"), ("1.0", "False"), ("2.0", "True")):
        command = [sys.executable, "-c", program, value]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == f"{compiled}\n", value


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ((3,), TypeError, "expected a Python text, but got int"),
        (("", []), TypeError, "expected a dict for the names of the text"),
        (
            ("def f(:\n",),
            fe.CompileError,
            r"no Python: .*\n  File .<source \w+>., line 1",
        ),
        (("a = '\0'",), fe.CompileError, "no Python"),
        (("1 / 0",), ZeroDivisionError, "division"),
    ],
)
def test_what_is_no_text(given: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        fe.from_source(*given)
    with pytest.raises(ValueError, match="expected a name of the text, but got ''"):
        fe.from_source("", filename="")
    with pytest.raises(TypeError, match="expected a str as filename, but got 3"):
        fe.from_source("", filename=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["-", "exec"])
def test_a_function_without_a_text_gets_the_hint(way: str) -> None:
    program = """
import ferrule as fe
@fe.jit
def f(x: fe.Tensor):
    x[0] = 1.0
fe.compile(f, fe.make_fake_compact_tensor(fe.Float32, (4,)))
"""
    run = f"exec({program!r})" if way == "exec" else program
    command = [sys.executable, "-c" if way == "exec" else way, *([] if way == "-" else [run])]
    done = subprocess.run(command, input=run, capture_output=True, text=True, check=False)
    assert "the source of 'f' cannot be found" in done.stderr
    assert "hint: exec(), python - and the plain prompt keep no" in done.stderr
    assert "ferrule.from_source(text)" in done.stderr
