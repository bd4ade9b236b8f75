"""Every call of the driver fails in turn, in functions that use all that a launch can have."""

from __future__ import annotations

import pickle
import re
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from host_memory import Memory

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch, Sequence, TensorMap
from ferrule.runtime import use_allocator
from ferrule.specs import Pointer, Signature, Tensor

PTX = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry {0}(.param .align 64 .b8 map[128], .param .u64 out)
{{ .shared .align 4 .b8 own[1024]; st.shared.u32 [own], 0; ret; }}
.visible .entry {0}_total(.param .u64 from, .param .u64 to) {{ ret; }}
"""
M, N = specs.sym_int(symbol="m"), specs.sym_int(symbol="n")
X = Tensor("x", (M, N), "float16")
LATE = Pointer("late")
OUT_OF_MEMORY = 2
SURVIVED = ("cuDeviceGetAttribute", "cuThreadExchangeStreamCaptureMode")
"""Loading asks for compute capabilities, and takes any image where it hears of none; and it asks
for a mode in which a capture goes on, which matters only where there is one."""


@pytest.fixture(scope="module")
def saved() -> bytes:
    """A function of two device codes: tensor maps, temporaries, large clusters, an event."""
    one, two = (fe.DeviceCode.from_ptx(PTX.format(name)) for name in ("one", "two"))
    first, second, out = (Tensor(name, (M,), "float32") for name in ("first", "second", "out"))
    box: Any = TensorMap(X, (8, 64))
    large: Any = {"grid": 16, "block": 32, "smem": 100_000, "cluster": 16}
    steps = [
        CudaLaunch(one, "one", [box, first.data], **large, launch_completion_event=LATE),
        CudaLaunch(two, "two", [box, second.data], **large, cooperative=True),
        CudaLaunch(one, "one_total", [first.data, out.data], 1, 32, use_pdl=True),
    ]
    sequence = Sequence(steps, temporaries=[first, second])
    return pickle.dumps(compiler.build(Signature("f", [X, LATE]), sequence, results=[out]))


def matrix(device: int = 1) -> Any:
    """A matrix of float16 at a multiple of 16 bytes."""
    data = np.zeros(10 * 64 * 2 + 16, np.uint8)
    start = -data.ctypes.data % 16
    return forged(data[start : start + 10 * 64 * 2].view(np.float16).reshape(10, 64), device)


def each(calls: list[str]) -> list[tuple[str, int]]:
    """Every call, as its name and how many of that name come before it."""
    before: Counter[str] = Counter()
    found = []
    for name in calls:
        found.append((name, before[name]))
        before[name] += 1
    return found


def failing(fake: FakeCuda, memory: Memory, function: Any, name: str, after: int) -> None:
    """One call of the driver fails: that is what the error says, and nothing stays behind."""
    fake.clear()
    fake.fail(name, OUT_OF_MEMORY, after)
    try:
        function(matrix(), 1)
    except fe.CudaError as error:
        said = rf"{name}( of the kernel \w+)? failed with CUDA_ERROR_OUT_OF_MEMORY \(2:"
        assert re.match(said, str(error)), (name, after)
    else:
        assert name in SURVIVED and len(fake.launches()) == 3, name
    # A pop that fails pops nothing.
    popped = name != "cuCtxPopCurrent_v2"
    assert (fake.depth, fake.device) == ((1, 0) if popped else (2, 1)), (name, after)
    assert memory.live == {}
    fake.set_current(-1)
    fake.set_current(0)
    fake.clear()
    function(matrix(), 1)
    assert (len(fake.launches()), memory.live) == (3, {})


def test_every_call_of_a_first_launch_may_fail(
    fake_cuda: FakeCuda, memory: Memory, saved: bytes
) -> None:
    fake_cuda.set_current(0)
    function = pickle.loads(saved)
    function(matrix(), 1)
    calls = each(fake_cuda.names())
    assert {"cuTensorMapEncodeTiled", "cuKernelSetAttribute"} < {name for name, _ in calls}
    del function
    for name, after in calls:
        fake_cuda.reset()
        fake_cuda.set_current(0)
        function = pickle.loads(saved)
        failing(fake_cuda, memory, function, name, after)
        # The device is entered once for the kernels of both codes.
        assert (fake_cuda.libraries, fake_cuda.retained(1)) == (2, 1)
        del function
        assert (fake_cuda.libraries, fake_cuda.retained(1)) == (0, 0)


def test_every_call_of_a_later_launch_may_fail(
    fake_cuda: FakeCuda, memory: Memory, saved: bytes
) -> None:
    fake_cuda.set_current(0)
    function = pickle.loads(saved)
    function(matrix(), 1)
    fake_cuda.clear()
    function(matrix(), 1)
    for name, after in each(fake_cuda.names()):
        failing(fake_cuda, memory, function, name, after)
    assert fake_cuda.libraries == 2


@pytest.mark.parametrize("refused", range(3))
def test_memory_that_cannot_be_had_leaves_nothing_behind(
    fake_cuda: FakeCuda, memory: Memory, saved: bytes, refused: int
) -> None:
    def allocate(size: int, align: int, kind: int, index: int) -> int:
        if len(memory.asked) == refused:
            return 0
        return memory.allocate(size, align, kind, index)

    use_allocator(allocate, memory.free)
    function = pickle.loads(saved)
    with pytest.raises(MemoryError, match="no memory for a new tensor"):
        function(matrix(), 1)
    assert (memory.live, fake_cuda.depth, fake_cuda.launches()) == ({}, 0, [])


def test_eight_threads_on_two_devices_make_their_first_calls_together(
    fake_cuda: FakeCuda, memory: Memory, saved: bytes
) -> None:
    function, failed = pickle.loads(saved), list[BaseException]()
    fake_cuda.delay_loads(0.01)
    ready = threading.Barrier(8)

    def run(device: int) -> None:
        ready.wait()
        try:
            function(matrix(device), 1)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number % 2,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (fake_cuda.names().count("cuLibraryLoadData"), memory.live) == (2, {})
