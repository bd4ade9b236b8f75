"""What programs for CuTe DSL do with objects: namespaces in loops, structs in shared memory,
callable classes, layouts with functions, kernels with a prefix, sizes that are assumed."""

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch

CPU = "--target cpu"
INTS = fe.make_fake_compact_tensor(fe.Int32, (8,))


def ran(function: Any, *more: Any, count: int = 8, dtype: Any = fe.Int32) -> Any:
    out = np.zeros(count, np.int32 if dtype is fe.Int32 else np.float32)
    fake = fe.make_fake_compact_tensor(dtype, (count,))
    fe.compile(function, fake, *more, options=CPU)(out, *more)
    return out


@fe.jit
def namespace(c: fe.Tensor, n: fe.Int32):
    state = SimpleNamespace(step=1, sum=0)
    for i in range(n):
        state.step = i * 2
        c[i] = state.step + state.sum
    if n > 2:
        state.step = n
        c[7] = state.step
    state.step = 40
    c[6] = state.step


def test_attributes_that_are_set_before_they_are_read() -> None:
    assert ran(namespace, 4).tolist() == [0, 2, 4, 6, 0, 0, 40, 4]


@fe.jit
def carried(c: fe.Tensor, n: fe.Int32):
    state = SimpleNamespace(step=1)
    for i in range(n):
        c[i] = state.step
        state.step = i


@fe.jit
def read_behind(c: fe.Tensor, n: fe.Int32):
    state = SimpleNamespace(step=1)
    for i in range(n):
        state.step = i
    c[0] = state.step


