"""Objects whose class says which of their values the run has, as CuTe DSL's programs write them:
made, changed in branches and loops, passed to kernels and functions."""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, Optional

import numpy as np
import pytest

import ferrule as fe
from ferrule.language.faces.cute import extract_mlir_values, if_generate, new_from_mlir_values

CPU = "--target cpu"


class Counter:
    """What the run has: `at`.  The others may change too, and are constants where they do not."""

    def __init__(self, at: Any, step: Any) -> None:
        self.at = at
        self.step = step
        self.first = True
        self.twice = fe.Int32(at) * 2

    def advance(self, by: Any = 1) -> None:
        self.at += self.step * by
        self.first = False

    def __extract_mlir_values__(self) -> Any:
        return extract_mlir_values(self.at)

    def __new_from_mlir_values__(self, values: Any) -> Any:
        return Counter(new_from_mlir_values(self.at, values), self.step)


class Pair:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def move(self, n: Any) -> None:
        self.a.advance(n)
        if n > 2:
            self.b.advance()

    def __extract_mlir_values__(self) -> Any:
        return extract_mlir_values((self.a, self.b))

    def __new_from_mlir_values__(self, values: Any) -> Any:
        return Pair(*new_from_mlir_values((self.a, self.b), values))


def twice(counter: Any) -> None:
    for _ in range(2):
        counter.advance()


@fe.kernel
def counting_kernel(n: fe.Int32, out: fe.Tensor):
    counter = Counter(n, fe.Int32(3))
    i = 0
    while counter.at < 40:
        out[i] = counter.at + fe.Int32(counter.first) * 100
        twice(counter)
        if counter.at % 2 == 0:
            counter.advance(2)
        i += 1
    out[i] = -counter.at
    out[i + 1] = fe.Int32(counter.first)
    out[i + 2] = counter.twice


def counting(n: int) -> list[int]:
    out, at, first = [], n, True
    while at < 40:
        out.append(at + 100 * first)
        at, first = at + 6, False
        at += 6 if at % 2 == 0 else 0
    return [*out, -at, int(first), 2 * n]


@fe.kernel
def nested_kernel(n: fe.Int32, out: fe.Tensor):
    """Objects in objects, under two names."""
    pair = Pair(Counter(n, 1), Counter(n, 10))
    second = pair.b
    for j in range(n):
        pair.move(j)
    out[0], out[1], out[2] = pair.a.at, pair.b.at, second.at


def nested(n: int) -> list[int]:
    moved = n + 10 * max(0, n - 3)
    return [n + n * (n - 1) // 2, moved, moved]


@fe.kernel
def leaving_kernel(n: fe.Int32, out: fe.Tensor):
    counter = Counter(n, 1)
    for i in range(10):
        if i == n:
            counter.advance(100)
            break
        if i % 2 == 0:
            continue
        counter.advance()
    out[0] = counter.at
    if n > 20:
        return
    counter.advance(1000)
    out[1] = counter.at


def leaving(n: int) -> list[int]:
    at = n + min(n, 10) // 2 + (100 if n < 10 else 0)
    return [at, 0 if n > 20 else at + 1000]


@fe.kernel
def chosen_kernel(n: fe.Int32, out: fe.Tensor):
    """A name that is another object on each way, and in each iteration."""
    one = Counter(n, 1) if n % 2 == 0 else Counter(-n, 5)
    one.advance()
    out[0] = one.at
    other = Counter(fe.Int32(0), 1)
    for i in range(n):
        other = Counter(i * 10, 1)
    out[1] = other.at


def chosen(n: int) -> list[int]:
    return [n + 1 if n % 2 == 0 else -n + 5, 10 * (n - 1) if n else 0]


def ran(kernel: Any, n: int, count: int) -> list[int]:
    @fe.jit
    def host(n: fe.Int32, out: fe.Tensor):
        kernel(n, out).launch(grid=1, block=1)

    out = np.zeros(60, np.int32)
    example = fe.make_fake_compact_tensor(fe.Int32, (60,))
    fe.compile(host, fe.Int32(0), example, options=CPU)(n, out)
    return out[:count].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "kernel, wanted",
    [
        (counting_kernel, counting),
        (nested_kernel, nested),
        (leaving_kernel, leaving),
        (chosen_kernel, chosen),
    ],
)
def test_objects_in_branches_and_loops(kernel: Any, wanted: Callable[[int], list[int]]) -> None:
    for n in (0, 1, 4, 5, 10, 25, 39, 45):
        expected = wanted(n)
        assert ran(kernel, n, len(expected)) == expected, n


@fe.kernel
def given_kernel(counter: Any, out: fe.Tensor):
    for _ in range(3):
        counter.advance()
    out[0], out[1] = counter.at, counter.twice


def test_a_kernel_takes_one() -> None:
    @fe.jit
    def host(n: fe.Int32, out: fe.Tensor):
        given_kernel(Counter(n, 7), out).launch(grid=1, block=1)

    out = np.zeros(2, np.int32)
    fe.compile(host, fe.Int32(0), fe.make_fake_compact_tensor(fe.Int32, (2,)), options=CPU)(5, out)
    assert out.tolist() == [26, 10]


@fe.kernel
def parts_kernel(n: fe.Int32, out: fe.Tensor):
    values = extract_mlir_values((n, [Counter(n, 1), 3], "text"))
    out[0] = len(values)
    made = new_from_mlir_values((n, Counter(n, 2)), [n + 1, n + 5])
    out[1], out[2], out[3] = made[0], made[1].at, made[1].step
    out[4] = if_generate(n > 3, lambda x: x * 2, lambda x: x - 1, [n], [fe.Int32])


