"""What functions and kernels can be given on a GPU: every kind of argument, name and launch."""

# Annotations are what Python makes of them: kernels here are made for a dtype.

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from cuda_device import FakeCuda, forged
from gpu_functions import floats

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor, make_fake_tensor, make_ptr

CUDA = "--target cuda --gpu-arch sm_80"


def compiled(function: Any, *examples: Any, options: str = "") -> fe.Function:
    return fe.compile(function, *examples, options=f"{CUDA} {options}")


def vector(dtype: Any = fe.Float32) -> Any:
    return make_fake_compact_tensor(dtype, (fe.sym_int(),))


def devices(fake_cuda: FakeCuda) -> list[int]:
    """The devices of the launches."""
    return [call.device for call in fake_cuda.calls() if call.launch is not None]


@fe.kernel
def set_one(a: fe.Tensor):
    a[0] = 1


@fe.kernel
def take(n: fe.Int32):
    n + 1


# ---- arguments ----


SCALARS = {
    fe.Int8: ("<b", -3), fe.Int16: ("<h", -3), fe.Int32: ("<i", -3), fe.Int64: ("<q", -(2**62)),
    fe.Uint8: ("<B", 200), fe.Uint16: ("<H", 3), fe.Uint32: ("<I", 2**31), fe.Float16: ("<e", 1.5),
    fe.Uint64: ("<Q", 2**64 - 1), fe.Float32: ("<f", 1.5), fe.Float64: ("<d", 0.1),
}  # fmt: skip


WIDE = pytest.param(fe.Uint64, marks=pytest.mark.needs_wide_ints)


@pytest.mark.parametrize("dtype", [WIDE if dtype is fe.Uint64 else dtype for dtype in SCALARS])
def test_a_number_comes_with_the_bytes_of_its_dtype(fake_cuda: FakeCuda, dtype: Any) -> None:
    @fe.kernel
    def add(a: fe.Tensor, x: dtype):  # the closure has no `dtype`: the body does not use it
        i, _, _ = fe.arch.thread_idx()
        a[i] = a[i] + x

    @fe.jit
    def function(a: fe.Tensor, x: dtype):
        add(a, x).launch(grid=(1,), block=(32,))

    form, value = SCALARS[dtype]
    array = np.zeros(32, form[1:])
    compiled(function, vector(dtype), dtype)(forged(array), value)
    (launch,) = fake_cuda.launches()
    tensor, number = launch.parameters
    assert struct.unpack("<Qi4x", tensor) == (array.ctypes.data, 32)
    assert struct.unpack(form, number) == (value,)


def test_a_tensor_without_dims_is_its_address(fake_cuda: FakeCuda) -> None:
    @fe.kernel
    def add(a: fe.Tensor, b: fe.Tensor):
        b[()] = a[()] + 1.0

    @fe.jit
    def function(a: fe.Tensor, b: fe.Tensor):
        add(a, b).launch(grid=(1,), block=(1,))
        b[:] = a[:] * 2.0

    example = make_fake_compact_tensor(fe.Float32, ())
    a, b = np.zeros((), np.float32), np.zeros((), np.float32)
    compiled(function, example, example)(forged(a), forged(b))
    own, whole = fake_cuda.launches()
    assert (whole.grid, whole.block) == ((1, 1, 1), (1, 1, 1))
    addresses = {struct.pack("<Q", array.ctypes.data) for array in (a, b)}
    assert set(own.parameters) == set(whole.parameters) == addresses


def test_a_tensor_of_bools_has_a_byte_for_each(fake_cuda: FakeCuda) -> None:
    @fe.kernel
    def negate(a: fe.Tensor):
        i, _, _ = fe.arch.thread_idx()
        a[i] = not a[i]

    @fe.jit
    def function(a: fe.Tensor):
        negate(a).launch(grid=(1,), block=(32,))

    ptx = (made := compiled(function, vector(fe.Boolean))).inspect_ptx()
    assert "ld.global.b8" in ptx and "st.global.b8" in ptx
    made(forged(np.zeros(32, np.bool_)))
    assert len(fake_cuda.launches()) == 1


@dataclass(frozen=True)
class Scaled:
    tensor: fe.Tensor
    factor: fe.Float32
    step: fe.Constexpr = 2


