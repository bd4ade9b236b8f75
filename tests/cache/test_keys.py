"""Whatever a compilation depends on is in its key: a change of it is a miss."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.cache import toolchain
from ferrule.compiler.cache.through import MEMORY

Written = Callable[..., ModuleType]

TEXT = '''
import dataclasses
import enum
import functools
import math

import numpy as np

import ferrule as fe
import constants
from constants import imported

SCALE = 2.0
TABLE = np.array([1.0, 2.0])
ALIAS = fe.Float32


class Mode(enum.Enum):
    ONE = 1
    TWO = 2


MODE = Mode.ONE


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 4

    def twice(self):
        return self.width * 2


class Plain:
    factor = 3

    def __init__(self, more):
        self.more = more

    def sum(self):
        return self.factor + self.more


CONFIG = Config()
PLAIN = Plain(5)
MANY = {"a": [1, 2], "b": (3, 4)}
PARTIAL = functools.partial(imported, 7)


def maker(inner):
    @fe.jit
    def closed(a: fe.Tensor):
        a[0] = a[0] + inner
    return closed


def helper(x, more=1.0):
    return x * SCALE + more


@fe.kernel
def kernel(a: fe.Tensor, x: ALIAS):
    i = fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        a[i] = helper(a[i]) + x


@fe.jit
def launched(a: fe.Tensor):
    kernel(a, 1.0).launch(grid=(1, 1, 1), block=(32, 1, 1))


@fe.jit
def everything(a: fe.Tensor, k: fe.Float32 = 2.0):
    """Its text."""
    a[0] = a[0] * k + CONFIG.twice() + PLAIN.sum() + MANY["b"][1] + PARTIAL(1)
    a[0] = a[0] + constants.DEEP + math.pi + float(TABLE[1])
    if MODE is Mode.ONE:
        a[0] = a[0] + 1.0


closed = maker(3.0)
'''
CONSTANTS = """
DEEP = 10


def imported(x, y):
    return x + y + DEEP
"""


def vector(dtype: object = fe.Float32, **options: object) -> object:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(symbol="n"),), **options)


def origin(function: object, *examples: object, options: str = "--target cpu") -> str:
    """Where a compilation's code is from, in a process that has none of it in memory."""
    MEMORY.clear()
    compiled = fe.compile(function, *(examples or (vector(),)), options=options)
    return compiled.origin


