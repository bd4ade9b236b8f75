"""Grids are traced to expressions; what needs a value now is refused, and says what to write."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.grids import ceil_div, maximum, minimum, trace_grid
from ferrule.frontends.triton.traced.functions import traced
from ferrule.frontends.triton.traced.knowledge import Knowledge
from ferrule.frontends.triton.traced.numbers import Unseen
from ferrule.frontends.triton.traced.paths import MOST, Path, outcomes
from ferrule.frontends.triton.traced.tensors import TracedTensor
from ferrule.specs import Tensor
from ferrule.specs.conditions import Comparison

M, N = specs.sym_int32(symbol="m"), specs.sym_int32(symbol="n")
MATRIX = Tensor("x", (M, N), "float16")
META = {
    "m": traced(M),
    "n": traced(N),
    "x": TracedTensor(MATRIX),
    "factor": Unseen("factor"),
    "BLOCK": 128,
}

TRACED: dict[str, Callable[[Any], Any]] = {
    "ceil": lambda meta: (ceil_div(meta["n"], meta["BLOCK"]),),
    "rounded": lambda meta: ((meta["n"] + meta["BLOCK"] - 1) // meta["BLOCK"],),
    "negated": lambda meta: (-(-meta["n"] // meta["BLOCK"]),),
    "product": lambda meta: (meta["x"].numel() * 2, meta["x"].shape[0], 3),
    "strides": lambda meta: [meta["x"].stride(0), meta["x"].stride()[1], meta["x"].size(1)],
    "bounded": lambda meta: (minimum(meta["m"], 132), maximum(1, meta["n"] % 7)),
    "shifts": lambda meta: (meta["n"] >> 3, (meta["n"] - 9) >> 2, meta["m"] << 1),
    "mixed": lambda meta: (2 * meta["m"] - meta["n"] + (1000 - meta["m"]) % 3, 1 + meta["n"]),
    "one": lambda meta: meta["m"],
    "quotient": lambda meta: (
        math.ceil(meta["n"] / meta["BLOCK"]),
        math.floor(9 / (1 + meta["m"])),
    ),
    "known": lambda meta: (meta["BLOCK"] // 3, meta["x"].ndim, meta["x"].element_size()),
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "min": lambda meta: (min(meta["n"], 4),),
    "equal": lambda meta: (1 if meta["n"] == 0 else 2,),
    "truth": lambda meta: (1 if meta["n"] else 2,),
    "int": lambda meta: (int(meta["n"]),),
    "over": lambda meta: (meta["n"] / meta["BLOCK"],),
    "rounded": lambda meta: (math.ceil(meta["n"] * 0.5),),
    "shift": lambda meta: (3 << meta["n"],),
    "bits": lambda meta: (meta["n"] | 1,),
    "other bits": lambda meta: (meta["n"] | (meta["m"] >> 1),),
    "too few bits": lambda meta: ((meta["n"] | meta["n"] >> 1) + 1,),
    "bit length": lambda meta: (meta["n"].bit_length(),),
    "float": lambda meta: (meta["factor"],),
    "scaled": lambda meta: (meta["n"] * meta["factor"],),
    "half": lambda meta: (int(meta["n"] / 2),),
    "range": lambda meta: (sum(1 for _ in range(meta["n"])),),
    "dict": lambda meta: ({meta["n"]: 1}[meta["n"]],),
}


@pytest.mark.parametrize("name", TRACED)
@given(m=st.integers(0, 1 << 20), n=st.integers(0, 1 << 20))
def test_a_traced_grid_is_what_python_computes(name: str, m: int, n: int) -> None:
    dims = trace_grid(TRACED[name], META, "f")

    class Known(TracedTensor):
        @property
        def shape(self) -> tuple[Any, ...]:
            return m, n

        def stride(self, dim: int | None = None) -> Any:
            return (n, 1) if dim is None else (n, 1)[dim]

        def numel(self) -> int:
            return m * n

    wanted = TRACED[name]({"m": m, "n": n, "x": Known(MATRIX), "BLOCK": 128})
    wanted = (wanted,) if isinstance(wanted, int) or not hasattr(wanted, "__len__") else wanted
    wanted = tuple(getattr(size, "dim", size) for size in wanted)
    found = tuple(specs.evaluate(dim, {M: m, N: n}) for dim in dims)
    assert found == (*wanted, 1, 1)[:3]


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_value_now_is_refused(name: str) -> None:
    with pytest.raises(CompileError, match="f: the grid cannot be traced") as error:
        trace_grid(REFUSED[name], META, "f")
    assert "known only at the call" in str(error.value) or "//" in str(error.value)


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), "x", 1.5, (None,), ("n",), (1.0, 2)])
def test_what_is_no_grid_is_refused(grid: Any) -> None:
    with pytest.raises(CompileError, match="f: .*grid is"):
        trace_grid(grid, META, "f")


def test_an_argument_that_there_is_not_is_named() -> None:
    with pytest.raises(CompileError, match="asks for 'k', which is no parameter of the kernel"):
        trace_grid(lambda meta: (meta["k"],), META, "f")


def test_an_error_of_the_function_itself_is_shown() -> None:
    with pytest.raises(CompileError, match="ZeroDivisionError"):
        trace_grid(lambda meta: (1 // 0,), META, "f")


def next_power_of_2(n: Any) -> Any:
    """As Triton's."""
    n -= 1
    for bits in (1, 2, 4, 8, 16, 32):
        n |= n >> bits
    return n + 1


