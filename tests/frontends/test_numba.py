"""Functions of Numba on the CPU: called without Numba, with their own errors."""

from __future__ import annotations

import ctypes
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_python import called_bare
from pages import run_page

import ferrule as fe
from ferrule import specs
from ferrule.compiler import BuildWarning
from ferrule.compiler.errors import CompileError
from ferrule.frontends import numba as frontend
from ferrule.frontends.numba import host, linking
from ferrule.specs import Scalar, Signature, Tensor, Tuple

numba = pytest.importorskip("numba", reason="Numba is not installed")

N, M = fe.sym_int(symbol="n"), fe.sym_int(symbol="m")


def vector(name: str, dtype: str = "float32", **more: Any) -> Tensor:
    return Tensor(name, (N,), dtype, **more)


def weigh(x, y, a):
    """Adds a times x to y; the sum of what comes out."""
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] < 0:
                raise ValueError("a weight is negative")
            y[i, j] += a * x[i, j]
            total += y[i, j]
    return total


def strided(name: str) -> Tensor:
    strides = [specs.sym_int64(), specs.sym_int64()]
    return Tensor(name, (N, M), "float32", strides=strides)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).random(shape, np.float32)


# ---- njit ----


def counted(x, h):
    for i in range(x.size):
        h[int(x[i])] += 1


def test_results_are_filled_with_zeros_where_the_function_adds_to_them() -> None:
    x, h = Tensor("x", (N,), "float64"), Tensor("h", (4,), "int64")
    fn = frontend.compile(counted, x, h, results=["h"], zero=["h"])
    for _ in range(3):
        assert np.from_dlpack(fn(np.array([0.0, 3.0, 3.0]))).tolist() == [1, 0, 0, 2]
    steps = fn.inspect_ir()
    assert steps.index("allocate h: int64[4]") < steps.index("fill h with zeros")
    assert steps.index("fill h with zeros") < steps.index("call ") < steps.index("return h")
    with pytest.raises(ValueError, match="zero names 'x', expected a result: h"):
        frontend.compile(counted, x, h, results=["h"], zero=["x"])


def test_bounds_and_requirements_are_checked() -> None:
    n = fe.sym_int(symbol="n", max=3)
    x, h = Tensor("x", (n,), "float64"), Tensor("h", (M,), "int64")
    fn = frontend.compile(counted, x, h, requires=[specs.require(M > n, "one bin more")])
    out = np.zeros(4, np.int64)
    fn(np.array([0.0, 3.0, 3.0]), out)
    assert out.tolist() == [1, 0, 0, 2]
    with pytest.raises(ValueError, match="at most 3, but got 4"):
        fn(np.zeros(4), out)
    with pytest.raises(ValueError, match="expected m > n, but got m = 2, n = 2: one bin more"):
        fn(np.zeros(2), out[:2])


def test_arrays_of_any_strides_and_numbers_are_those_of_numba() -> None:
    fn = frontend.compile(weigh, Tensor("x", (N, M), "float32"), strided("y"), fe.Float32)
    assert str(fn.signature) == (
        "weigh(x: Tensor([n, m], float32), y: Tensor([n, m], float32), a: float32) -> float64"
    )
    assert fn.__doc__ is not None and "Adds a times x to y" in fn.__doc__
    x, y = floats(3, 4), floats(4, 3).T
    wanted = y.copy()
    total = weigh(x, wanted, np.float32(2.0))
    assert fn(x, y, 2.0) == pytest.approx(total, rel=1e-6)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)
    assert fn.__doc__ is not None and "Adds a times x to y" in fn.__doc__


def test_an_exception_is_the_error_of_the_call() -> None:
    fn = frontend.compile(weigh, strided("x"), strided("y"), fe.Float32)
    with pytest.raises(ValueError, match="^a weight is negative") as error:
        fn(-floats(2, 2), floats(2, 2), 1.0)
    assert (error.traceback[-1].path, error.traceback[-1].name) == (Path(__file__), "weigh")
    divide = frontend.compile(lambda a, b: a // b, fe.Int64, fe.Int64, name="divide")
    assert divide(7, 2) == 3
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)


