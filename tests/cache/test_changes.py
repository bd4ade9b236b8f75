"""Whatever changes between two compilations, the second is that of a compiler without a cache.

Each case is a module with a function `f` and a `change` of what `f` depends on.  It is compiled
again in the process, where the change is to be noticed, and as a new process has it, by its key.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import fractions
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.cache.through import MEMORY
from ferrule.language.cachekeys import compilations
from ferrule.language.decorators import JitFunction

Written = Callable[..., ModuleType]

HEAD = """
import abc
import builtins
import collections
import dataclasses
import enum
import fractions
import functools
import math
import operator
import types
import typing

import numpy as np

import ferrule as fe

one = lambda *given: 1
two = lambda *given: 2
settings = types.ModuleType("settings")
settings.SCALE = 1


class Plain:
    pass


class Reader:
    # Its methods are run by Python itself.
    def __init__(self):
        self.x = self.read()
"""
KEPT = {
    "a list that is another one": """
A = [1]
X = A
def change():
    global X
    X = [1]
VALUE = lambda: 5 if X is A else 7
""",
    "a list inside a tuple that is another one": """
A = [1]
X = (A,)
def change():
    global X
    X = ([1],)
VALUE = lambda: 5 if X[0] is A else 7
""",
    "the order of a set": """
X = {0, 8}
def change():
    global X
    X = {8, 0}
VALUE = lambda: list(X)[0]
""",
    "the order of a frozen set": """
X = frozenset([0, 8])
def change():
    global X
    X = frozenset([8, 0])
VALUE = lambda: list(X)[0]
""",
    "the sign of a NaN": """
X = math.nan
def change():
    global X
    X = -math.nan
VALUE = lambda: math.copysign(1, X)
""",
    "the strides of an array": """
X = np.ones((2, 2))
def change():
    global X
    X = np.asfortranarray(X)
VALUE = lambda: X.strides[0]
""",
    "the fields of a structured dtype": """
def dtype(second):
    return np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, second]})
X = dtype(0)
def change():
    global X
    X = dtype(2)
VALUE = lambda: X.itemsize
""",
    "a large integer": """
X = 1 << 20000
def change():
    global X
    X += 1
VALUE = lambda: X % 7
""",
    "an attribute of an object that hides that of its class": """
class C:
    scale = 1
X = C()
def change():
    X.scale = 5
VALUE = lambda: X.scale
""",
    "an attribute of an object that hides one no more": """
class C:
    scale = 1
X = C()
X.scale = 5
def change():
    del X.scale
VALUE = lambda: X.scale
""",
    "an attribute of a class that hides that of its base": """
class Base:
    scale = 1
class C(Base):
    pass
def change():
    C.scale = 5
VALUE = lambda: C.scale
""",
    "a method of a class that hides that of its base": """
class Base:
    def go(self):
        return 1
class C(Base):
    pass
X = C()
def change():
    C.go = two
VALUE = lambda: X.go()
""",
    "a special method that a class did not have": """
X = Plain()
def change():
    Plain.__bool__ = lambda self: False
VALUE = lambda: 5 if X else 7
""",
    "the class of an object": """
class A:
    def go(self):
        return 1
class B:
    def go(self):
        return 2
X = A()
def change():
    X.__class__ = B
VALUE = lambda: X.go()
""",
    "the bases of a class": """
class A:
    def go(self):
        return 1
class B:
    def go(self):
        return 2
class C(A):
    pass
X = C()
def change():
    C.__bases__ = (B,)
VALUE = lambda: X.go()
""",
    "the name of a class": """
def change():
    Plain.__name__ = "Longer"
VALUE = lambda: len(Plain.__name__)
""",
    "a name that hides a builtin": """
def change():
    global max
    max = lambda a, b: 99
VALUE = lambda: max(1, 2)
""",
    "an attribute of a function": """
def helper():
    return helper.scale
helper.scale = 1
def change():
    helper.scale = 2
VALUE = lambda: helper()
""",
    "what a function says of itself": """
def helper():
    "a text"
def change():
    helper.__doc__ = "another text"
VALUE = lambda: len(helper.__doc__)
""",
    "the attributes of a partial": """
X = functools.partial(one)
X.scale = 1
def change():
    X.scale = 2
