"""What the compiler knows by the bounds of sizes, and requirements of compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated_alone import run_alone

import ferrule as fe
from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.specs.intervals import interval

CPU = "--target cpu"
GPU = "--target cuda --gpu-arch sm_80"


def matrix(*sizes: Any) -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, sizes, stride_order=(1, 0)[-len(sizes) :])


def vector(**facts: Any) -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n", **facts),))


LONG = "shl.b64"
"""What makes bytes of an offset of 64 bits, in elements of 4."""


@fe.kernel
def scale_kernel(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    j = fe.arch.block_idx()[1]
    if i < x.shape[1] and i < 4096:
        y[j, i] = x[j, i] * 2.0


@fe.jit
def scale(x: fe.Tensor, y: fe.Tensor):
    scale_kernel(x, y).launch(grid=(fe.ceil_div(x.shape[1], 256), x.shape[0]), block=256)


def test_a_gpu_computes_offsets_in_32_bits_without_guards_that_bounds_decide() -> None:
    n, m = (fe.sym_int(min=1, max=4096) for _ in "nm")
    bounded = fe.compile(scale, matrix(m, n), matrix(m, n), options=GPU).inspect_ptx()
    n, m = fe.sym_int(), fe.sym_int()
    options = f"{GPU} --index-bitwidth 64"
    free = fe.compile(scale, matrix(m, n), matrix(m, n), options=options).inspect_ptx()
    assert LONG in free and "mad.lo.s32" not in free and free.count("setp") == 2
    assert LONG not in bounded and "mad.lo.s32" in bounded and bounded.count("setp") == 1
    n, m = (fe.sym_int(min=1, max=1 << 17) for _ in "nm")  # together past 32 bits
    large = fe.compile(scale, matrix(m, n), matrix(m, n), options=options).inspect_ptx()
    assert "mad.lo.s32" not in large and large.count("setp") == 2


EMULATED = """
n, m = (fe.sym_int(min=1, max=4096) for _ in "nm")
x = np.arange(3 * 300, dtype=np.float32).reshape(3, 300)
with fe.emulated_gpu("sm_80"):
    y = fe.cuda.array(np.zeros_like(x))
    examples = here.matrix(m, n), here.matrix(m, n)
    fe.compile(here.scale, *examples, options=here.GPU)(fe.cuda.array(x), y)
    assert (fe.cuda.to_numpy(y) == 2 * x).all()