def test_of_an_exception_made_of_values_the_class_and_what_is_constant_are_told() -> None:
    def check(n):
        if n > 3:
            raise KeyError("too much", n)
        return n

    fn = frontend.compile(check, fe.Int64)
    assert fn(3) == 3
    with pytest.raises(KeyError, match="too much, the rest of check's message is made of values"):
        fn(4)


class Own(KeyError):
    """An exception that callers know nothing of."""


def test_an_exception_of_a_class_of_ones_own_is_what_that_is_made_of() -> None:
    def check(n):
        if n > 3:
            raise Own("too much")
        return n

    with pytest.raises(KeyError, match="Own: too much"):
        frontend.compile(check, fe.Int64)(4)


def test_a_backslash_in_what_describes_an_exception_is_one_byte() -> None:
    text = '@.const.pickledata.ab.10 = internal constant [3 x i8] c"a\\\\\\0A", align 1'
    ((found,),) = [[each[2] for each in host._EXCEPTION.finditer(text)]]
    assert host._ESCAPE.sub(host._unescaped, found.encode()) == b"a\\\n"


def test_statements_on_whole_arrays_need_no_python() -> None:
    def scaled(x, out):
        out[1:] = x[::2]

    fn = frontend.compile(scaled, vector("x"), Tensor("out", (M,), "float32"))
    x, out = np.full(6, 2, np.float32), np.zeros(4, np.float32)
    fn(x, out)
    assert out.tolist() == [0, 2, 2, 2]
    with pytest.raises(ValueError, match="made of values"):
        fn(x, np.zeros(9, np.float32))


def test_a_function_with_a_signature_of_its_own_is_compiled_for_others() -> None:
    def more(n):
        return n + 1

    eager = numba.njit("int64(int64)")(more)
    assert frontend.compile(eager, int)(3) == frontend.compile(eager, "int8")(3) == 4


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "bool"])
def test_numbers_keep_their_width(dtype: str) -> None:
    fn = frontend.compile(lambda value: value, dtype, name="same")
    assert str(fn.signature) == f"same(value: {dtype}) -> {dtype}"
    low = {"int8": -128, "uint16": 65535, "int64": -(1 << 63)}.get(dtype, 1)
    assert fn(low) == low


def test_functions_that_call_themselves_and_each_other() -> None:
    @numba.njit
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    assert frontend.compile(fib, fe.Int64)(10) == 55
    text = '@".numba.unresolved$_Z3odd" = external local_unnamed_addr global ptr'
    defined = "define i32 @_Z3odd(ptr %r) {\n  ret i32 0\n}\n"
    assert linking._resolved(f"{text}\n{defined}").startswith(
        '@".numba.unresolved$_Z3odd" = internal constant ptr @"_Z3odd"\n'
    )
    assert linking._resolved(text) == text


def test_what_numba_has_in_its_cache_is_compiled_again(tmp_path: Path) -> None:
    source = """\
import numba

@numba.njit("int64(int64)", cache=True)
def more(n):
    return n + 1

@numba.cfunc("int64(int64)", cache=True)
def less(n):
    return n - 1
"""
    (tmp_path / "kept.py").write_text(source, encoding="ascii")
    signature = Signature("less", [Scalar("n", "int64")])
    for hits in (0, 1):
        module = runpy.run_path(str(tmp_path / "kept.py"))
        assert sum(module["more"].stats.cache_hits.values()) == hits
        assert frontend.compile(module["more"], int)(3) == 4
        assert frontend.cfunc(module["less"], signature)(3) == 2


def test_addresses_of_this_process_are_no_part_of_a_function() -> None:
    large, labs = np.zeros(200_000), ctypes.CDLL(None).labs
    labs.argtypes = [labs.restype]
    for function in (lambda n: large[n], lambda n: labs(n)):
        with pytest.raises(CompileError, match="uses an address of this process"):
            frontend.compile(function, int, name="f")
    absolute = numba.types.ExternalFunction("labs", numba.int64(numba.int64))
    assert frontend.compile(lambda n: absolute(n), int, name="f")(-3) == 3


def test_tuples_are_their_items() -> None:
    def total(pair, bonus):
        return pair[0] + pair[1] + bonus

    pair = Tuple("pair", (Scalar("0", "int32"), Scalar("1", "float64")))
    assert frontend.compile(total, pair, fe.Uint8)((3, 4.5), 250) == 257.5