@pytest.fixture
def program(folder: Path, written: Written, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Imports the program with some of its text replaced."""

    def imported(*changes: tuple[str, str]) -> ModuleType:
        texts = {"constants": CONSTANTS, "kernels": TEXT}
        for old, new in changes:
            assert any(old in text for text in texts.values()), old
            texts = {name: text.replace(old, new, 1) for name, text in texts.items()}
        monkeypatch.setitem(sys.modules, "constants", written(texts["constants"], "constants"))
        return written(texts["kernels"])

    return imported


@pytest.mark.parametrize("name", ["launched", "everything", "closed"])
def test_the_same_program_is_found_again(program: Written, name: str) -> None:
    assert origin(getattr(program(), name)) == "compiled"
    assert origin(getattr(program(), name)) == "from the cache"
    assert origin(getattr(program(("class Mode", "UNUSED = 1\nclass Mode")), name)) == "compiled"


# Of one length each, so that no line moves and nothing but the text itself changes.
CHANGES = {
    "the text of the function": ("* k + CONFIG", "/ k + CONFIG", "everything"),
    "the docstring": ('"""Its text."""', '"""Her text."""', "everything"),
    "a default": ("k: fe.Float32 = 2.0", "k: fe.Float32 = 4.0", "everything"),
    "a global": ("SCALE = 2.0", "SCALE = 3.0", "launched"),
    "the text of a helper": ("x * SCALE", "x - SCALE", "launched"),
    "a default of a helper": ("more=1.0", "more=2.0", "launched"),
    "the text of a kernel": ("a[i]) + x", "a[i]) - x", "launched"),
    "a launch": ("kernel(a, 1.0)", "kernel(a, 2.0)", "launched"),
    "an annotation's name": ("ALIAS = fe.Float32", "ALIAS = fe.Float64", "launched"),
    "a variable of a closure": ("maker(3.0)", "maker(4.0)", "closed"),
    "a field of a dataclass": ("width: int = 4", "width: int = 5", "everything"),
    "a method of a dataclass": ("self.width * 2", "self.width * 3", "everything"),
    "an attribute of a class": ("factor = 3", "factor = 4", "everything"),
    "an attribute of an object": ("Plain(5)", "Plain(6)", "everything"),
    "a method of a class": ("factor + self", "factor - self", "everything"),
    "a dict": ('"b": (3, 4)', '"b": (3, 5)', "everything"),
    "an argument of a partial": ("(imported, 7)", "(imported, 8)", "everything"),
    "a function of another module": ("x + y + DEEP", "x - y + DEEP", "everything"),
    "a constant of another module": ("DEEP = 10", "DEEP = 11", "everything"),
    "an array": ("[1.0, 2.0]", "[1.0, 2.5]", "everything"),
    "an enum's member": ("MODE = Mode.ONE", "MODE = Mode.TWO", "everything"),
    "an enum's value": ("ONE = 1", "ONE = 4", "everything"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_program_is_a_miss(program: Written, change: str) -> None:
    old, new, name = CHANGES[change]
    assert origin(getattr(program(), name)) == "compiled"
    assert origin(getattr(program((old, new)), name)) == "compiled"
    assert origin(getattr(program(), name)) == "from the cache"


@pytest.mark.parametrize("name", ["launched", "everything", "closed"])
def test_what_the_program_does_not_use_is_not_in_the_key(program: Written, name: str) -> None:
    module = program()
    assert origin(getattr(module, name)) == "compiled"
    module.unused = object()
    module.a = object()  # the name of a parameter
    assert origin(getattr(module, name)) == "from the cache"


def test_values_that_change_in_the_process_are_a_miss(program: Written) -> None:
    module = program()
    assert origin(module.everything) == "compiled"
    module.PLAIN.more = 6
    assert origin(module.everything) == "compiled"
    module.Plain.sum = lambda self: 1
    assert origin(module.everything) == "compiled"
    module.TABLE[1] = 7
    assert origin(module.everything) == "compiled"
    module.MANY["b"] = (3, 9)
    assert origin(module.everything) == "compiled"
    assert origin(module.everything) == "from the cache"


EXAMPLES = {
    "dtype": (vector(fe.Float64),),
    "divisibility": (
        fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n", divisibility=4),)),
    ),
    "lower bound": (fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n", min=1),)),),
    "upper bound": (fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n", max=64),)),),
    "size": (fe.make_fake_compact_tensor(fe.Float32, (4,)),),
    "rank": (fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n"), 1)),),
    "alignment": (vector(assumed_align=32),),
    "width": (fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int64(symbol="n"),)),),
    "name of a size": (fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="m"),)),),
    "strides": (
        fe.make_fake_tensor(fe.Float32, (fe.sym_int(symbol="n"),), (fe.sym_int(symbol="s"),)),
    ),
}


@pytest.mark.parametrize("change", EXAMPLES)
def test_other_examples_are_a_miss(program: Written, change: str) -> None:
    function = program(("a[0] = a[0] + inner", "return a.shape[0]")).closed
    assert origin(function) == "compiled"
    assert origin(function, *EXAMPLES[change]) == "compiled"
    assert origin(function, *EXAMPLES[change]) == "from the cache"


def test_other_requirements_are_a_miss(program: Written) -> None:
    function = program(("a[0] = a[0] + inner", "return a.shape[0]")).closed
    n = fe.sym_int(symbol="n")
    example = fe.make_fake_compact_tensor(fe.Float32, (n,))

    def required(*requires: object) -> str | None:
        return fe.compile(function, example, options="--target cpu", requires=requires).origin

    assert [required(), required(n < 8), required(n < 9)] == ["compiled"] * 3
    assert required(fe.specs.require(n < 9, "too many")) == "compiled"
    assert [required(), required(n < 9)] == ["from the cache"] * 2


OPTIONS = (
    *("--opt-level 2", "--strip-paths", "--enable-checks", "--release-gil true"),
    *("--host-cpu x86-64-v3", "--fast-math", "--fmad", "--target cuda --gpu-arch sm_80"),
    *("--target cuda --gpu-arch sm_90", "--host-target aarch64-linux-gnu"),
)


@pytest.mark.parametrize("options", OPTIONS)
def test_other_options_are_a_miss(program: Written, options: str) -> None:
    function = program().launched
    assert origin(function) == "compiled"
    assert origin(function, options=f"--target cpu {options}") == "compiled"
    assert origin(function, options=f"--target cpu {options}") == "from the cache"


TOOLS = ("_stamps", "_python", "_llvm", "_packages", "_cpu")


@pytest.mark.parametrize("tool", TOOLS)
def test_another_toolchain_is_a_miss(
    program: Written, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = program().launched
    assert origin(function) == "compiled"
    with monkeypatch.context() as changed:
        changed.setattr(toolchain, tool, lambda: b"another")
        assert origin(function) == "compiled"
    assert origin(function) == "from the cache"


def test_a_source_of_ferrule_that_changes_is_seen(tmp_path: Path) -> None:
    inner = tmp_path / "language"
    inner.mkdir()
    file = inner / "a.py"
    file.write_text("one")
    (tmp_path / "emulator").mkdir()
    (tmp_path / "emulator" / "b.py").write_text("not read by a compilation")
    before = list(toolchain._stamps_of(str(tmp_path)))
    assert len(before) == 1
    os.utime(file, ns=(1, 2))
    assert list(toolchain._stamps_of(str(tmp_path))) != before


def test_versions_are_in_the_toolchain() -> None:
    import llvmlite
    import tvm_ffi

    told = toolchain.toolchain()
    assert llvmlite.__version__.encode() in told["LLVM"]
    assert b"libllvmlite" in told["LLVM"]
    assert sys.version.encode("unicode_escape")[:20] in told["Python"]
    assert tvm_ffi.__version__.encode() in told["the packages NumPy and tvm-ffi"]
    assert np.__version__.encode() in told["the packages NumPy and tvm-ffi"]


def test_the_assembler_of_cubins_is_in_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ptxas = tmp_path / "ptxas"
    ptxas.write_text("#!/bin/sh\n")
    ptxas.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    options = fe.Options(target="cuda", gpu_arch="sm_80", cubin=True)
    before = toolchain.parts_of(options)["the GPU"]
    assert str(ptxas).encode() in before
    ptxas.write_text("#!/bin/sh\n# another\n")
    assert toolchain.parts_of(options)["the GPU"] != before


UNCACHEABLE = {
    "the environment": ("import os", "a[0] = float(os.environ.get('HOME') is None)"),
    "files": ("", "a[0] = float(len(open(__file__).read()))"),
    "the time": ("import time", "a[0] = float(time.time() > 0)"),
    "random numbers": ("import random", "a[0] = random.random()"),
    "random numbers of NumPy": ("", "a[0] = float(np.random.rand())"),
    "files of NumPy": ("", "a[0] = float(np.loadtxt('x')) if False else 0.0"),
    "names as texts": ("import constants", "a[0] = float(getattr(constants, 'DEEP'))"),
    "all names": ("", "a[0] = float(len(globals()))"),
    "output while compiling": ("", "show(1)\n    a[0] = 1.0"),
    "addresses": ("THING = object()", "a[0] = float(id(THING) > 0)"),
    "what a library holds": ("import decimal", "a[0] = float(decimal.getcontext().prec)"),
    "an iterator": ("NEXT = iter([1, 2, 3])", "a[0] = float(next(NEXT))"),
    "a class of C": ("import array\nARRAY = array.array('f', [1])", "a[0] = float(ARRAY[0])"),
    "ferrule's own state": ("", "a[0] = float(len(fe.cache.info().__slots__))"),
}


@pytest.mark.parametrize("what", UNCACHEABLE)
def test_what_no_key_can_hold_is_compiled_each_time(
    folder: Path,
    written: Written,
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, line = UNCACHEABLE[what]
    monkeypatch.setitem(sys.modules, "constants", written("DEEP = 1", "constants"))
    monkeypatch.setenv("FERRULE_LOG", "cache")
    text = (
        "import numpy as np\nimport ferrule as fe\n"
        f"{before}\n\ndef show(x):\n    print(x)\n\n"
        f"@fe.jit\ndef f(a: fe.Tensor):\n    {line}\n"
    )
    for _ in range(2):
        try:
            found = origin(written(text).f)
        except fe.CompileError:
            found = "compiled"  # the language refuses it
        assert found == "compiled"
    assert "not kept: f" in capsys.readouterr().err
    assert not list(folder.rglob("*.ferrule"))


def test_what_a_compilation_changes_itself_is_not_kept(
    folder: Path,
    written: Written,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FERRULE_LOG", "cache")
    module = written(
        "import ferrule as fe\n\nSEEN = []\n\n"
        "def note(x):\n    SEEN.append(x)\n    return x\n\n"
        "@fe.jit\ndef f(a: fe.Tensor):\n    a[0] = float(note(3))\n"
    )
    assert origin(module.f) == "compiled"
    assert module.SEEN == [3]
    assert "changed while it was compiled: the global SEEN" in capsys.readouterr().err
    assert origin(module.f) == "compiled"
    assert module.SEEN == [3, 3]


def test_a_miss_says_what_differs(
    program: Written, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FERRULE_LOG", "cache")
    module = program()
    origin(module.launched)
    assert "nothing of this name is in the cache" in capsys.readouterr().err
    module.SCALE = 9.0
    origin(module.launched)
    said = capsys.readouterr().err
    assert "miss: launched: other than in the nearest entry: the global SCALE of kernels\n" in said
    origin(module.launched)
    assert "taken from the folder: launched" in capsys.readouterr().err


def test_a_working_directory_that_shows_in_errors_is_in_the_key(
    program: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = program().launched
    assert origin(function) == "compiled"
    assert origin(function, options="--target cpu --strip-paths") == "compiled"
    monkeypatch.chdir(tmp_path)
    assert origin(function) == "compiled"
    assert origin(function, options="--target cpu --strip-paths") == "from the cache"
