"""Copies in the background: compiled, and interpreted as late as a program can bear."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ptxas
import pytest
from agreement import run_all_ways
from interpreter.memory import Unwritten
from lowered import vector

import ferrule as fe

arch = fe.arch
run = partial(run_all_ways, plain=False)


def launched(kernel: Any, *arguments: Any) -> Any:
    """The last argument after a launch of a kernel of 64 threads."""

    def host(*args):
        kernel(*args).launch(grid=1, block=64)

    result = run(host, arguments)
    assert result.error is None, result.error
    return result.arguments[-1]


@pytest.mark.parametrize("dtype, count", [(np.float32, 1), (np.int8, 8), (np.float16, 8)])
def test_a_copy_is_there_after_its_group(dtype: Any, count: int) -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(a.element_type, 64 * count)
        arch.cp_async(row + t * count, a.iterator + t * count, count)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        arch.sync_threads()
        for i in fe.range_constexpr(count):
            out[t * count + i] = row[(t ^ 1) * count + i]

    a = np.arange(64 * count).astype(dtype)
    found = launched(kernel, a, np.zeros_like(a))
    np.testing.assert_array_equal(found, a.reshape(32, 2, count)[:, ::-1].reshape(-1))


def test_where_the_condition_is_false_there_are_zeros() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Float32, 64)
        arch.cp_async(row + t, a.iterator + t, 1, pred=t < a.shape[0])
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        out[t] = row[t]

    found = launched(kernel, np.ones(40, np.float32), np.full(64, 7, np.float32))
    np.testing.assert_array_equal(found, [1] * 40 + [0] * 24)


def test_a_wait_leaves_the_newest_groups() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        rows = arch.alloc_smem(fe.Float32, 128)
        arch.cp_async(rows + t, a.iterator + t, 1)
        arch.cp_async_commit_group()
        for step in range(4):
            arch.cp_async(rows + (64 * ((step + 1) % 2) + t), a.iterator + t + 64 * (step + 1), 1)
            arch.cp_async_commit_group()
            arch.cp_async_wait_group(1)
            out[step * 64 + t] = rows[64 * (step % 2) + t]

    a = np.arange(320, dtype=np.float32)
    np.testing.assert_array_equal(launched(kernel, a, np.zeros(256, np.float32)), a[:256])


def test_what_is_read_too_early_is_undefined() -> None:
    """No machine need notice; the meaning of a program says so."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Float32, 64)
        arch.cp_async(row + t, a.iterator + t, 1)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(1)
        out[t] = row[t]

    with pytest.raises(Unwritten):
        launched(kernel, np.ones(64, np.float32), np.ones(64, np.float32))


def test_a_kernel_that_may_begin_early_runs_after_the_one_before() -> None:
    @fe.kernel
    def kernel(a):
        arch.griddepcontrol_wait()
        a[arch.thread_idx()[0]] += 1
        arch.griddepcontrol_launch_dependents()

    np.testing.assert_array_equal(launched(kernel, np.zeros(64, np.int32)), np.ones(64, np.int32))


# ---- what is refused ----


def compiled(begin: Any) -> Any:
    @fe.kernel
    def kernel(a, h):
        begin(a, h, arch.alloc_smem(fe.Float32, 64))

    def host(a, h):
        kernel(a, h).launch(grid=1, block=64)

    return fe.compile(host, vector(), vector(fe.Float16, "k"), options="--target cpu")


def from_shared(a, h, row):
    arch.cp_async(a.iterator, row, 4)


def of_a_tensor(a, h, row):
    arch.cp_async(row, a, 4)


def within_shared(a, h, row):
    arch.cp_async(row, row + 4, 4)


def of_halves(a, h, row):
    arch.cp_async(row, h.iterator, 4)


def around_of_eight_bytes(a, h, row):
    arch.cp_async(row, a.iterator, 2, cache="global")


