"""A loop with wishes has the bits of the loop without: the order of floats is the program's.

LLVM reorders a sum whose loop has a width of vectors, also one of which every iteration reads and
writes one element, in a fragment or a tensor, and whose bits travel as an integer.
"""

from typing import Any

import numpy as np
import pytest

import ferrule as fe

WISHES = [{"vectorize": 16, "unroll": 2}, {"vectorize": 8}]
CANCELLING = np.array([1e8] + [1.0] * 999 + [-1e8], np.float32)
"""0 in order, 1008 in lanes of 16."""


def vector(dtype=fe.Float32):
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(),))


def carried(a, o, width, unroll):
    total = 0.0
    for i in fe.range(a.shape[0], vectorize=width, unroll=unroll):
        total += a[i]
    o[0] = total


def in_fragment(a, o, width, unroll):
    f = fe.make_fragment(1, fe.Float32)
    f[0] = 0.0
    for i in fe.range(a.shape[0], vectorize=width, unroll=unroll):
        f[0] += a[i]
    o[0] = f[0]


def in_fragment_by_index(a, o, width, unroll):
    f = fe.make_fragment(1, fe.Float32)
    f[0] = 0.0
    for i in fe.range(a.shape[0], vectorize=width, unroll=unroll):
        f[i & 0] = f[i * 0] + a[i]
    o[0] = f[0]


def in_tensor(a, o, width, unroll):
    o[0] = 0.0
    for i in fe.range(a.shape[0], vectorize=width, unroll=unroll):
        o[0] += a[i]


def in_tensor_that_moves_back(a, o, width, unroll):
    o[0] = 0.0
    for i in fe.range(a.shape[0], vectorize=width, unroll=unroll):
        part = fe.domain_offset((-i,), o)
        part[i] += a[i]


def as_integer(a, o, width, unroll):
    f = fe.make_fragment(1, fe.Float32)
    f[0] = 0.0
    bits = f.recast(fe.Uint32)
    word = bits[0]
    for i in fe.range(a.shape[0], vectorize=width, unroll=unroll):
        bits[0] = word
        f[0] = f[0] + a[i]
        word = bits[0]
    bits[0] = word
    o[0] = f[0]


def in_the_loop_inside(a, o, width, unroll):
    total = 0.0
    for i in fe.range(a.shape[0], vectorize=width, unroll=unroll):
        for _ in range(2):
            total += a[i] * 0.5
    o[0] = total


def differences(a, o, width, unroll):
    total = 0.0
    for i in fe.range(a.shape[0], vectorize=width, unroll=unroll):
        total = total - a[i]
    o[0] = total


SUMS = [
    *(carried, in_fragment, in_fragment_by_index, in_tensor, in_tensor_that_moves_back),
    *(as_integer, in_the_loop_inside, differences),
]


@fe.jit
def host(a: fe.Tensor, o: fe.Tensor, add: fe.Constexpr, width: fe.Constexpr, unroll: fe.Constexpr):
    add(a, o, width, unroll)


@fe.kernel
def thread(a, o, add: fe.Constexpr, width: fe.Constexpr, unroll: fe.Constexpr):
    add(a, o, width, unroll)


@fe.jit
def launched(
    a: fe.Tensor, o: fe.Tensor, add: fe.Constexpr, width: fe.Constexpr, unroll: fe.Constexpr
):
    thread(a, o, add, width, unroll).launch(grid=1, block=1)


def result(function, add, wishes, a=CANCELLING):
    given = (add, wishes.get("vectorize"), wishes.get("unroll"))
    out = np.zeros(1, np.float32)
    build = fe.compile(function, vector(), vector(), *given, options="--target cpu")
    build(a, out)
    return out.tobytes()


@pytest.mark.parametrize("function", [host, launched], ids=["host", "kernel"])
@pytest.mark.parametrize("add", SUMS, ids=lambda add: add.__name__)
def test_wishes_keep_the_order_of_a_sum(function, add):
    plain = result(function, add, {})
    assert [result(function, add, wishes) for wishes in WISHES] == [plain] * len(WISHES)
    assert abs(np.frombuffer(plain, np.float32)[0]) < 1


@fe.jit
def product(a: fe.Tensor, o: fe.Tensor, width: fe.Constexpr):
    total = 1.0
    for i in fe.range(a.shape[0], vectorize=width):
        total *= a[i]
    o[0] = total


@pytest.mark.parametrize("width", [None, 8])
def test_a_product_overflows_where_it_does_in_order(width):
    a = np.array([2.0] * 128 + [0.5] * 128, np.float32)
    out = np.zeros(1, np.float32)
    fe.compile(product, vector(), vector(), width, options="--target cpu")(a, out)
    assert out[0] == np.inf


