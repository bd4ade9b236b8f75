"""Bounds of sizes at their ends: in the code for usual calls, and in the checker."""

from __future__ import annotations

import pytest
from oracle.arguments import Argument, Numbers, View
from oracle.judge import Accepted, judge
from oracle.wrapped import Wrapped

from ferrule.specs import Float32, Signature, Sym, Tensor, sym_int
from ferrule.specs.params import Optional, Param, Shape

LOW, HIGH = -(1 << 31), (1 << 31) - 1
SYMBOLS = [
    {"min": 0, "max": 4095},
    {"min": 0, "max": 4096},
    {"min": 1, "max": 4096},
    {"min": 16, "max": 4096, "divisibility": 16},
    {"min": 3, "max": 100, "divisibility": 3},
    {"min": 7, "max": 7},
    {"max": 0},
    {"min": 5},
    {"min": -6, "max": 5},
    {"min": LOW, "max": HIGH},
    {"width": 64, "min": 1 << 40, "max": (1 << 63) - 1},
    {"width": 64, "min": -(1 << 63), "max": -(1 << 62)},
    {"width": 64, "max": 1 << 33, "divisibility": 6},
]


def near(symbol: Sym) -> list[int]:
    """The numbers at both ends of a symbol, and some that no symbol takes."""
    ends = [0, 1, *symbol.interval(), *symbol.interval(signed=False)]
    odd = [LOW - 1, HIGH + 1, -(1 << 63), (1 << 63) - 1]
    found = {end + step * symbol.divisibility for end in ends for step in (-1, 0, 1)}
    return sorted(n for n in {*found, *ends, *odd} if -(1 << 63) <= n < 1 << 63)


def takes(symbol: Sym, value: int, *, signed: bool) -> bool:
    """Python's own check."""
    half = 1 << symbol.width - 1
    low = -half if symbol.min is None else symbol.min
    high = half - 1 if symbol.max is None else symbol.max
    return low <= value <= high and value % symbol.divisibility == 0 and (signed or value >= 0)


class Both:
    """The wrappers of one signature with and without code of its own for usual calls."""

    def __init__(self, param: Param) -> None:
        self.signature = Signature("f", [param])
        self.wrappers = [Wrapped(self.signature, hot) for hot in (True, False)]

    def taken(self, argument: Argument) -> int | None:
        """The value of the symbol, if the call is accepted; both do what the oracle says."""
        wanted = judge(self.signature, [argument])
        for wrapper in self.wrappers:
            assert wrapper.disagreement([argument], wanted) is None, argument
        if not isinstance(wanted, Accepted):
            return None
        (value,) = wanted.symbols
        (symbol,) = self.signature.symbols
        assert isinstance(value, int)
        return value - (1 << symbol.width) * (value >> symbol.width - 1)


def sized(*shape: int, strides: tuple[int, ...] = (1,)) -> View:
    return View(shape, strides)


@pytest.mark.parametrize("facts", SYMBOLS, ids=str)
def test_each_number_at_the_ends(facts: dict[str, int]) -> None:
    symbol = sym_int(symbol="n", **facts)
    size = Both(Tensor("a", (symbol,), Float32, device="cpu"))
    stride = Both(Tensor("a", (2,), Float32, strides=(symbol,), device="cpu"))
    dims, coordinates = (Both(Shape("s", (symbol,), kind)) for kind in ("Shape", "Coord"))
    for value in near(symbol):
        expected = value if takes(symbol, value, signed=False) else None
        assert size.taken(sized(value)) == expected, value
        assert dims.taken(Numbers((value,))) == expected, value
        expected = value if takes(symbol, value, signed=True) else None
        assert stride.taken(sized(2, strides=(value,))) == expected, value
        assert coordinates.taken(Numbers((value,))) == expected, value


@pytest.mark.parametrize(
    ("facts", "value"),
    [
        ({"min": 4}, 4),
        ({"min": 5, "divisibility": 4}, 8),
        ({"max": -3, "divisibility": 2}, -4),
        ({"min": -9, "max": 9}, 1),
        ({"divisibility": 8}, 8),
    ],
    ids=str,
)
def test_a_symbol_that_no_stride_tells_fits_its_facts(facts: dict[str, int], value: int) -> None:
    param = Tensor("a", (1,), Float32, strides=(sym_int(symbol="s", **facts),), device="cpu")
    always, sometimes = Both(param), Both(Optional("a", param))
    assert always.taken(sized(1, strides=(77,))) == value
    assert sometimes.taken(sized(1, strides=(77,))) == sometimes.taken(None) == value


def test_a_symbol_that_is_solved_for_keeps_its_bounds() -> None:
    n = sym_int(min=2, max=8, symbol="n")
    both = Both(Tensor("a", (2 * n + 1,), Float32, device="cpu"))
    taken = {size: both.taken(sized(size)) for size in range(25)}
    assert {size: n for size, n in taken.items() if n is not None} == {
        2 * n + 1: n for n in range(2, 9)
    }


def test_one_name_has_one_pair_of_bounds() -> None:
    a, b = (Tensor(x, (sym_int(max=m, symbol="n"),), Float32) for x, m in (("a", 4), ("b", 8)))
    with pytest.raises(ValueError, match=r"n is used with different .* bounds: .* in \.\.4, and"):
        Signature("f", [a, b])
