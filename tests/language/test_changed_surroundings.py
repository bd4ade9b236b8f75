"""Direct calls of `@jit` functions compile anew where what they take from around has changed."""

from __future__ import annotations

import importlib
import linecache
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.language.dependencies import witness


class Notebook:
    """Cells with one namespace and sources that can be found, as notebooks have them."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"fe": fe, "__name__": "notebook"}
        self.count = 0

    def run(self, text: str) -> None:
        """Run a cell."""
        self.count += 1
        file = f"<cell {id(self)} {self.count}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec", dont_inherit=True), self.names)

    def call(self, name: str = "f", *more: Any) -> float:
        """What a function puts into an array of one element, which is 1 before."""
        a = np.ones(1, np.float32)
        self.names[name](a, *more)
        return float(a[0])


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


PROGRAM = """
SCALE = 3.0
TABLE = [1, 2]
OPTIONS = {"k": 2}
DTYPE = fe.Float32

class Config:
    tile = 4

def inner(v):
    return v * SCALE

def helper(v):
    return inner(v)

@fe.kernel
def k(a):
    a[0] = a[0] + 1

@fe.jit
def scaled(a: fe.Tensor):
    a[0] = helper(a[0])

@fe.jit
def launched(a: fe.Tensor):
    k(a).launch(grid=1, block=1)

@fe.jit
def summed(a: fe.Tensor):
    for v in TABLE:
        a[0] = a[0] + v

@fe.jit
def looked_up(a: fe.Tensor):
    a[0] = a[0] * OPTIONS["k"]

@fe.jit
def converted(a: fe.Tensor):
    a[0] = DTYPE(a[0] + 0.5)

@fe.jit
def of_class(a: fe.Tensor):
    a[0] = a[0] * Config.tile

def computed():
    return SCALE + len(TABLE)

@fe.jit
def by_python(a: fe.Tensor):
    a[0] = computed()

@fe.jit
def shadowed(a: fe.Tensor):
    a[0] = max(a[0], 2.0)

@fe.jit
def in_text(a: fe.Tensor):
    assert f"{SCALE}" == "3.0"
    a[0] = 7