def test_values_of_objects() -> None:
    assert ran(parts_kernel, 10, 5) == [2, 11, 15, 2, 20]


# ---- refused: what would be lost ----


class Held:
    """An object of another kind holds one: nobody sees what changes in it."""

    def __init__(self, counter: Any) -> None:
        self.counter = counter


class Listing(Counter):
    def __init__(self, at: Any) -> None:
        super().__init__(at, 1)
        self.seen: list[int] = []

    def note(self) -> None:
        self.seen.append(1)


@fe.kernel
def listing_kernel(n: fe.Int32, out: fe.Tensor):
    listing = Listing(n)
    if n > 3:
        listing.note()


@fe.kernel
def loop_of_lists_kernel(n: fe.Int32, out: fe.Tensor):
    listing = Listing(n)
    for _ in range(n):
        listing.note()


@fe.kernel
def in_a_tuple_kernel(n: fe.Int32, out: fe.Tensor):
    both = [Counter(n, 1), 2]
    for _ in range(n):
        both[0].advance()
    out[0] = both[0].at


@fe.kernel
def other_kind_kernel(n: fe.Int32, out: fe.Tensor):
    counter = Counter(n, 1)
    if n > 3:
        counter.at = fe.Float32(2.0)
    out[0] = counter.at


@pytest.mark.parametrize(
    "kernel, message",
    [
        (listing_kernel, "seen"),
        (loop_of_lists_kernel, "seen"),
        (in_a_tuple_kernel, "inside a run-time branch or loop"),
        (other_kind_kernel, "counter.at.* changes its type"),
    ],
)
def test_what_would_be_lost_is_refused(kernel: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        ran(kernel, 1, 1)


# ---- functions that run while compiling, and arguments that may be absent ----

_opened: list[str] = []


@contextmanager
def noted(name: str) -> Any:
    _opened.append(name)
    try:
        yield len(name)
    finally:
        _opened.append(f"end of {name}")


@fe.jit
def within(n: fe.Int32, out: fe.Tensor):
    with noted("outer") as count, noted("in"):
        for i in range(n):
            out[i] = count
            if i == 3:
                break
    out[7] = 9


def test_a_context_is_entered_while_compiling() -> None:
    _opened.clear()
    out = np.zeros(8, np.int32)
    compiled = fe.compile(
        within, fe.Int32(0), fe.make_fake_compact_tensor(fe.Int32, (8,)), options=CPU
    )
    assert _opened == ["outer", "in", "end of in", "end of outer"]
    compiled(6, out)
    assert out.tolist() == [5, 5, 5, 5, 0, 0, 0, 9]


@fe.kernel
def absent_kernel(a: Any, b: Any, out: fe.Tensor):
    out[0] = 1 if fe.const_expr(a is None) else a + 10
    out[1] = 2 if fe.const_expr(b is None) else b + 20


@fe.jit
def absent(a: Optional[fe.Int32], b: Optional[fe.Int32], out: fe.Tensor):  # noqa: UP045
    absent_kernel(a, b, out).launch(grid=1, block=1)


def test_a_kernel_is_launched_with_what_is_there() -> None:
    example = fe.make_fake_compact_tensor(fe.Int32, (2,))
    compiled = fe.compile(absent, fe.Int32(0), None, example, options=CPU)
    out = np.zeros(2, np.int32)
    for a, b, wanted in ((3, 4, [13, 24]), (None, 4, [1, 24]), (3, None, [13, 2])):
        compiled(a, b, out)
        assert out.tolist() == wanted
    compiled(None, None, out)
    assert out.tolist() == [1, 2]


class Tile:
    """A new object for each tile: the loop and the branches below assign the name anew."""

    def __init__(self, at: Any) -> None:
        self.at = at

    @property
    def is_valid(self) -> Any:
        return self.at > 0

    def __extract_mlir_values__(self) -> Any:
        return extract_mlir_values(self.at)

    def __new_from_mlir_values__(self, values: Any) -> Any:
        return Tile(new_from_mlir_values(self.at, values))


@fe.kernel
def replaced_kernel(out: fe.Tensor, n: fe.Int32):
    tile, total = Tile(n), Tile(n + 5)
    if n > 3:
        tile = Tile(n * 2)
    else:
        tile.at = tile.at + 100
    out[0] = tile.at
    for i in range(3):
        tile = Tile(tile.at + 1)
        if i == 1:
            tile = Tile(tile.at + 10)
        tile.at = tile.at * 2
        total.at = total.at + tile.at
    out[1], out[2] = tile.at, total.at
    count = fe.Int32(0)
    while tile.is_valid:
        tile = Tile(tile.at - 2)
        if tile.at == 4:
            break
        count = count + 1
    out[3], out[4] = tile.at, count


@fe.jit
def replaced(out: fe.Tensor, n: fe.Int32):
    replaced_kernel(out, n).launch(grid=1, block=1)


def replaced_in_python(n: int) -> list[int]:
    tile, total, count = n, n + 5, 0
    tile = tile * 2 if n > 3 else tile + 100
    out = [tile]
    for i in range(3):
        tile += 11 if i == 1 else 1
        tile *= 2
        total += tile
    out += [tile, total]
    while tile > 0:
        tile -= 2
        if tile == 4:
            break
        count += 1
    return [*out, tile, count]


def test_a_name_gets_another_object_in_loops_and_branches() -> None:
    out = np.zeros(5, np.int32)
    compiled = fe.compile(replaced, out, 1, options=CPU)
    for n in (1, 4, 6, -200):
        compiled(out, n)
        assert out.tolist() == replaced_in_python(n)
