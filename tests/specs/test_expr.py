"""Symbolic sizes: folding keeps the value, text reads back, bad symbols are refused at once."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule import specs
from ferrule.specs import (
    Compound,
    Dim,
    Pointer,
    Scalar,
    Sym,
    Tensor,
    ceil_div,
    divisibility_of,
    evaluate,
    format_dim,
    maximum,
    minimum,
    sym_int,
    sym_int32,
    sym_int64,
)
from ferrule.specs.expr import make

N, M = sym_int(symbol="n"), sym_int64(symbol="m")
OPERATIONS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "ceil_div": ceil_div,
    "min": minimum,
    "max": maximum,
}
EXACT: dict[str, Any] = {
    **OPERATIONS,
    "ceil_div": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}
trees = st.recursive(
    st.one_of(st.sampled_from(["n", "m"]), st.integers(-20, 20)),
    lambda inner: st.tuples(st.sampled_from(list(OPERATIONS)), inner, inner),
    max_leaves=8,
)


def build(tree: Any) -> Dim:
    match tree:
        case "n":
            return N
        case "m":
            return M
        case int():
            return tree
    op, left, right = tree
    lhs, rhs = build(left), build(right)
    if isinstance(lhs, int) and isinstance(rhs, int) and op not in ("ceil_div", "min", "max"):
        from ferrule.specs.expr import make

        names = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod"}
        return make(names[op], lhs, rhs)  # type: ignore[arg-type]
    return OPERATIONS[op](lhs, rhs)  # type: ignore[no-any-return]


def exact(tree: Any, n: int, m: int) -> int:
    match tree:
        case "n":
            return n
        case "m":
            return m
        case int():
            return tree
    op, left, right = tree
    return EXACT[op](exact(left, n, m), exact(right, n, m))  # type: ignore[no-any-return]


@given(trees, st.integers(-50, 50), st.integers(-50, 50))
def test_evaluate_is_pythons_arithmetic(tree: Any, n: int, m: int) -> None:
    """What folding drops (x * 0 of a division by zero) may only make fewer cases fail."""
    try:
        expected = exact(tree, n, m)
    except ZeroDivisionError:
        return
    assert evaluate(build(tree), {N: n, M: m}) == expected


@given(trees, st.integers(1, 50), st.integers(1, 50))
def test_text_reads_back(tree: Any, n: int, m: int) -> None:
    dim = build(tree)
    text = format_dim(dim, {N: "n", M: "m"})
    names = {"n": n, "m": m, "min": min, "max": max, "ceil_div": EXACT["ceil_div"]}
    try:
        value = evaluate(dim, {N: n, M: m})
    except ZeroDivisionError:
        return
    assert eval(text, names) == value


def test_folding() -> None:
    assert N + 0 is N
    assert N * 1 is N
    assert (2 * N + 1) + 4 == N * 2 + 5
    assert 3 * (N * 2) == N * 6
    assert N * 0 == 0
    assert N - 3 == N + -3
    assert str(2 * N + 1) == "n * 2 + 1"
    assert str((N + 1) * 2 - 3) == "(n + 1) * 2 - 3"
    assert str(M - (N - 1)) == "m - (n - 1)"
    assert str(ceil_div(N, 128)) == "ceil_div(n, 128)"


@given(trees, st.integers(-9, 9), st.integers(-9, 9))
def test_divisibility_is_derived(tree: Any, n: int, m: int) -> None:
    """Whatever the symbols' values, multiples of 4 and of 6, the derived number divides."""
    values = {N: n * 4, M: m * 6}
    dims = {"n": sym_int(symbol="n", divisibility=4), "m": sym_int64(symbol="m", divisibility=6)}
    names = {N: dims["n"], M: dims["m"]}

    def renamed(dim: Dim) -> Dim:
        match dim:
            case Sym():
                return names[dim]
            case Compound(op, lhs, rhs):
                return make(op, renamed(lhs), renamed(rhs))
        return dim

    dim = build(tree)
    try:
        value = evaluate(dim, values)
    except ZeroDivisionError:
        return
    known = divisibility_of(renamed(dim))
    assert value == 0 if known == 0 else value % known == 0