def test_arrays_that_it_makes_need_no_runtime_and_are_freed() -> None:
    def centred(x):
        shifted = x - x.mean()
        return (shifted * shifted).sum()

    fn = frontend.compile(centred, vector("x", "float64"))
    x = np.arange(10.0)
    assert fn(x) == pytest.approx(centred(x))
    before = _resident()
    for _ in range(200):
        fn(np.ones(100_000))
    assert _resident() - before < 50_000_000


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096


def test_results_are_allocated() -> None:
    @numba.njit(fastmath=True)
    def square(x, out):
        for i in range(x.size):
            out[i] = x[i] ** 2

    fn = frontend.compile(square, vector("x"), vector("out"), results=["out"])
    assert str(fn.signature) == "square(x: Tensor([n], float32)) -> Tensor([n], float32)"
    assert np.from_dlpack(fn(np.arange(4, dtype=np.float32))).tolist() == [0, 1, 4, 9]


def test_compact_arrays_get_another_shape_without_the_runtime() -> None:
    def picked(x, rows, i, j):
        return x.reshape((rows, -1))[i, j]

    matrix = Tensor("x", (N, M), "float32")
    fn = frontend.compile(picked, matrix, fe.Int64, fe.Int64, fe.Int64)
    x = floats(6, 4)
    for rows, i, j in ((1, 0, 17), (3, 2, 5), (8, 7, 1), (24, 23, 0)):
        assert fn(x, rows, i, j) == picked(x, rows, i, j)
    with pytest.raises(ValueError, match="total size of new array must be unchanged"):
        fn(x, 5, 0, 0)
    columns = Tensor("x", (N, M), "float32", strides=(1, N))
    by_columns = frontend.compile(picked, columns, fe.Int64, fe.Int64, fe.Int64)
    with pytest.raises(NotImplementedError, match="incompatible shape"):
        by_columns(np.asfortranarray(x), 3, 0, 0)


def test_a_constant_is_a_result() -> None:
    assert frontend.compile(lambda n: -7, int, name="f")(2) == -7
    assert frontend.compile(lambda n: True, int, name="f")(2) is True


def test_functions_of_mathematics_are_those_of_c() -> None:
    def curve(x):
        return math.erf(x) + math.sin(x) + math.lgamma(x) + x**1.5

    fn = frontend.compile(curve, fe.Float64)
    assert fn(1.25) == pytest.approx(curve(1.25))


# ---- C functions ----


@numba.cfunc("float64(CPointer(float32), int32, float64)")
def scaled_sum(x, n, a):
    total = 0.0
    for i in range(n):
        total += a * x[i]
    return total


@numba.cfunc("int64(int64, int64)")
def quotient(a, b):
    return a // b


SIGNATURE = Signature("scaled_sum", [vector("x"), Scalar("a", "float32")])
ARGUMENTS = [SIGNATURE["x"].data, N, SIGNATURE["a"]]


@pytest.mark.parametrize("linked", [True, False])
def test_a_c_function_gets_what_it_was_made_for(linked: bool) -> None:
    fn = frontend.cfunc(scaled_sum, SIGNATURE, ARGUMENTS, linked=linked)
    assert fn(np.arange(5, dtype=np.float32), 0.5) == 5.0
    with pytest.raises((TypeError, ValueError), match="Mismatched .*expected dtype=float32"):
        fn(np.zeros(5), 0.5)


def test_a_linked_c_function_raises_what_an_address_loses() -> None:
    signature = Signature("quotient", [Scalar("a", "int64"), Scalar("b", "int64")])
    fn = frontend.cfunc(quotient, signature)
    assert fn(-7, 2) == -4
    with pytest.raises(ZeroDivisionError):
        fn(1, 0)


