"""Python objects exist only while compiling: what a run-time condition decides changes none.

A table of objects and of ways to change them, in each kind of run-time code: all are refused.  A
table of uses that only read, or change what is made inside: all compile.
"""

from __future__ import annotations

import array
import collections
import functools
import io
import itertools
import random
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.language.dependencies.mutable import Search

OPTIONS = "--target cpu"


class Log:
    """An object with a list, a dict of lists, a number, and one list for all."""

    all: list[int] = []

    def __init__(self) -> None:
        self.items = [1]
        self.by_name = {"k": [1]}
        self.n = 0

    def add(self, x: int) -> int:
        self.items.append(x)
        return x

    def put(self) -> None:
        self.by_name["k"].append(2)

    def count(self) -> None:
        self.n += 1

    def share(self) -> None:
        Log.all.append(self.n)

    @property
    def next_number(self) -> int:
        self.n += 1
        return self.n

    @functools.cached_property
    def size(self) -> int:
        return len(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __iadd__(self, x: int) -> Log:
        self.items.append(x)
        return self

    def __call__(self) -> int:
        return self.add(1)


class Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


@dataclass
class Record:
    n: int = 0
    items: list[int] = field(default_factory=list)

    def add(self, x: int) -> None:
        self.items.append(x)


class Counting:
    """An iterator of Python."""

    def __init__(self) -> None:
        self.n = 0

    def __iter__(self) -> Counting:
        return self

    def __next__(self) -> int:
        self.n += 1
        return self.n


def numbers() -> Iterator[int]:
    yield 1
    yield 2


def counter() -> Callable[[], int]:
    n = 0

    def count() -> int:
        nonlocal n
        n += 1
        return n

    return count


TOTAL = 0
FOUND: list[int] = []


def add_to_total() -> None:
    global TOTAL
    TOTAL += 1


def add_to_found() -> None:
    FOUND.append(1)


def add_further_on() -> None:
    add_to_found()


def with_a_default(x: int = 1, kept: list[int] = []) -> None:  # noqa: B006
    kept.append(x)


def of_itself() -> None:
    of_itself.n = getattr(of_itself, "n", 0) + 1  # type: ignore[attr-defined]


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list.append": (lambda: [1], lambda x: x.append(2)),
    "list.sort": (lambda: [2, 1], lambda x: x.sort()),
    "list in tuple": (lambda: ([1],), lambda x: x[0].append(2)),
    "dict.update": (dict, lambda x: x.update(a=1)),
    "set.add": (lambda: {1}, lambda x: x.add(2)),
    "OrderedDict.move_to_end": (
        lambda: collections.OrderedDict(a=1, b=2),
        lambda x: x.move_to_end("a"),
    ),
    "Counter.update": (collections.Counter, lambda x: x.update("aab")),
    "defaultdict item": (lambda: collections.defaultdict(list), lambda x: x["k"]),
    "ChainMap": (lambda: collections.ChainMap({}), lambda x: x.update(a=1)),
    "method": (Log, lambda x: x.add(3)),
    "method of dict of lists": (Log, lambda x: x.put()),
    "attribute": (Log, lambda x: x.count()),
    "setattr": (Log, lambda x: setattr(x, "n", 5)),
    "new attribute": (Log, lambda x: setattr(x, "other", 5)),
    "delattr": (Log, lambda x: delattr(x, "n")),
    "class attribute": (Log, lambda x: x.share()),
    "setattr of a class": (lambda: type("Own", (), {"n": 0}), lambda x: setattr(x, "n", 5)),
    "property": (Log, lambda x: x.next_number),
    "call of an object": (Log, lambda x: x()),
    "bound method": (lambda: Log().add, lambda x: x(3)),
    "partial": (lambda: functools.partial(Log().add, 3), lambda x: x()),
    "slot": (Slotted, lambda x: setattr(x, "n", 5)),
    "record": (Record, lambda x: x.add(3)),
    "record's field": (Record, lambda x: setattr(x, "n", 5)),
    "deque.popleft": (lambda: collections.deque([1, 2]), lambda x: x.popleft()),
    "deque.rotate": (lambda: collections.deque([1, 2]), lambda x: x.rotate()),
    "array.append": (lambda: array.array("i", [1]), lambda x: x.append(2)),
    "bytearray.extend": (lambda: bytearray(b"a"), lambda x: x.extend(b"b")),
    "memoryview": (lambda: memoryview(bytearray(b"a")), lambda x: x.__setitem__(0, 9)),
    "StringIO.write": (io.StringIO, lambda x: x.write("a")),
    "BytesIO.read": (lambda: io.BytesIO(b"abc"), lambda x: x.read(1)),
    "ndarray.fill": (lambda: np.zeros(2, np.int32), lambda x: x.fill(4)),
    "ndarray.sort": (lambda: np.array([2, 1]), lambda x: x.sort()),
    "ndarray item": (lambda: np.zeros((2, 2)), lambda x: x.__setitem__((0, 1), 1)),
    "large ndarray": (lambda: np.zeros(100_000), lambda x: x.__setitem__(99_999, 1)),
    "view of an ndarray": (lambda: np.zeros(4)[::2], lambda x: x.fill(1)),
    "objects in an ndarray": (lambda: np.array([[1], 2], object), lambda x: x[0].append(1)),
    "NumPy's Generator": (lambda: np.random.default_rng(0), lambda x: x.integers(0, 9)),
    "RandomState": (lambda: np.random.RandomState(0), lambda x: x.rand()),
    "Random": (lambda: random.Random(0), lambda x: x.random()),
    "next of an iterator": (lambda: iter([1, 2, 3]), next),
    "zip": (lambda: zip((1, 2), (3, 4), strict=True), list),
    "enumerate": (lambda: enumerate([1, 2]), next),
    "map": (lambda: map(abs, [1, 2]), list),
    "filter": (lambda: filter(None, [1, 2]), next),
    "reversed": (lambda: reversed([1, 2]), tuple),
    "dict's iterator": (lambda: iter({1: 2}), next),
    "itertools.count": (itertools.count, next),
    "itertools.cycle": (lambda: itertools.cycle([1, 2]), next),
    "itertools.islice": (lambda: itertools.islice(itertools.count(), 3), next),
    "itertools.chain": (lambda: itertools.chain([1], [2]), next),
    "in of an iterator": (lambda: iter([1, 2]), lambda x: 1 in x),
    "generator": (numbers, next),
    "generator expression": (lambda: (each for each in (1, 2)), sum),
    "iterator of Python": (Counting, next),
    "iterator in an object": (lambda: Record(items=iter([1, 2])), lambda x: next(x.items)),  # type: ignore[arg-type]
    "closure's variable": (counter, lambda x: x()),
    "global name": (lambda: None, lambda x: add_to_total()),
    "global list": (lambda: None, lambda x: add_to_found()),
    "global list, further on": (lambda: None, lambda x: add_further_on()),
    "default": (lambda: None, lambda x: with_a_default()),
    "function's attribute": (lambda: None, lambda x: of_itself()),
    "lambda given to a function": (Log, lambda x: list(map(x.add, [1]))),
    "key of sorted": (Log, lambda x: sorted([1, 2], key=x.add)),
    "file": (lambda: open(__file__, "rb"), lambda x: x.read(1)),
}