def tile(m: Any, k: Any) -> int:
    """As libraries choose a tile: twice as large while there are more blocks than processors."""
    size, most = 1, min(k, 64)
    while m * ceil_div(k, size) / 12 > 1 and size * 2 <= most:
        size *= 2
    return size


DECIDED: dict[str, Callable[[Any], Any]] = {
    "min": lambda meta: (min(meta["n"], 132), max(meta["m"], meta["n"], 2)),
    "if": lambda meta: (1 if meta["n"] == 0 else meta["m"] if meta["m"] > 7 else 7,),
    "truth": lambda meta: (meta["n"] or 1, 2 if meta["m"] != meta["n"] and meta["m"] else 3),
    "twice": lambda meta: (min(meta["n"], 4), min(meta["n"], 4)),
    "follows": lambda meta: (+(meta["n"] <= 4 and meta["n"] < 8), +(5 > meta["n"] + 1), 1),
    "power": lambda meta: (next_power_of_2(meta["n"] + 1), 2),
    "bits": lambda meta: (1 << (meta["m"] + 2).bit_length(), 2),
    "waves": lambda meta: (tile(meta["m"] + 1, meta["n"] + 1), 2),
    "quotient": lambda meta: (
        +(meta["n"] / 8 > 1),
        +(0.5 <= meta["n"] / (meta["m"] + 1)),
        +(meta["n"] / 2 == meta["m"] / 4),
    ),
    "float": lambda meta: (+(meta["n"] > 7.5), +(3.0 <= meta["m"])),
}


@lru_cache
def decided(name: str) -> list[Any]:
    """The outcomes of one of these functions."""

    def run(path: Path) -> Any:
        return trace_grid(DECIDED[name], {"m": traced(M, path), "n": traced(N, path)}, "f")

    return list(outcomes(run, "f", frozenset((M, N))))


@pytest.mark.parametrize("name", DECIDED)
@given(m=st.integers(0, 9), n=st.integers(0, 150))
def test_comparisons_are_decided_by_the_call(name: str, m: int, n: int) -> None:
    sizes = {M: m, N: n}
    found = decided(name)
    assert [when for when, _ in found].index(None) == len(found) - 1
    fitting = [dims for when, dims in found if when is None or specs.conditions.holds(when, sizes)]
    wanted = DECIDED[name]({"m": m, "n": n})
    assert [specs.evaluate(dim, sizes) for dim in fitting[0]] == [*wanted, 1, 1][:3]
    assert len(found) == {"twice": 2, "follows": 3}.get(name, len(found))


@pytest.mark.parametrize(("most", "divisor", "kernels"), [(64, 1, 1), (100, 16, 2), (4096, 1, 3)])
def test_what_bounds_exclude_is_no_outcome(most: int, divisor: int, kernels: int) -> None:
    size = specs.sym_int32(divisor, symbol="n", min=1, max=most)

    def run(path: Path) -> Any:
        n = traced(size, path)
        assert n > 0 and n * 2 <= 8192 and n % divisor == 0
        return 64 if n <= 64 else 128 if n <= 128 else 256

    assert len(list(outcomes(run, "f"))) == kernels


@given(low=st.integers(-40, 40), width=st.integers(0, 40), data=st.data())
def test_what_is_known_of_a_size_is_true(low: int, width: int, data: Any) -> None:
    """Comparisons with outcomes that a value has: no other outcome is said to follow."""
    size = specs.sym_int32(symbol="n", min=low, max=low + width)
    value = data.draw(st.integers(low, low + width))
    kinds = st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"])
    sides = st.sampled_from([size, size + 3, size * 2, size // 3, size % 4, 2 - size])
    each = st.builds(Comparison, kinds, sides, st.integers(-50, 90))
    swapped = st.builds(Comparison, kinds, st.integers(-50, 90), sides)
    told = data.draw(st.lists(each | swapped, max_size=4))
    taken = [(one, specs.conditions.holds(one, {size: value})) for one in told]
    asked = data.draw(each | swapped)
    found = Knowledge(taken).outcome(asked)
    assert found in (None, specs.conditions.holds(asked, {size: value}))
    least, most = Knowledge(taken).interval(size * 2 + 1)
    assert least <= value * 2 + 1 <= most
    path = Path(taken=list(taken))
    wanted = path.condition
    assert wanted is None or specs.conditions.holds(wanted, {size: value})


def test_too_many_comparisons_are_refused() -> None:
    def run(path: Path) -> Any:
        n = traced(N, path)
        return sum(1 for most in range(MOST) if n < most)

    with pytest.raises(CompileError, match="f depends on so many comparisons"):
        list(outcomes(run, "f"))


def test_a_loop_over_a_size_without_a_bound_ends() -> None:
    def run(path: Path) -> int:
        block = 16
        while path.decide(Comparison("lt", block, N)):
            block += 16
        return block

    with pytest.raises(CompileError, match="f depends on so many comparisons .* 64 outcomes"):
        list(outcomes(run, "f", frozenset((N,))))
