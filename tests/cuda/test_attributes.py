"""What a launch asks for besides its sizes: what the driver gets of it, and what is refused."""

import ctypes
import re
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cpu_machine import add_one
from cuda_device import FakeCuda, forged

import ferrule as fe
from ferrule.compiler.cuda.launcher.driver import LaunchAttribute as Id
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rules.verifier import VerifierError, verify
from ferrule.runtime import make_fake_compact_tensor
from ferrule.specs import Float32, Int32, Int64, params

CUDA = "--target cuda --gpu-arch sm_90a"
EVENT = 0x5EED


@fe.kernel
def set_kernel(a: fe.Tensor):
    i, _, _ = fe.arch.block_idx()
    a[i] = 1.0


def launching(*examples: Any, options: str = CUDA, **asked: Any) -> fe.Function:
    """A function that launches a block for each element."""

    @fe.jit
    def launches(a: fe.Tensor):
        set_kernel(a).launch(grid=a.shape[0], block=1, **asked)

    vector = make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(launches, vector, *examples, options=options)


def attributes(fake_cuda: FakeCuda, **asked: Any) -> dict[Id, Any]:
    """What the driver gets of a launch of 8 blocks."""
    launching(**asked)(forged(np.zeros(8, np.float32)))
    (launch,) = fake_cuda.launches()
    return {Id(number): value for number, value in launch.attributes.items()}


def test_a_launch_that_asks_for_nothing_has_no_attributes(fake_cuda: FakeCuda) -> None:
    assert attributes(fake_cuda) == {}
    assert attributes_after_clear(fake_cuda, cooperative=False, use_pdl=False, cluster=None) == {}


def attributes_after_clear(fake_cuda: FakeCuda, **asked: Any) -> dict[Id, Any]:
    fake_cuda.clear()
    return attributes(fake_cuda, **asked)


@pytest.mark.parametrize(
    ("asked", "number", "form", "value"),
    [
        ({"cluster": 4}, Id.CLUSTER_DIMENSION, "<III", (4, 1, 1)),
        ({"cluster": (2, 1)}, Id.CLUSTER_DIMENSION, "<III", (2, 1, 1)),
        ({"cooperative": True}, Id.COOPERATIVE, "<i", (1,)),
        ({"use_pdl": True}, Id.PROGRAMMATIC_STREAM_SERIALIZATION, "<i", (1,)),
        ({"priority": -3}, Id.PRIORITY, "<i", (-3,)),
        ({"preferred_smem_carveout": 0}, Id.PREFERRED_SHARED_MEMORY_CARVEOUT, "<I", (0,)),
        ({"preferred_smem_carveout": 75}, Id.PREFERRED_SHARED_MEMORY_CARVEOUT, "<I", (75,)),
    ],
)
def test_an_attribute_comes_with_its_bytes(
    fake_cuda: FakeCuda, asked: dict[str, Any], number: Id, form: str, value: tuple[int, ...]
) -> None:
    found = attributes(fake_cuda, **asked)
    assert found.keys() == {number}
    assert struct.unpack_from(form, found[number]) == value


def test_a_cluster_may_have_16_blocks(fake_cuda: FakeCuda) -> None:
    launching(cluster=16)(forged(np.zeros(16, np.float32)))
    allowed = [call.numbers for call in fake_cuda.calls() if call.name == "cuKernelSetAttribute"]
    assert allowed == [(14, 1, 0)]
    assert len(fake_cuda.launches()) == 1


def test_several_attributes_stand_side_by_side(fake_cuda: FakeCuda) -> None:
    found = attributes(fake_cuda, cluster=2, cooperative=True, use_pdl=True, priority=1)
    assert [int(number) for number in found] == [4, 2, 6, 8]


def test_what_only_the_call_knows_comes_through(fake_cuda: FakeCuda) -> None:
    @fe.jit
    def launches(a: fe.Tensor, cluster: fe.Int32, priority: fe.Int64, early: Any, late: Any):
        set_kernel(a).launch(
            grid=a.shape[0],
            block=1,
            cluster=(cluster,),
            priority=priority,
            launch_completion_event=late,
            launch_completion_event_flags=1,
            programmatic_event=early,
            programmatic_event_trigger_at_block_start=True,
        )

    vector = make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    events = [params.Pointer(name) for name in ("early", "late")]
    function = fe.compile(launches, vector, fe.Int32, fe.Int64, *events, options=CUDA)
    function(forged(np.zeros(8, np.float32)), 4, -2, EVENT, ctypes.c_void_p(EVENT + 1))
    (launch,) = fake_cuda.launches()
    forms = {
        Id.CLUSTER_DIMENSION: ("<III", (4, 1, 1)),
        Id.PRIORITY: ("<i", (-2,)),
        Id.LAUNCH_COMPLETION_EVENT: ("<Qi", (EVENT + 1, 1)),
        Id.PROGRAMMATIC_EVENT: ("<Qii", (EVENT, 0, 1)),
    }
    assert launch.attributes.keys() == forms.keys()
    for number, (form, value) in forms.items():
        assert struct.unpack_from(form, launch.attributes[number]) == value


# ---- in the IR ----