def with_a_third_cache(a, h, row):
    arch.cp_async(row, a.iterator, 4, cache="L3")


@pytest.mark.parametrize(
    "begin, message",
    [
        (from_shared, "^the dst of cp_async of the pointer a"),
        (of_a_tensor, r"hint: a\.iterator \+ i"),
        (within_shared, "expected: a pointer into global memory"),
        (of_halves, "^cp_async copies float16 to float32"),
        (around_of_eight_bytes, "^the cache of cp_async of 8 bytes is"),
        (with_a_third_cache, "^the cache of cp_async of 16 bytes is 'L3'"),
    ],
)
def test_a_copy_that_there_is_not(begin: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        compiled(begin)


@pytest.mark.parametrize("count", [0, 3, 8, True])
def test_a_copy_has_four_eight_or_sixteen_bytes(count: Any) -> None:
    def begin(a, h, row):
        arch.cp_async(row, a.iterator, count)

    with pytest.raises(fe.CompileError, match="1 or 2 or 4 of them, known at compile time"):
        compiled(begin)


@pytest.mark.parametrize("count", [-1, 9, 1.0])
def test_a_wait_has_a_number_of_groups(count: Any) -> None:
    def begin(a, h, row):
        arch.cp_async_wait_group(count)

    with pytest.raises(fe.CompileError, match="an int from 0 to 8"):
        compiled(begin)


# ---- PTX ----


def ptx(kernel: Any, gpu: str) -> str:
    def host(a):
        kernel(a).launch(grid=1, block=64)

    options = f"--target cuda --gpu-arch {gpu}"
    return fe.compile(host, vector(fe.Float32), options=options).inspect_ptx()


@fe.kernel
def copies(a):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Float32, 256)
    for count in (1, 2, 4):
        arch.cp_async(row + t * 4, a.iterator + t * 4, count)
    arch.cp_async(row + t * 4, a.iterator + t * 4, 4, cache="global", pred=t < 5)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(2)
    arch.sync_threads()
    a[t] = row[t]


def test_the_instructions() -> None:
    text = ptx(copies, "sm_80")
    found = re.findall(r"cp\.async\.[^;]*;", text)
    forms = [re.sub(r"\[[^]]*\]", "_", each).replace("\t", "") for each in found]
    assert [re.sub(r"%r\d+", "%r", each) for each in forms] == [
        "cp.async.ca.shared.global _, _, 4;",
        "cp.async.ca.shared.global _, _, 8;",
        "cp.async.ca.shared.global _, _, 16;",
        "cp.async.cg.shared.global _, _, 16, %r;",
        "cp.async.commit_group;",
        "cp.async.wait_group 2;",
    ]


@pytest.mark.parametrize("gpu", ["sm_70", "sm_75"])
def test_older_gpus_copy_nothing_in_the_background(gpu: str) -> None:
    with pytest.raises(fe.CompileError, match="known to GPUs from sm_80 on, but the arch.* " + gpu):
        ptx(copies, gpu)


@fe.kernel
def dependent(a):
    arch.griddepcontrol_wait()
    a[arch.thread_idx()[0]] = 1.0
    arch.griddepcontrol_launch_dependents()


def test_kernels_that_begin_early_are_of_sm_90() -> None:
    found = re.findall(r"griddepcontrol\.\w+|st\.global", ptx(dependent, "sm_90"))
    assert found == ["griddepcontrol.wait", "st.global", "griddepcontrol.launch_dependents"]
    with pytest.raises(fe.CompileError, match="from sm_90 on, but the architecture is sm_86"):
        ptx(dependent, "sm_86")


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("gpu", ptxas.ARCHS)
def test_every_architecture_takes_all_of_them(gpu: str, tmp_path: Path) -> None:
    ptxas.assemble(ptx(copies, gpu), gpu, tmp_path)
    if gpu != "sm_80":
        ptxas.assemble(ptx(dependent, gpu), gpu, tmp_path)