def test_overflow_and_division_by_zero() -> None:
    with pytest.raises(OverflowError, match="64-bit"):
        evaluate(M * M, {M: 2**40})
    with pytest.raises(ZeroDivisionError):
        evaluate(N // M, {N: 1, M: 0})
    never_folded = N * (2**62) * 4
    assert isinstance(never_folded, Compound)
    with pytest.raises(OverflowError):
        evaluate(never_folded, {N: 1})


def test_named_symbols_are_one_and_unnamed_ones_are_not() -> None:
    assert sym_int(symbol="k") == sym_int(symbol="k")
    assert hash(sym_int(symbol="k")) == hash(sym_int(symbol="k"))
    assert sym_int() != sym_int()
    assert sym_int32(divisibility=4).width == 32
    assert isinstance(sym_int64(), Sym)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"width": 16}, ValueError, "width must be 32 or 64, but got 16"),
        ({"divisibility": 0}, ValueError, "at least 1 and fit int32, but got 0"),
        ({"divisibility": -4}, ValueError, "at least 1 and fit int32, but got -4"),
        ({"divisibility": 2**31}, ValueError, "fit int32, but got 2147483648"),
        ({"divisibility": 2.0}, TypeError, "divisibility must be an int"),
        ({"symbol": "a b"}, ValueError, "symbol must be an identifier, but got 'a b'"),
    ],
)
def test_bad_symbols(arguments: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        sym_int(**arguments)


X, K, A = Tensor("x", (N,), "float32"), Scalar("k", "int32"), Scalar("a", "float32")
ADDRESS = r"got the address of x: conventions.Apart\(x, y\) refuses arrays that overlap"
NO_SIZES: list[tuple[Any, str]] = [
    (lambda: X.data < X.data, ADDRESS),
    (lambda: X.data >= N, ADDRESS),
    (lambda: N < X.data, ADDRESS),
    (lambda: specs.equal(X.data, X.data), ADDRESS),
    (lambda: specs.divisible(X.data, 16), ADDRESS),
    (lambda: specs.require(X.data), ADDRESS),
    (lambda: X > N, "got the tensor x: its sizes are its .shape"),
    (lambda: 3 < K, r"got the parameter k \(int32\): k.value is its value as a size"),
    (lambda: K <= N, r"got the parameter k \(int32\): k.value is its value as a size"),
    (lambda: A > 0.5, r"got the parameter a \(float32\): specs.compare_float\('lt', a, 0.5\)"),
    (lambda: Pointer("p") < N, "got the parameter p, an address"),
    (lambda: specs.require(N % 2), r"such as n < 32 or equal\(n, 0\), but got the size n % 2"),
]


@pytest.mark.parametrize(("made", "said"), NO_SIZES)
def test_what_is_no_size_says_what_its_sizes_are(made: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        made()


def test_comparisons_have_names() -> None:
    wrong: Any = ">"
    with pytest.raises(ValueError, match="op must be one of lt, le, gt, ge, eq, ne, but got '>'"):
        specs.compare_float(wrong, A, 0.5)


def test_symbols_are_no_python_numbers() -> None:
    with pytest.raises(TypeError, match="known only at the call"):
        bool(N)
    with pytest.raises(TypeError, match="known only at the call"):
        range(N)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a size takes ints and symbolic ints, but got 1.5"):
        _ = N + 1.5  # type: ignore[operator]


def test_a_symbol_is_shown_as_it_is_made() -> None:
    assert repr(sym_int()) == "sym_int(32)"
    symbol = sym_int(64, symbol="n", divisibility=4, min=0, max=4096)
    assert repr(symbol) == "sym_int(64, symbol='n', divisibility=4, min=0, max=4096)"
    assert eval(repr(symbol), {"sym_int": sym_int}) == symbol