def test_the_text_says_what_is_asked_for() -> None:
    bounds = {"max_number_threads": (64, 2), "min_blocks_per_mp": 3}
    asked = {"cluster": 2, "priority": 1, "cooperative": True, "preferred_smem_carveout": 50}
    text = launching(**asked, **bounds, use_pdl=True).inspect_ir()
    (line,) = [line for line in text.splitlines() if " launch @" in line]
    _, _, said = line.partition(" cluster(")
    assert re.sub(r"%\w+", "%", said) == (
        "%, %, %) priority(%) cooperative programmatic min_blocks(3) carveout(50) "
        "max_threads(64, 2, 1)"
    )


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"cluster": (Int64, Int64)}, "the cluster of a launch"),
        ({"cluster": (Int32,) * 3}, "the cluster of a launch"),
        ({"priority": Int64}, "the priority of a launch is an Int32"),
        ({"completion_event": Int64}, "an event of a launch is a pointer"),
        ({"programmatic_event": Int64}, "an event of a launch is a pointer"),
    ],
)
def test_the_verifier_knows_the_types(wrong: dict[str, Any], rule: str) -> None:
    program, b = add_one(Float32), Builder()

    def made(dtype: Any) -> Any:
        return tuple(map(made, dtype)) if isinstance(dtype, tuple) else b.constant(dtype, 1)

    with b.region() as body:
        one = b.constant(Int64, 1)
        arguments = program.host.params
        given = {name: made(dtype) for name, dtype in wrong.items()}
        b.append(ops.Launch("device_add_one", (one,) * 3, (one,) * 3, arguments, **given))
    with pytest.raises(VerifierError, match=rule):
        verify(replace(program, host=replace(program.host, body=body.freeze())))


# ---- what is refused at the call ----


@pytest.mark.parametrize("options", [CUDA, "--target cpu"])
@pytest.mark.parametrize(
    ("count", "cluster", "message"),
    [
        (6, (4, 1, 1), "expected grid x to be a multiple of cluster x, 4, but got 6"),
        (32, (32, 1, 1), r"expected cluster x to be in \[1, 16\], but got 32"),
        (8, (0, 1, 1), r"expected cluster x to be in \[1, 16\], but got 0"),
        (8, (8, 4, 1), r"at most 16 blocks a cluster, but got 32 \(cluster 8, 4, 1\)"),
        (8, (1, 1, 2), "expected grid z to be a multiple of cluster z, 2, but got 1"),
    ],
)
def test_a_cluster_that_cannot_be(
    fake_cuda: FakeCuda, options: str, count: int, cluster: tuple[int, ...], message: str
) -> None:
    function, array = launching(cluster=cluster, options=options), np.zeros(count, np.float32)
    with pytest.raises(fe.LaunchError, match=f"^Invalid launch of set_kernel: .*{message}$"):
        function(array if "cpu" in options else forged(array))
    assert fake_cuda.launches() == []


def test_a_block_has_at_most_the_threads_that_its_kernel_is_compiled_for() -> None:
    @fe.jit
    def launches(a: fe.Tensor, size: fe.Int32):
        set_kernel(a).launch(grid=1, block=(size, 2), max_number_threads=(64, 2))

    vector = make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    function = fe.compile(launches, vector, fe.Int32, options="--target cpu")
    function(np.zeros(1, np.float32), 64)
    with pytest.raises(
        fe.LaunchError, match=r"at most 128 threads a block, but got 130 \(block 65"
    ):
        function(np.zeros(1, np.float32), 65)


# ---- what is refused while compiling ----


@pytest.mark.parametrize(
    ("asked", "message", "expected"),
    [
        ({"cooperative": 2}, "launch: cooperative is 2", "True or False"),
        ({"use_pdl": "yes"}, "launch: use_pdl is 'yes'", "True or False"),
        ({"priority": 0.5}, "launch: priority is 0.5", "an integer, the lower the sooner"),
        ({"preferred_smem_carveout": 101}, "preferred_smem_carveout is 101", "from 0 to 100"),
        ({"min_blocks_per_mp": -1}, "min_blocks_per_mp is -1", "from 0 to 32"),
        ({"max_number_threads": (2048,)}, "max_number_threads is 2048", "from 1 to 1024"),
        ({"max_number_threads": (64, 64)}, "max_number_threads is ", "at most 1024 threads"),
        ({"max_number_threads": (1,) * 4}, "max_number_threads is ", "1 to 3 numbers"),
        ({"launch_completion_event": 3}, "launch_completion_event is 3", "a CUevent"),
        ({"cluster": (1,) * 4}, "cluster takes 1 to 3 sizes, but got 4", None),
        ({"smem_carveout": 3}, "launch has no argument 'smem_carveout'", "preferred_smem_carveout"),
    ],
)
def test_a_wrong_argument_is_named(
    asked: dict[str, Any], message: str, expected: str | None
) -> None:
    with pytest.raises(fe.CompileError) as caught:
        launching(**asked)
    diagnostic = caught.value.diagnostic
    assert message in diagnostic.message
    assert expected is None or expected in (diagnostic.expected or "")


@pytest.mark.parametrize(("name", "value"), [("cluster", 2), ("use_pdl", True)])
def test_an_older_gpu_does_not_have_it(name: str, value: Any) -> None:
    wanted = rf"{name} in the launch of set_kernel needs sm_90 or newer, .* compiled for sm_80$"
    with pytest.raises(fe.CompileError, match=wanted):
        launching(**{name: value}, options="--target cuda --gpu-arch sm_80")


# ---- on the CPU ----


def test_the_cpu_runs_a_launch_whatever_it_asks_for() -> None:
    asked = {"cluster": 2, "use_pdl": True, "priority": -1, "preferred_smem_carveout": 100}
    bounds = {"max_number_threads": 32, "min_blocks_per_mp": 4}
    array = np.zeros(8, np.float32)
    launching(**asked, **bounds, options="--target cpu")(array)
    assert (array == 1).all()


def test_the_cpu_has_no_cooperative_launches() -> None:
    with pytest.raises(fe.CompileError, match="runs all blocks at the same time") as caught:
        launching(cooperative=True, options="--target cpu")
    assert "compile for a GPU" in (caught.value.diagnostic.hint or "")
