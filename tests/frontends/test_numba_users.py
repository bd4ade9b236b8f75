"""Functions as users of Numba write them: each is a function here, with Numba's own result.

The table counts what `docs/frontends_numba.md` says of it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from ferrule.compiler.errors import CompileError
from ferrule.frontends import numba as frontend

numba = pytest.importorskip("numba", reason="Numba is not installed")

njit, prange = numba.njit, numba.prange


def inner(function: Any) -> Any:
    """For a function that others call: plain Python outside of Numba, which has no BLAS without
    SciPy."""
    return numba.extending.register_jitable(function)


# ---- orbits: numbers, tuples and small vectors ----


@inner
def norm(v):
    return math.sqrt(v @ v)


@inner
def cross(a, b):
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


@inner
def rotation(angle, axis=2):
    c, s = math.cos(angle), math.sin(angle)
    if axis == 0:
        return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    if axis == 1:
        return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@njit
def elements(k, r, v):
    """Six numbers of an orbit, from a position and a velocity."""
    h = cross(r, v)
    e = cross(v, h) / k - r / norm(r)
    node = cross(np.array([0.0, 0.0, 1.0]), h)
    eccentricity = norm(e)
    inclination = math.acos(h[2] / norm(h))
    ascending = math.atan2(node[1], node[0]) % (2 * math.pi)
    argument = math.acos((node @ e) / (norm(node) * eccentricity))
    anomaly = math.acos((e @ r) / (eccentricity * norm(r)))
    return (h @ h) / k, eccentricity, inclination, ascending, argument, anomaly


@njit
def turned(p, angles):
    return rotation(angles[0]) @ rotation(angles[1], 0) @ p


@njit
def kepler(mean, eccentricity, limit=50):
    x = mean
    for _ in range(limit):
        step = (x - eccentricity * math.sin(x) - mean) / (1 - eccentricity * math.cos(x))
        x -= step
        if abs(step) < 1e-14:
            return x
    return math.nan


@njit
def perhaps_kepler(mean, eccentricity):
    if not 0 <= eccentricity < 1:
        return None
    return kepler(mean, eccentricity)


@njit
def stumpff(psi):
    if psi > 0:
        return (1 - math.cos(math.sqrt(psi))) / psi
    if psi < 0:
        return (math.cosh(math.sqrt(-psi)) - 1) / -psi
    return 0.5


@njit
def accelerations(t, state, k):
    r = state[:3]
    out = np.empty_like(state)
    out[:3] = state[3:]
    out[3:] = -k * r / norm(r) ** 3
    return out


@njit
def lambert_guess(lam, tau, revolutions):
    t0 = math.acos(lam) + lam * math.sqrt(1 - lam**2)
    if revolutions == 0:
        return (t0 / tau) ** (2 / 3) - 1, 0
    return ((revolutions * math.pi) / (8 * tau)) ** (2 / 3), revolutions


# ---- arrays ----


@njit
def smoothed(x, width):
    out = np.zeros(x.size - width + 1)
    for i in range(out.size):
        out[i] = x[i : i + width].mean()
    return out


@njit
def low_and_high(x):
    low = high = x[0]
    for each in x[1:]:
        low, high = min(low, each), max(high, each)
    return low, high


@njit
def histogram(x, bins):
    counts = np.zeros(bins, np.int64)
    low, high = low_and_high(x)
    for each in x:
        at = int((each - low) / (high - low) * bins)
        counts[min(at, bins - 1)] += 1
    edges = np.linspace(low, high, bins + 1)
    return counts, edges


@njit
def first_above(x, limit):
    for i, each in enumerate(x):
        if each > limit:
            return i
    return None


@njit
def above(x, limit):
    return x[x > limit]


@njit
def sorted_unique(x):
    ordered = np.sort(x)
    kept = np.ones(ordered.size, np.bool_)
    kept[1:] = ordered[1:] != ordered[:-1]
    return ordered[kept]


@njit
def strided_views(x):
    return x[::-1, 1::2], x.T


@njit
def mandelbrot(width, height, limit):
    out = np.zeros((height, width), np.uint8)
    for row in range(height):
        for column in range(width):
            c = complex(-2 + 3 * column / width, -1 + 2 * row / height)
            z = 0j
            for i in range(limit):
                z = z * z + c
                if abs(z) > 2:
                    out[row, column] = i
                    break
    return out


@njit
def life(cells):
    rows, columns = cells.shape
    out = np.zeros_like(cells)
    for i in range(rows):
        for j in range(columns):
            around = -int(cells[i, j])
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    around += cells[(i + di) % rows, (j + dj) % columns]
            out[i, j] = around == 3 or (cells[i, j] and around == 2)
    return out


@njit
def bubble_sort(x):
    for end in range(len(x) - 1, 0, -1):
        for i in range(end):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]


@njit
def shortest(costs):
    d = costs.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


@njit
def regression(y, x, w, steps):
    for _ in range(steps):
        w = w - np.dot((1.0 / (1.0 + np.exp(-y * np.dot(x, w))) - 1.0) * y, x)
    return w


@njit(parallel=True)
def pi_in_parallel(n):
    total = 0.0
    for i in prange(n):
        total += (-1.0) ** i / (2 * i + 1)
    return 4 * total


@njit(parallel=True, fastmath=True)
def rows_in_parallel(x):
    out = np.empty(x.shape[0])
    for i in prange(x.shape[0]):
        out[i] = x[i].sum()
    return out


@njit
def surface_of_ball(dimension):
    return 2 * math.pi ** (dimension / 2) / math.gamma(dimension / 2)


@njit
def below(d):
    return 0.5 * math.erfc(-d / math.sqrt(2))


@njit
def prices(stock, strike, years, rate, volatility):
    call, put = np.empty_like(stock), np.empty_like(stock)
    for i in range(stock.size):
        spread = volatility * math.sqrt(years[i])
        d1 = (math.log(stock[i] / strike[i]) + (rate + volatility**2 / 2) * years[i]) / spread
        worth = strike[i] * math.exp(-rate * years[i])
        call[i] = stock[i] * below(d1) - worth * below(d1 - spread)
        put[i] = call[i] - stock[i] + worth
    return call, put


class Fit(NamedTuple):
    """A line through points."""

    slope: float
    start: float
    rest: Any


@njit
def line(x, y):
    mx, my = x.mean(), y.mean()
    slope = ((x - mx) * (y - my)).sum() / ((x - mx) ** 2).sum()
    start = my - slope * mx
    return Fit(slope, start, y - (slope * x + start))


@njit
def drawn(n):
    return np.random.random(n)


@njit
def divisors(n):
    found = []
    for i in range(1, n + 1):
        if n % i == 0:
            found.append(i)
    return np.array(found), len(found)


@njit
def names(n):
    return {n: n}[n]


@njit
def as_list(n):
    return [n]


RNG = np.random.default_rng(7)
X = RNG.standard_normal(40)
GRID = RNG.standard_normal((6, 5))
R, V = np.array([-6045.0, -3490.0, 2500.0]), np.array([-3.457, 6.618, 2.533])

TABLE: list[tuple[Any, ...]] = [
    (norm, X),
    (cross, R, V),
    (rotation, 0.3, 1),
    (elements, 398600.0, R, V),
    (turned, R, X[:2].copy()),
    (kepler, 1.2, 0.3),
    (perhaps_kepler, 1.2, 1.5),
    (stumpff, -0.5),
    (accelerations, 0.0, np.concatenate([R, V]), 398600.0),
    (lambert_guess, 0.4, 2.5, 1),
    (smoothed, X, 5),
    (low_and_high, X),
    (histogram, X, 7),
    (first_above, X, 1.0),
    (above, X, 0.5),
    (sorted_unique, RNG.integers(0, 9, 30)),
    (strided_views, GRID),
    (mandelbrot, 12, 8, 50),
    (life, GRID > 0),
    (bubble_sort, X),
    (shortest, np.abs(GRID[:5])),
    (regression, np.sign(X[:6]), GRID, X[:5].copy(), 20),
    (pi_in_parallel, 1000),
    (rows_in_parallel, GRID),
    (surface_of_ball, 5.0),
    (prices, np.abs(X) + 1, np.abs(X) + 1.5, np.abs(X) + 0.1, 0.02, 0.3),
    (line, X, X**2 + X),
    (divisors, 360),
]
REFUSED: list[tuple[Any, ...]] = [
    (drawn, 4, "random numbers"),
    (names, 2, "no dicts"),
    (as_list, 2, "returns a list"),
]


def plain(value: Any) -> Any:
    """What a call returns, with arrays of NumPy."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") else value


def copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def assert_same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(got, tuple) and len(got) == len(wanted)
        for pair in zip(got, wanted, strict=True):
            assert_same(*pair)
    elif isinstance(wanted, np.ndarray):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
    else:
        wanted = wanted.item() if isinstance(wanted, np.generic) else wanted
        assert type(got) is type(wanted)
        assert got == (wanted if wanted is None else pytest.approx(wanted, rel=1e-9))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0].__name__)
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPerformanceWarning")
def test_what_users_write_is_a_function_with_the_same_result(
    row: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    function, *shared = row
    given, copies = ([copied(each) for each in shared] for _ in range(2))
    # Numba asks for SciPy where it compiles a product, and calls it only when that runs.
    monkeypatch.setattr("numba.np.linalg.ensure_blas", lambda: None)
    fn = frontend.compile(function, *given)
    got = plain(fn(*given))
    assert_same(got, getattr(function, "py_func", function)(*copies))
    for mine, other in zip(given, copies, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("function", "example", "said"), REFUSED, ids=lambda value: getattr(value, "__name__", "")
)
def test_what_is_refused_says_why(function: Any, example: Any, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        frontend.compile(function, example)


def test_the_count_of_the_page() -> None:
    assert (len(TABLE), len(TABLE) + len(REFUSED)) == (28, 31)


# ---- records ----


def stamped(r, weights, at):
    total = 0.0
    for i in range(r.shape[0]):
        for j in range(r.shape[1]):
            at[i, j] = r["kind"][i, j] + r[i, j].parts[1]
            total += r[i, j].time * weights[j]
            r[i, j].kind = i - j
    return total


@pytest.mark.parametrize("aligned", [False, True], ids=["packed", "aligned"])
def test_arrays_of_records_are_their_bytes(aligned: bool) -> None:
    dtype = np.dtype([("kind", "i2"), ("time", "f8"), ("parts", "f4", (3,))], align=aligned)
    rng = np.random.default_rng(0)
    bytes_ = rng.integers(0, 30, (4, 3, dtype.itemsize), np.uint8)
    ours, theirs = bytes_.copy(), np.ascontiguousarray(bytes_).view(dtype)[..., 0]
    at, wanted, weights = np.zeros((4, 3)), np.zeros((4, 3)), rng.random(3)
    f = frontend.compile(stamped, theirs, weights, at)
    assert f"r: Tensor([n0, n1, {dtype.itemsize}], uint8), weights: Tensor([n1]" in str(f.signature)
    for array in (theirs["time"], theirs["parts"]):
        array[...] = rng.random(array.shape)
    ours = theirs.copy().view("u1").reshape(*theirs.shape, -1)
    assert f(ours, weights, at) == pytest.approx(njit(stamped)(theirs, weights, wanted))
    np.testing.assert_array_equal(at, wanted)
    np.testing.assert_array_equal(ours.view(dtype)[..., 0]["kind"], theirs["kind"])
    with pytest.raises(ValueError, match=rf"expected to be {dtype.itemsize}, but got 1"):
        f(ours[..., :1], weights, at)


def test_records_with_gaps_or_objects_are_refused() -> None:
    dtype = np.dtype([("kind", "i4"), ("time", "f8")])
    objects = np.zeros((2, 2), [("kind", "O")])
    for wrong in (np.zeros((4, 4), dtype)[::2], np.zeros((), dtype), objects):
        with pytest.raises(CompileError, match="has gaps, no dims, or objects of Python"):
            frontend.compile(stamped, wrong, np.zeros(2), np.zeros((2, 2)))
