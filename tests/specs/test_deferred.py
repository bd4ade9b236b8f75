"""`dataclass` with deferred methods makes what the standard library's makes, of every class."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.specs.deferred import dataclass

ROOT = Path(__file__).resolve().parents[2]
OPTIONS: tuple[dict[str, bool], ...] = (
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
    {"frozen": True, "slots": True, "init": False},
    {"slots": True},
    {"slots": True, "eq": False},
    {"frozen": True},
    {},
)
OWN: dict[str, Any] = {
    "__init__": lambda self: None,
    "__eq__": lambda self, other: True,
    "__hash__": lambda self: 7,
    "__repr__": lambda self: "own",
    "__setattr__": lambda self, name, value: None,
    "__post_init__": lambda self: None,
    "__doc__": "Own.",
    "__match_args__": ("own",),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: tuple[int, ...] = ()
    held: list[int] = field(default_factory=list, compare=False)
    named: int = field(default=3, kw_only=True)


@dataclass(slots=True)
class Counted:
    seen: list[int] = field(default_factory=list)
    calls: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.seen.append(len(self.seen))


def outcome(run: Callable[[], Any]) -> Any:
    """A result, or the class and message of an error, without addresses."""
    try:
        result = run()
    except Exception as error:
        return type(error).__name__, re.sub(r" at 0x\w+", "", str(error))
    return re.sub(r" at 0x\w+", "", result) if isinstance(result, str) else result


Field = tuple[str, dict[str, Any]]


@st.composite
def fields_of(draw: st.DrawFn, names: str) -> list[Field]:
    def one(name: str) -> Field:
        keys = st.sets(st.sampled_from(["init", "repr", "compare", "kw_only", "hash"]), max_size=2)
        chosen: dict[str, Any] = {key: draw(st.booleans()) for key in sorted(draw(keys))}
        default = st.sampled_from([{}, {}, {"default": 1}, {"default_factory": list}])
        return name, chosen | draw(default)

    return [one(name) for name in draw(st.permutations(names))[: draw(st.integers(0, len(names)))]]


def class_of(fields: list[Field], bases: tuple[type[Any], ...], own: list[str]) -> type[Any]:
    space: dict[str, Any] = {"__annotations__": {name: "int" for name, _ in fields}}
    space |= {name: field(**chosen) for name, chosen in fields if chosen}
    space |= {name: OWN[name] for name in own}
    return type("Made", bases, {**space, "__qualname__": "Made", "__module__": __name__})


def told(cls: type[Any]) -> Iterator[Any]:
    """All that can be seen of a class and of its instances."""
    yield cls.__doc__, cls.__match_args__, cls.__qualname__
    yield [
        (each.name, each.type, each.init, each.repr, each.compare, each.hash, each.kw_only)
        for each in dataclasses.fields(cls)
    ]
    yield outcome(lambda: str(inspect.signature(cls)))
    yield cls.__hash__ is None, cls.__eq__ is object.__eq__, cls.__repr__ is object.__repr__
    yield outcome(lambda: cls(nothing=1))
    names = [each.name for each in dataclasses.fields(cls) if each.init]
    for values in (dict(zip(names, range(9), strict=False)), {}):
        yield from map(outcome, told_of_instances(cls, values))


def told_of_instances(cls: type[Any], values: dict[str, int]) -> Iterator[Callable[[], Any]]:
    def one() -> Any:
        return cls(**values)

    yield lambda: repr(one())
    yield lambda: (one() == one(), one() != one(), one() == 1)
    yield lambda: hash(one()) == hash(one())
    yield lambda: repr(dataclasses.replace(one()))
    yield lambda: repr(dataclasses.replace(one(), **values))
    yield lambda: repr(copy.deepcopy(one()))
    for name in values:
        yield lambda name=name: setattr(one(), name, 5)
        yield lambda name=name: delattr(one(), name)
        yield lambda name=name: getattr(one(), name)


@given(st.data())
def test_classes_at_random(data: st.DataObject) -> None:
    first, second = (data.draw(st.sampled_from(OPTIONS)) for _ in range(2))
    fields, more = data.draw(fields_of("abc")), data.draw(fields_of("bcd"))
    own, others = (
        sorted(data.draw(st.sets(st.sampled_from(sorted(OWN)), max_size=2))) for _ in range(2)
    )

    def made(decorate: Any) -> Any:
        try:
            base = decorate(**first)(class_of(fields, (), own))
            derived = decorate(**second)(class_of(more, (base,), others))
        except Exception as error:  # Its words differ among versions of Python.
            return type(error)
        return [list(told(each)) for each in (base, derived)]

    assert made(dataclass) == made(dataclasses.dataclass)


# Makes each class twice while all of ferrule is imported, and compares the two.
EACH_CLASS = """
import copy, dataclasses, importlib, inspect, sys
sys.modules["torch"] = None
from ferrule.specs import deferred
ours, pairs = deferred.dataclass, []

