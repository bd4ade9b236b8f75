"""Arrays of JAX in direct calls: read by machine code, never written, held while a call runs."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.runtime import from_dlpack
from ferrule.runtime.values.learned import BUFFERS, table

jax: Any = pytest.importorskip("jax")
jnp: Any = jax.numpy


@fe.jit
def copied(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i]


@fe.jit
def measured(x: fe.Tensor, k: fe.Int32) -> fe.Int64:
    assert k != 13, "no luck"
    return x.shape[0] * 1000 + x.stride(0)


def wide_arrays() -> Any:
    """JAX makes arrays of 64 bits inside; older versions have the switch in another place."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    experimental: Any = pytest.importorskip("jax.experimental")
    return experimental.enable_x64(True)


def copying(dtype: Any) -> Any:
    vector = fe.make_fake_tensor(dtype, (fe.sym_int(),), (fe.sym_int64(),))
    return fe.compile(copied, vector, vector, options="--target cpu")


def measuring(dtype: Any) -> Any:
    vector = fe.make_fake_tensor(dtype, (fe.sym_int(),), (fe.sym_int64(),))
    return fe.compile(measured, vector, fe.Int32(0), options="--target cpu")


def python_frames(call: Any) -> list[str]:
    """The functions of Python that run in a call."""
    seen: list[str] = []

    def watch(frame: Any, event: str, _: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen[1:]  # after the lambda itself


NAMES = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")


@pytest.mark.parametrize("name", NAMES)
def test_the_second_call_runs_no_python(name: str) -> None:
    function = copying(getattr(fe, "Boolean" if name == "bool" else name.capitalize()))
    x = jnp.arange(5).astype(name)
    out = np.zeros(5, name)
    function(x, out)
    out[:] = 0
    assert python_frames(lambda: function(x, out)) == []
    assert np.array_equal(out, np.asarray(x))
    assert jax._src.array.ArrayImpl in table(BUFFERS).kinds


@pytest.mark.parametrize("name", ["int64", "uint64", "float64"])
def test_arrays_of_64_bits(name: str) -> None:
    function = copying(getattr(fe, name.capitalize()))
    with wide_arrays():
        x = jnp.arange(5).astype(name)
    out = np.zeros(5, name)
    function(x, out)
    out[:] = 0
    assert python_frames(lambda: function(x, out)) == []
    assert np.array_equal(out, np.asarray(x))


def test_complex_numbers() -> None:
    with wide_arrays():
        for dtype in (fe.Complex64, fe.Complex128):
            x = jnp.ones(5, dtype.name)
            function = measuring(dtype)
            assert function(x, 1) == 5001
            assert python_frames(lambda f=function, x=x: f(x, 1)) == []


def test_dtypes_without_buffers_go_the_long_way() -> None:
    function, x = copying(fe.BFloat16), jnp.arange(5).astype("bfloat16")
    out = np.zeros(5, x.dtype)
    for _ in range(2):
        out[:] = 0
        function(x, out)
        assert np.array_equal(out, np.asarray(x))
    for dtype in (fe.Float8E4M3FN, fe.Float8E5M2):
        for _ in range(2):
            assert measuring(dtype)(jnp.ones(5, dtype.name), 1) == 5001


def test_other_dtypes_and_ranks_are_refused_as_ever() -> None:
    function, out = copying(fe.Float32), np.zeros(4, np.float32)
    function(jnp.ones(4), out)
    with pytest.raises(ValueError, match="expected dtype=float32, but got dtype=int32"):
        function(jnp.ones(4, jnp.int32), out)
    for shape in ((), (2, 2), (1,) * 9):
        with pytest.raises(ValueError, match=f"expected ndim=1, but got ndim={len(shape)}"):
            function(jnp.ones(shape), out)
    with pytest.raises(TypeError, match="an array of int4 of JAX, whose elements have no bytes"):
        function(jnp.ones(4, jnp.int4), out)


def test_no_call_writes_an_array() -> None:
    function = copying(fe.Float32)
    x, source = jnp.ones(3), np.full(3, 7, np.float32)
    function(x, source.copy())
    match = (
        r"Mismatched y on argument #1 .*, but got one of JAX, which nobody writes to: .*jax_call"
    )
    for array in (x, from_dlpack(x), x[:]):
        with pytest.raises(BufferError, match=match):
            function(source, array)
        with pytest.raises(BufferError, match=match):
            function(x, y=array)
        with pytest.raises(BufferError, match=match):
            function.bind(source, array)
    assert x.tolist() == [1, 1, 1]


def test_empty_arrays_and_scalars() -> None:
    function = measuring(fe.Float32)
    for size in (3, 0, 1, 3, 0, 1):
        assert function(jnp.zeros(size), 1) == size * 1000 + 1


def test_what_is_still_computed_is_waited_for() -> None:
    @jax.jit
    def slow(x: Any) -> Any:
        for _ in range(8):
            x = x @ x * 0.001
        return x.ravel()

    function = copying(fe.Float32)
    start = jnp.ones((600, 600))
    expected = np.asarray(slow(start))
    function(jnp.ones(3), np.zeros(3, np.float32))  # learn
    out = np.zeros(600 * 600, np.float32)
    pending = [slow(start) for _ in range(4)]
    function(pending[-1], out)
    assert np.array_equal(out, expected)


def test_a_layout_that_is_not_row_major() -> None:
    layout = pytest.importorskip("jax.experimental.layout")
    if not hasattr(layout, "Format"):
        pytest.skip("this JAX chooses layouts in another way")

    @fe.jit
    def flat(x: fe.Tensor, y: fe.Tensor):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[i, j]

    first, second = (
        fe.make_fake_tensor(fe.Float32, (2, 3), (fe.sym_int64(), fe.sym_int64())) for _ in range(2)
    )
    function = fe.compile(flat, first, second, options="--target cpu")
    x = jnp.arange(6.0).reshape(2, 3)
    out = np.zeros((2, 3), np.float32)
    function(x, out)
    wanted = layout.Format(layout.Layout((1, 0)), x.sharding)
    other = jax.device_put(x, wanted)
    for _ in range(2):
        out[:] = 0
        function(other, out)
        assert np.array_equal(out, np.asarray(x))


def test_buffers_are_given_back() -> None:
    function = measuring(fe.Float32)
    x = jnp.ones(5)
    function(x, 1)
    before = sys.getrefcount(x)
    for _ in range(100):
        function(x, 1)
        with pytest.raises(AssertionError, match="no luck"):
            function(x, 13)
        with pytest.raises(TypeError, match="expected int"):
            function(x, "1")  # after the array was read
    assert sys.getrefcount(x) == before
    # XLA gives the memory of an argument away only if nobody holds it.
    address = x.unsafe_buffer_pointer()
    given = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert given.unsafe_buffer_pointer() == address
    with pytest.raises(BufferError, match="Mismatched x .*was deleted or donated"):
        function(x, 1)


def test_a_call_holds_what_another_thread_deletes() -> None:
    @fe.jit
    def bounds(x: fe.Tensor, y: fe.Tensor, times: fe.Int32):
        for _ in range(times):
            for i in range(x.shape[0]):
                y[0] = min(y[0], x[i])
                y[1] = max(y[1], x[i])

    vector, pair = (
        fe.make_fake_tensor(fe.Float32, (size,), (fe.sym_int64(),)) for size in (fe.sym_int(), 2)
    )
    function = fe.compile(bounds, vector, pair, fe.Int32(0), options="--target cpu")
    x, out = jnp.full(1 << 20, 3.0), np.full(2, 3, np.float32)
    function(x, out, 1)
    thread = threading.Thread(target=function, args=(x, out, 100))
    thread.start()
    time.sleep(0.02)
    x.delete()
    others = [jnp.full(1 << 20, 9.0).block_until_ready() for _ in range(4)]
    thread.join()
    assert out.tolist() == [3, 3]
    assert len(others) == 4


def test_threads() -> None:
    function = copying(fe.Float32)
    wrong: list[object] = []

    def work(k: int) -> None:
        x, out = jnp.full(64, float(k)), np.zeros(64, np.float32)
        for _ in range(200):
            out[:] = -1
            function(x, out)
            if (out != k).any():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_array_that_is_traced_says_what_to_call() -> None:
    function, out = copying(fe.Float32), np.zeros(3, np.float32)
    with pytest.raises(TypeError, match=r"an array that JAX traces.*call fe\.jax_call"):
        jax.jit(lambda x: function(x, out))(jnp.ones(3))
    with pytest.raises(TypeError, match=r"an array that JAX traces.*call fe\.jax_call"):
        jax.jit(lambda x: function(out, x))(jnp.ones(3))