VALUE = lambda: X.scale
""",
    "a private attribute of a class": """
class C:
    __scale = 1
    def go(self):
        return self.__scale
X = C()
def change():
    C._C__scale = 2
VALUE = lambda: X.go()
""",
    "a private attribute that Python reads": """
class C(Reader):
    __scale = 1
    def read(self):
        return self.__scale
def change():
    C._C__scale = 2
VALUE = lambda: C().x
""",
    "a private global": """
class C(Reader):
    def read(self):
        return __scale
_C__scale = 1
def change():
    global _C__scale
    _C__scale = 2
VALUE = lambda: C().x
""",
    "a private slot": """
class C:
    __slots__ = ("__x",)
    def __init__(self, x):
        self.__x = x
X = C(1)
def change():
    global X
    X = C(2)
VALUE = lambda: X._C__x
""",
    "slots of an iterator": """
class C:
    __slots__ = iter(("x",))
X = C()
X.x = 1
def change():
    X.x = 2
VALUE = lambda: X.x
""",
    "an attribute that a pattern reads": """
class C:
    scale = 1
X = C()
class Matching(Reader):
    def read(self):
        match X:
            case C(scale=1):
                return 5
        return 7
def change():
    C.scale = 2
VALUE = lambda: Matching().x
""",
    "the metadata of a field": """
def made(value):
    @dataclasses.dataclass
    class C:
        x: int = dataclasses.field(default=1, metadata={"unit": value})
    return C
C = made(1)
def change():
    global C
    C = made(2)
VALUE = lambda: dataclasses.fields(C)[0].metadata["unit"]
""",
    "whether a field is compared": """
def made(value):
    @dataclasses.dataclass(frozen=True)
    class C:
        x: int = dataclasses.field(default=1, compare=value)
    return C
C = made(True)
def change():
    global C
    C = made(False)
VALUE = lambda: 5 if C(1) == C(2) else 7
""",
    "an attribute of a member of an enumeration": """
class E(enum.Enum):
    RED = 1
E.RED.more = 1
def change():
    E.RED.more = 2
VALUE = lambda: E.RED.more
""",
    "the default of a named tuple": """
class N(typing.NamedTuple):
    x: int = 1
def change():
    N.__new__.__defaults__ = (2,)
VALUE = lambda: N().x
""",
    "the fields of a named tuple": """
N = collections.namedtuple("N", "x y")
def change():
    global N
    N = collections.namedtuple("N", "y x")
VALUE = lambda: N(1, 2).x
""",
    "a range": """
X = range(1, 9, 2)
def change():
    global X
    X = range(1, 9, 3)
VALUE = lambda: sum(X)
""",
    "a namespace": """
X = types.SimpleNamespace(scale=1)
def change():
    X.scale = 2
VALUE = lambda: X.scale
""",
    "a function of Python's library that is the user's now": """
def change():
    math.fabs = two
VALUE = lambda: math.fabs(-3)
""",
    "a function of Python's library that is another one now": """
def change():
    math.fabs = math.sqrt
VALUE = lambda: math.fabs(4)
""",
    "a function of NumPy that is the user's now": """
def change():
    np.prod = two
VALUE = lambda: np.prod([3])
""",
    "a function of ferrule that is the user's now": """
def change():
    fe.ceil_div = two
VALUE = lambda: fe.ceil_div(9, 3)
""",
    "the order of a set in a function without a text": """
def made(text):
    names = {}
    exec(text, names)
    return names["first"]
first = made("def first():\\n    for x in {0, 8}: return x")
class First(Reader):
    def read(self):
        return first()
def change():
    global first
    first = made("def first():\\n    for x in {8, 0}: return x")
VALUE = lambda: First().x
""",
    "how NumPy prints": """
X = np.array([0.123456789])
def change():
    np.set_printoptions(precision=2)
VALUE = lambda: len(str(X))
""",
    "a name among the builtins": """
builtins.SCALE = 1
def change():
    builtins.SCALE = 2
VALUE = lambda: SCALE
""",
    "the function of a kernel": """
@fe.jit
def inner(a: fe.Tensor):
    a[0] = 1
@fe.jit
def other(a: fe.Tensor):
    a[0] = 2
