"""Dtypes of arithmetic in functions of `cutlass.cute.jit`, which are those of CuTe DSL 4.8.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.cutlass import cute

PAIRS = [
    # What CuTe DSL gives, and ferrule's own functions: of `x + y` and of `x + 1`, `x + 2.0`.
    (("Int8", "Uint8"), ("Uint8", "Int16")),
    (("Int8", "Uint16"), ("Uint16", "Int32")),
    (("Int16", "Uint8"), ("Int16", "Int16")),
    (("Uint32", "Int32"), ("Uint32", "Int64")),
    (("Uint32", "Int64"), ("Int64", "Int64")),
    (("Float16", "BFloat16"), ("Float16", "Float32")),
    (("Float16", "Int16"), ("Float16", "Float16")),
    (("Int16", "BFloat16"), ("Float16", "BFloat16")),
    (("Float16", "Int32"), ("Float32", "Float16")),
    (("Float32", "Int64"), ("Float64", "Float32")),
    (("Float32", "Float16"), ("Float32", "Float32")),
    (("Boolean", "Int8"), ("Int8", "Int8")),
    (("Uint8", 1), ("Int32", "Uint8")),
    (("Int64", 1), ("Int64", "Int64")),
    (("Uint32", 1), ("Uint32", "Uint32")),
    (("Uint8", True), ("Uint8", "Uint8")),
    (("Float16", 1), ("Float32", "Float16")),
    (("Float16", 2.0), ("Float32", "Float16")),
    (("BFloat16", 2.0), ("Float32", "BFloat16")),
    (("Int32", 2.0), ("Float32", "Float32")),
    (("Int64", 2.0), ("Float64", "Float32")),
    (("Uint64", 0xFFFFFFFFFF), ("Uint64", "Uint64")),
]


def of_numbers(a: fe.Tensor, out: fe.Tensor, s: fe.Constexpr, t: fe.Constexpr):
    x = a[0].to(getattr(fe, s))
    y = a[1].to(getattr(fe, t)) if isinstance(t, str) else t
    out[0] = (x + y).dtype is KINDS[0]
    out[1] = (y + x).dtype is KINDS[0]
    v = fe.make_tensor(a.iterator, fe.make_layout((2,))).load().to(getattr(fe, s))
    out[2] = (v + y).dtype is KINDS[0]


KINDS: list[Any] = [None]


@pytest.mark.parametrize(("given", "wanted"), PAIRS)
def test_results_have_the_dtypes_of_cute_dsl(given: Any, wanted: tuple[str, str]) -> None:
    a, out = np.array([1, 2], np.float32), np.zeros(3, np.int32)
    for jit, kind in zip((cute.jit, fe.jit), wanted, strict=True):
        KINDS[0] = getattr(fe, kind)
        jit(of_numbers)(a, out, *given)
        assert out.tolist() == [1, 1, 1], (jit, kind)


@fe.kernel
def shifted_kernel(a: fe.Tensor, out: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    out[i] = a[i] - 5
    part = fe.zipped_divide(a, (4,))[None, 0].load()
    fe.zipped_divide(out, (4,))[None, 1].store((part * 100).to(fe.Int32))


def shifted(a: fe.Tensor, out: fe.Tensor):
    shifted_kernel(a, out).launch(grid=1, block=4)


def test_kernels_have_them_too_and_the_same_function_may_be_compiled_both_ways() -> None:
    a, out = np.array([0, 3, 5, 250], np.uint8), np.zeros(8, np.int32)
    for _ in range(2):
        cute.jit(shifted)(a, out)
        assert out.tolist() == [-5, -2, 0, 245, 0, 300, 500, 25000]
        fe.jit(shifted)(a, out)
        assert out.tolist() == [251, 254, 0, 245, *(int(x) * 100 % 256 for x in a)]


def test_sums_of_halves_are_exact_where_cute_dsl_has_floats() -> None:
    def scaled(a: fe.Tensor, out: fe.Tensor):
        out[0] = (a[0] * 3.0 + 1) * 3000

    a, out = np.array([11], np.float16), np.zeros(1, np.float32)
    cute.jit(scaled)(a, out)
    assert out[0] == 102000
    fe.jit(scaled)(a, out)
    assert out[0] == np.inf


@fe.jit(promotion="cute")
def folded(out: fe.Tensor):
    out[0] = fe.Int8(100) + 100
    out[1] = fe.Uint8(3) - 5
    out[2] = fe.Int8(100) + fe.Int8(100)


def test_typed_constants_have_them() -> None:
    out = np.zeros(3, np.int32)
    folded(out)
    assert out.tolist() == [200, -2, -56]


def test_masks_and_comparisons_are_as_before() -> None:
    @cute.jit
    def masked(x: fe.Uint32, n: fe.Int32, out: fe.Tensor):
        out[0] = x & ~(1 << 31)
        out[1] = x & 0xFFFFFFFF
        out[2] = n < x
        out[3] = min(n, 3)

    out = np.zeros(4, np.uint32)
    masked(0xDEADBEEF, -1, out)
    assert out.tolist() == [0x5EADBEEF, 0xDEADBEEF, 1, (1 << 32) - 1]


def test_python_numbers_alone_have_their_own_dtypes() -> None:
    @cute.jit
    def moved(out: fe.Tensor):
        def inner(place):
            x, y = place
            return x, y + 1

        layout = fe.make_composed_layout(inner, (1, 0), fe.make_identity_layout((8, 4)))
        out[0] = layout(0)[0] * 10 + layout(9)[1]
        places = fe.make_identity_tensor((4, 2))
        out[1] = places[1, 1][0] + 2 * places[1, 1][1] - True

    out = np.zeros(2, np.int32)
    moved(out)
    assert out.tolist() == [12, 2]


def test_another_promotion_is_an_error() -> None:
    with pytest.raises(fe.CompileError, match='promotion of shifted must be "ferrule" or "cute"'):
        fe.jit(promotion="c")(shifted)  # type: ignore[call-overload]


# ---- remainders ----

# What CuTe DSL 4.8.1 gives for vectors (-7, 3) and (3, -7): x % y, y % x, x % 3, 3 % x, x // y, and
# y // x, in this order, two elements each; for Uint8 of (7, 3) and (3, 7).
SIGNED = [-1, 3, 3, -1, -1, 0, 3, 0, -3, -1, -1, -3]
OF_VECTORS = [
    ("Int8", -7, SIGNED),
    ("Int32", -7, SIGNED),
    ("Int64", -7, SIGNED),
    ("Float16", -7, SIGNED),
    ("Float32", -7, SIGNED),
    ("Float64", -7, SIGNED),
    ("Uint8", 7, [1, 3, 3, 1, 1, 0, 3, 0, 2, 0, 0, 2]),
]


def remainders(a: fe.Tensor, out: fe.Tensor, s: fe.Constexpr):
    kind = getattr(fe, s)
    x, y = fe.make_fragment(2, kind), fe.make_fragment(2, kind)
    x[0], x[1] = kind(a[0]), kind(a[1])
    y[0], y[1] = x[1], x[0]
    v, w = x.load(), y.load()
    found = [v % w, w % v, v % 3, 3 % v, v // w, w // v]
    for number in fe.range_constexpr(6):
        each = found[number].to(fe.Float32)
        out[2 * number], out[2 * number + 1] = each[0], each[1]
    p, q = x[0], x[1]
    pairs = [p % q, q % p, q % p, p % q, p % 3, q % 3, 3 % p, 3 % q, p // q, q // p, q // p, p // q]
    for number in fe.range_constexpr(12):
        out[12 + number] = fe.Float32(pairs[number])


@pytest.mark.parametrize(("kind", "first", "wanted"), OF_VECTORS)
def test_remainders_are_cute_dsls(kind: str, first: int, wanted: list[int]) -> None:
    """Towards zero, of vectors and numbers; ferrule's own are Python's."""
    a, out = np.array([first, 3], np.int32), np.zeros(24, np.float32)
    cute.jit(remainders)(a, out, kind)
    assert out.tolist() == [*wanted, *wanted]
    fe.jit(remainders)(a, out, kind)
    x, y = np.array([first, 3]), np.array([3, first])
    own = [z for each in (x % y, y % x, x % 3, 3 % x, x // y, y // x) for z in each]
    assert out.tolist() == [*own, *own]


def test_remainders_of_constants_are_pythons_in_both() -> None:
    def constants(out: fe.Tensor):
        out[0] = fe.Int32(-7) % 3
        out[1] = fe.Int32(-7) % fe.Int32(3)
        out[2] = fe.Int32(fe.Float32(-7.0) % 3.0)
        out[3] = -7 % 3

    out = np.zeros(4, np.int32)
    for jit in (cute.jit, fe.jit):
        jit(constants)(out)
        assert out.tolist() == [2] * 4


def test_remainders_at_their_limits() -> None:
    def limits(a: fe.Tensor, out: fe.Tensor, x: fe.Float32):
        for i in fe.range_constexpr(4):
            out[i] = a[i] % a[i + 4]
        n = a[1]
        n %= 3
        out[4] = n
        out[5] = x % 0.0 != x % 0.0  # NaN
        out[6] = 1 / (x * -1.0 % 3.0) < 0.0  # -0.0, which has the sign of the dividend

    a = np.array([-(2**31), -7, 7, 2**31 - 1, -1, -3, -3, -(2**31)], np.int32)
    out = np.zeros(7, np.int32)
    cute.jit(limits)(a, out, 3.0)
    assert out.tolist() == [0, -1, 1, 2**31 - 1, -1, 1, 1]


def test_remainders_of_places_need_no_correction() -> None:
    @fe.kernel
    def kernel(out: fe.Tensor):
        t = fe.arch.thread_idx()[0]
        out[t] = t % 8 + t % 8 % 3

    def host(out: fe.Tensor):
        kernel(out).launch(grid=1, block=out.shape[0] % 64)

    example = fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(),))
    function = fe.compile(cute.jit(host), example, options="--target cpu")
    assert "select" not in function.inspect_ir()
    out = np.zeros(40, np.int32)
    function(out)
    assert out.tolist() == [i % 8 + i % 8 % 3 for i in range(40)]


def test_a_division_by_zero_is_the_same_error() -> None:
    @cute.jit
    def rest(n: fe.Int32, d: fe.Int32) -> fe.Int32:
        return n % d

    assert rest(-7, 3) == -1
    with pytest.raises(ZeroDivisionError):
        rest(1, 0)


# ---- Booleans ----


def of_booleans(a: fe.Tensor, out: fe.Tensor):
    x, y = fe.Boolean(a[0]), fe.Boolean(a[1])
    found = [x + y, x // y, x % y, x << y, x + True, x - y, x * y, x >> y]
    for i in fe.range_constexpr(8):
        out[i] = fe.Int32(found[i])
        out[8 + i] = found[i].dtype is fe.Boolean


@pytest.mark.parametrize(
    ("x", "y", "wanted"),
    [
        (True, True, [1, 1, 0, 1, 2, 0, 1, 0]),
        (False, True, [1, 0, 0, 0, 1, 1, 0, 0]),
    ],
)
def test_sums_of_booleans_are_booleans(x: bool, y: bool, wanted: list[int]) -> None:
    a, out = np.array([x, y], np.int32), np.zeros(16, np.int32)
    cute.jit(of_booleans)(a, out)
    assert out.tolist() == wanted + [1, 1, 1, 1, 0, 1, 1, 1]  # True is no Boolean there
    fe.jit(of_booleans)(a, out)
    assert out[0] == x + y and not out[8]


# ---- vectors in host functions, texts ----


def test_full_is_a_vector_in_host_functions() -> None:
    @cute.jit
    def summed(out: fe.Tensor):
        v = fe.full((2, 3), 1.5, fe.Float32)
        out[0] = v.reduce(fe.ReductionOp.ADD, 0.0, reduction_profile=0)
        out[1] = fe.TensorSSA.reduce(v, fe.ReductionOp.ADD, 1.0, reduction_profile=0)
        out[2] = fe.TensorSSA.to(fe.TensorSSA.reshape(fe.zeros_like(v), 6), fe.Int32)[5]

    out = np.ones(3, np.float32)
    summed(out)
    assert out.tolist() == [9, 10, 0]


def test_texts_end_as_in_cute_dsl(capfd: pytest.CaptureFixture[str]) -> None:
    def said(n: fe.Int32):
        fe.printf("{}", n)
        fe.printf("line\n")
        fe.printf("open", end="")
        fe.printf("")

    cute.jit(said)(3)
    assert capfd.readouterr().out == "3\nline\n\nopen\n"
    fe.jit(said)(3)
    assert capfd.readouterr().out == "3\nline\nopen\n"