def both(cls=None, /, **options):
    def decorate(cls):
        own = {name: copy.copy(value) if isinstance(value, dataclasses.Field) else value
               for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
        twin = type(cls)(cls.__name__, cls.__bases__, own)
        twin.__qualname__ = cls.__qualname__
        pairs.append((ours(cls, **options), dataclasses.dataclass(twin, **options)))
        return pairs[-1][0]
    return decorate if cls is None else decorate(cls)

def filled(cls, shift):
    made = object.__new__(cls)
    for number, each in enumerate(dataclasses.fields(cls)):
        object.__setattr__(made, each.name, number + shift)
    return made

def outcome(use, made):
    try:
        return use(made)
    except Exception as error:  # From methods of the class itself.
        return str(error)

def told(cls):
    yield cls.__doc__, cls.__match_args__, outcome(lambda cls: str(inspect.signature(cls)), cls)
    yield [repr(each) for each in dataclasses.fields(cls)]
    values = [filled(cls, shift) for shift in (0, 0, 1)]
    by_hand = not getattr(cls.__eq__, "__code__", told.__code__).co_filename == "<string>"
    alike = lambda made: by_hand or [made == other for other in values]
    hashed = lambda made: [hash(made) == hash(other) for other in values]
    for use in (repr, alike, hashed):
        yield [outcome(use, made) for made in values]
    yield cls.__hash__ is None, cls.__hash__ is object.__hash__

deferred.dataclass = both
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
for mine, twin in pairs:
    assert type(mine.__dict__.get("__init__")).__name__ in ("_Deferred", "function", "NoneType")
    for own, others in zip(told(mine), told(twin), strict=True):
        assert own == others, f"{mine!r}: {own} and {others}"
print(len(pairs))
"""


def test_each_class_of_the_source() -> None:
    roots = [ROOT / name for name in ("specs", "runtime", "compiler")]
    modules = [
        ".".join(path.relative_to(root).with_suffix("").parts)
        for root in roots
        for path in sorted(root.glob("ferrule/**/*.py"))
        if path.stem not in ("__init__", "__main__", "child", "pytest_plugin", "deferred")
    ]
    done = subprocess.run(
        [sys.executable, "-c", EACH_CLASS, *modules],
        env={**os.environ, "PYTHONPATH": ":".join(map(str, roots))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 500


def test_methods_are_made_at_their_first_use() -> None:
    made = dataclass(frozen=True, slots=True)(class_of([("a", {})], (), []))
    for name, use in {
        "__init__": lambda: made(1),
        "__eq__": lambda: made(1) == made(1),
        "__hash__": lambda: hash(made(1)),
    }.items():
        assert type(vars(made)[name]).__name__ == "_Deferred"
        use()
        assert inspect.isfunction(vars(made)[name])
        assert vars(made)[name].__qualname__ == f"Made.{name}"


def test_many_threads_are_first() -> None:
    for _ in range(20):
        made = dataclass(frozen=True, slots=True)(class_of([("a", {}), ("b", {})], (), []))
        ready, seen = threading.Barrier(4), []

        def use(made: Any = made, ready: Any = ready, seen: list[Any] = seen) -> None:
            ready.wait()
            seen.append((made(1, 2) == made(1, 2), hash(made(1, 2)), repr(made(1, 2))))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(seen) == 4
        assert len(set(seen)) == 1


def test_copies_and_patterns() -> None:
    point = Point(1, (2,), [3], named=4)
    for other in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert other == point
        assert (other.held, other.named) == ([3], 4)
    match point:
        case Point(x, y):
            assert (x, y) == (1, (2,))
    assert repr(Point(1)) == "Point(x=1, y=(), held=[], named=3)"
    assert str(inspect.signature(Point)) == (
        "(x: 'int', y: 'tuple[int, ...]' = (), held: 'list[int]' = <factory>, *, named: 'int' = 3)"
        " -> None"
    )
    assert Counted([5]).seen == [5, 1]
    assert [each.name for each in dataclasses.fields(Counted)] == ["seen"]


def test_subclasses_by_hand() -> None:
    class Named(Point):
        def __init__(self, name: str) -> None:
            super().__init__(1)
            self.name = name

    made = Named("one")
    assert made.name == "one"
    assert repr(made).endswith("Named(x=1, y=(), held=[], named=3)")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 2  # type: ignore[misc]


def test_what_is_not_known_is_the_standard_librarys() -> None:
    @dataclass(slots=True)
    class Initialised:
        kept: int
        given: dataclasses.InitVar[int]

        def __post_init__(self, given: int) -> None:
            self.kept += given

    assert Initialised(1, 2).kept == 3

    @dataclass(order=True)
    class Ordered:
        value: int

    assert Ordered(1) < Ordered(2)


def test_all_source_uses_it() -> None:
    for root in ("specs", "runtime", "compiler"):
        for path in (ROOT / root).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            found = re.search(
                r"^ *(from dataclasses import .*\bdataclass\b|@dataclasses\.)", text, re.M
            )
            assert found is None or path.name == "deferred.py", f"{path}: {found}"