def change():
    inner.function = other.function
VALUE = lambda: inner(a) or a[0]
""",
    "an attribute of a kernel": """
@fe.kernel
def inner(a: fe.Tensor):
    a[0] = 1
inner.scale = 1
def change():
    inner.scale = 2
VALUE = lambda: inner.scale
""",
    "the bound of a type variable": """
T = typing.TypeVar("T", bound=int)
def change():
    global T
    T = typing.TypeVar("T", bound=float)
VALUE = lambda: 5 if T.__bound__ is int else 7
""",
    "the type behind a new type": """
T = typing.NewType("T", int)
def change():
    global T
    T = typing.NewType("T", float)
VALUE = lambda: 5 if T.__supertype__ is int else 7
""",
    "the length of a deque": """
X = collections.deque([1])
def change():
    global X
    X = collections.deque([1], 5)
VALUE = lambda: 5 if X.maxlen is None else 7
""",
    "what a method of a dict reads": """
D = {"a": 1}
X = D.get
def change():
    D["a"] = 2
VALUE = lambda: X("a")
""",
    "whether an array can be written": """
X = np.zeros(2)
def change():
    X.flags.writeable = False
VALUE = lambda: 5 if X.flags.writeable else 7
""",
    "a name that was missing": """
class Trying(Reader):
    def read(self):
        try:
            return MAYBE
        except NameError:
            return 5
def change():
    global MAYBE
    MAYBE = 9
VALUE = lambda: Trying().x
""",
    "an attribute of a module that was missing": """
class Trying(Reader):
    def read(self):
        try:
            return settings.MAYBE
        except AttributeError:
            return 5
def change():
    settings.MAYBE = 9
VALUE = lambda: Trying().x
""",
    "an attribute of a class of Python's library": """
fractions.Fraction.LIMIT = 1
def change():
    fractions.Fraction.LIMIT = 2
VALUE = lambda: fractions.Fraction.LIMIT
""",
    "an attribute of a dtype": """
fe.Int8.LIMIT = 1
def change():
    fe.Int8.LIMIT = 2
VALUE = lambda: fe.Int8.LIMIT
""",
    "an attribute of a dtype that hides that of its base": """
Base = fe.Int8.__mro__[1]
Base.LIMIT = 1
def change():
    fe.Int8.LIMIT = 2
VALUE = lambda: fe.Int8.LIMIT
""",
    "an attribute of the class of dtypes": """
type(fe.Int8).LIMIT = 1
def change():
    type(fe.Int8).LIMIT = 2
VALUE = lambda: fe.Int8.LIMIT
""",
    "an attribute of a dtype among the globals": """
X = fe.Int8
X.LIMIT = [1]
def change():
    X.LIMIT[0] = 2
VALUE = lambda: X.LIMIT[0]
""",
    "an attribute of a dtype that a helper reads": """
fe.Int8.LIMIT = 1
def helper():
    return fe.Int8.LIMIT
def change():
    fe.Int8.LIMIT = 2
VALUE = lambda: helper()
""",
    "an attribute of an annotation": """
fe.Tensor.LIMIT = 1
def change():
    fe.Tensor.LIMIT = 2
VALUE = lambda: fe.Tensor.LIMIT
""",
    "an attribute of a class of specs": """
fe.specs.Tensor.LIMIT = 1
def change():
    fe.specs.Tensor.LIMIT = 2
VALUE = lambda: fe.specs.Tensor.LIMIT
""",
    "an attribute of the class of a spec": """
X = fe.row_major((2,), fe.Float32)
type(X).LIMIT = 1
def change():
    type(X).LIMIT = 2
VALUE = lambda: X.LIMIT
""",
    "an attribute of a function of ferrule": """
fe.ceil_div.LIMIT = 1
def change():
    fe.ceil_div.LIMIT = 2
VALUE = lambda: fe.ceil_div.LIMIT
""",
    "an attribute of a function of ferrule among the globals": """
X = fe.ceil_div
X.LIMIT = 1
def change():
    X.LIMIT = 2
VALUE = lambda: X.LIMIT
""",
    "a function of ferrule that is another one of ferrule": """
def change():
    fe.ceil_div = fe.make_layout
