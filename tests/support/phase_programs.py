"""Random kernels as source, whose threads wait for each other, and what they mean.

A kernel has guards of all forms (`t == k`, `k <= t`, a condition that is asked twice, `not`, `and`,
`or`, `elif`), loops that threads share, shared memory, and reductions of the block.  A thread of
its meaning is a generator of Python that has the same statements, and yields where it waits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import numpy as np

BLOCKS: Final = (1, 2, 3, 8, 31, 32, 33, 64, 64, 96, 100, 128)
GRID: Final = 2
SLOTS: Final = 4
"""The numbers of a thread in `o`; the last one is made of all that it has computed."""
WORDS: Final = 64
"""The numbers that every thread reads of `x`; it has one for each thread, too."""

OPERATIONS: Final = """
def add(a, b):
    return a + b


def xor(a, b):
    return a ^ b


def least(a, b):
    return min(a, b)


def most(a, b):
    return max(a, b)
"""
_OPERATIONS: Final = ("add", "xor", "least", "most")
_INDENT: Final = "    "


@dataclass(frozen=True)
class Line:
    """A line of a kernel, and of its meaning."""

    kernel: str
    meaning: str

    def inner(self) -> Line:
        """The line one level further in."""
        return Line(_INDENT + self.kernel, _INDENT + self.meaning)


@dataclass(frozen=True)
class Kernel:
    """A module with the host function `host(x, o, m, q, n, blocks, threads)`, and its meaning, the
    generator function `thread(x, o, m, q, n, t, b, s)`."""

    block: int
    source: str
    meaning: str


def drawn(choose: random.Random, *, staged: bool = False) -> Kernel:
    """A random kernel; `staged`: with phases that differ in integers alone."""
    block = choose.choice(BLOCKS)
    lines = _Writer(choose, block, staged).body(Scope(), 3 + choose.randrange(6), depth=0)
    grid = str(GRID) if choose.random() < 0.4 else "blocks"
    threads = str(block) if choose.random() < 0.7 else "threads"
    first = f"    i = {{}} * {block} + t\n    s[t] = 0\n"
    source = (
        "from ferrule import Int32, arch\n\n"
        f"{OPERATIONS}\n\n@fe.kernel\ndef kernel(x, o, m: Int32, q: Int32, n: Int32):\n"
        "    t = arch.thread_idx()[0]\n"
        f"    s = arch.alloc_smem(Int32, {block})\n"
        f"{first.format('arch.block_idx()[0]')}    arch.sync_threads()\n"
        + "".join(f"    {line.kernel}\n" for line in lines)
        + "\n\n@fe.jit\ndef host(x: fe.Tensor, o: fe.Tensor, m: Int32, q: Int32, n: Int32, "
        "blocks: Int32, threads: Int32):\n"
        f"    kernel(x, o, m, q, n).launch(grid={grid}, block={threads})\n"
    )
    meaning = (
        f"Int32 = int\n\n{OPERATIONS}\n\ndef thread(x, o, m, q, n, t, b, s):\n"
        f"{first.format('b')}    yield\n" + "".join(f"    {line.meaning}\n" for line in lines)
    )
    return Kernel(block, source, meaning)


@dataclass(frozen=True)
class Scope:
    """The names of numbers and of conditions that a statement can read."""

    numbers: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


def _both(*texts: str) -> list[Line]:
    return [Line(text, text) for text in texts]


_WAIT: Final = Line("arch.sync_threads()", "yield")

Written = tuple[list[Line], Scope]
"""Lines, and the scope behind them."""


@dataclass
class _Writer:
    """Draws the statements of one kernel."""

    choose: random.Random
    block: int
    staged: bool
    count: int = field(default=0)

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def one(self, weights: Mapping[Any, int]) -> Any:
        return self.choose.choices(list(weights), list(weights.values()))[0]

    # ---- statements ----

    def body(self, scope: Scope, count: int, *, depth: int) -> list[Line]:
        """Statements; those of the kernel itself end with stores of their last numbers."""
        found: list[Line] = []
        for _ in range(count):
            lines, scope = self.one(self.makers(depth))(scope, depth)
            found += lines
        if depth == 0:
            last = f"o[i, {SLOTS - 1}]"
            for name in scope.numbers[-3:]:
                found += _both(f"{last} = ({last} * 3 + {name}) & 65535")
        return found

    def makers(self, depth: int) -> dict[Callable[[Scope, int], Written], int]:
        """The statements, by weight; threads wait only where all of them are."""
        plain: dict[Callable[[Scope, int], Written], int] = {
            self.number: 4,
            self.condition: 3,
            self.loop: 2,
            self.stored: 3,
        }
        inner = {self.branch: 6} if depth < 3 else {}
        waiting = {self.reduction: 3, self.exchange: 3, self.guarded: 3} if depth == 0 else {}
        stages = {self.stages: 12} if depth == 0 and self.staged else {}
        return {**plain, **inner, **waiting, **stages}

    def number(self, scope: Scope, depth: int) -> Written:
        name = self.fresh("v")
        line = f"{name} = Int32({self.value(scope)})"
        return _both(line), Scope((*scope.numbers, name), scope.conditions)

    def condition(self, scope: Scope, depth: int) -> Written:
        name = self.fresh("c")
        line = f"{name} = {self.test(scope)}"
        return _both(line), Scope(scope.numbers, (*scope.conditions, name))

    def stored(self, scope: Scope, depth: int) -> Written:
        place = f"o[i, {self.choose.randrange(SLOTS - 1)}]"
        more = self.choose.choice(("= ", "+= ", f"= {place} ^ "))
        return _both(f"{place} {more}Int32({self.value(scope)})"), scope

    def branch(self, scope: Scope, depth: int) -> Written:
        lines = _both(f"if {self.test(scope)}:") + self.side(scope, depth)
        while self.choose.random() < 0.3:
            lines += _both(f"elif {self.test(scope)}:") + self.side(scope, depth)
        if self.choose.random() < 0.3:
            lines += _both("else:") + self.side(scope, depth)
        return lines, scope

    def side(self, scope: Scope, depth: int) -> list[Line]:
        body = self.body(scope, 1 + self.choose.randrange(2), depth=depth + 1)
        return [line.inner() for line in body]

    def loop(self, scope: Scope, depth: int) -> Written:
        """A sum over what a thread has of the elements that all threads share, or over a few."""
        name, index = self.fresh("v"), self.fresh("j")
        shared = f"range({self.choose.choice('ti')}, n, {self.block})"
        span = shared if self.choose.random() < 0.7 else f"range({1 + self.choose.randrange(4)})"
        inner = Scope((*scope.numbers, index), scope.conditions)
        body = _both(f"{name} = ({name} + {self.value(inner)}) & 4095")
        if self.choose.random() < 0.4:
            body = [*_both(f"if {self.test(inner)}:"), *(line.inner() for line in body)]
        lines = _both(f"{name} = Int32(0)", f"for {index} in {span}:")
        lines += [line.inner() for line in body]
        return lines, Scope((*scope.numbers, name), scope.conditions)

    def reduction(self, scope: Scope, depth: int) -> Written:
        name, given = self.fresh("v"), f"Int32({self.value(scope)})"
        by = self.choose.choice(_OPERATIONS)
        line = Line(
            f"{name} = arch.block_reduction({given}, {by})", f"{name} = yield {given}, {by}"
        )
        return [line], Scope((*scope.numbers, name), scope.conditions)

    def exchange(self, scope: Scope, depth: int) -> Written:
        """Stores at a place of its own, a wait, and a load of any place."""
        turned = "(t ^ 1)" if self.block % 2 == 0 else f"({self.block - 1} - t)"
        place = self.choose.choice(("t", turned))
        store = _both(f"s[{place}] = Int32({self.value(scope)})")
        if self.choose.random() < 0.5:
            store = [*_both(f"if {self.test(scope)}:"), *(line.inner() for line in store)]
        name = self.fresh("v")
        load = _both(f"{name} = s[({self.value(scope)}) % {self.block}]")
        return [_WAIT, *store, _WAIT, *load], Scope((*scope.numbers, name), scope.conditions)

    def guarded(self, scope: Scope, depth: int) -> Written:
        """A phase that is only a few guards around a store, some of them the same condition."""
        lines, known = self.condition(scope, depth)
        name = known.conditions[-1]
        body, _ = self.stored(known, depth)
        for _ in range(1 + self.choose.randrange(3)):
            test = name if self.choose.random() < 0.6 else self.test(known)
            body = [*_both(f"if {test}:"), *(line.inner() for line in body)]
        return [_WAIT, *lines, *body, _WAIT], known

    def stages(self, scope: Scope, depth: int) -> Written:
        """The same phase several times, with other integers."""
        k, at = self.fresh("k"), self.own_place()
        bit = self.one({f"({k} >> {{0}}) & 1": 3, f"({k} & {{1}})": 1, f"({k} + {{2}}) & 3": 1})
        form = self.choose.choice(
            (
                f"s[{at}] = s[{at}] if {bit} == 0 else Int32((s[{at}] + {{2}}) & 1023)",
                f"s[{at}] = Int32((s[{at}] * 3 ^ ({bit})) & 1023)",
                f"s[{at}] = min(s[{at}], ({bit}) * 7) if {bit} < 2 else max(s[{at}], {{2}})",
            )
        )
        row = self.choose.choice((1, 2, 4, 8, 3, 5))
        place = f"(t // {row}) * {2 * row} + t % {row}"
        if row & (row - 1) == 0 and self.choose.random() < 0.7:
            bits = row.bit_length() - 1
            place = f"((t >> {bits}) << {bits + 1}) + (t & {row - 1})"
        lines = [_WAIT, *_both(f"s[t] = Int32(({self.value(scope)}) & 1023)"), _WAIT]
        for _ in range(3 + self.choose.randrange(3)):
            a, b, c = (self.choose.randrange(9) for _ in range(3))
            lines += [*_both(f"{k} = {place}", form.format(a, 1 << b, c)), _WAIT]
        name = self.fresh("v")
        return [*lines, *_both(f"{name} = s[t]")], Scope((*scope.numbers, name), scope.conditions)

    def own_place(self) -> str:
        """An index of shared memory that no other thread has."""
        forms = {"t": 2, f"({self.block - 1} - t)": 1}
        if self.block % 2 == 0:
            forms["(t ^ 1)"] = 1
        for row in (2, 4, 8):
            if self.block % row == 0:
                forms[f"({self.block // row - 1} - t // {row}) * {row} + t % {row}"] = 1
        return self.one(forms)

    # ---- expressions ----

    def test(self, scope: Scope, depth: int = 0) -> str:
        """A condition, most often of the thread's number."""
        forms = {"compared": 6, "of a value": 1}
        if scope.conditions:
            forms["known"] = 4
        if depth < 2:
            forms |= {"both": 3, "twice": 1, "not": 1}
        match self.one(forms):
            case "known":
                return self.choose.choice(scope.conditions)
            case "both":
                word = self.choose.choice(("and", "or"))
                return f"({self.test(scope, depth + 1)}) {word} ({self.test(scope, depth + 1)})"
            case "twice":
                test = self.test(scope, depth + 1)
                return f"({test}) and ({test})"
            case "not":
                return f"not ({self.test(scope, depth + 1)})"
            case "of a value":
                return f"{self.value(scope)} < {self.choose.randrange(-5, 600)}"
        word = self.choose.choice(("==", "==", "!=", "<", "<=", ">", ">="))
        sides = [self.place(), self.limit()]
        self.choose.shuffle(sides)
        return f" {word} ".join(sides)

    def place(self) -> str:
        """What is more for each next thread."""
        few = ("t + 3", "t * 2", "2 * t + 1", "t * 3 - 5", "i + m", "t - m")
        return self.choose.choice(("t", "t", "t", "i", *few))

    def limit(self) -> str:
        """What is the same for all threads."""
        last = self.block - 1
        known = self.choose.choice((0, 0, 1, 31, 32, last, self.block // 2))
        anywhere = self.choose.randrange(-1, self.block + 2)
        return self.choose.choice((str(known), str(anywhere), "m", "m + 1", "m % 7", "n - 1", "q"))

    def value(self, scope: Scope, depth: int = 0) -> str:
        """A small number."""
        match self.one({"name": 9, "own": 3, "any": 2, "both": 6 if depth < 2 else 0}):
            case "own":
                return "x[i]"
            case "any":
                return f"x[({self.value(scope, depth + 1)}) & {WORDS - 1}]" if depth < 2 else "x[3]"
            case "both":
                word = self.choose.choice("+-*^&")
                both = self.value(scope, depth + 1), self.value(scope, depth + 1)
                return f"(({f' {word} '.join(both)}) & 1023)"
        return self.choose.choice(
            (*scope.numbers, "t", "i", "m", str(self.choose.randrange(-3, 9)))
        )


# ---- what a kernel means ----


def calls(block: int) -> Iterator[tuple[int, int, int]]:
    """Numbers m, q and n for calls."""
    yield from ((1, 0, GRID * block), (block - 1, block // 2, GRID * block - 1), (5, -3, 7))


def arrays(seed: int, block: int) -> tuple[Any, Any]:
    """Arrays x and o for a call."""
    numbers = np.random.default_rng(seed)
    size = max(GRID * block, WORDS)
    x = numbers.integers(-9, 600, size).astype(np.int32)
    return x, numbers.integers(0, 50, (GRID * block, SLOTS)).astype(np.int32)


def meant(kernel: Kernel, x: Any, o: Any, numbers: Sequence[int]) -> Any:
    """What a launch of the kernel leaves in `o`."""
    scope: dict[str, Any] = {}
    exec(kernel.meaning, scope)
    given, left = x.tolist(), _Table(o.tolist())
    for b in range(GRID):
        shared = [0] * kernel.block
        threads = [
            scope["thread"](given, left, *numbers, t, b, shared) for t in range(kernel.block)
        ]
        _run(threads)
    return np.array(left.rows, np.int32)


class _Table:
    """A list of lists with the subscripts of a tensor with two dims."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows

    def __getitem__(self, at: tuple[int, int]) -> int:
        return self.rows[at[0]][at[1]]

    def __setitem__(self, at: tuple[int, int], value: int) -> None:
        self.rows[at[0]][at[1]] = value


def _run(threads: list[Any]) -> None:
    """Runs the threads of a block from one wait to the next, until all have ended."""
    sent: int | None = None
    while True:
        waits = [_next(thread, sent) for thread in threads]
        ended = [wait is _ENDED for wait in waits]
        if any(ended):
            assert all(ended), "threads wait at different places"
            return
        sent = None if waits[0] is None else reduce(waits[0][1], (value for value, _ in waits))


_ENDED: Final = object()


def _next(thread: Any, sent: int | None) -> Any:
    try:
        return thread.send(sent)
    except StopIteration:
        return _ENDED
