"""Functions compiled for the CPU and called: what the language means, against NumPy and Python."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import matrix, vector

import ferrule as fe

CPU = "--enable-tvm-ffi --target cpu"
THREADS = 64
WEIGHTS = (0.5, 0.25, 0.125)


@fe.kernel
def device_add_one(a: fe.Tensor, b: fe.Tensor):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = bid * 128 + tid
    if i < a.shape[0]:
        b[i] = a[i] + 1.0


@fe.jit
def add_one(a: fe.Tensor, b: fe.Tensor):
    """b = a + 1."""
    n = a.shape[0]
    device_add_one(a, b).launch(grid=((n + 127) // 128, 1, 1), block=(128, 1, 1))


@pytest.fixture(scope="module")
def compiled_add_one() -> Any:
    a = vector(symbol="n")
    return fe.compile(add_one, a, a, options=CPU)


@pytest.mark.parametrize("n", [0, 1, 127, 128, 129, 1000])
def test_add_one(compiled_add_one: Any, n: int) -> None:
    a = np.arange(n, dtype=np.float32)
    b = np.zeros(n + 1, np.float32)
    assert compiled_add_one(a, b[:n]) is None
    np.testing.assert_array_equal(b[:n], a + 1)
    assert b[n] == 0


def test_every_way_to_call(compiled_add_one: Any) -> None:
    a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    compiled_add_one(b=b, a=a)
    np.testing.assert_array_equal(b, a + 1)
    compiled_add_one(tvm_ffi.from_dlpack(b), b=tvm_ffi.from_dlpack(b))
    np.testing.assert_array_equal(b, a + 2)
    assert isinstance(compiled_add_one, tvm_ffi.Function)
    assert "add_one(a: Tensor([n], float32)" in repr(compiled_add_one)
    assert "b = a + 1." in compiled_add_one.__doc__


@pytest.mark.needs_torch
def test_torch_tensors(compiled_add_one: Any) -> None:
    import torch

    a = torch.arange(300, dtype=torch.float32)
    b = torch.nn.Parameter(torch.zeros(300))
    compiled_add_one(a, b)
    assert torch.equal(b.detach(), a + 1)


def test_a_refused_call_runs_nothing(compiled_add_one: Any) -> None:
    a, b = np.ones(128, np.float32), np.zeros(128, np.float32)
    with pytest.raises(ValueError) as caught:
        compiled_add_one(a, b[:126])
    assert str(caught.value) == (
        "Mismatched b.shape[0] on argument #1 when calling: "
        "`add_one(a: Tensor([n], float32), b: Tensor([n], float32))`, "
        "expected to match a.shape[0] = 128, but got 126"
    )
    assert not b.any()


def test_the_traceback_is_short(compiled_add_one: Any) -> None:
    a = np.ones(4, np.float32)
    for call in (lambda: compiled_add_one(a, a[:3]), lambda: compiled_add_one(a, c=a)):
        with pytest.raises((ValueError, TypeError)) as caught:
            call()
        frames, trace = 0, caught.value.__traceback__
        while trace is not None:
            frames, trace = frames + 1, trace.tb_next
        assert frames - 2 <= 3  # without this function's frame and the lambda's


def run(function: Callable[..., Any], *examples: Any) -> Any:
    return fe.compile(function, *examples, options=CPU)


def assign(a, b, c, alpha: fe.Float32):
    c[:] = a[:] * alpha + b[:] / 2


def test_whole_tensors() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((5, 7), dtype=np.float32) for _ in range(2))
    c = np.zeros((5, 7), np.float32)
    run(assign, matrix(), matrix(), matrix(), 1.0)(a, b, c, 3)
    np.testing.assert_allclose(c, a * 3 + b / 2, rtol=1e-6)
    column = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(), fe.sym_int()))
    f = run(assign, column, column, column, 1.0)
    fa, fb, fc = (np.asfortranarray(x) for x in (a, b, np.zeros_like(c)))
    f(fa, fb, fc, alpha=0.5)
    np.testing.assert_allclose(fc, a * 0.5 + b / 2, rtol=1e-6)


def test_whole_tensors_of_unequal_sizes_are_refused_before_anything_runs() -> None:
    f = run(assign, vector(symbol="n"), vector(symbol="m"), vector(symbol="k"), 1.0)
    a, b, c = np.ones(4, np.float32), np.ones(5, np.float32), np.zeros(4, np.float32)
    with pytest.raises(ValueError, match=r"Mismatched b\.shape\[0\]") as caught:
        f(a, b, c, 1.0)
    assert str(caught.value).endswith("expected to match a.shape[0] = 4, but got 5")
    assert not c.any()


def control_flow(a, b, n: fe.Int32):
    total = 0.0
    largest = a[0]
    for i in range(n):
        x = a[i]
        if x > largest:
            largest = x
        elif x < 0:
            x = -x
        total += x
    steps = 0
    while total > 1.0 and steps < 20:
        total = total / 2
        steps += 1
    b[0], b[1], b[2] = total, largest, steps


def test_control_flow() -> None:
    a = np.array([1.5, -2.0, 4.0, 0.25, -8.0], np.float32)
    b = np.zeros(3, np.float32)
    run(control_flow, vector(symbol="n"), vector(symbol="m"), 3)(a, b, 5)
    np.testing.assert_array_equal(b, [15.75 / 16, 4.0, 4])


def downwards(b, start: fe.Int32, stop: fe.Int32, step: fe.Int32):
    count = 0
    last = 0
    for i in range(start, stop, step):
        count += 1
        last = i
    b[0], b[1] = count, last


@pytest.mark.parametrize(
    "bounds",
    [
        (0, 10, 3),
        (10, 0, -3),
        (5, 5, 1),
        (7, 3, 1),
        (0, 2**31 - 1, 2**30),
        (-(2**31), 2**31 - 1, 2**30),
        (2**31 - 1, -(2**31), -(2**30)),
        (2**31 - 2, 2**31 - 1, 7),
    ],
)
def test_range_is_pythons(bounds: tuple[int, int, int]) -> None:
    out = np.zeros(2, np.int64)
    run(downwards, vector(fe.Int64, "n"), 1, 1, 1)(out, *bounds)
    expected = list(range(*bounds))
    assert out.tolist() == [len(expected), expected[-1] if expected else 0]


def test_a_step_of_zero() -> None:
    f = run(downwards, vector(fe.Int64, "n"), 1, 1, 1)
    with pytest.raises(ValueError, match=r"range\(\) arg 3 must not be zero"):
        f(np.zeros(2, np.int64), 0, 3, 0)


def host_division(b, x: fe.Int32, y: fe.Int32):
    b[0] = 1
    b[0] = x // y
    b[1] = x % y


@fe.kernel
def kernel_division(b, x: fe.Int32, y: fe.Int32):
    b[0] = x // y
    b[1] = x % y


def launch_division(b, x: fe.Int32, y: fe.Int32):
    kernel_division(b, x, y).launch(grid=1, block=1)


@pytest.mark.parametrize(
    ("x", "y"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (-(2**31), 3), (2**31 - 1, -1), (0, 5)]
)
def test_division_is_pythons(x: int, y: int) -> None:
    for function in (host_division, launch_division):
        out = np.zeros(2, np.int64)
        run(function, vector(fe.Int64, "n"), 1, 1)(out, x, y)
        assert out.tolist() == [x // y, x % y]


def test_division_never_traps() -> None:
    out = np.full(2, 9, np.int64)
    host, kernel = (run(f, vector(fe.Int64, "n"), 1, 1) for f in (host_division, launch_division))
    with pytest.raises(ZeroDivisionError, match="integer division or modulo by zero"):
        host(out, 7, 0)
    kernel(out, 7, 0)
    assert out.tolist() == [0, 0]
    host(out, -(2**31), -1)
    assert out.tolist() == [-(2**31), 0]


@fe.kernel
def three_dims(a):
    x, y, z = fe.arch.thread_idx()
    bx, by, bz = fe.arch.block_idx()
    dx, dy, dz = fe.arch.block_dim()
    gx, gy, _ = fe.arch.grid_dim()
    i, j, k = bx * dx + x, by * dy + y, bz * dz + z
    if i < a.shape[2] and j < a.shape[1] and k < a.shape[0]:
        a[k, j, i] = i + 100 * j + 10_000 * k + gx - gx + gy - gy


def launch_three_dims(a):
    k, j, i = a.shape
    block = (4, 2, 3)
    grid = tuple((n + b - 1) // b for n, b in zip((i, j, k), block, strict=True))
    three_dims(a).launch(grid=grid, block=block)


def test_three_dims() -> None:
    sizes = [fe.sym_int() for _ in range(3)]
    a = fe.make_fake_compact_tensor(fe.Int32, sizes, stride_order=(2, 1, 0))
    out = np.zeros((5, 7, 9), np.int32)
    run(launch_three_dims, a)(out)
    k, j, i = np.indices(out.shape)
    np.testing.assert_array_equal(out, i + 100 * j + 10_000 * k)


def unrolled(a, b):
    total = 0.0
    for k, weight in enumerate(WEIGHTS):
        total += a[k] * weight
    for k in fe.range_constexpr(2):
        total += [10.0, 20.0][k]
    b[0] = total


def test_compile_time_loops() -> None:
    b = np.zeros(1, np.float32)
    run(unrolled, vector(symbol="n"), vector(symbol="m"))(np.array([2, 4, 8], np.float32), b)
    assert b[0] == 33.0


def gelu_like(x):
    return x * 0.5 if x > 0 else fe.math.exp(x) - 1.0


@fe.kernel
def apply_helper(a, b, helper):
    i = fe.arch.block_idx()[0] * THREADS + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = helper(a[i])


def launch_helper(a, b):
    blocks = fe.ceil_div(a.shape[0], THREADS) if False else (a.shape[0] + THREADS - 1) // THREADS
    apply_helper(a, b, gelu_like).launch(grid=blocks, block=THREADS)


def test_helpers_are_inlined() -> None:
    a = np.linspace(-3, 3, 1001, dtype=np.float32)
    b = np.zeros_like(a)
    n = fe.sym_int()
    x = fe.make_fake_compact_tensor(fe.Float32, (n,))
    run(launch_helper, x, x)(a, b)
    np.testing.assert_allclose(b, np.where(a > 0, a * 0.5, np.exp(a) - 1), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint16"])
def test_dtypes(dtype: str) -> None:
    def plus(a, b):
        b[:] = a[:] + a[:]

    n = fe.sym_int()
    x = fe.make_fake_compact_tensor(dtype, (n,))
    a = np.arange(50).astype(dtype)
    b = np.zeros_like(a)
    run(plus, x, x)(a, b)
    np.testing.assert_array_equal(b, a + a)


def test_a_whole_tensor_is_converted_by_to() -> None:
    def halves(a, b):
        b[:] = (a[:] * 0.5).to(fe.Int32)

    a, b = np.arange(-5, 6, dtype=np.float32), np.zeros(11, np.int32)
    run(halves, vector(), vector(fe.Int32))(a, b)
    np.testing.assert_array_equal(b, (a * 0.5).astype(np.int32))


def maths(a, b):
    b[0] = fe.math.exp(a[0])
    b[1] = fe.math.sqrt(a[0])
    b[2] = fe.math.rsqrt(a[0])
    b[3] = fe.math.max(a[0], 2.0)
    b[4] = min(a[0], a[1], 5.0)
    b[5] = abs(-a[0])
    b[6] = fe.math.exp(1.0)


@pytest.mark.parametrize("dtype", [fe.Float32, fe.Float64])
def test_maths(dtype: Any) -> None:
    a = np.array([1.75, 9.0], dtype.name)
    b = np.zeros(7, dtype.name)
    run(maths, vector(dtype, "n"), vector(dtype, "m"))(a, b)
    x = a[0]
    expected = [np.exp(x), np.sqrt(x), 1 / np.sqrt(x), 2.0, 1.75, 1.75, np.e]
    np.testing.assert_allclose(b, expected, rtol=3e-7 if dtype is fe.Float32 else 1e-15)


@fe.kernel
def nothing(a):
    pass


def launches(a, gx: fe.Int64, gy: fe.Int64, gz: fe.Int64, bx: fe.Int64, by: fe.Int64, bz: fe.Int64):
    nothing(a).launch(grid=(gx, gy, gz), block=(bx, by, bz))


@pytest.mark.parametrize(
    ("sizes", "match"),
    [
        ((1, 1, 1, 0, 1, 1), r"expected block x to be in \[1, 1024\], but got 0"),
        ((0, 1, 1, 0, 1, 1), r"expected block x to be in \[1, 1024\], but got 0"),
        ((1, 1, 1, 1025, 1, 1), r"block x to be in \[1, 1024\], but got 1025"),
        ((1, 1, 1, 1, 1, 65), r"block z to be in \[1, 64\], but got 65"),
        ((1, 1, 1, 32, 32, 2), r"at most 1024 threads a block, but got 2048 \(block 32, 32, 2\)"),
        ((-1, 1, 1, 1, 1, 1), r"grid x to be in \[0, 2147483647\], but got -1"),
        ((2**31, 1, 1, 1, 1, 1), r"grid x to be in \[0, 2147483647\], but got 2147483648"),
        ((1, 65536, 1, 1, 1, 1), r"grid y to be in \[0, 65535\], but got 65536"),
    ],
)
def test_launch_limits(sizes: tuple[int, ...], match: str) -> None:
    f = run(launches, vector(symbol="n"), *[1] * 6)
    with pytest.raises(fe.LaunchError, match=match):
        f(np.zeros(1, np.float32), *sizes)
    assert issubclass(fe.LaunchError, RuntimeError)


@fe.kernel
def marks(a: fe.Tensor):
    a[0] += 1.0


def launches_marks(a, gx: fe.Int64, gy: fe.Int64):
    marks(a).launch(grid=(gx, gy), block=1)


@pytest.mark.parametrize(("grid", "wanted"), [((0, 1), 0), ((1, 0), 0), ((0, 0), 0), ((1, 1), 1)])
def test_a_zero_grid_launches_nothing(grid: tuple[int, int], wanted: int) -> None:
    a = np.zeros(1, np.float32)
    run(launches_marks, vector(symbol="n"), 1, 1)(a, *grid)
    assert a[0] == wanted


def constant_launch(a):
    nothing(a).launch(grid=1, block=4096)


def test_a_constant_launch_past_the_limits_is_an_error_of_the_call() -> None:
    f = run(constant_launch, vector(symbol="n"))
    with pytest.raises(fe.LaunchError, match="block x to be in .* but got 4096"):
        f(np.zeros(1, np.float32))


def big_launch(a):
    n = a.shape[0]
    nothing(a).launch(grid=n * n * n, block=1)


def test_a_launch_size_never_wraps() -> None:
    n = fe.sym_int64()
    a = fe.make_fake_tensor(fe.Float32, (n,), (0,))
    f = run(big_launch, a)
    x = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2**22,), (0,))
    view = tvm_ffi.from_dlpack(np.zeros(1, np.float32))
    del view
    with pytest.raises(fe.LaunchError, match="grid x"):
        f(x)


def test_defaults_and_keywords() -> None:
    def scale(a, alpha: fe.Float32 = 2.0, *, offset: fe.Int32 = 1):
        a[0] = a[0] * alpha + offset

    f = run(scale, vector(symbol="n"))
    assert str(f.signature) == "scale(a: Tensor([n], float32), alpha: float32 = 2.0, " + (
        "*, offset: int32 = 1)"
    )
    a = np.array([3], np.float32)
    f(a)
    assert a[0] == 7
    f(a, 0.5, offset=0)
    assert a[0] == 3.5
    with pytest.raises(TypeError, match=r"scale\(\) got an unexpected keyword argument 'beta'"):
        f(a, beta=1)
    with pytest.raises(TypeError, match=r"scale\(\) missing 1 required positional argument: 'a'"):
        f(alpha=1)


def test_calling_a_jit_function_compiles_once_for_its_arguments() -> None:
    a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    add_one(a, b)
    np.testing.assert_array_equal(b, a + 1)
    before = len(add_one._compiled)
    add_one(b, b=a)
    np.testing.assert_array_equal(a, b + 1)
    assert len(add_one._compiled) == before
    add_one(np.ones(3, np.float32), np.ones(3, np.float32))
    assert len(add_one._compiled) == before + 1


def test_threads_compile_at_once() -> None:
    """Eight threads, each its own function; nothing is shared, so nothing can be mixed up."""
    results: dict[int, Any] = {}

    def work(k: int) -> None:
        def add_k(a, b):
            b[:] = a[:] + k

        n = fe.sym_int()
        x = fe.make_fake_compact_tensor(fe.Float32, (n,))
        for _ in range(3):
            a, b = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
            run(add_k, x, x)(a, b)
            results[k] = b - a

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {k: set(r.tolist()) for k, r in results.items()} == {k: {float(k)} for k in range(8)}


def test_inspection(compiled_add_one: Any) -> None:
    assert compiled_add_one.inspect_ir().startswith("program @add_one {")
    assert "@__tvm_ffi_add_one" in compiled_add_one.inspect_llvm().replace('"', "")
    assert "__tvm_ffi_add_one:" in compiled_add_one.inspect_asm()


@pytest.mark.needs_cc
def test_export_and_load(compiled_add_one: Any, tmp_path: Any) -> None:
    compiled_add_one.export_library(tmp_path / "libk.so", function_name="plus_one")
    module = tvm_ffi.load_module(str(tmp_path / "libk.so"))
    a, b = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    module["plus_one"](a, b)
    np.testing.assert_array_equal(b, a + 1)
    with pytest.raises(ValueError, match="plus_one\\(a: Tensor"):
        module["plus_one"](a, b[:3])


def test_the_same_input_gives_the_same_bytes(tmp_path: Any) -> None:
    a = vector(symbol="n")
    for name in ("one.o", "two.o"):
        fe.compile(add_one, a, a, options=CPU).export_to_c(tmp_path / name)
    assert (tmp_path / "one.o").read_bytes() == (tmp_path / "two.o").read_bytes()


def test_a_function_outlives_its_name(compiled_add_one: Any) -> None:
    a = vector(symbol="n")
    alone = tvm_ffi.convert(fe.compile(add_one, a, a, options=CPU))
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    alone(x, y)
    assert y.tolist() == [2, 2, 2]


def test_marked_functions_are_copied_and_pickled_as_functions_are() -> None:
    for each in (add_one, device_add_one):
        assert copy.copy(each) is each
        assert copy.deepcopy([each])[0] is each
        assert pickle.loads(pickle.dumps(each)) is each


@dataclass
class Options:
    scale: fe.Int32


SCALED = Options(fe.Int32(9))


def test_defaults_without_a_hash() -> None:
    @fe.jit
    def scaled(n: fe.Int32, options: Options = SCALED, more=[1, 2]):  # noqa: B006
        return n * options.scale + len(more)

    assert (scaled(2), scaled(2, Options(fe.Int32(3)))) == (20, 8)
    SCALED.scale = fe.Int32(4)
    assert scaled(2) == 10
    SCALED.scale = fe.Int32(9)


def test_ranges_of_uint64() -> None:
    @fe.jit
    def counted(a: fe.Uint64, b: fe.Uint64, step: fe.Uint64):
        found = fe.Int32(0)
        for _ in range(a, b, step):
            found += 1
            if found == 5:
                break
        return found

    built = fe.compile(counted, fe.Uint64, fe.Uint64, fe.Uint64, options=CPU)
    assert [built(2, 9, 3), built(0, 2**63 - 1, 1), built(3, 3, 2)] == [3, 5, 0]
    for wrong in ((0, 2**64 - 2, 1), (2**63, 2**63 + 1, 1), (0, 1, 2**64 - 1)):
        with pytest.raises(ValueError, match="less than 2\\*\\*63"):
            built(*wrong)

    @fe.jit
    def known(n: fe.Int32):
        for _ in range(fe.Uint64(2**63)):
            n += 1
        return n

    with pytest.raises(fe.CompileError, match="range gets 9223372036854775808"):
        fe.compile(known, fe.Int32, options=CPU)


def test_ranges_of_uint64_in_kernels_go_to_the_last_int64() -> None:
    @fe.kernel
    def counting(out: fe.Tensor, a: fe.Uint64, b: fe.Uint64):
        found = fe.Int64(0)
        for _ in range(a, b):
            found += 1
            if found == 5:
                break
        out[0] = found

    @fe.jit
    def counted(out: fe.Tensor, a: fe.Uint64, b: fe.Uint64):
        counting(out, a, b).launch(grid=1, block=1)

    def found(a: int, b: int) -> int:
        out = np.zeros(1, np.int64)
        counted(out, a, b)
        return int(out[0])

    assert [found(2, 4), found(3, 2**64 - 1), found(2**63 - 3, 2**63 + 9)] == [2, 5, 2]
    assert [found(2**63, 2**63 + 1), found(2**64 - 1, 3)] == [0, 0]