def test_an_address_is_not_exported(tmp_path: Path) -> None:
    fn = frontend.cfunc(scaled_sum, SIGNATURE, ARGUMENTS, linked=False)
    with pytest.raises(LookupError, match="it calls the address"):
        fn.export_to_c(tmp_path / "scaled_sum.o")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (None, "scaled_sum takes 3 arguments, but there are 2"),
        ([N, N, N], r"argument #0 of scaled_sum is n\n  expected: a pointer, float32\*"),
        ([vector("x", "float64").data, N, 1.0], "argument #0 of scaled_sum is x.data"),
        ([SIGNATURE["x"].data, SIGNATURE["x"], 1.0], "argument #1 of scaled_sum is x"),
        ([SIGNATURE["x"].data, 1.5, 1.0], "a float cannot become int32"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: Any, said: str) -> None:
    with pytest.raises((CompileError, TypeError), match=said):
        frontend.cfunc(scaled_sum, SIGNATURE, arguments)


# ---- without Numba ----


@pytest.mark.needs_cc
def test_what_is_exported_needs_neither_ferrule_nor_numba(tmp_path: Path) -> None:
    fn = frontend.compile(weigh, Tensor("x", (N, M), "float32"), strided("y"), fe.Float32)
    fn.export_to_c(tmp_path / "weigh.o")
    code = """
x = numpy.ones((2, 3), "float32")
print(module.get_function("weigh")(x, x.copy(), 2.0))
try:
    module.get_function("weigh")(-x, x, 2.0)
except ValueError as error:
    print(error)
"""
    printed = called_bare([tmp_path / "weigh.o"], "numba", code)
    assert printed.splitlines() == ["18.0", "a weight is negative"]


def test_the_page_runs(tmp_path: Path) -> None:
    run_page("frontends_numba.md", tmp_path, without="numba-cuda")


# ---- what is refused ----


def test_what_needs_python_is_refused() -> None:
    def as_dict(n):
        return {n: n}[n]

    def drawn(n):
        return np.random.rand() * n

    for function in (as_dict, drawn):
        with pytest.raises(CompileError, match=f"{function.__name__} needs .* a part of Python"):
            frontend.compile(function, fe.Int64)


def test_a_function_that_numba_refuses_is_a_compile_error_with_its_words() -> None:
    def wrong(x):
        return x.no_such

    with pytest.raises(CompileError, match="(?s)Numba cannot compile wrong: .*no_such"):
        frontend.compile(wrong, vector("x"))


@pytest.mark.parametrize(
    ("examples", "more", "said"),
    [
        ((), {}, "the examples do not fit: expected 1, but got 0"),
        ((object(),), {}, "the example of the parameter 'x' is <object"),
        ((vector("y"),), {}, "the spec of the parameter 'x' has the name 'y'"),
        ((Scalar("x", "bfloat16"),), {}, "the parameter 'x' is of bfloat16, which Numba does not"),
        ((specs.String("x"),), {}, "is a String, which Numba has no type for"),
        ((vector("x"),), {"results": ["y"]}, "results names 'y'\n  expected: an array: x"),
        ((vector("x"),), {"grid": 1}, "grid and block are for kernels"),
    ],
)
def test_what_does_not_fit_is_refused(examples: Any, more: Any, said: str) -> None:
    def function(x):
        return None

    with pytest.raises(CompileError, match=said):
        frontend.compile(function, *examples, **more)


@numba.njit(parallel=True)
def threaded_sum(x):
    total = 0.0
    for i in numba.prange(x.size):
        total += x[i]
    return total


def test_threads_of_numba_inside_are_refused() -> None:
    def twice(x):
        return 2 * threaded_sum(x)

    with pytest.raises(CompileError, match="a function that it calls has parallel=True"):
        frontend.compile(twice, vector("x"))


def or_none(n):
    return n if n > 2 else None


def pair_or_none(n):
    return (n, n) if n > 2 else None


@pytest.mark.parametrize(
    ("function", "example", "said"),
    [
        (lambda n: complex(n, 1), fe.Int64, "returns a complex128 of Numba"),
        (lambda n: "text", fe.Int64, "of Numba"),
        (or_none, fe.Uint64, r"returns a OptionalType\(uint64\) of Numba"),
        (pair_or_none, fe.Int64, r"OptionalType\(UniTuple\(int64 x 2\)\) of Numba"),
    ],
)
def test_a_result_without_a_counterpart_is_refused(function: Any, example: Any, said: str) -> None:
    with pytest.raises(CompileError, match=f"{said}\n  expected: nothing, numbers, arrays"):
        frontend.compile(function, example, name="f")