def test_tuples_and_dataclasses_are_their_items(fake_cuda: FakeCuda) -> None:
    @fe.kernel
    def scale(pair, scaled):
        i, _, _ = fe.arch.thread_idx()
        pair[0][i] = scaled.tensor[i * scaled.step] * scaled.factor + pair[1]

    @fe.jit
    def function(pair, scaled: Scaled):
        scale(pair, scaled).launch(grid=(1,), block=(8,))

    a, b = np.zeros(8, np.float32), np.zeros(16, np.float32)
    made = compiled(function, (vector(), fe.Int32), Scaled(vector(), fe.Float32))
    made((forged(a, 1), 7), Scaled(forged(b, 1), 0.5))
    (launch,) = fake_cuda.launches()
    forms = ("<Qi4x", "<i", "<Qi4x", "<f")
    found = [struct.unpack(f, p) for f, p in zip(forms, launch.parameters, strict=True)]
    assert found == [(a.ctypes.data, 8), (7,), (b.ctypes.data, 16), (0.5,)]
    assert devices(fake_cuda) == [1]


def test_the_first_tensor_in_nested_tuples_says_which_device(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def function(n: fe.Int32, nested):
        set_one(nested[1][0][1]).launch(grid=(n,), block=(1,))

    made = compiled(function, fe.Int32, (fe.Int32, ((fe.Float32, vector()), vector())))
    made(2, (1, ((1.0, floats(8, device=1)), floats(8, device=1))))
    assert devices(fake_cuda) == [1]
    message = r"nested\[1\]\[1\] .*expected to match nested\[1\]\[0\]\[1\]\.device\.index = 1"
    with pytest.raises(ValueError, match=message):
        made(2, (1, ((1.0, floats(8, device=1)), floats(8))))


def test_sizes_of_a_shape_alone_follow_the_parameters(fake_cuda: FakeCuda) -> None:
    @fe.kernel
    def fill(a: fe.Tensor, sizes):
        i, _, _ = fe.arch.thread_idx()
        if i < sizes[0]:
            a[i] = sizes[1]

    @fe.jit
    def function(a: fe.Tensor, sizes: fe.Shape):
        fill(a, sizes).launch(grid=(sizes[0],), block=(32,))

    made = compiled(function, vector(fe.Int64), (fe.sym_int(), fe.sym_int64()))
    made(forged(np.zeros(32, np.int64)), (3, 2**40))
    (launch,) = fake_cuda.launches()
    assert launch.grid == (3, 1, 1)
    assert launch.parameters[1:] == (struct.pack("<i", 3), struct.pack("<q", 2**40))


def test_strides_may_be_negative_and_zero(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def function(a: fe.Tensor):
        set_one_of_a_row(a).launch(grid=(1,), block=(1,))

    @fe.kernel
    def set_one_of_a_row(a: fe.Tensor):
        a[0, 0] = 1.0

    shape = fe.sym_int(), fe.sym_int()
    made = compiled(function, make_fake_tensor(fe.Float32, shape, (fe.sym_int64(), fe.sym_int64())))
    base = np.zeros((4, 8), np.float32)
    for array in (base[::-1, ::-1], np.broadcast_to(base[:1], (4, 8))):
        fake_cuda.clear()
        made(forged(array))
        ((tensor,),) = (launch.parameters for launch in fake_cuda.launches())
        steps = [step // 4 for step in array.strides]
        assert struct.unpack("<Qiiqq", tensor) == (array.ctypes.data, 4, 8, *steps)


def test_a_pointer_is_its_address(fake_cuda: FakeCuda) -> None:
    @fe.kernel
    def fill(p: fe.Pointer, n: fe.Int32):
        i, _, _ = fe.arch.thread_idx()
        p[i] = n

    @fe.jit
    def function(p: fe.Pointer, n: fe.Int32):
        fill(p, n).launch(grid=(1,), block=(32,))

    made = compiled(function, make_ptr(fe.Int32, 0), fe.Int32)
    made(ctypes.c_void_p(4096), 3)
    (launch,) = fake_cuda.launches()
    assert launch.parameters == (struct.pack("<Q", 4096), struct.pack("<i", 3))
    assert "st.global.b32" in made.inspect_ptx()


# ---- without a tensor ----


@pytest.mark.parametrize("current", [-1, 0, 1])
def test_without_a_tensor_it_is_the_current_device_and_its_stream(
    fake_cuda: FakeCuda, current: int
) -> None:
    @fe.jit
    def function(n: fe.Int32):
        take(n).launch(grid=(n,), block=(1,))

    fake_cuda.set_current(current)
    used = max(0, current)
    stream = fake_cuda.stream(used)
    with tvm_ffi.use_raw_stream(tvm_ffi.device(f"cuda:{used}"), stream):
        compiled(function, fe.Int32)(5)
    assert devices(fake_cuda) == [used]
    assert [launch.stream for launch in fake_cuda.launches()] == [stream]
    assert fake_cuda.device == current


# ---- kernels ----


def named(name: str) -> Any:
    """A kernel of this name."""

    def kernel(a: fe.Tensor):
        a[0] = 1

    kernel.__name__ = kernel.__qualname__ = name
    return fe.kernel(kernel)


@pytest.mark.parametrize(
    "names",
    [("größe", "gr$uf6$udfe"), ("_", "kernel__"), ("host", "ferrule_body"), ("a.b", "memset"),
     ("k" * 300, "main"), ("add", "entry")],
)  # fmt: skip
def test_kernels_of_any_name_are_found(fake_cuda: FakeCuda, names: tuple[str, str]) -> None:
    first, second = map(named, names)

    @fe.jit
    def function(a: fe.Tensor):
        first(a).launch(grid=(1,), block=(1,))
        second(a).launch(grid=(2,), block=(1,))

    compiled(function, vector())(floats(8))
    launches = fake_cuda.launches()
    assert [launch.grid[0] for launch in launches] == [1, 2]
    assert len({launch.kernel for launch in launches}) == 2


def test_a_kernel_is_made_for_each_dtype_that_it_is_launched_with(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def function(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
        for each in (a, b, c):
            set_one(each).launch(grid=(1,), block=(1,))

    n = fe.sym_int()
    kinds = (np.float32, np.int64, np.float32)
    examples = [make_fake_compact_tensor(t, (n,)) for t in (fe.Float32, fe.Int64, fe.Float32)]
    compiled(function, *examples)(*(forged(np.zeros(4, kind)) for kind in kinds))
    assert [launch.kernel for launch in fake_cuda.launches()] == ["set_one", "set_one_1", "set_one"]


def test_launches_stand_in_loops_and_branches(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def function(a: fe.Tensor, n: fe.Int32):
        for i in range(n):
            if i % 2 == 0:
                take(i).launch(grid=(i + 1,), block=(1,))
            else:
                set_one(a).launch(grid=(1, i), block=(1,))
        while n > 0:
            n = n // 2
            a[:] = a[:] + n

    compiled(function, vector(), fe.Int32)(floats(600), 3)
    launches = [(launch.kernel, launch.grid) for launch in fake_cuda.launches()]
    assert launches == [
        ("take", (1, 1, 1)), ("set_one", (1, 1, 1)), ("take", (3, 1, 1)),
        ("function_a", (1, 1, 1)), ("function_a", (1, 1, 1)),
    ]  # fmt: skip


def test_the_largest_launch_is_accepted(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def function(a: fe.Tensor, x: fe.Int64, y: fe.Int64, z: fe.Int64):
        set_one(a).launch(grid=(x, y, z), block=(4, 4, 64))

    most = (2**31 - 1, 65535, 65535)
    made = compiled(function, vector(), fe.Int64, fe.Int64, fe.Int64)
    made(floats(1), *most)
    assert [launch.grid for launch in fake_cuda.launches()] == [most]
    for axis, limit in enumerate(most):
        grid = [limit + 1 if i == axis else 1 for i in range(3)]
        with pytest.raises(fe.LaunchError, match=rf"in \[0, {limit}\], but got {limit + 1}"):
            made(floats(1), *grid)


def test_a_constant_block_beyond_the_limit_is_a_launch_error(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def function(a: fe.Tensor):
        set_one(a).launch(grid=(1,), block=(4096,))

    with pytest.raises(fe.LaunchError, match="4096"):
        compiled(function, vector())(floats(1))


def test_functions_share_nothing_but_the_driver(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def function(a: fe.Tensor):
        set_one(a).launch(grid=(1,), block=(1,))

    made = [compiled(function, vector()) for _ in range(2)]
    for each in made:
        each(floats(1))
    assert fake_cuda.libraries == 2


# ---- what the machine code is like ----


def test_simple_kernels_use_registers_and_global_memory() -> None:
    @fe.kernel
    def smooth(a: fe.Tensor, b: fe.Tensor):
        i, _, _ = fe.arch.thread_idx()
        low = high = a[i]
        for j in range(a.shape[0]):
            low, high = (high, a[j]) if a[j] > low else (a[j], low)
        pair = (low, high)
        b[i] = pair[0] * pair[1] + low

    @fe.jit
    def function(a: fe.Tensor, b: fe.Tensor):
        smooth(a, b).launch(grid=(1,), block=(32,))

    ptx = compiled(function, vector(), vector(), options="--fmad=false").inspect_ptx()
    assert "ld.global.b32" in ptx and "st.global.b32" in ptx
    for unwanted in (".local", ".extern", "call", "ld.b32", "st.b32", "fma", ".ftz", ".approx"):
        assert unwanted not in ptx
    assert "mul.rn.f32" in ptx and "add.rn.f32" in ptx  # ptxas makes no fma of these