VALUE = lambda: 5 if fe.ceil_div is fe.make_layout else 7
""",
    "an attribute of enumerations": """
enum.Enum.LIMIT = 1
def change():
    enum.Enum.LIMIT = 2
VALUE = lambda: enum.Enum.LIMIT
""",
    "an attribute of enumerations that a member reads": """
class E(enum.Enum):
    RED = 1
enum.Enum.LIMIT = 1
def change():
    enum.Enum.LIMIT = 2
VALUE = lambda: E.RED.LIMIT
""",
    "an attribute of the class of enumerations": """
class E(enum.Enum):
    RED = 1
enum.EnumMeta.LIMIT = 1
def change():
    enum.EnumMeta.LIMIT = 2
VALUE = lambda: E.LIMIT
""",
    "an attribute of a member of an enumeration of ferrule": """
fe.AddressSpace.smem.LIMIT = 1
def change():
    fe.AddressSpace.smem.LIMIT = 2
VALUE = lambda: fe.AddressSpace.smem.LIMIT
""",
    "an attribute of a base in Python's library": """
class C(fractions.Fraction):
    pass
fractions.Fraction.LIMIT = 1
def change():
    fractions.Fraction.LIMIT = 2
VALUE = lambda: C.LIMIT
""",
    "a property that a program gives a class of Python's library": """
class C(fractions.Fraction):
    pass
X = types.SimpleNamespace(of=fe.row_major((2,), fe.Float32))
type(X.of).LIMIT = property(one)
def change():
    type(X.of).LIMIT = property(two)
VALUE = lambda: X.of.LIMIT
""",
    "a list in a module of Python's library": """
math.LIMIT = [1]
def change():
    math.LIMIT = [2]
VALUE = lambda: math.LIMIT[0]
""",
    "a value in a module of Python's library that has another name": """
X = math
math.LIMIT = 1
def inner(module):
    return module.LIMIT
def change():
    math.LIMIT = 2
VALUE = lambda: inner(X)
""",
    "a value in a module of ferrule": """
fe.arch.LIMIT = 1
def change():
    fe.arch.LIMIT = 2
VALUE = lambda: fe.arch.LIMIT
""",
    "a value in ferrule under another name": """
X = types.SimpleNamespace(module=fe)
fe.LIMIT = 1
def change():
    fe.LIMIT = 2
VALUE = lambda: X.module.LIMIT
""",
    "an attribute of an ordered dict": """
X = collections.OrderedDict()
X.limit = 1
def change():
    X.limit = 2
VALUE = lambda: X.limit
""",
    "an attribute of a type variable": """
X = typing.TypeVar("X")
X.limit = 1
def change():
    X.limit = 2
VALUE = lambda: X.limit
""",
    "an attribute of a static method": """
X = staticmethod(one)
X.limit = 1
def change():
    X.limit = 2
VALUE = lambda: X.limit
""",
    "an attribute of the function of a method": """
class C:
    def go(self):
        return 1
C.go.limit = 1
X = C()
def change():
    C.go.limit = 2
VALUE = lambda: X.go.limit
""",
    "an attribute of a function that is compiled": """
@fe.jit
def inner(a: fe.Tensor):
    a[0] = 1
inner.limit = 1
def change():
    inner.limit = 2
VALUE = lambda: inner.limit
""",
    "an attribute of a function that is compiled, which its function has": """
def inner(a: fe.Tensor):
    a[0] = 1
inner.limit = 1
inner = fe.jit(inner)
def change():
    inner.limit = 2
VALUE = lambda: inner.limit
""",
    "an attribute of the class of functions that are compiled": """
@fe.jit
def inner(a: fe.Tensor):
    a[0] = 1
type(inner).LIMIT = 1
def change():
    type(inner).LIMIT = 2
VALUE = lambda: inner.LIMIT
""",
    "an attribute of the compiled function itself": """
def change():
    f.limit = 2
def begin():
    f.limit = 1
VALUE = lambda: f.limit
""",
    "a property": """
class C:
    @property
    def limit(self):
        return self.held
X = C()
X.held = 1
def change():
    X.held = 2
VALUE = lambda: X.limit
""",
    "a slot": """
class C:
    __slots__ = ("limit",)
X = C()
X.limit = 1
def change():
    X.limit = 2