def test_returned_arrays_are_copies_that_outlive_all() -> None:
    def views(x, i):
        y = x[1:] if i else x[:0]
        return x, y, x[::-1, 0], (x.T, 7, True)

    fn = frontend.compile(views, Tensor("x", (N, M), "complex128"), int)
    assert str(fn.signature).endswith(
        "-> Tuple[Tensor([n0, n1], complex128), Tensor([n2, n3], complex128), "
        "Tensor([n4], complex128), Tuple[Tensor([n5, n6], complex128), int64, bool]]"
    )
    assert fn.__doc__ is None or "argument #" not in fn.__doc__
    x = np.arange(24, dtype=np.float64).view(np.complex128).reshape(4, 3)
    wanted = [x.copy(), x[1:].copy(), x[::-1, 0].copy(), x.T.copy()]
    *three, (last, seven, yes) = fn(x, 1)
    del fn
    x[:] = 0
    for got, each in zip([*three, last], wanted, strict=True):
        np.testing.assert_array_equal(np.from_dlpack(got), each)
    assert (seven, yes) == (7, True)


def test_what_may_be_none_is_a_value_of_any_kind() -> None:
    def perhaps(x, i):
        number = None
        if i > 0:
            number = x[0]
        rest = None
        if i > 1:
            rest = x[i:]
        return np.int8(i), number, rest, i > 2

    fn = frontend.compile(perhaps, vector("x"), int)
    assert str(fn.signature).endswith("-> Tuple[int8, Any, Any, bool]")
    x = np.arange(5, dtype=np.float32)
    assert fn(x, 0) == (0, None, None, False)
    assert fn(x, 1) == (1, 0.0, None, False)
    *_, rest, more = fn(x, 3)
    assert more is True and np.from_dlpack(rest).tolist() == [3, 4]
    alone = frontend.compile(lambda x, i: x[i:] if i else None, vector("x"), int, name="f")
    assert alone(x, 0) is None and np.from_dlpack(alone(x, 3)).tolist() == [3, 4]


def test_memory_of_results_goes_with_them_and_after_errors() -> None:
    def made(x, wrong):
        y, z = x * 2, [x + 1, x + 2]
        if wrong:
            raise ValueError("wrong")
        return y, z[1] if y[0] > 1 else None

    fn = frontend.compile(made, vector("x", "float64"), bool)
    x = np.ones(100_000)
    fn(x, False)
    before = _resident()
    for _ in range(200):
        y, z = fn(x, False)
    assert (np.from_dlpack(y)[-1], np.from_dlpack(z)[-1]) == (2, 3)
    assert _resident() - before < 50_000_000
    with pytest.raises(ValueError, match="wrong"):
        fn(x, True)


def test_what_is_no_function_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="expected a Python function, or one of Numba's"):
        frontend.compile(scaled_sum, fe.Int64)
    with pytest.raises(TypeError, match="frontends.numba.cfunc is for C functions"):
        frontend.compile(scaled_sum, fe.Int64)
    with pytest.raises(TypeError, match="call it in a loop of a function with @numba.njit"):
        frontend.compile(numba.vectorize(lambda x: x), fe.Int64)
    with pytest.raises(TypeError, match="expected a function with @numba.cfunc"):
        frontend.cfunc(weigh, SIGNATURE)


def summed(x, y):
    for i in range(x.size):
        y[i] += x[i]


def weighted(a, b, k=2.0, n=3):
    return a * b * k * n


def test_real_arrays_that_were_of_one_size_stay_so() -> None:
    fn = frontend.compile(summed, np.zeros(4), np.zeros(4))
    y = np.ones(3)
    fn(np.arange(3.0), y)
    assert y.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"Mismatched y.shape\[0\] on argument #1"):
        fn(np.zeros(10), np.zeros(2))


def test_numbers_are_examples_and_defaults_stay() -> None:
    fn = frontend.compile(weighted, 2, 2.0)
    assert str(fn.signature) == (
        "weighted(a: int64, b: float64, k: float64 = 2.0, n: int64 = 3) -> float64"
    )
    assert (fn(1, 1.0), fn(1, 1.0, 1.0), fn(1, 1.0, n=1)) == (6.0, 3.0, 2.0)
    fn = frontend.compile(weighted, np.int8(2), True, np.float32(1), "int16")
    assert str(fn.signature).startswith(
        "weighted(a: int8, b: bool, k: float32 = 2.0, n: int16 = 3)"
    )
    with pytest.raises(CompileError, match="expected 2 to 4, but got 1"):
        frontend.compile(weighted, 2)