"""


@pytest.mark.parametrize(
    ("name", "before", "change", "after"),
    [
        ("scaled", 3, "SCALE = 5.0", 5),
        ("scaled", 3, "def inner(v):\n    return v + 10", 11),
        ("scaled", 3, "def helper(v):\n    return v + 100", 101),
        ("scaled", 3, "inner.__code__ = (lambda v: v + 6).__code__", 7),
        ("scaled", 3, "inner.__code__ = eval('lambda v: v + 6').__code__", None),
        ("launched", 2, "@fe.kernel\ndef k(a):\n    a[0] = a[0] + 41", 42),
        ("summed", 4, "TABLE.append(10)", 14),
        ("summed", 4, "TABLE = (5,)", 6),
        ("looked_up", 2, "OPTIONS['k'] = 9", 9),
        ("converted", 1.5, "DTYPE = fe.Int32", 1),
        ("of_class", 4, "Config.tile = 8", 8),
        ("by_python", 5, "SCALE = 10.0", 12),
        ("by_python", 5, "TABLE.append(1)", 6),
        ("shadowed", 2, "def max(x, y):\n    return x + y", 3),
    ],
)
def test_what_changed_is_compiled_in(
    notebook: Notebook, name: str, before: float, change: str, after: float | None
) -> None:
    notebook.run(PROGRAM)
    assert notebook.call(name) == before
    notebook.run(change)
    if after is None:  # code without a source, which must not pass for the old
        with pytest.raises(fe.CompileError):
            notebook.call(name)
    else:
        assert notebook.call(name) == after


def test_nothing_is_compiled_again_where_nothing_changed(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(PROGRAM)
    names = ("scaled", "launched", "summed", "looked_up", "converted", "of_class", "by_python")
    wanted = [notebook.call(name) for name in names]
    monkeypatch.setattr("ferrule.language.compilation.build", None)
    notebook.run("SCALE = 1.5 * 2; OPTIONS = {'k': 2}; unrelated = 3")
    assert [notebook.call(name) for name in names] == wanted


def test_globals_with_the_names_of_locals_mean_nothing(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(PROGRAM)
    notebook.run(
        "@fe.jit\n"
        "def f(a: fe.Tensor):\n"
        "    n = a.shape[0]\n"
        "    for i in range(n):\n"
        "        if a[i] > 0:\n"
        "            v = a[i]\n"
        "            a[i] = v + 1\n"
    )
    notebook.names.update({name: np.ones(3) for name in ("a", "i", "n", "v")})
    assert notebook.call() == 2
    assert notebook.call("launched") == 2
    monkeypatch.setattr("ferrule.language.compilation.build", None)
    notebook.names.update({name: np.zeros(3) for name in ("a", "i", "n", "v")})
    assert notebook.call() == 2
    assert notebook.call("launched") == 2


def test_what_was_compiled_before_comes_back(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(PROGRAM)
    assert notebook.call("scaled") == 3
    notebook.run("SCALE = 5.0")
    assert notebook.call("scaled") == 5
    monkeypatch.setattr("ferrule.language.compilation.build", None)
    notebook.run("SCALE = 3.0")
    assert notebook.call("scaled") == 3


def test_an_error_of_the_new_code_is_raised(notebook: Notebook) -> None:
    notebook.run(PROGRAM)
    assert notebook.call("scaled") == 3
    notebook.run("del SCALE")
    for _ in range(2):
        with pytest.raises(fe.CompileError, match="'SCALE' is not defined"):
            notebook.call("scaled")
    notebook.run("SCALE = 2.0")
    assert notebook.call("scaled") == 2
    notebook.run("def helper(v):\n    return missing(v)")
    with pytest.raises(fe.CompileError, match="'missing' is not defined"):
        notebook.call("scaled")


def test_an_assertion_at_compile_time_sees_the_change(notebook: Notebook) -> None:
    notebook.run(PROGRAM)
    assert notebook.call("in_text") == 7
    notebook.run("SCALE = 4.0")
    with pytest.raises(fe.CompileError):
        notebook.call("in_text")


def test_cells_of_closures(notebook: Notebook) -> None:
    notebook.run(
        "def make():\n"
        "    factor = 2\n"
        "    def change(v):\n"
        "        nonlocal factor\n"
        "        factor = v\n"
        "    @fe.jit\n"
        "    def f(a: fe.Tensor):\n"
        "        a[0] = a[0] * factor\n"
        "    return f, change\n"
        "f, change = make()\n"
    )
    assert notebook.call() == 2
    notebook.names["change"](9)
    assert notebook.call() == 9


def test_zeros_and_bools_are_told_apart(notebook: Notebook) -> None:
    notebook.run(
        "ZERO = 0.0\n"
        "@fe.jit\n"
        "def f(a: fe.Tensor):\n    a[0] = fe.math.copysign(a[0], fe.Float32(ZERO))\n"
        "@fe.jit\n"
        "def g(a: fe.Tensor, c: fe.Constexpr):\n"
        "    a[0] = fe.math.copysign(a[0], fe.Float32(c[0]))\n"
    )
    assert notebook.call() == 1
    notebook.run("ZERO = -0.0")
    assert notebook.call() == -1
    assert [notebook.call("g", (zero,)) for zero in (0.0, -0.0, 0.0)] == [1, -1, 1]
    held = [0.0]
    assert notebook.call("g", held) == 1
    held[0] = -0.0
    assert notebook.call("g", held) == -1


def test_constants_in_arrays_and_dataclasses(notebook: Notebook) -> None:
    notebook.run(
        "import dataclasses\n"
        "import numpy as np\n"
        "W = np.array([2.0, 3.0])\n"
        "@dataclasses.dataclass\n"
        "class Options:\n    k: int = 2\n"
        "options = Options()\n"
        "@fe.jit\n"
        "def f(a: fe.Tensor):\n    a[0] = a[0] * float(W[0]) * options.k\n"
        "@fe.jit\n"
        "def g(a: fe.Tensor, o: fe.Constexpr):\n    a[0] = a[0] * o.k\n"
    )
    assert notebook.call() == 4
    notebook.run("W[0] = 5.0")
    assert notebook.call() == 10
    notebook.run("options.k = 7")
    assert notebook.call() == 35
    assert notebook.call("g", notebook.names["options"]) == 7
    notebook.run("options.k = 8")
    assert notebook.call("g", notebook.names["options"]) == 8


def test_methods_of_objects(notebook: Notebook) -> None:
    notebook.run(
        "class Model:\n"
        "    def __init__(self):\n        self.w = 2\n"
        "    def apply(self, v):\n        return v * self.w\n"
        "model = Model()\n"
        "@fe.jit\n"
        "def f(a: fe.Tensor):\n    a[0] = model.apply(a[0])\n"
    )
    assert notebook.call() == 2
    notebook.run("model.w = 3")
    assert notebook.call() == 3
    notebook.run("def apply(self, v):\n    return v + self.w\nModel.apply = apply")
    assert notebook.call() == 4


def test_what_compile_gave_stays_as_it_is(notebook: Notebook) -> None:
    notebook.run(PROGRAM)
    a = np.ones(1, np.float32)
    fixed = fe.compile(notebook.names["scaled"], a, options="--target cpu")
    notebook.run("SCALE = 5.0")
    fixed(a)
    assert a[0] == 3


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "changing_helpers.py").write_text("FACTOR = 2\ndef go(v):\n    return v * FACTOR\n")
    yield importlib.import_module("changing_helpers")
    del sys.modules["changing_helpers"]


def test_attributes_of_modules(
    notebook: Notebook, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.names["helpers"] = module
    notebook.run(
        "@fe.jit\n"
        "def f(a: fe.Tensor):\n    a[0] = helpers.go(a[0])\n"
        "def size():\n    return helpers.FACTOR\n"
        "@fe.jit\n"
        "def g(a: fe.Tensor):\n    a[0] = size()\n"
    )
    assert (notebook.call(), notebook.call("g")) == (2, 2)
    with monkeypatch.context() as patch:
        patch.setattr(module, "FACTOR", 5)
        assert (notebook.call(), notebook.call("g")) == (5, 5)
    assert (notebook.call(), notebook.call("g")) == (2, 2)
    assert module.__file__ is not None
    Path(module.__file__).write_text("FACTOR = 2\ndef go(v):\n    return v + 100 * FACTOR\n")
    importlib.reload(module)
    assert notebook.call() == 201


def test_modules_that_name_each_other(notebook: Notebook) -> None:
    one, two = ModuleType("one"), ModuleType("two")
    one.two, two.one, one.factor = two, one, 2  # type: ignore[attr-defined]
    notebook.names["one"] = one
    notebook.run(
        "def size():\n    return one.two.one.factor\n"
        "@fe.jit\n"
        "def f(a: fe.Tensor):\n    a[0] = size()\n"
    )
    assert notebook.call() == 2
    one.factor = 5  # type: ignore[attr-defined]
    assert notebook.call() == 5


@pytest.mark.parametrize(("most", "is_same"), [(4, True), (3, True), (2, False)])
def test_more_functions_than_are_followed(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, most: int, is_same: bool
) -> None:
    """Nothing tells then whether all is as it was, so each call compiles."""
    monkeypatch.setattr(witness, "_MOST_CALLED", most)
    notebook.run(
        "def third():\n    return FACTOR\n"
        "def second():\n    return third()\n"
        "def first():\n    return second()\n"
        "FACTOR = 2\n"
        "@fe.jit\n"
        "def f(a: fe.Tensor):\n    a[0] = first() + first()\n"
    )
    assert notebook.call() == 4
    ((_, found),) = next(iter(notebook.names["f"]._compiled.values()))
    assert found.unchanged() is is_same
    notebook.run("FACTOR = 5")
    assert notebook.call() == 10


def test_threads_never_see_what_was_before(notebook: Notebook) -> None:
    notebook.run(PROGRAM)
    wrong: list[float] = []

    def call() -> None:
        for _ in range(20):
            found = notebook.call("scaled")
            if found != notebook.names["SCALE"]:
                wrong.append(found)

    for scale in (3.0, 4.0):
        notebook.names["SCALE"] = scale
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


CLASSES = """
import argparse, collections, dataclasses, types
from typing import NamedTuple

