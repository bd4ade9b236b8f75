"""What a launch of a given kernel asks for besides its sizes: clusters, events, where blocks go."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from cuda_device import FakeCuda
from gpu_functions import floats

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch
from ferrule.compiler.cuda.launcher.driver import LaunchAttribute as Id
from ferrule.specs import Pointer, Scalar, Signature, Tensor

N = specs.sym_int64(symbol="n")
X = Tensor("x", (N,), "float32", device="cuda")
EVENTS = [Pointer("late"), Pointer("early")]
ALLOWED = "cuKernelSetAttribute"


def code(directives: str = "") -> fe.DeviceCode:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f() "
    return fe.DeviceCode.from_ptx(f"{head}{directives} {{ ret; }}\n")


def build(*params: specs.Param, directives: str = "", **asked: Any) -> fe.Function:
    """A function of `x` that launches n blocks."""
    sig = Signature("f", [X, *params])
    return compiler.build(sig, CudaLaunch(code(directives), "f", [], N, 32, **asked))


def attributes(fake: FakeCuda, function: fe.Function, *args: Any) -> dict[Id, bytes]:
    function(floats(16), *args)
    (launch,) = fake.launches()
    fake.clear()
    return {Id(number): value for number, value in launch.attributes.items()}


@pytest.mark.parametrize(("name", "number"), [("spread", 1), ("load_balancing", 2)])
def test_where_the_blocks_of_a_cluster_go(fake_cuda: FakeCuda, name: Any, number: int) -> None:
    found = attributes(fake_cuda, build(cluster=2, cluster_scheduling=name))
    assert struct.unpack_from("<III", found[Id.CLUSTER_DIMENSION]) == (2, 1, 1)
    (policy,) = struct.unpack_from("<i", found[Id.CLUSTER_SCHEDULING_POLICY_PREFERENCE])
    assert policy == number


def test_events_are_recorded(fake_cuda: FakeCuda) -> None:
    late, early = EVENTS
    function = build(
        *EVENTS,
        launch_completion_event=late,
        launch_completion_event_flags=1,
        programmatic_event=early,
        programmatic_event_trigger_at_block_start=True,
    )
    found = attributes(fake_cuda, function, 0x5EED, 0x5EEE)
    assert found.keys() == {Id.LAUNCH_COMPLETION_EVENT, Id.PROGRAMMATIC_EVENT}
    assert struct.unpack_from("<Qi", found[Id.LAUNCH_COMPLETION_EVENT]) == (0x5EED, 1)
    assert struct.unpack_from("<Qii", found[Id.PROGRAMMATIC_EVENT]) == (0x5EEE, 0, 1)


@pytest.mark.parametrize("directives", ["", ".reqnctapercluster 16"])
def test_large_clusters_are_allowed_once_a_device(fake_cuda: FakeCuda, directives: str) -> None:
    function = build(cluster=None if directives else 16, directives=directives)
    for device in (0, 1, 0, 1):
        function(floats(16, device=device))
    calls = [call.numbers for call in fake_cuda.calls() if call.name == ALLOWED]
    assert calls == [(14, 1, 0), (14, 1, 1)]
    fake_cuda.reset_device(1)
    function(floats(16, device=1))
    assert len(fake_cuda.launches()) == 5


def test_what_only_the_call_knows_is_allowed_where_it_is_large(fake_cuda: FakeCuda) -> None:
    size = specs.Scalar("size", "int32")
    function = build(size, cluster=size.value)
    for blocks, allowed in ((8, 0), (16, 1), (2, 1)):
        function(floats(16), blocks)
        assert [call.name for call in fake_cuda.calls()].count(ALLOWED) == allowed


def test_a_gpu_without_room_for_it_is_an_error_that_says_so(fake_cuda: FakeCuda) -> None:
    fake_cuda.fail("cuLaunchKernelEx", 912)
    with pytest.raises(fe.CudaError, match="INVALID_CLUSTER_SIZE .*; not every GPU has clusters"):
        build(cluster=16)(floats(16))
    fake_cuda.fail(ALLOWED, 1)
    with pytest.raises(fe.CudaError, match=f"{ALLOWED} failed with CUDA_ERROR_INVALID_VALUE"):
        build(cluster=16)(floats(16))


@pytest.mark.parametrize("asked", [{"cluster": 3}, {"directives": ".reqnctapercluster 3, 1, 1"}])
def test_the_grid_is_whole_clusters_whoever_says_so(
    fake_cuda: FakeCuda, asked: dict[str, Any]
) -> None:
    function = build(**asked)
    function(floats(6))
    with pytest.raises(fe.LaunchError, match="grid x to be a multiple of cluster x, 3, but got 16"):
        function(floats(16))
    assert len(fake_cuda.launches()) == 1


def test_a_priority_beyond_32_bits_is_an_error_of_the_call(fake_cuda: FakeCuda) -> None:
    k = specs.Scalar("k", "int64")
    function = build(k, priority=k.value)
    found = attributes(fake_cuda, function, -5)
    assert struct.unpack_from("<i", found[Id.PRIORITY]) == (-5,)
    with pytest.raises(fe.LaunchError, match="expected priority to be in .* but got 4294967296"):
        function(floats(16), 1 << 32)


WRONG = {
    "a policy": ({"cluster_scheduling": "even"}, ValueError, "'spread' or 'load_balancing', but"),
    "a cluster": ({"cluster": (4, 4, 2)}, ValueError, "a cluster has at most 16 blocks, but"),
    "an event": ({"programmatic_event": X}, TypeError, "a pointer parameter without a dtype"),
    "a flag": ({"cooperative": "no"}, TypeError, "cooperative must be True or False, but got 'no'"),
    "a carveout": ({"preferred_smem_carveout": 101}, ValueError, r"in \[0, 100\], in percent, or"),
    "a word": ({"preferred_smem_carveout": "max"}, TypeError, "must be an int, but got 'max'"),
    "a priority": ({"priority": 1 << 31}, ValueError, "priority must fit 32 bits, but got 2147483"),
    "no event": ({"programmatic_event_flags": 1}, ValueError, "without a programmatic_event, what"),
    "no late event": ({"launch_completion_event_flags": 1}, ValueError, "what is said of it would"),
    "a parameter": ({"cluster": Scalar("k", "int32")}, TypeError, "'k': write sig.'k'..value"),
    "no memory": ({"smem": "much"}, TypeError, "smem must be a size, but got 'much'"),
    "flags": ({"programmatic_event_flags": -1}, ValueError, "a number from 0 on, but got -1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_asked_for(case: str) -> None:
    asked, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        build(**asked)