def in_a_branch(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.jit
    def program(n: fe.Int32):
        if n > 0:
            change(made)
        return n

    return program


def in_the_else(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.jit
    def program(n: fe.Int32):
        own = made
        s = n
        if n > 0:
            s += 1
        else:
            change(own)
        return s

    return program


def in_a_loop(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.jit
    def program(n: fe.Int32):
        own = (made, 1)
        s = n
        for i in range(n):
            s += i
            change(own[0])
        return s

    return program


def in_a_while(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.jit
    def program(n: fe.Int32):
        while n > 0:
            change(made)
            n -= 1
        return n

    return program


def in_an_expression(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.jit
    def program(n: fe.Int32):
        return (1 if change(made) is None else 2) if n > 0 else 3

    return program


def in_a_condition(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.jit
    def program(n: fe.Int32):
        return n > 0 and (change(made) is None or n > 3)

    return program


def in_a_chain(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.jit
    def program(n: fe.Int32):
        return 1 < n < (3 if change(made) is None else 5)

    return program


def after_a_helpers_return(made: Any, change: Callable[[Any], Any]) -> Any:
    def helper(x, n):
        if n > 2:
            return 0
        change(x)
        return 1

    @fe.jit
    def program(n: fe.Int32):
        return helper(made, n)

    return program


def in_a_message(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.jit
    def program(n: fe.Int32):
        assert n > 0, f"{change(made)}"
        return n

    return program


def in_a_kernel(made: Any, change: Callable[[Any], Any]) -> Any:
    @fe.kernel
    def kernel(own):
        if fe.arch.thread_idx()[0] > 0:
            change(own)

    @fe.jit
    def program(n: fe.Int32):
        kernel(made).launch(grid=1, block=2)
        return n

    return program


REGIONS = [
    in_a_branch,
    in_the_else,
    in_a_loop,
    in_a_while,
    in_an_expression,
    in_a_condition,
    in_a_chain,
    after_a_helpers_return,
    in_a_message,
    in_a_kernel,
]


def compiled(program: Any) -> Any:
    return fe.compile(program, fe.Int32, options=OPTIONS)


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_refused(name: str, region: Callable[..., Any]) -> None:
    make, change = CHANGES[name]
    with pytest.raises(fe.CompileError) as caught:
        compiled(region(make(), change))
    text = str(caught.value)
    assert "run-time branch or loop" in text, text
    assert "expected: " in text


# ---- what only reads, or changes what is made inside ----


def test_iterators_of_a_loop_with_a_break() -> None:
    """A loop that a run-time condition ends leaves its iterator to nobody else."""

    @fe.jit
    def shared(n: fe.Int32):
        it = iter((1, 2, 3, 4))
        s = 0
        for v in it:
            if v == n:
                break
        for v in it:
            s += v
        return s

    with pytest.raises(fe.CompileError, match="may end early at run time"):
        compiled(shared)

    @fe.jit
    def inside(n: fe.Int32):
        it = iter((1, 2, 3, 4))
        s = 0
        for i, v in enumerate(it):
            if v == n:
                break
            s += i
        return s + next(it, 0)

    with pytest.raises(fe.CompileError, match="may end early at run time"):
        compiled(inside)

    @fe.jit
    def own(n: fe.Int32):
        values = (1, 2, 3, 4)
        s = 0
        for i, v in enumerate(values):
            if v == n:
                break
            s += 10 * i
        for v in values:
            s += v
        return s

    assert [compiled(own)(n) for n in (1, 3, 9)] == [10, 20, 70]


def test_iterators_of_any_and_all_that_may_decide_early() -> None:
    @fe.jit
    def shared(n: fe.Int32):
        it = iter((1, 2, 3))
        found = any(v > n for v in it)
        return found, next(it, 100)

    @fe.jit
    def inner(n: fe.Int32):
        it = iter((1, 2, 3))
        found = all(v > w for w in (n, n + 1) for v in it)
        return found, next(it, 100)

    for program in (shared, inner):
        with pytest.raises(fe.CompileError, match="may end early at run time"):
            compiled(program)

    @fe.jit
    def known(n: fe.Int32):
        it = iter((1, 2, 3))
        early = any(v > 1 for v in it)
        return early, next(it, 100), any(v > n for v in (1, 2, 3)), all(v > n for v in iter((1, 2)))

    assert [compiled(known)(n) for n in (0, 2, 3)] == [
        (True, 3, True, True),
        (True, 3, True, False),
        (True, 3, False, False),
    ]


def test_augmented_assignment_changes_the_object_itself() -> None:
    """As in Python: another name of it sees the change."""

    @fe.jit
    def program(n: fe.Int32):
        values = [1]
        same = values
        values += (n, 2)
        values *= 2
        some = {1}
        same_set = some
        some |= {2}
        table = {"a": [n]}
        inside = table["a"]
        table["a"] += [n + 1]
        log = Log()
        same_log = log
        log += 5
        array = np.zeros(2, np.int32)
        same_array = array
        array += fe.Int32(3)
        whole = (1,)
        before = whole
        whole += (n,)
        lengths = len(same), len(same_set), len(before), len(whole)
        return lengths, same[4], inside[1], same_log.items[1], int(same_array[1])

    assert compiled(program)(7) == ((6, 2, 1, 2), 7, 8, 5, 3)

    @fe.jit
    def one_number(n: fe.Int32):
        values = [1]
        values += n
        return len(values)

    with pytest.raises(fe.CompileError, match="cannot be iterated"):
        compiled(one_number)


def test_augmented_assignment_in_a_branch_is_refused() -> None:
    @fe.jit
    def program(n: fe.Int32):
        values = [1]
        if n > 0:
            values += [2]
        return len(values)

    with pytest.raises(fe.CompileError, match="the list 'values' is changed inside"):
        compiled(program)


def test_a_break_while_compiling_leaves_the_rest() -> None:
    @fe.jit
    def program(n: fe.Int32):
        it = iter((1, 2, 3, 4))
        for v in it:
            if v == 2:
                break
        for v in it:
            n += v
        found = [1, 2]
        for v in found:
            if len(found) < 5:
                found.append(v)
        return n, len(found)

    assert compiled(program)(10) == (17, 5)


def test_a_generator_expression_is_taken_once() -> None:
    @fe.jit
    def program(n: fe.Int32):
        values = (n + i for i in (10, 20))
        s = 0
        for v in values:
            s += v
        for v in values:
            s += 1000 * v
        return s, sum(i for i in (1, 2)), max(i for i in (3, 4)), len(list(values))

    assert compiled(program)(1) == (32, 3, 4, 0)


SIZES = {"rows": 4, "columns": [8, 16]}
TABLE = np.arange(6, dtype=np.int32).reshape(2, 3)
LOG = Log()
ORDER = collections.deque([3, 4])
SOME = collections.OrderedDict(a=1, b=2)
GENERATOR = np.random.default_rng(0)
STREAM = io.StringIO("abc")


@functools.cache
def remembered(x: int) -> int:
    return x + 1


def total_of(log: Log, *more: Any) -> int:
    return sum(log.items) + len(log.by_name) + len(more)


def reads(n: Any) -> Any:
    """Reads in every way, given a run-time number."""
    s = n + SIZES["rows"] + SIZES["columns"][1] + TABLE[1, 2] + len(LOG) + LOG.n
    s += total_of(LOG, TABLE, ORDER, SOME, GENERATOR, STREAM) + remembered(3)
    s += ORDER[0] + sum(ORDER) + len(SOME) + int(TABLE.sum()) + max(SIZES["columns"])
    for name, value in SOME.items():
        s += value * len(name)
    for i, (a, b) in enumerate(zip(LOG.items, sorted(ORDER), strict=False)):
        s += i * a * b
    s += LOG.size + sum(x for x in LOG.items if x in ORDER or x == 1)
    s += len(f"{SIZES['rows']} {LOG.n}") + isinstance(GENERATOR, np.random.Generator)
    s += len({key: value + 1 for key, value in SOME.items()}) + ("a" in SOME)
    s += [*LOG.items, *ORDER][1] + Record(2).n + len(list(map(str, LOG.items)))
    return s


def makes(n: Any) -> Any:
    """Changes what it makes itself."""
    log = Log()
    record = Record()
    queue = collections.deque([1, 2])
    count = counter()
    values = np.zeros(2, np.int32)
    it = iter((1, 2, 3))
    found = []
    for i in (0, 1, 2):
        found.append(i)
    log.add(2)
    log.count()
    record.add(3)
    queue.append(found[2] + queue.popleft())
    values.fill(count() + count())
    rng = np.random.default_rng(0)
    rng.integers(0, 9)
    pairs = {"a": 1}
    pairs.update(b=next(it))

    def put(x):
        found.append(x)
        return len(found)

    s = n + len(log) + log.n + len(record.items) + queue[-1] + values[0] + next(it)
    return s + put(1) + put(n) + len(pairs)


USES = {"reads": reads, "makes": makes}


@pytest.mark.parametrize("region", ["branch", "loop", "while", "expression", "helper", "kernel"])
@pytest.mark.parametrize("use", USES)
def test_what_changes_nothing_from_before_compiles(use: str, region: str) -> None:
    LOG.__dict__.pop("size", None)
    work = USES[use]

    def branch(n: fe.Int32):
        s = n
        if n > 0:
            s = s + work(n)
        else:
            s = s - work(n)
        return s

    def loop(n: fe.Int32):
        s = 0
        for i in range(n):
            s += work(i)
            if i == 2:
                break
        return s

    def while_(n: fe.Int32):
        s = 0
        while n > 0 and work(n) > 0:
            s += work(n)
            n -= 1
        return s

    def expression(n: fe.Int32):
        return work(n) if n > 1 else work(n + 1)

    def early(n):
        if n == 2:
            return 0
        return work(n)

    def helper(n: fe.Int32):
        return early(n) + early(n + 1)

    @fe.kernel
    def place(a: fe.Tensor, n: fe.Int32):
        if fe.arch.thread_idx()[0] == 0:
            a[0] = work(n)

    @fe.jit
    def kernel(a: fe.Tensor, n: fe.Int32):
        if n > 0:
            place(a, n).launch(grid=1, block=2)

    if region == "kernel":
        a = np.zeros(1, np.int32)
        kernel(a, 3)
        assert a[0] == work(3)
        return
    program = {"branch": branch, "loop": loop, "while": while_}.get(region)
    program = program or {"expression": expression, "helper": helper}[region]
    function = compiled(fe.jit(program))
    assert [function(n) for n in range(5)] == [program(n) for n in range(5)]


def test_a_refused_program_names_the_object_and_what_to_do() -> None:
    @fe.jit
    def program(n: fe.Int32):
        it = iter(ORDER)
        return next(it) if n > 0 else 0

    with pytest.raises(fe.CompileError) as caught:
        compiled(program)
    text = str(caught.value)
    assert "the _collections._deque_iterator" not in text
    assert "iterator 'it' is advanced inside a run-time branch or loop" in text
    assert "hint: call next before it" in text


def test_compiled_in_place_helpers_are_refused_too() -> None:
    def helper(log, x):
        if x > 2:
            return 0
        log.items.append(x)
        return 1

    @fe.jit
    def program(n: fe.Int32):
        log = Log()
        s = helper(log, n) + helper(log, n + 1)
        return s, len(log.items)

    with pytest.raises(fe.CompileError, match="the list 'log.items' is changed inside"):
        compiled(program)

    @fe.jit
    def merged(n: fe.Int32):
        pair = (n, [1])
        if n > 1:
            if n > 2:
                pair = (n + 1, pair[1])
            pair[1].append(2)
        return len(pair[1])

    with pytest.raises(fe.CompileError, match="the list 'pair.1.' is changed inside"):
        compiled(merged)


def test_functions_that_differ_by_branch_are_named_in_plain_words() -> None:
    @fe.jit
    def either(n: fe.Int32):
        f = abs if n > 0 else lambda x: x
        return f(n)

    @fe.jit
    def defined(n: fe.Int32):
        if n > 0:

            def f(x):
                return x

        else:

            def f(x):
                return x + 1

        return f(n)

    for program, words in ((either, "the lambda of line"), (defined, "the function 'f' of line")):
        with pytest.raises(fe.CompileError) as caught:
            compiled(program)
        text = str(caught.value)
        assert words in text
        assert "Closure" not in text
        assert "hint: call the functions on their own sides" in text


class Base:
    def scaled(self, x: Any) -> Any:
        return x + 1


class Derived(Base):
    k = 3

    def scaled(self, x: Any) -> Any:
        return super().scaled(x) * self.k

    def explicit(self, x: Any) -> Any:
        return super(Derived, self).scaled(x) + __class__.k  # type: ignore[name-defined]  # noqa: UP008


@dataclass(frozen=True)
class Shape:
    n: Any

    def area(self) -> Any:
        return self.n


@dataclass(frozen=True)
class Square(Shape):
    def area(self) -> Any:
        return super().area() * self.n


def test_super_is_that_of_python() -> None:
    made = Derived()

    @fe.jit
    def program(n: fe.Int32):
        return made.scaled(n), made.explicit(n), Square(n).area()

    assert compiled(program)(4) == (15, 8, 16)

    def no_method(x):
        return super().scaled(x)

    @fe.jit
    def wrong(n: fe.Int32):
        return no_method(n)

    with pytest.raises(fe.CompileError, match=r"super\(\) is called where there is no class"):
        compiled(wrong)


def test_what_pytest_puts_into_functions_is_not_searched() -> None:
    def helper() -> Any:
        return tool  # type: ignore[name-defined]  # noqa: F821

    held = [1]
    code = helper.__code__.replace(co_names=("@tool",))
    for name, is_seen in (("@tool", False), ("tool", True)):
        function = types.FunctionType(code.replace(co_names=(name,)), {name: held})
        search = Search()
        search.globals_of(function)
        assert (id(held) in search.seen) is is_seen


OUTSIDE: dict[str, Any] = {"list": [1], "nested": [[1, 2]], "dict": {}}


def kept_by_default(x: Any, kept: list[Any] = []) -> int:  # noqa: B006
    kept.append(x)
    return len(kept)


def outside_appended(n: Any) -> int:
    OUTSIDE["list"].append(n)
    return 0


def outside_augmented(n: Any) -> int:
    found = OUTSIDE["list"]
    found += [n]
    return 0


def outside_element(n: Any) -> int:
    OUTSIDE["nested"][0][1] = n
    return 0


def outside_key(n: Any) -> int:
    OUTSIDE["dict"]["k"] = n * 2
    return 0


def outside_updated(n: Any) -> int:
    OUTSIDE["dict"].update(k=n)
    return 0


@pytest.mark.parametrize(
    "change",
    [
        outside_appended,
        outside_augmented,
        outside_element,
        outside_key,
        outside_updated,
        kept_by_default,
    ],
)
def test_run_time_values_stay_inside(change: Callable[[Any], int]) -> None:
    """What was made outside is there after the compilation, where they mean nothing."""
    before = repr(OUTSIDE), repr(kept_by_default.__defaults__)

    @fe.jit
    def program(n: fe.Int32):
        return change(n)

    with pytest.raises(fe.CompileError, match="that was made outside of the function"):
        compiled(program)
    assert (repr(OUTSIDE), repr(kept_by_default.__defaults__)) == before


def test_counters_in_closures_are_refused() -> None:
    state = [0]

    @fe.jit
    def program(n: fe.Int32):
        state[0] += n
        return state[0]

    with pytest.raises(fe.CompileError, match="that was made outside of the function"):
        compiled(program)
    assert state == [0]


def test_what_is_made_inside_may_be_changed_there() -> None:
    def program(n: Any) -> Any:
        found: list[Any] = []

        def put(x: Any, kept: list[Any] = []) -> int:  # noqa: B006
            found.append(x)
            kept.append(x)
            return len(kept)

        table: dict[str, Any] = {"a": found}
        table["a"].append(n)
        table["b"] = n
        put(n)
        if n > 2:
            own = [1, 2]
            own[0] = n
            own[1] += 3
            named = {k: v + 1 for k, v in zip("ab", (1, 2), strict=True)}
            n = own[0] + own[1] + named["a"]
        k = n
        named = {k: v + 1 for k, v in zip("ab", (1, 2), strict=True)}
        later = (v * n for v in (1, 2))
        return put(n) + len(found) + k + sum(later) + named["b"]

    @fe.jit
    def jitted(n: fe.Int32):
        return program(n)

    assert [compiled(jitted)(n) for n in (1, 3)] == [program(1), program(3)]