@dataclasses.dataclass
class Held:
    x: fe.Float32
    def __add__(self, other): return Held(self.x + other.x)
    def __neg__(self): return Held(-self.x)
    def __lt__(self, other): return self.x < other.x
    def __eq__(self, other): return self.x == other.x
    def __matmul__(self, other): return self.x * other.x
    def __call__(self, v): return self.x + v
    @property
    def double(self): return self.x + self.x

class Pair(NamedTuple):
    x: fe.Float32
    def __add__(self, other): return Pair(self.x + other.x)

class Plain:
    v = 2
    def __init__(self): self.w = 1
    def __add__(self, other): return self.v + other
    def __call__(self, v): return self.v * v
    def __bool__(self): return True
    def __len__(self): return 3
    def __getitem__(self, i): return i + 1
    def __iter__(self): return iter([1, 2])
    def __contains__(self, v): return True

plain = Plain()
space, names = types.SimpleNamespace(v=1), argparse.Namespace(v=1)
table = {"v": 1}
view, some, queue = types.MappingProxyType(table), bytearray([1]), collections.deque([1])
"""


@pytest.mark.parametrize(
    ("value", "patch", "before", "after"),
    [
        ("(r + r).x", "Held.__add__ = new | s, o: Held(s.x * 7)", 2, 7),
        ("(-r).x", "Held.__neg__ = new | s: Held(s.x * 7)", -1, 7),
        ("7 if r < Held(a[0] + 1) else 8", "Held.__lt__ = new | s, o: s.x > o.x", 7, 8),
        ("7 if r == r else 8", "Held.__eq__ = new | s, o: s.x != o.x", 7, 8),
        ("r @ r", "Held.__matmul__ = new | s, o: s.x * 7", 1, 7),
        ("r(1)", "Held.__call__ = new | s, v: s.x * 7", 2, 7),
        ("r.double", "Held.double = property(new) | s: s.x * 7", 2, 7),
        ("(Pair(a[0]) + Pair(a[0])).x", "Pair.__add__ = new | s, o: Pair(s.x * 7)", 2, 7),
        ("plain(a[0])", "Plain.__call__ = new | s, v: v * 7", 2, 7),
        ("plain(1)", "Plain.__call__ = new | s, v: 7", 2, 7),
        ("plain + 1", "Plain.__add__ = new | s, v: 7", 3, 7),
        ("1 if plain else 7", "Plain.__bool__ = new | s: False", 1, 7),
        ("len(plain)", "Plain.__len__ = new | s: 7", 3, 7),
        ("plain[0]", "Plain.__getitem__ = new | s, i: 7", 1, 7),
        ("1 if 5 in plain else 7", "Plain.__contains__ = new | s, v: False", 1, 7),
        ("Plain().w", "Plain.__init__ = new | s: setattr(s, 'w', 7)", 1, 7),
        ("space.v", "space.v = 7", 1, 7),
        ("names.v", "names.v = 7", 1, 7),
        ("view['v']", "table['v'] = 7", 1, 7),
        ("some[0]", "some[0] = 7", 1, 7),
        ("queue[0]", "queue[0] = 7", 1, 7),
    ],
)
def test_classes_and_objects_that_change(
    notebook: Notebook, value: str, patch: str, before: float, after: float
) -> None:
    """Seen by a function that was called once, and by one whose guard has been made."""
    notebook.run(CLASSES)
    notebook.run(f"@fe.jit\ndef f(a: fe.Tensor):\n    r = Held(a[0])\n    a[0] = {value}\n")
    assert [notebook.call() for _ in range(20)] == [before] * 20
    notebook.run(_as_functions(patch))
    assert notebook.call() == after


def _as_functions(patch: str) -> str:
    """A patch of a method: what is assigned, and the parameters and result of the new one."""
    target, _, function = patch.partition(" | ")
    given, _, result = function.partition(": ")
    return f"def new({given}): return {result}\n{target}\n" if function else patch
