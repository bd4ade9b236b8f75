"""Programs that are nested deeply: they compile, or are an error with a place, in any thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from lowered import vector

import ferrule as fe

COUNT: Final = 900
DEEP: Final = {
    "a sum": "    a[0] = " + " + ".join(["a[1]"] * COUNT),
    "signs": "    a[0] = " + "-" * COUNT + "a[1]",
    "not": "    a[0] = " + "not " * COUNT + "(a[1] > 0)",
    "attributes": "    x = a" + ".shape" * COUNT,
    "calls of methods": "    a[0] = a[1]" + ".to(fe.Int32)" * COUNT,
    "subscripts": "    a[0] = a" + "[0]" * COUNT,
    "comparisons": "    assert " + " < ".join(["a[1]"] * COUNT),
    "conditions": "    a[0] = " + "".join(f"{i} if a[1] == {i} else " for i in range(COUNT)) + "0",
    "strings": "    x = " + " + ".join(["'x'"] * COUNT),
    "elif": "    if a[0] == 0:\n        pass\n"
    + "".join(f"    elif a[0] == {i}:\n        a[0] = {i}\n" for i in range(1, COUNT)),
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_a_function_nested_too_deeply_is_an_error_with_a_place(body: str, tmp_path: Path) -> None:
    for helper in (False, True):
        path = tmp_path / f"deep_{helper}.py"
        text = f"import ferrule as fe\ndef deep(a):\n{body}\ndef calls(a):\n    deep(a)\n"
        path.write_text(text)
        names: dict[str, Any] = {}
        exec(compile(text, path, "exec"), names)
        function = names["calls" if helper else "deep"]
        with pytest.raises(fe.CompileError, match="nested too deeply") as caught:
            fe.compile(function, vector(), options="--target cpu")
        span = caught.value.diagnostic.span
        assert span is not None
        assert (span.function, span.line >= 3) == ("deep", True)
        assert "split long expressions" in str(caught.value)
        if not helper:
            with pytest.raises(fe.CompileError, match="nested too deeply"):
                fe.jit(function)(np.zeros(4, np.float32))


BRACKETS: Final = {
    "brackets": "    a[0] = " + "(" * 190 + "a[1]" + ")" * 190,
    "calls": "    a[0] = " + "abs(" * 190 + "a[1]" + ")" * 190,
    "tuples": "    x = " + "(" * 190 + "a[1]" + ",)" * 190,
    "lambdas": "    x = " + "lambda: " * 400 + "0",
    "ifs": "".join("    " + " " * i + "if a[0] > 0:\n" for i in range(95))
    + " " * 99
    + "a[0] = 1.0",
}
IN_A_SMALL_STACK: Final = """
import sys, threading
sys.modules["torch"] = None
import ferrule as fe
import brackets
example = fe.make_fake_compact_tensor(fe.Float32, (4,))
def compiles():
    for name, function in vars(brackets).items():
        if name.startswith("deep_"):
            fe.compile(function, example, options="--target cpu")
            print(name, flush=True)
threading.stack_size(128 * 1024)
thread = threading.Thread(target=compiles)
thread.start()
thread.join()
assert threading.stack_size() == 128 * 1024
"""


def test_what_python_can_parse_compiles_in_a_thread_with_a_small_stack(tmp_path: Path) -> None:
    texts = [f"def deep_{name}(a):\n{body}\n" for name, body in BRACKETS.items()]
    (tmp_path / "brackets.py").write_text("\n".join(texts))
    done = subprocess.run(
        [sys.executable, "-c", IN_A_SMALL_STACK],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), *filter(None, sys.path)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [f"deep_{name}" for name in BRACKETS]


def test_an_error_in_a_thread_with_a_small_stack_is_the_same(tmp_path: Path) -> None:
    raised: list[BaseException] = []

    def wrong(a):
        a[0] = unknown  # noqa: F821

    def compiles() -> None:
        try:
            fe.compile(wrong, vector(), options="--target cpu")
        except fe.CompileError as error:
            raised.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=compiles)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert "unknown" in str(raised[0])


AS_DEEP_AS_SAID: Final = {
    "elif": "    if a[0] == 0:\n        pass\n"
    + "".join(f"    elif a[0] == {i}:\n        a[0] = {i}\n" for i in range(1, 120)),
    "conditions": "    a[0] = " + "".join(f"{i} if a[1] == {i} else " for i in range(190)) + "0",
    "comparisons": "    b = " + " < ".join(["a[1]"] * 320) + "\n    a[0] = 1 if b else 0",
    "sum": "    a[0] = " + " + ".join(["a[1]"] * 480),
    "and": "    if " + " and ".join(["a[1] > 0"] * 600) + ":\n        a[0] = 1",
    "for": "".join(f"    {' ' * i}for i{i} in range(2):\n" for i in range(20))
    + f"{' ' * 24}a[0] = 1.0",
}
"""What the language page says of how deep code may nest; that of `if` is among `BRACKETS`."""
FROM_A_MODULE: Final = """
import sys
sys.modules["torch"] = None
import ferrule as fe
import nested
example = fe.make_fake_compact_tensor(fe.Float32, (4,))
for name, function in vars(nested).items():
    if name.startswith("deep_"):
        fe.compile(function, example, options="--target cpu")
        print(name, flush=True)
"""


def test_code_nests_as_deep_as_the_language_page_says(tmp_path: Path) -> None:
    texts = [f"def deep_{name}(a):\n{body}\n" for name, body in AS_DEEP_AS_SAID.items()]
    (tmp_path / "nested.py").write_text("\n".join(texts))
    done = subprocess.run(
        [sys.executable, "-c", FROM_A_MODULE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), *filter(None, sys.path)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.split()) == len(AS_DEEP_AS_SAID)