VALUE = lambda: X.limit
""",
    "an attribute of a module in a module": """
settings.inner = types.ModuleType("inner")
settings.inner.limit = 1
def change():
    settings.inner.limit = 2
VALUE = lambda: settings.inner.limit
""",
}
"""Those that the cache keeps, each with its value in the text of `f`."""
COMPILED = {
    "the dict of a class": ("Plain.scale = 1", "Plain.scale = 2", 'Plain.__dict__["scale"]'),
    "the dict of a module": ("", "settings.SCALE = 2", 'settings.__dict__["SCALE"]'),
    "attrgetter": ("", "settings.SCALE = 2", 'operator.attrgetter("SCALE")(settings)'),
    "attrgetter by name": (
        "from operator import attrgetter",
        "settings.SCALE = 2",
        'attrgetter("SCALE")(settings)',
    ),
    "methodcaller": (
        "X = Plain()\nPlain.go = one",
        "Plain.go = two",
        'operator.methodcaller("go")(X)',
    ),
    "format": ("", "settings.SCALE = 2", 'int("{0.SCALE}".format(settings))'),
    "format of a global": (
        'X = "{0.SCALE}"',
        "settings.SCALE = 2",
        "int(X.format(settings))",
    ),
    "__getattribute__": (
        "Plain.scale = 1\nX = Plain()",
        "Plain.scale = 2",
        'object.__getattribute__(X, "scale")',
    ),
    "globals of a function": (
        "SCALE = 1\ndef helper(): pass",
        "globals()['SCALE'] = 2",
        'helper.__globals__["SCALE"]',
    ),
    "builtins.getattr": ("", "settings.SCALE = 2", 'builtins.getattr(settings, "SCALE")'),
    "another name of vars": ("X = vars", "settings.SCALE = 2", 'X(settings)["SCALE"]'),
    "types of annotations": (
        'T = int\ndef helper(x: "T"): pass',
        "globals()['T'] = float",
        '5 if typing.get_type_hints(helper)["x"] is int else 7',
    ),
    "a class that was registered": (
        "class A(abc.ABC): pass\nX = Plain()",
        "A.register(Plain)",
        "5 if isinstance(X, A) else 7",
    ),
    "a class that was registered with Python's": (
        "X = Plain()",
        "collections.abc.Sized.register(Plain)",
        "5 if isinstance(X, collections.abc.Sized) else 7",
    ),
    "subclasses": (
        "KEEP = []",
        "KEEP.append(type('More', (Plain,), {}))",
        "len(Plain.__subclasses__())",
    ),
    "__wrapped__": (
        "def helper(): pass\nhelper.__wrapped__ = one",
        "helper.__wrapped__ = two",
        "helper.__wrapped__()",
    ),
    "a module of a class of its own": (
        "class M(types.ModuleType):\n    SCALE = 1\nX = M('x')",
        "M.SCALE = 2",
        "X.SCALE",
    ),
    "a function of frompyfunc": (
        "X = np.frompyfunc(one, 1, 1)",
        "globals().update(X=np.frompyfunc(two, 1, 1))",
        "X(3)",
    ),
    "a fraction in a module of Python's library": (
        "math.LIMIT = fractions.Fraction(1, 2)",
        "math.LIMIT = fractions.Fraction(5, 2)",
        "math.LIMIT.numerator",
    ),
}
"""Those that no key can hold: what there is before, the change, and the value."""


READ_BY_PYTHON = frozenset(
    {
        "a list that is another one",
        "a list inside a tuple that is another one",
        "an attribute of a function",
        "a private attribute of a class",
        "a private attribute that Python reads",
        "a private global",
        "an attribute that a pattern reads",
        "the order of a set in a function without a text",
        "how NumPy prints",
        "what a method of a dict reads",
        "a name that was missing",
        "an attribute of a module that was missing",
        "an attribute of a dtype that a helper reads",
        "a value in a module of Python's library that has another name",
    }
)
"""Those that direct calls do not notice: they compare containers by value, and know no attributes
that ordinary Python reads.  docs/language.md says so."""
BEGIN = """

if "begin" in globals():
    begin()