@fe.jit
def looked_at(c: fe.Tensor, n: fe.Int32):
    state = SimpleNamespace(step=1)
    for i in range(n):
        c[i] = len(vars(state)) + i
        state.step = i


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (carried, "the SimpleNamespace 'state' is changed inside a run-time branch or loop"),
        (looked_at, "the SimpleNamespace 'state' is changed inside a run-time branch or loop"),
        (read_behind, "the name 'step' may be undefined here"),
    ],
)
def test_attributes_that_a_loop_would_carry(function: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        fe.compile(function, INTS, 4, options=CPU)


@fe.struct
class Pair:
    first: fe.Float32
    second: fe.Float32


@fe.struct
class Storage:
    values: fe.struct.MemRange[fe.Float32, 4]
    number: fe.Int64
    pair: Pair


@fe.kernel
def structs_kernel(c: fe.Tensor):
    memory = fe.utils.SmemAllocator()
    s = memory.allocate(Storage)
    s.values[1] = 2.5
    s.values[2] = s.values[1] * 3.0
    s.number = 16
    s.pair.second = 7.0
    c[0], c[1] = s.values[1], s.values[2]
    c[2], c[3] = fe.Float32(s.number.ptr.load()), s.pair.second.ptr.load()
    again = Storage(s.values.data_ptr())
    again.number.ptr.store(fe.Int64(5))
    c[4] = fe.Float32(s.number.ptr.load())
    row = memory.allocate_tensor(fe.Float32, 4)
    row[3] = 9.0
    c[5] = row[3]
    c[6] = fe.size(row)
    c[7] = memory.allocate(3).alignment + memory.allocate(64, 16).alignment


@fe.jit
def structs(c: fe.Tensor):
    structs_kernel(c).launch(grid=1, block=1)


def test_fields_of_structs() -> None:
    # 48 bytes, then 16: the last two begin at 64, and at 80 behind 3 bytes.
    expected = [2.5, 7.5, 16, 7, 5, 9, 4, 64 + 16]
    assert ran(structs, dtype=fe.Float32).tolist() == expected


class Twice:
    def __init__(self, add: int) -> None:
        self.add = add

    @fe.jit
    def __call__(self, c: fe.Tensor, i: Any):
        c[i] = 2 * i + self.add


@fe.kernel
def prefixed(c: fe.Tensor):
    class Of:
        kind: c.element_type

    c[arch.thread_idx()[0]] = Of.__annotations__["kind"](5)


@fe.jit
def calls(c: fe.Tensor, m: fe.Int32):
    prefixed.set_name_prefix("tile_8")
    prefixed(c).launch(grid=1, block=2)
    for i in range(3, m):
        Twice(100)(c, i)


def test_callable_objects_and_prefixes() -> None:
    assert ran(calls, 5).tolist() == [5, 5, 0, 106, 108, 0, 0, 0]
    text = fe.compile(calls, INTS, 5, options=CPU).inspect_ir()
    assert "kernel @tile_8_prefixed(" in text
    with pytest.raises(ValueError, match=r"set_name_prefix: '8' cannot begin a name"):
        calls.set_name_prefix("8")


@fe.jit
def functions(c: fe.Tensor, n: fe.Int32):
    def moved(place: Any):
        x, y = place
        return x + 10 * (y + 1)

    def taken(i: Any):
        return c[i]

    pairs = fe.make_composed_layout(moved, (1, 0), fe.make_identity_layout((4, 2)))
    gather = fe.make_composed_layout(taken, 1, fe.make_layout((4,), stride=(2,)))
    c[1], c[3] = pairs(2, 1), pairs((n, 0))
    c[0] = gather(1)
    c[2] = gather(n)
    print(pairs)


def test_layouts_with_functions(capsys: Any) -> None:
    assert ran(functions, 0).tolist() == [11, 23, 23, 11, 0, 0, 0, 0]
    assert capsys.readouterr().out == "moved o (1, 0) o (4,2):(1@0,1@1)\n"
    layout = fe.make_composed_layout(
        lambda place: sum(place), (1, 2), fe.make_identity_layout((3, 4))
    )
    assert [layout(i) for i in range(3)] == [3, 4, 5]
    with pytest.raises(fe.LayoutError, match=r"the offset \(1, 2, 3\) is not like"):
        fe.make_composed_layout(max, (1, 2, 3), fe.make_identity_layout((3, 4)))(0)


@fe.jit
def assumed(pointer: fe.Pointer, m: fe.Int32):
    m = fe.assume(m, divby=4)
    a = fe.make_tensor(pointer, fe.make_layout((m, 2), stride=(1, m)))
    print(a[None, 1].iterator.alignment)


def test_sizes_that_are_assumed_to_be_divisible(capsys: Any) -> None:
    pointer = fe.make_ptr(fe.Float32, 1 << 20, assumed_align=16)
    compiled = fe.compile(assumed, pointer, 8, options=CPU)
    assert capsys.readouterr().out == "16\n"
    with pytest.raises(ValueError, match="Invalid m, assumed to be divisible by 4, but got 6"):
        compiled(1 << 20, 6)


@fe.kernel
def two_arrays(c: fe.Tensor):
    smem = fe.utils.SmemAllocator()
    numbers, more = (smem.allocate_array(fe.Int32, 8) for _ in range(2))
    t = arch.thread_idx()[0]
    numbers[t], more[t] = t, 10 * t
    arch.sync_threads()
    c[t] = numbers[7 - t] + more[7 - t]


@pytest.mark.parametrize("smem", [0, 16, 64, 100, None])
def test_a_launch_that_says_too_little_shared_memory(smem: int | None) -> None:
    @fe.jit
    def function(c: fe.Tensor):
        two_arrays(c).launch(grid=1, block=8, smem=smem)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert (ran(function) == np.arange(8)[::-1] * 11).all()
    wanted = f"two_arrays needs 64 bytes of dynamic shared memory, but the launch says smem={smem}:"
    assert [str(each.message).startswith(wanted) for each in said] == [True] * (smem in (0, 16))


@fe.kernel
def nothing_kernel():
    pass


@pytest.mark.parametrize("flag", [0, 1, False, 2, "yes"])
def test_flags_of_launches_may_be_0_and_1(flag: Any) -> None:
    @fe.jit
    def function(c: fe.Tensor):
        nothing_kernel().launch(grid=1, block=1, use_pdl=flag)

    if flag in (2, "yes"):
        with pytest.raises(fe.CompileError, match="use_pdl is"):
            ran(function)
    else:
        ran(function)
