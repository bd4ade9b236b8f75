"""Wrong programs of threads that work together: each message pinned, whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from lowered import lower, vector

import ferrule as fe
from ferrule.language.source import read_source

arch = fe.arch


def kernel_error(body: Callable[..., Any], **sizes: Any) -> str:
    """The error of a kernel of a float32 vector and a float16 one."""
    kernel = fe.kernel(body)

    def host(a, h):
        kernel(a, h).launch(grid=1, block=32, **sizes)

    return host_error(host)


def host_error(host: Callable[..., Any]) -> str:
    with pytest.raises(fe.CompileError) as caught:
        lower(host, vector(), vector(fe.Float16))
    found = caught.value.diagnostic
    parts = {"expected": found.expected, "hint": found.hint}
    return "\n".join([found.message, *(f"{k}: {v}" for k, v in parts.items() if v is not None)])


# ---- where there are no threads ----


CALLS: dict[str, tuple[Any, ...]] = {
    "lane_idx": (),
    "sync_threads": (),
    "barrier": (),
    "sync_warp": (),
    "shuffle_sync": (1, 0),
    "vote_any_sync": (True,),
    "match_any_sync": (1,),
    "alloc_smem": (fe.Float32, 4),
    "get_dyn_smem": (fe.Float32,),
    "fence_acq_rel_gpu": (),
    "elect_one": (),
    "make_warp_uniform": (1,),
}


@pytest.mark.parametrize("name", CALLS)
def test_host_code_has_no_threads(name: str) -> None:
    function, arguments = getattr(arch, name), CALLS[name]
    with pytest.raises(RuntimeError, match=f"arch.{name} has a meaning only in a function"):
        function(*arguments)

    def host(a, h):
        function(*arguments)

    assert host_error(host) == f"{name} is known only in a kernel\nhint: call it in @fe.kernel"


def test_an_atomic_in_host_code() -> None:
    def host(a, h):
        arch.atomic_add(a.iterator, 1.0)

    assert host_error(host) == "atomic_add is known only in a kernel\nhint: call it in @fe.kernel"


# ---- operands ----


def test_an_atomic_takes_a_pointer() -> None:
    def of_tensor(a, h):
        arch.atomic_add(a, 1.0)

    def of_element(a, h):
        arch.atomic_add(a[0], 1.0)

    def of_fragment(a, h):
        arch.atomic_add(fe.make_fragment(4, fe.Float32).iterator, 1.0)

    assert kernel_error(of_tensor) == (
        "atomic_add of the tensor a\nexpected: the pointer to an element\nhint: a.iterator + i"
    )
    assert kernel_error(of_element) == (
        "atomic_add of a run-time float32\nexpected: the pointer to an element\n"
        "hint: a.iterator + i"
    )
    assert kernel_error(of_fragment) == (
        "atomic_add of a fragment, which no other thread can reach\n"
        "expected: a pointer into a tensor or shared memory"
    )


def test_an_atomic_takes_elements_that_have_one() -> None:
    def of_bits(a, h):
        arch.atomic_xor(a.iterator, 1.0)

    def of_bytes(a, h):
        arch.atomic_add(fe.recast_ptr(a.iterator, dtype=fe.Uint8), 1)

    def of_other_kind(a, h):
        arch.atomic_add(arch.alloc_smem(fe.Int32, 1), a[0])

    assert kernel_error(of_bits) == (
        "atomic_xor of a.iterator, whose elements are float32\n"
        "expected: elements of int32, uint32, int64, uint64"
    )
    assert kernel_error(of_bytes) == (
        "atomic_add of a.iterator, whose elements are uint8\nexpected: elements of "
        "int32, uint32, int64, uint64, float16, bfloat16, float32, float64"
    )
    assert kernel_error(of_other_kind) == (
        "a float32 is stored to smem, whose elements are int32\n"
        "expected: a value that becomes int32 without losing its kind\n"
        "hint: convert it, fe.Int32(x)"
    )


def test_orders_and_scopes_have_names() -> None:
    def order(a, h):
        arch.atomic_add(a.iterator, 1.0, sem="seq_cst")

    def scope(a, h):
        arch.atomic_add(a.iterator, 1.0, scope="block")

    assert kernel_error(order) == (
        "sem is 'seq_cst' (str)\nexpected: 'relaxed' or 'acquire' or 'release' or 'acq_rel'"
    )
    assert kernel_error(scope) == (
        "scope is 'block' (str)\nexpected: 'cta' or 'cluster' or 'gpu' or 'sys'"
    )


def test_masks_offsets_and_values_of_warps() -> None:
    def empty_mask(a, h):
        arch.sync_warp(0)

    def wide_mask(a, h):
        arch.vote_all_sync(True, 1 << 32)

    def float_offset(a, h):
        a[0] = arch.shuffle_sync(a[0], a[1])

    def float_mask(a, h):
        a[0] = arch.shuffle_sync(a[0], 0, a[1])

    def narrow_match(a, h):
        a[0] = arch.match_any_sync(h[0])

    def group(a, h):
        a[0] = arch.warp_reduction_sum(a[0], 12)

    mask = "expected: 32 bits, one for each lane that takes part, from 1 to 0xffffffff"
    assert kernel_error(empty_mask) == f"the mask is 0\n{mask}"
    assert kernel_error(wide_mask) == f"the mask is 4294967296\n{mask}"
    integer = "expected: an integer of at most 32 bits\nhint: convert it, fe"
    assert kernel_error(float_offset) == f"the offset is a run-time float32\n{integer}.Int32(x)"
    assert kernel_error(float_mask) == f"the mask is a run-time float32\n{integer}.Uint32(x)"
    assert kernel_error(narrow_match) == (
        "match_any_sync of a run-time float16\nexpected: a number of "
        "int32, uint32, int64, uint64, float32, float64\nhint: convert it, fe.Int32(x)"
    )
    assert kernel_error(group) == (
        "static assertion failed: threads_in_group is one of (1, 2, 4, 8, 16, 32): 12"
    )


def test_barriers_have_numbers_and_whole_warps() -> None:
    def number(a, h):
        arch.barrier(barrier_id=16)

    def count(a, h):
        arch.barrier(barrier_id=1, number_of_threads=48)

    def arguments(a, h):
        arch.sync_threads(1)

    assert kernel_error(number) == "barrier_id is 16\nexpected: a number from 0 to 15"
    assert kernel_error(count) == (
        "number_of_threads is 48\n"
        "expected: a multiple of 32, up to 1024: whole warps wait at a barrier"
    )
    assert kernel_error(arguments) == "sync_threads takes 0 arguments, but got 1"


# ---- shared memory ----


def test_shared_memory_past_the_limit() -> None:
    def body(a, h):
        tile = arch.alloc_smem(fe.Float32, 8192)
        other = arch.alloc_smem(fe.Float16, 8193)
        tile[0] = other[0]

    kernel = fe.kernel(body)

    def host(a, h):
        kernel(a, h).launch(grid=1, block=1)

    with pytest.raises(fe.CompileError) as caught:
        lower(host, vector(), vector(fe.Float16))
    found, first = caught.value.diagnostic, body.__code__.co_firstlineno
    assert found.message == "the static shared memory of this kernel takes 49154 bytes"
    assert found.expected == "at most 49152 bytes"
    assert found.notes[0] == (
        f"line {first + 1}: 8192 of float32, 32768 bytes; "
        f"line {first + 2}: 8193 of float16, 16386 bytes"
    )


def test_shared_memory_has_a_size_and_a_dtype() -> None:
    def run_time_size(a, h):
        arch.alloc_smem(fe.Float32, a.shape[0])

    def no_size(a, h):
        arch.alloc_smem(fe.Float32, 0)

    def alignment(a, h):
        arch.alloc_smem(fe.Float32, 4, alignment=24)

    def dtype(a, h):
        arch.alloc_smem(a[0], 4)

    def storage(a, h):
        arch.alloc_smem(fe.Float6E2M3FN, 4)

    assert kernel_error(run_time_size) == (
        "alloc_smem of a run-time int32 elements, which is known only at the call\n"
        "expected: an int: static shared memory is known at compile time\n"
        "hint: fe.arch.get_dyn_smem(dtype), and launch(..., smem=bytes)"
    )
    assert kernel_error(no_size) == "alloc_smem of 0 elements\nexpected: an int from 1 on"
    assert kernel_error(alignment) == (
        "the alignment of shared memory is 24 (int)\nexpected: a power of two up to 1024"
    )
    assert kernel_error(dtype) == (
        "the element_type of alloc_smem is a run-time float32\n"
        "expected: a dtype, such as fe.Float32"
    )
    assert kernel_error(storage).startswith("single elements of float6_e2m3fn have no bytes")


def test_dynamic_shared_memory_is_asked_for_by_the_launch() -> None:
    def body(a, h):
        arch.get_dyn_smem(fe.Float32)[0] = a[0]

    assert kernel_error(body) == (
        "body uses dynamic shared memory, but the launch gives it none\n"
        "expected: .launch(grid=..., block=..., smem=bytes)"
    )


def test_too_much_dynamic_shared_memory_is_a_launch_error() -> None:
    @fe.kernel
    def kernel(out):
        own = arch.alloc_smem(fe.Int32, 1024)
        own[0] = 1
        arch.get_dyn_smem(fe.Int32)[0] = own[0]
        out[0] = 1

    def host(n, out):
        kernel(out).launch(grid=1, block=1, smem=n)

    limit = (227 << 10) - 4096
    assert run_all_ways(host, (limit, np.zeros(1, np.int32)), plain=False).error is None
    for size in (limit + 1, -1):
        found = run_all_ways(host, (size, np.zeros(1, np.int32)), plain=False)
        assert found.error == (
            "LaunchError",
            f"Invalid launch of kernel: expected smem to be in [0, {limit}], but got {size}",
        )


# ---- threads that do not meet ----


def divergence(kernel: Any, block: Any) -> str:
    """The message of a launch whose threads diverge."""

    def host(out):
        kernel(out).launch(grid=1, block=block)

    found = run_all_ways(host, (np.zeros(8, np.int32),), plain=False)
    assert found.error is not None and found.error[0] == "DivergenceError", found.error
    return found.error[1]


def at(kernel: Any, line: int) -> str:
    """Where a line of a kernel is, counted from its decorator."""
    source = read_source(kernel.function)
    return f"{source.file}:{source.first_line + line}"


def test_a_barrier_in_a_branch_that_some_threads_take() -> None:
    @fe.kernel
    def kernel(out):
        if arch.thread_idx()[0] < 5:
            arch.sync_threads()

    assert divergence(kernel, 40) == (
        f"kernel: sync_threads() at {at(kernel, 3)} was reached by 5 of 40 threads of block "
        "(0, 0, 0): the first that did not is thread (5, 0, 0)"
    )


def test_a_thread_that_returns_before_the_barrier() -> None:
    @fe.kernel
    def kernel(out):
        x, y, z = arch.thread_idx()
        if x == 3 and y == 1 and z == 1:
            return
        arch.sync_threads()
        out[0] = 1

    assert divergence(kernel, (4, 2, 2)) == (
        f"kernel: sync_threads() at {at(kernel, 5)} was reached by 15 of 16 threads of block "
        "(0, 0, 0): the first that did not is thread (3, 1, 1)"
    )


def test_a_named_barrier_that_too_few_reach() -> None:
    @fe.kernel
    def kernel(out):
        if arch.warp_idx() == 1:
            arch.barrier(barrier_id=4, number_of_threads=96)

    assert divergence(kernel, 128) == (
        f"kernel: barrier() at {at(kernel, 3)} was reached by 32 of the 96 threads that it waits "
        "for, in block (0, 0, 0)"
    )


def test_a_warp_op_without_a_lane_of_its_mask() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        if t != 33 and arch.shuffle_sync_bfly(t, 1) < 0:
            out[0] = 1

    assert divergence(kernel, 40) == (
        f"kernel: shuffle_sync_bfly() at {at(kernel, 3)} was reached by 7 of 8 threads of block "
        "(0, 0, 0): the first that did not is thread (33, 0, 0)"
    )


def test_a_mask_without_the_own_lane() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        if t < 4:
            out[0] = arch.vote_any_sync(t == 0, 0b1011)

    assert divergence(kernel, 32) == (
        f"kernel: vote_any_sync() at {at(kernel, 4)} has the mask 11, without the lane of the "
        "thread that runs it, in block (0, 0, 0): thread (2, 0, 0)"
    )


def test_a_library_function_is_blamed_on_its_caller() -> None:
    @fe.kernel
    def kernel(out):
        if arch.warp_idx() == 0:
            out[0] = arch.block_reduction(arch.thread_idx()[0], max)

    message = divergence(kernel, 64)
    assert message.startswith(f"kernel: sync_threads() at {at(kernel, 3)} was reached by 32 of 64")