def test_a_default_in_front_of_an_array_that_has_none_is_dropped() -> None:
    def scaled(x, k=2.0, out=None):
        out[0] = x * k

    fn = frontend.compile(scaled, 1.0, 3.0, np.zeros(2))
    assert str(fn.signature) == "scaled(x: float64, k: float64, out: Tensor([n0], float64))"


def test_a_result_that_is_added_to_is_remarked() -> None:
    x, y = (Tensor(name, (specs.sym_int32(symbol="m"),), "float64") for name in "xy")
    with pytest.warns(BuildWarning, match=r"y is a result that the function adds to.*zero=\['y'\]"):
        fn = frontend.compile(summed, x, y, results=["y"])
    assert len(fn.notes["remarks"]) == 1
    assert "remarks" not in frontend.compile(summed, x, y, results=["y"], zero=True).notes


def test_a_result_that_is_read_before_it_is_written_is_remarked() -> None:
    def read_first(x, y):
        for i in range(x.shape[0]):
            y[i] = y[i] + x[i]

    def written_first(x, y):
        y[0] = 0
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] + x[i]

    x, y = (Tensor(name, (specs.sym_int32(symbol="m"),), "float64") for name in "xy")
    wanted = "y is a result that the function reads before it writes to it, and begins with"
    with pytest.warns(BuildWarning, match=wanted):
        frontend.compile(read_first, x, y, results=["y"])
    assert "remarks" not in frontend.compile(written_first, x, y, results=["y"]).notes
    assert "remarks" not in frontend.compile(read_first, x, y, results=["y"], zero=["y"]).notes


@pytest.mark.parametrize(
    ("needed", "said"),
    [("numba_xxgetrf", "LAPACK"), ("numba_parallel_for", "parallel=True"), ("Py_X", "no dicts")],
)
def test_what_is_needed_of_the_runtime_says_what_to_do(needed: str, said: str) -> None:
    assert said in linking._hint(needed)


SCALE = 3


def test_globals_and_closures_are_said_and_stay() -> None:
    table = np.arange(4.0)

    def looked_up(x):
        for i in range(x.shape[0]):
            x[i] = table[i] * SCALE

    fn = frontend.compile(looked_up, Tensor("x", (specs.sym_int32(symbol="m"),), "float64"))
    table[:] = 0
    x = np.zeros(4)
    fn(x)
    assert x.tolist() == [0, 3, 6, 9]
    said = "table = float64 array of shape (4,), SCALE = 3"
    assert said in [each.partition(": ")[2] for each in fn.notes["assumes"]]
    assert said in str(fn.__doc__)


# ---- arrays that are only read ----


def doubled(x, out):
    for i in range(x.shape[0]):
        out[i] = 2 * x[i]


def set_first(x):
    x[0] = 1.0


def frozen(count: int) -> np.ndarray:
    made = np.arange(count, dtype=np.float32)
    made.flags.writeable = False
    return made


def test_a_read_only_example_is_only_read() -> None:
    out = np.zeros(3, np.float32)
    fn = frontend.compile(doubled, frozen(3), vector("out"))
    assert fn.signature["x"].read_only
    for given in (frozen(3), np.arange(3, dtype=np.float32)):
        fn(given, out)
        np.testing.assert_array_equal(out, [0, 2, 4])


def test_code_that_writes_to_a_read_only_example_is_refused() -> None:
    with pytest.raises(CompileError, match="(?i)readonly"):
        frontend.compile(set_first, frozen(3))


def test_a_result_may_have_a_read_only_example() -> None:
    fn = frontend.compile(doubled, vector("x"), vector("out"), results=["out"])
    like = frontend.compile(doubled, frozen(3), frozen(3), results=["out"])
    given = np.arange(3, dtype=np.float32)
    for each in (fn, like):
        np.testing.assert_array_equal(np.from_dlpack(each(given)), 2 * given)
