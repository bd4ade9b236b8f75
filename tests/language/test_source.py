"""Functions are read from their files, whatever their lines look like.

The reference is Python's parser, which has read the whole file.
"""

from __future__ import annotations

import ast
import importlib.util
import linecache
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferrule.compiler.errors import CompileError
from ferrule.language.source import read_source

PROGRAMS = {
    "between others": "x = 1\ndef f(a):\n    return a\ny = 2\n",
    "one line": "def f(a): return a\ny = 2\n",
    "the last line has no end": "def f(a):\n    return a",
    "parameters over lines": "def f(\n    a,\n    b=(1,\n2),\n) -> int:\n    return a\ny = 2\n",
    "decorated": "d = lambda k: lambda f: f\n@d(\n    k=1,\n)\ndef f(a):\n    return a\n",
    "a text like the end": 'def f(a):\n    """One.\n\nx = 2\ndef g(): pass\n"""\n    return a\n',
    "a text that ends at the margin": 'def f(a):\n    b = """\n"""\n    return a\n',
    "a line that goes on": "def f(a):\n    b = a + \\\n1\n    return b\ny = 2\n",
    "comments at the margin": "def f(a):\n# one\n    b = a\n\n# two\n    return b\n# three\n",
    "an inner function": "def f(a):\n    def g(b):\n        return b\n    return g(a)\ny = 2\n",
    "tabs": "def f(a):\n\tif a:\n\t\treturn 1\n\treturn a\ny = 2\n",
    "inside an if": "if True:\n    def f(a):\n        return a\n    y = 2\nelse:\n    z = 3\n",
    "a method": "class A:\n    @staticmethod\n    def f(a):\n        return a\n    y = 2\nf = A.f",
    "decorated with a def in a text": (
        'def d(t): return lambda f: f\n@d("""\ndef no(): pass\n""")\ndef f(a):\n    return a\n'
    ),
    "letters of several bytes": "def f(ä):\n    ö = ä  # ü\n    return ö\n",
}


def loaded(path: Path, text: str) -> Callable[..., Any]:
    path.write_text(text, encoding="utf-8")
    found = importlib.util.spec_from_file_location("program", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    function: Callable[..., Any] = module.f
    return function


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_is_the_one_that_its_whole_file_has(tmp_path: Path, name: str) -> None:
    text = PROGRAMS[name]
    source = read_source(loaded(tmp_path / "program.py", text))
    every = ast.walk(ast.parse(text))
    (wanted,) = (x for x in every if isinstance(x, ast.FunctionDef) and x.name == "f")
    assert ast.dump(source.node, include_attributes=True) == ast.dump(
        wanted, include_attributes=True
    )
    assert source.lines[0] == text.splitlines()[source.first_line - 1]


LAMBDAS = {
    "alone": "f = lambda a, *, b=2: a * b\n",
    "over lines": "x = 1\nt = {1: lambda a: (\n    a\n+ 5)}\nf = t[1]\n",
    "a default": "f = lambda a, b=(lambda: 3)(): a + b\n",
    "beside another name": "g, f = lambda a: a + x, lambda a: a + y\n",
    "beside another constant": "g, f = lambda a: a + 1, lambda a: a + 1.0\n",
    "in a function": "def g(k):\n    return lambda a: a * k\nf = g(3)\n",
    "in a class": "class A:\n    m = staticmethod(lambda a: a - 1)\nf = A.m\n",
    "in another": "g = lambda: lambda a: a * 7\nf = g()\n",
}


@pytest.mark.parametrize("name", LAMBDAS)
def test_a_lambda_is_found_in_its_line(tmp_path: Path, name: str) -> None:
    function = loaded(tmp_path / "program.py", LAMBDAS[name])
    source = read_source(function, helper=True)
    made = eval(compile(ast.Expression(source.node), "made", "eval"), {"x": 1, "y": 2, "k": 3})
    names = function.__globals__ | {"k": 3, "x": 1, "y": 2}
    function.__globals__.update(names)
    for value in (2, 3.5):
        assert repr(made(value)) == repr(function(value))
    with pytest.raises(CompileError, match="a lambda cannot be compiled by itself"):
        read_source(function)


def test_lambdas_that_are_alike(tmp_path: Path) -> None:
    function = loaded(tmp_path / "program.py", "g, f = lambda a: a + 1, lambda a: a - 1\n")
    if sys.version_info >= (3, 11):
        node = read_source(function, helper=True).node
        assert isinstance(node, ast.Lambda) and isinstance(node.body, ast.BinOp)
        assert isinstance(node.body.op, ast.Sub)
    else:
        with pytest.raises(CompileError, match="a line has 2 lambdas that this one may be"):
            read_source(function, helper=True)


def test_a_lambda_that_is_not_in_its_file(tmp_path: Path) -> None:
    function = loaded(tmp_path / "program.py", "f = lambda a: a + 1\n")
    (tmp_path / "program.py").write_text("f = lambda a: a + 22\n")
    with pytest.raises(CompileError, match="a line has 0 lambdas that this one may be"):
        read_source(function, helper=True)


def test_a_function_of_no_file_is_found_without_a_look_into_other_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Lazy(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise AttributeError(name)

    asked: list[str] = []
    text = "def f(a):\n    return a\n"
    lines = text.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "<cell 7>", (len(text), None, lines, "<cell 7>"))
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec(compile(text, "<cell 7>", "exec"), names)
    monkeypatch.setitem(sys.modules, "lazy_one", Lazy("lazy_one"))
    source = read_source(names["f"])
    assert (source.file, source.lines, asked) == ("<cell 7>", tuple(text.splitlines()), [])


def test_the_source_of_bytecode_is_the_file_that_it_was_made_from(tmp_path: Path) -> None:
    function = loaded(tmp_path / "program.py", "def f(a):\n    return a\n")
    code = function.__code__.replace(co_filename=str(tmp_path / "program.pyc"))
    source = read_source(types.FunctionType(code, function.__globals__))
    assert (Path(source.file).name, source.lines[0]) == ("program.py", "def f(a):")