"""


def test_the_same_numbers_come_out() -> None:
    n, m = (fe.sym_int(min=1, max=4096) for _ in "nm")
    x = np.arange(3 * 300, dtype=np.float32).reshape(3, 300)
    y = np.zeros_like(x)
    fe.compile(scale, matrix(m, n), matrix(m, n), options=CPU)(x, y)
    assert (y == 2 * x).all()
    run_alone(__file__, EMULATED)


def test_branches_that_bounds_decide_are_gone_on_the_cpu() -> None:
    @fe.jit
    def chosen(x: fe.Tensor):
        if x.shape[0] > 4096:
            return 1
        if x.shape[0] < 16:
            return 2
        return 3

    inside, across = (
        fe.compile(chosen, vector(**facts), options=CPU)
        for facts in ({"min": 16, "max": 4096}, {"min": 15, "max": 4097})
    )
    for size, found in ((15, 2), (16, 3), (4096, 3), (4097, 1)):
        assert across(np.zeros(size, np.float32)) == found
    assert inside(np.zeros(16, np.float32)) == inside(np.zeros(4096, np.float32)) == 3
    with pytest.raises(ValueError, match="expected to be at most 4096, but got 4097"):
        inside(np.zeros(4097, np.float32))


def test_bounds_change_no_type_so_that_no_product_begins_to_wrap() -> None:
    @fe.jit
    def squared(x: fe.Tensor):
        return x.shape[0] * x.shape[0]

    free, bounded = fe.sym_int64(), fe.sym_int64(min=0, max=100_000)
    x = np.zeros(100_000, np.int8)
    for size in (free, bounded):
        example = fe.make_fake_compact_tensor(fe.Int8, (size,))
        assert fe.compile(squared, example, options=CPU)(x) == 10**10


def test_intervals_follow_from_bounds() -> None:
    n, k = fe.sym_int(min=2, max=10), fe.sym_int64(min=-3)
    assert interval(n) == (2, 10)
    assert interval(n * n - 5) == (-1, 95)
    assert interval(specs.ceil_div(n, 4)) == (1, 3)
    assert interval(k) == (-3, (1 << 63) - 1)


def test_a_call_of_a_compiled_function_proves_bounds_or_checks_them() -> None:
    @fe.jit
    def inner(x: fe.Tensor):
        x[0] = x[0] + 1.0

    small = fe.compile(inner, vector(min=1, max=64), options=CPU)
    even = fe.compile(
        inner, vector(), options=CPU, requires=[specs.divisible(fe.sym_int(symbol="n"), 2)]
    )

    @fe.jit
    def outer(x: fe.Tensor):
        small(x)

    @fe.jit
    def outer_even(x: fe.Tensor):
        even(x)

    x = np.zeros(66, np.float32)
    for example in (vector(), vector(min=0, max=64), vector(min=1, max=65)):
        function = fe.compile(outer, example, options=CPU)
        function(x[:64])
        with pytest.raises(ValueError, match="expected to be at"):
            function(x[: 65 if "65" in function.signature.text() else 0])
    with pytest.raises(ValueError, match="to be at most 64, but got 66"):
        fe.compile(outer, vector(), options=CPU)(x)
    proved = fe.compile(outer, vector(min=2, max=64), options=CPU)
    assert "call_body" in proved.inspect_ir()
    assert "call_body" not in fe.compile(outer, vector(), options=CPU).inspect_ir()
    proved(x[:2])
    function = fe.compile(outer_even, vector(), options=CPU)
    function(x)
    with pytest.raises(ValueError, match=r"expected n % 2 == 0, but got n = 65"):
        function(x[:65])


def test_a_size_that_stands_for_a_number_keeps_its_facts() -> None:
    @fe.jit
    def put(x: fe.Tensor, k: fe.Int32):
        x[0] = k

    k = fe.sym_int(min=2, max=6, divisibility=2)
    function = fe.compile(put, vector(max=8), k, options=CPU)
    assert function.signature.text().endswith("requires k % 2 == 0, k >= 2, k <= 6")
    x = np.zeros(3, np.float32)
    function(x, 4)
    assert x[0] == 4
    for number, text in ((3, "k % 2 == 0"), (0, "k >= 2"), (8, "k <= 6")):
        with pytest.raises(ValueError, match=f"expected {text}, but got k = {number}"):
            function(x, number)

    with pytest.raises(CompileError, match="bounds of a number in a tuple"):
        fe.compile(of_a_tuple, vector(), (k, 1), options=CPU)


@fe.jit
def of_a_tuple(x: fe.Tensor, t):
    x[0] = t[0]


def test_a_gpu_computes_in_32_bits_what_a_required_product_allows() -> None:
    m, n = (fe.sym_int(symbol=name) for name in "mn")
    examples = matrix(m, n), matrix(m, n)

    def ptx(*requires: Any) -> Any:
        return fe.compile(scale, *examples, options=GPU, requires=requires).inspect_ptx()

    assert LONG in ptx(m * n <= 1 << 40)
    small = ptx(m * n <= 1 << 20)
    assert LONG not in small and "mad.lo.s32" in small and small.count("setp") == 2
    assert ptx(m * n <= 1 << 20, n <= 4096).count("setp") == 1


REQUIRED = EMULATED.replace("(min=1, max=4096)", "()").replace(
    "options=here.GPU)", "options=here.GPU, requires=[m * n <= 900, n <= 4096])"
)


def test_what_is_required_changes_no_number() -> None:
    assert "requires" in REQUIRED
    run_alone(__file__, REQUIRED)


def test_requirements_decide_branches_and_guards_on_the_cpu() -> None:
    @fe.jit
    def chosen(x: fe.Tensor, y: fe.Tensor):
        n, m = x.shape[0], y.shape[0]
        if n % 8 != 0:
            fe.printf("a rest\n")
        if n > 4096:
            fe.printf("many rows\n")
        for i in range(n):
            if i >= m:
                fe.printf("outside\n")
        return n + m

    n, m = (fe.sym_int64(symbol=name) for name in "nm")
    examples = [fe.make_fake_compact_tensor(fe.Int8, (each,)) for each in (n, m)]
    required = [specs.divisible(n, 8), n <= 4096, n <= m]
    function = fe.compile(chosen, *examples, options=CPU, requires=required)
    free = fe.compile(chosen, *examples, options=CPU)
    for text in ("a rest", "many rows", "outside"):
        assert text in free.inspect_asm() and text not in function.inspect_asm()
    x = np.zeros(4104, np.int8)
    assert function(x[:16], x[:20]) == 36
    for sizes, text in (((9, 20), "n % 8 == 0"), ((4104, 4104), "n <= 4096"), ((8, 7), "n <= m")):
        with pytest.raises(ValueError, match=f"expected {text}"):
            function(x[: sizes[0]], x[: sizes[1]])


def test_a_result_does_not_show_what_is_required_of_the_arguments() -> None:
    @fe.jit
    def twice(x: fe.Tensor):
        y = fe.empty_like(x)
        for i in range(x.shape[0]):
            y[i] = x[i] * 2
        return y

    n = fe.sym_int(symbol="n")
    function = fe.compile(twice, vector(), options=CPU, requires=[n <= 8, n > 0])
    assert str(function.signature) == "twice(x: Tensor([n], float32)) -> Tensor([n], float32)"
    assert function.signature.text().endswith("where n: int32 requires n <= 8, n > 0")
    assert np.from_dlpack(function(np.ones(3, np.float32))).tolist() == [2, 2, 2]


def test_what_no_call_keeps_is_compiled_and_refused() -> None:
    @fe.jit
    def first(x: fe.Tensor):
        return x[0]

    n = fe.sym_int(symbol="n")
    for required in ([n < 0], [n > 5, n < 5], [specs.divisible(n, 16), n > 16, n < 32]):
        function = fe.compile(first, vector(), options=CPU, requires=required)
        with pytest.raises(ValueError, match="Invalid sizes"):
            function(np.zeros(17, np.float32))


def test_free_dtypes_have_the_requirements() -> None:
    @fe.jit
    def first(x: fe.Tensor):
        return x[0]

    n = fe.sym_int(symbol="n", max=8)
    x = fe.make_fake_compact_tensor((fe.Float32, fe.Int32), (n,))
    function = fe.compile(first, x, options=CPU, requires=[specs.require(n > 2, "three")])
    assert function(np.array([5, 6, 7], np.int32)) == 5
    for dtype in (np.float32, np.int32):
        with pytest.raises(ValueError, match=r"x: Tensor\(\[n: \.\.8\], T\).* n = 2: three"):
            function(np.zeros(2, dtype))
        with pytest.raises(ValueError, match="at most 8, but got 9"):
            function(np.zeros(9, dtype))


@pytest.mark.parametrize(
    ("facts", "error", "message"),
    [
        ({"min": 5, "max": 4}, ValueError, "min must be at most max, but got min=5, max=4"),
        (
            {"max": 1 << 31},
            ValueError,
            "max must fit int32, but got 2147483648; use a symbol of 64",
        ),
        (
            {"width": 64, "min": 1 << 63},
            ValueError,
            "min must fit int64, but got 9223372036854775808$",
        ),
        (
            {"min": 17, "max": 31, "divisibility": 16},
            ValueError,
            r"no multiple of 16 is in 17\.\.31",
        ),
        ({"max": 4.0}, TypeError, "max must be an int or None, but got 4.0"),
        ({"min": True}, TypeError, "min must be an int or None, but got True"),
    ],
)
def test_bounds_that_cannot_be(facts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^sym_int: {message}"):
        fe.sym_int(**facts)