@fe.jit
def steps(o: fe.Tensor, width: fe.Constexpr):
    x = 0.0
    for i in fe.range(o.shape[0], vectorize=width):
        o[i] = x
        x += 0.1


def test_a_float_that_grows_by_steps_is_rounded_after_each():
    outs = []
    for width in (None, 8):
        outs.append(np.zeros(1000, np.float32))
        fe.compile(steps, vector(), width, options="--target cpu")(outs[-1])
    assert outs[0].tobytes() == outs[1].tobytes()


def each(a, o, width):
    for i in fe.range(a.shape[0], vectorize=width):
        o[i] = a[i] * 2.0 + 1.0


def each_of_a_row(a, o, width):
    for i in fe.range(a.shape[0], vectorize=width):
        o[3 * i + 2] = a[i] * 2.0


def integers(a, o, width):
    total = 0
    for i in fe.range(a.shape[0], vectorize=width):
        total += fe.Int32(a[i])
    o[0] = fe.Float32(total)


@fe.jit
def apart(a: fe.Tensor, o: fe.Tensor, body: fe.Constexpr, width: fe.Constexpr):
    body(a, o, width)


@pytest.mark.parametrize("body", [each, each_of_a_row, integers], ids=lambda body: body.__name__)
def test_loops_that_reduce_no_floats_keep_their_width(body):
    compiled = fe.compile(apart, vector(), vector(), body, 16, options="--target cpu")
    assert '"llvm.loop.vectorize.width", i32 16' in compiled.inspect_llvm()


def test_the_width_of_a_sum_is_not_said():
    compiled = fe.compile(host, vector(), vector(), carried, 16, 4, options="--target cpu")
    text = compiled.inspect_llvm()
    assert "vectorize.width" not in text and "llvm.loop.unroll.count" in text


def test_llvm_says_nothing_of_stores_under_a_condition(capfd: pytest.CaptureFixture[str]) -> None:
    @fe.kernel
    def kernel(a, out):
        t = fe.arch.thread_idx()[0]
        flag = fe.arch.alloc_smem(fe.Int32, 1)
        x, steps = a[t], 0
        while True:
            if t == 0:
                flag[0] = 0
            fe.arch.sync_threads()
            if x != 1:
                x = x // 2 if x % 2 == 0 else 3 * x + 1
                steps += 1
                flag[0] = 1
            fe.arch.sync_threads()
            done = flag[0] == 0
            fe.arch.sync_threads()
            if done:
                break
        out[t] = steps

    def host(a, out):
        kernel(a, out).launch(grid=1, block=40)

    a, out = np.arange(1, 41, dtype=np.int32), np.zeros(40, np.int32)
    fe.compile(host, *[fe.make_fake_compact_tensor(fe.Int32, (40,))] * 2, options="--target cpu")(
        a, out
    )
    assert out[:7].tolist() == [0, 1, 7, 2, 5, 8, 16]
    assert capfd.readouterr().err == ""


def test_llvm_says_nothing_of_checks_in_loops_of_threads(
    capfd: pytest.CaptureFixture[str],
) -> None:
    @fe.kernel
    def reverse(a):
        t = fe.arch.thread_idx()[0]
        row = fe.arch.alloc_smem(fe.Float32, 64)
        row[t] = a[t]
        fe.arch.sync_threads()
        a[t] = row[63 - t]

    def host(a):
        reverse(a).launch(grid=1, block=64)

    a = np.arange(64, dtype=np.float32)
    example = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    fe.compile(host, example, options="--target cpu --enable-checks")(a)
    assert a.tolist() == [float(each) for each in range(63, -1, -1)]
    assert capfd.readouterr().err == ""


def keeps_the_last(x, a, i):
    return a[i]


def recurs(x, a, i):
    return x * 3 + a[i]


def turns(x, a, i):
    return (x ^ a[i]) + 1


def chooses(x, a, i):
    return a[i] - x if a[i] > 2 else x


def read_twice(x, a, i):
    a[i] = x
    return x + 1


@pytest.mark.parametrize(
    "body", [keeps_the_last, recurs, turns, chooses, read_twice], ids=lambda body: body.__name__
)
def test_llvm_says_nothing_of_widths_that_it_cannot_follow(
    body: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    @fe.jit
    def carried_by(a: fe.Tensor):
        x = fe.Int32(1)
        for i in fe.range(a.shape[0], vectorize=4):
            x = body(x, a, i)
        a[0] = x

    compiled = fe.compile(carried_by, vector(fe.Int32), options="--target cpu --no-cache")
    numbers = np.arange(1, 9, dtype=np.int32)
    model, x = numbers.tolist(), 1
    for i in range(8):
        x = body(x, model, i)
    compiled(numbers)
    assert numbers.tolist() == [x, *model[1:]]
    assert capfd.readouterr().err == ""