"""


def text_of(case: str) -> str:
    if case in KEPT:
        before, _, value = KEPT[case].rpartition("VALUE = lambda: ")
        text = before
    else:
        before, change, value = COMPILED[case]
        text = f"{before}\n\n\ndef change():\n    {change}\n"
    return f"{HEAD}\n{text}\n\n@fe.jit\ndef f(a: fe.Tensor):\n    a[0] = {value.strip()}\n{BEGIN}"


def _owners() -> list[Any]:
    """What of libraries gets an attribute `LIMIT`."""
    spec = fe.row_major((2,), fe.Float32)
    classes = [fractions.Fraction, *fe.Int8.__mro__[:2], type(fe.Int8), fe.Tensor, type(spec)]
    classes += [fe.specs.Tensor, enum.Enum, enum.EnumMeta, JitFunction]
    return [*classes, fe.AddressSpace.smem, fe.ceil_div, fe.arch, fe, math]


@pytest.fixture(autouse=True)
def libraries() -> Iterator[None]:
    """What a case changes of libraries is as before at the end."""
    held = [(math, "fabs"), (np, "prod"), (fe, "ceil_div")]
    before = [(module, name, getattr(module, name)) for module, name in held]
    with np.printoptions():
        yield
    vars(builtins).pop("SCALE", None)
    for each in _owners():
        with contextlib.suppress(AttributeError):
            del each.LIMIT
    for module, name, value in before:
        setattr(module, name, value)


def compiled(module: ModuleType, options: str = "--target cpu") -> tuple[float, str]:
    a = fe.make_fake_compact_tensor(fe.Float64, (4,))
    function: Any = fe.compile(module.f, a, options=options)
    x = np.zeros(4)
    function(x)
    return float(x[0]), function.origin


@pytest.mark.parametrize("case", [*KEPT, *COMPILED])
def test_a_change_is_seen(folder: Path, written: Written, case: str) -> None:
    module = written(text_of(case))
    first, again = compiled(module), compiled(module)
    assert first[0] == again[0]
    module.change()
    true, _ = compiled(module, "--target cpu --no-cache")
    assert true != first[0]
    assert compiled(module) == (true, "compiled")
    assert compiled(module) == (true, "from the cache" if case in KEPT else "compiled")


@pytest.mark.parametrize("case", KEPT)
def test_a_change_is_seen_by_the_next_process(folder: Path, written: Written, case: str) -> None:
    before = compiled(written(text_of(case)))
    MEMORY.clear()
    assert compiled(written(text_of(case))) == (before[0], "from the cache")
    MEMORY.clear()
    module = written(text_of(case))
    module.change()
    true, _ = compiled(module, "--target cpu --no-cache")
    assert compiled(module) == (true, "compiled")


@pytest.mark.parametrize("case", KEPT)
def test_a_change_is_seen_by_a_call(folder: Path, written: Written, case: str) -> None:
    """Direct calls of a function that the cache had.  They compare containers by value."""
    written(text_of(case)).f(np.zeros(4))
    MEMORY.clear()
    module, x = written(text_of(case)), np.zeros(4)
    for _ in range(5):  # until a guard in machine code compares
        module.f(x)
    module.change()
    true, _ = compiled(module, "--target cpu --no-cache")
    module.f(x)
    assert x[0] == true or case.startswith("a list"), case


@pytest.mark.parametrize("case", sorted(KEPT.keys() - READ_BY_PYTHON))
def test_a_change_is_seen_by_a_call_of_what_was_compiled(written: Written, case: str) -> None:
    module, x = written(text_of(case)), np.zeros(4)
    for _ in range(5):
        module.f(x)
    module.change()
    true, _ = compiled(module, "--target cpu --no-cache")
    module.f(x)
    assert x[0] == true


@pytest.mark.parametrize("name", ["FERRULE_MLIR", "CUDA_HOME", "CUDA_PATH", "PATH"])
def test_other_tools_are_another_call(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("FERRULE_CACHE", "1")
    before = compilations.asked([1], {}, "--target cuda --gpu-arch sm_80")
    assert before == compilations.asked([1], {}, "--target cuda --gpu-arch sm_80")
    monkeypatch.setenv(name, "/elsewhere")
    assert before != compilations.asked([1], {}, "--target cuda --gpu-arch sm_80")
