"""Results and temporaries are aligned as their specs say, beyond what allocators promise."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from cuda_device import fake_cuda as fake_cuda
from gpu_functions import floats
from host_memory import Memory
from host_memory import memory as memory

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, CudaLaunch, HostCode, Sequence
from ferrule.specs import Signature, Tensor

n = specs.sym_int64(symbol="n")
X = Tensor("x", (n,), "float32")
WHERE = """define i64 @where(ptr %x) {
  %address = ptrtoint ptr %x to i64
  ret i64 %address
}"""
PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry into(.param .u64 scratch, .param .u64 out, .param .u64 x) { ret; }
"""


def copied(align: int) -> fe.Function:
    """What copies x over a temporary, and says where that was."""
    scratch = Tensor("scratch", (n, 2), "float32", align=align)
    out = Tensor("out", (n,), "float32", align=align)
    where = CFunction("where", [scratch.data], returns="int64", code=HostCode.from_llvm(WHERE))
    steps = [
        CFunction("memcpy", [scratch.data, X.data, X.nbytes]),
        CFunction("memcpy", [out.data, scratch.data, X.nbytes]),
        where,
    ]
    call = Sequence(steps, temporaries=[scratch])
    return compiler.build(Signature("copied", [X]), call, results=[out])


@pytest.mark.parametrize("align", [4, 64, 128, 512, 4096])
def test_of_libc(align: int) -> None:
    fn = copied(align)
    for size in (0, 1, 2, 5, 100):
        given = np.arange(size, dtype=np.float32)
        found, where = fn(given)
        assert np.from_dlpack(found).ctypes.data % align == where % align == 0
        assert np.array_equal(np.from_dlpack(found), given)


@pytest.mark.parametrize("align", [128, 4096])
def test_of_torch(align: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    fn = copied(align)
    for size in (0, 1, 5, 100):
        given = torch.arange(size, dtype=torch.float32)
        found, where = fn(given)
        assert found.data_ptr() % align == where % align == 0
        assert isinstance(found, torch.Tensor) and torch.equal(found, given)
        assert found.shape == given.shape and found.is_contiguous()


def test_they_outlive_the_function_and_go_back_whole(memory: Memory) -> None:
    fn = copied(256)
    found, _ = fn(np.arange(3, dtype=np.float32))
    assert memory.asked == [(12 + 192, 1, 0), (24 + 192, 1, 0)]
    array = np.from_dlpack(found)
    del fn, found
    gc.collect()
    assert array.tolist() == [0, 1, 2] and len(memory.live) == 1
    del array
    assert not memory.live


def test_what_allocators_promise_is_allocated_as_ever(memory: Memory) -> None:
    copied(64)(np.arange(3, dtype=np.float32))
    assert memory.asked == [(12, 1, 0), (24, 1, 0)]


def test_failures_of_an_aligned_allocation() -> None:
    huge = Tensor("huge", (n * (1 << 40),), "float64", align=512)
    fn = compiler.build(
        Signature("f", [X]), CFunction("memcpy", [huge.data, X.data, X.nbytes]), results=[huge]
    )
    for size, kind in ((1 << 22, ValueError), (1 << 12, MemoryError)):
        with pytest.raises(kind, match="new tensor"):
            fn(np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (size,), (4,)))


def test_on_a_gpu(fake_cuda: FakeCuda, memory: Memory) -> None:
    scratch, out = (Tensor(name, (n,), "float32", align=1024) for name in ("scratch", "out"))
    launch = CudaLaunch(
        fe.DeviceCode.from_ptx(PTX), "into", [scratch.data, out.data, X.data], grid=1, block=1
    )
    call = Sequence([launch], temporaries=[scratch])
    found = compiler.build(Signature("f", [X]), call, results=[out])(floats(5, device=1))
    (launched,) = fake_cuda.launches()
    first, second = (int.from_bytes(each[:8], "little") for each in launched.parameters[:2])
    assert first % 1024 == second % 1024 == 0 and first != second
    assert (str(found.device), found.shape, found.strides) == ("cuda:1", (5,), (1,))


def test_memrefs_are_copied_to_where_they_shall_lie() -> None:
    from ferrule.compiler.conventions import Memref

    text = """
    @numbers = private constant [3 x i32] [i32 1, i32 2, i32 3]
    define void @_mlir_ciface_made(ptr %result) {
      %aligned = getelementptr ptr, ptr %result, i64 1
      %offset = getelementptr i64, ptr %result, i64 2
      %size = getelementptr i64, ptr %result, i64 3
      %stride = getelementptr i64, ptr %result, i64 4
      store ptr inttoptr (i64 3735928559 to ptr), ptr %result
      store ptr @numbers, ptr %aligned
      store i64 0, ptr %offset
      store i64 3, ptr %size
      store i64 1, ptr %stride
      ret void
    }"""
    made = Tensor("made", (3,), "int32", align=2048)
    call = Memref("made", returns=[made], code=HostCode.from_llvm(text))
    fn = compiler.build(Signature("f", []), call)
    kept: list[Any] = [np.from_dlpack(fn()) for _ in range(5)]
    assert {each.ctypes.data % 2048 for each in kept} == {0}
    assert all(each.tolist() == [1, 2, 3] for each in kept)
