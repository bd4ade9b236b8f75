"""Configurations of autotuned kernels, heuristics, and launches that other programs would make."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from tensor_maps import decoded
from triton_launcher import tensor

from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends import triton as frontend
from ferrule.frontends.triton.installed import kernel_of
from ferrule.frontends.triton.traced.tensors import TracedDescriptor, TracedTensor

pytestmark = pytest.mark.needs_cc

COPY = {"x": "*fp32[n]", "y": "*fp32[n]"}


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def in_blocks(meta: Any) -> tuple[Any]:
    return (frontend.ceil_div(meta["n"], meta["BLOCK"]),)


def compiled(kernel: Any, **how: Any) -> Any:
    return frontend.compile(
        kernel, grid=in_blocks, target="sm_90a", **{"signature": {**COPY}, **how}
    )


def shape_of_launch(gpu: FakeCuda, function: Any, n: int) -> tuple[int, int]:
    """The blocks and threads of the launch for so many elements."""
    gpu.clear()
    (x, _), (y, _) = tensor(n), tensor(n)
    function(x, y)
    (launch,) = gpu.launches()
    return launch.grid[0], launch.block[0]


def test_several_configs_must_be_chosen_from(kernels: ModuleType) -> None:
    with pytest.raises(CompileError, match="autotuned over 3 configs, and none is named") as error:
        compiled(kernels.tuned)
    assert "#1: BLOCK: 512, num_warps: 4" in str(error.value)


def test_tuners_and_wrappers_of_libraries_are_looked_into(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    """A library's own tuner is one of Triton's; what only launches has the kernel as `fn`."""
    triton = pytest.importorskip("triton")

    class OwnTuner(triton.runtime.Autotuner):  # type: ignore[misc, name-defined]
        pass

    class OwnHeuristics(triton.runtime.Heuristics):  # type: ignore[misc, name-defined]
        pass

    class Entry(triton.KernelInterface):  # type: ignore[misc, name-defined]
        def __init__(self, fn: Any) -> None:
            self.fn, self.arg_names = fn, fn.arg_names

    def tuner(kernel: Any) -> Any:
        configs = [triton.Config({"BLOCK": 128})]
        return OwnTuner(kernel, kernel.arg_names, configs, ["n"], None, None)

    function = compiled(Entry(tuner(Entry(kernels.tuned.fn))), config=0)
    assert shape_of_launch(gpu, function, 256) == (2, 128)
    heuristic = Entry(OwnHeuristics(kernels.chosen.fn, [], {"BLOCK": len}))
    assert kernel_of(heuristic).heuristics == {"BLOCK": len}


def test_the_layer_that_is_no_kernel_is_named(kernels: ModuleType) -> None:
    triton = pytest.importorskip("triton")
    wrong = triton.runtime.Heuristics(print, [], {})
    with pytest.raises(CompileError, match="is no Triton kernel: inside of it is <built-in func"):
        kernel_of(wrong)


@pytest.mark.parametrize(("config", "found"), [(0, (4, 64)), (1, (2, 128)), (2, (1, 256))])
def test_a_config_is_named_by_its_number(
    gpu: FakeCuda, kernels: ModuleType, config: int, found: tuple[int, int]
) -> None:
    function = compiled(kernels.tuned, config=config)
    assert shape_of_launch(gpu, function, 1000) == found
    assert f"Triton config: BLOCK={(256, 512, 1024)[config]}, num_warps=" in function.__doc__


def test_a_config_of_ones_own(gpu: FakeCuda, kernels: ModuleType) -> None:
    import triton

    function = compiled(kernels.tuned, config=triton.Config({"BLOCK": 128}, num_warps=1))
    assert shape_of_launch(gpu, function, 1000) == (8, 32)


def test_the_best_config_for_each_key_is_measured_once(gpu: FakeCuda, kernels: ModuleType) -> None:
    """The timer says that few threads are best for small vectors, many for large ones."""
    small, large = (tuple(tensor(n)[0] for _ in range(2)) for n in (512, 100_000))

    def timer(call: Callable[[], Any]) -> float:
        gpu.clear()
        call()
        (launch,) = gpu.launches()
        blocks, threads = launch.grid[0], launch.block[0]
        return threads if blocks < 10 else 1 / threads

    chosen = frontend.tune(
        kernels.tuned,
        {(512,): small, (100_000,): large},
        timer=timer,
        signature={**COPY},
        grid=in_blocks,
        target="sm_90a",
    )
    assert chosen == {(512,): 0, (100_000,): 2, None: 0}
    function = compiled(kernels.tuned, config=chosen)
    assert "Triton config for n = 100000: BLOCK=1024, num_warps=8" in function.__doc__
    assert shape_of_launch(gpu, function, 512) == (2, 64)
    assert shape_of_launch(gpu, function, 100_000) == (98, 256)
    assert shape_of_launch(gpu, function, 1000) == (4, 64)


def test_configs_are_compiled_in_other_processes(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that this process does again is found in Triton's cache; a config that ends its process
    is left out, by name, and costs no other."""
    from ferrule.compiler import workers
    from ferrule.frontends.triton.autotuned import tuning

    ours, kept = os.getpid(), tuning.compile

    def compile(kernel: Any, *, config: int, **how: Any) -> Any:
        if os.getpid() != ours and config == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if os.getpid() == ours:
            compiled_here.append(config)
        return kept(kernel, config=config, **how)

    compiled_here: list[int] = []
    monkeypatch.setattr(tuning, "compile", compile)
    monkeypatch.setattr(workers, "forks", lambda: True)  # whatever threads other tests left
    monkeypatch.setattr(workers, "cores", lambda: 2)
    call = tuple(tensor(512)[0] for _ in range(2))
    how: dict[str, Any] = {"signature": COPY, "grid": in_blocks, "target": "sm_90a"}
    chosen = frontend.tune(kernels.tuned, {(512,): call}, timer=lambda call: 1.0, **how)
    assert (chosen, compiled_here) == ({(512,): 0, None: 0}, [0, 2])
    monkeypatch.setattr(kernels.tuned, "configs", kernels.tuned.configs[1:2] * 2)
    monkeypatch.setattr(tuning, "_prepared", lambda kernel, numbers, how: {0: died, 1: died})
    died = workers.WorkerDied("the process that compiled it ended by signal 9, 2 times")
    with pytest.raises(CompileError, match="none of its configs can be launched") as error:
        frontend.tune(kernels.tuned, {(512,): call}, timer=lambda call: 1.0, **how)
    assert "num_warps: 4" in str(error.value) and "ended by signal 9" in str(error.value)


def test_what_an_autotuner_prunes_is_not_measured(kernels: ModuleType) -> None:
    """Its functions see the arguments of a launch by Triton; the best guesses are measured."""
    import triton

    seen, measured = [], []

    def early(configs: list[Any], named: dict[str, Any], **more: Any) -> list[Any]:
        seen.append((named["n"], more["n"], named["x"], named["y"].shape))
        return [config for config in configs if config.kwargs["BLOCK"] <= named["n"]]

    def model(x: Any, BLOCK: int, num_warps: int, **more: Any) -> int:
        return -BLOCK

    asked = {"early_config_prune": early, "perf_model": model, "top_k": 1}
    known = kernels.tuned.configs
    kernel = triton.autotune(known, ["n"], prune_configs_by=asked)(kernels.tuned.fn)
    how: dict[str, Any] = {"signature": {"x": "*fp32[n]", "y": frontend.like("x")}}
    how |= {"grid": in_blocks, "target": "sm_90a", "timer": lambda call: measured.append(1) or 1}
    x, large = tensor(600)[0], tensor(2000)[0]
    chosen = frontend.tune(kernel, {(600,): (x,), (2000,): (large,)}, **how)
    assert (chosen, len(measured)) == ({(600,): 1, (2000,): 2, None: 1}, 2)
    assert seen[:2] == [(600, 600, x, (600,)), (2000, 2000, large, (2000,))]


def test_a_config_is_for_the_calls_that_pruning_leaves_it(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    """As Triton's launch would choose none that `early_config_prune` leaves out."""
    import triton

    def early(configs: list[Any], named: dict[str, Any], n: int, **more: Any) -> list[Any]:
        least = 1024 if named["x"].shape[0] >= 4096 else 0
        return [each for each in configs if least <= each.kwargs["BLOCK"] <= n]

    known = [triton.Config({"BLOCK": block}) for block in (128, 512, 1024)]
    asked = {"early_config_prune": early}
    kernel = triton.autotune(known, ["n"], prune_configs_by=asked)(kernels.tuned.fn)
    how: dict[str, Any] = {"signature": {**COPY}, "grid": in_blocks, "target": "sm_90a"}

    def taken(function: Any) -> list[int]:
        found = []
        for n in (100, 128, 600, 1023, 1024, 5000):
            try:
                function(tensor(n)[0], tensor(n)[0])
                found.append(n)
            except ValueError as error:
                assert "early_config_prune refuses the call: it leaves out the" in str(error)
        return found

    assert taken(frontend.compile(kernel, config=0, **how)) == [128, 600, 1023, 1024]
    assert taken(frontend.compile(kernel, config=2, **how)) == [1024, 5000]
    chosen = frontend.by_size("n", {1023: 1, 5000: 2})
    assert taken(frontend.compile(kernel, choose=chosen, **how)) == [600, 1023, 1024, 5000]
    every = [100, 128, 600, 1023, 1024, 5000]
    assert taken(frontend.compile(kernel, config=0, prune=False, **how)) == every
    own = triton.Config({"BLOCK": 256})
    assert taken(frontend.compile(kernel, config=own, **how)) == every

    def opaque(configs: list[Any], named: dict[str, Any], **more: Any) -> list[Any]:
        return configs[: int(named["n"])]

    kernel.early_config_prune = opaque
    with pytest.raises(
        CompileError, match=r"early_config_prune cannot be traced(.|\n)*prune=False"
    ):
        frontend.compile(kernel, config=0, **how)


@pytest.mark.parametrize(
    ("early", "message"),
    [
        (lambda configs, named, **more: [], "early_config_prune leaves no config"),
        (lambda configs, named, **more: named["z"], "early_config_prune fails: KeyError"),
        (lambda configs, named, **more: ["best"], "gives a config that the kernel does not have"),
    ],
)
def test_what_prunes_wrongly_is_named(kernels: ModuleType, early: Any, message: str) -> None:
    import triton

    asked = {"early_config_prune": early}
    kernel = triton.autotune(kernels.tuned.configs, ["n"], prune_configs_by=asked)(kernels.tuned.fn)
    calls = {(64,): [tensor(64)[0]] * 2}
    with pytest.raises(CompileError, match=message):
        frontend.tune(kernel, calls, signature={**COPY}, grid=in_blocks, target="sm_90a")


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([1], r"tune needs a call for one key at least, but got \[1\]"),
        ({(512,): 5}, r"the call for \(512,\) is a tuple of its arguments, but got 5"),
        ({(512,): ()}, "a call to measure has 0 arguments"),
    ],
)
def test_wrong_calls_to_measure(kernels: ModuleType, calls: Any, message: str) -> None:
    import triton

    asked = {"early_config_prune": lambda configs, named: configs}
    kernel = triton.autotune(kernels.tuned.configs, ["n"], prune_configs_by=asked)(kernels.tuned.fn)
    with pytest.raises(CompileError, match=message):
        frontend.tune(kernel, calls, signature={**COPY}, grid=in_blocks, target="sm_90a")


def test_a_key_that_is_measured_twice_is_refused(kernels: ModuleType) -> None:
    with pytest.raises(CompileError, match=r"has the key \(512,\) twice"):
        frontend.tune(kernels.tuned, {512: (), (512,): ()}, grid=in_blocks, target="sm_90a")


def test_what_a_key_names_beside_parameters_is_left_out(gpu: FakeCuda, kernels: ModuleType) -> None:
    """As Triton does, where it does not refuse such a key."""
    import triton

    try:
        kernel = triton.autotune(kernels.tuned.configs, ["version", "n"])(kernels.tuned.fn)
    except ValueError:
        pytest.skip("this version of Triton refuses such a key")
    function = compiled(kernel, config={(512,): 0, None: 2})
    assert [shape_of_launch(gpu, function, n)[1] for n in (512, 600)] == [64, 256]


def test_a_key_that_nothing_was_chosen_for_is_refused(gpu: FakeCuda, kernels: ModuleType) -> None:
    function = compiled(kernels.tuned, config={(512,): 0, (1024,): 1})
    with pytest.raises(ValueError, match="expected n == 512; or n == 1024"):
        shape_of_launch(gpu, function, 1000)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"config": 3}, "has 3 configs, so there is no config #3"),
        ({"config": "best"}, "the config is 'best'"),
        ({"config": {(1, 2): 0}}, r"\(1, 2\) is no key of its configs"),
        ({"config": {}}, "names no config at all"),
        ({"config": {7: 0, (7,): 1}}, r"has the key \(7,\) twice"),
        ({"config": 0, "constexprs": {"BLOCK": 64}}, "'BLOCK' is given twice, once by its config"),
    ],
)
def test_wrong_configs(kernels: ModuleType, how: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(kernels.tuned, **how)


@pytest.mark.parametrize("n", [1000, 0])
def test_a_hook_that_fills_a_tensor_is_a_launch_before(
    gpu: FakeCuda, kernels: ModuleType, n: int
) -> None:
    import triton

    config = triton.Config({"BLOCK": 64}, pre_hook=lambda arguments: arguments["y"].zero_())
    function = compiled(kernels.tuned, config=config)
    (x, _), (y, at) = tensor(n), tensor(n)
    function(x, y)
    assert [launch.kernel for launch in gpu.launches()] == (["fill", "tuned"] if n else [])
    if n:
        fill = gpu.launches()[0]
        assert fill.parameters[:2] == (at.address.to_bytes(8, "little"), n.to_bytes(4, "little"))
    with pytest.raises(CompileError, match="y is to be filled, but its strides are those of a v"):
        compiled(kernels.tuned, config=config, signature={"x": "*fp32[n]", "y": "*fp32[n: s]"})


def test_a_hook_sets_the_block_of_a_descriptor(gpu: FakeCuda, kernels: ModuleType) -> None:
    """One that asks first whether it is a descriptor, as it is in a launch by Triton."""
    import triton
    from triton.tools.tensor_descriptor import TensorDescriptor

    def hook(arguments: dict[str, Any]) -> None:
        if isinstance(arguments["source"], TensorDescriptor):
            arguments["source"].block_shape = [arguments["SIZE"], arguments["SIZE"]]

    function = frontend.compile(
        kernels.copy_block,
        signature={
            "source": frontend.descriptor("*fp16[n, n]:16", (1, 1)),
            "target": "*fp16[n, n]",
        },
        config=triton.Config({"SIZE": 32}, pre_hook=hook),
        grid=lambda meta: (triton.cdiv(meta["n"], meta["SIZE"]),) * 2,
        target="sm_90a",
    )
    matrix, _ = tensor(128, 128, dtype=np.float16)
    function(matrix, matrix)
    (launch,) = gpu.launches()
    assert (launch.grid, decoded(launch.parameters[0]).box) == ((4, 4, 1), (32, 32))


def test_a_hook_that_does_something_else_is_refused(kernels: ModuleType) -> None:
    import triton

    config = triton.Config({"BLOCK": 64}, pre_hook=lambda given: given["y"].copy_(given["x"]))
    with pytest.raises(CompileError, match="the pre_hook of its config cannot be traced.*copy_"):
        compiled(kernels.tuned, config=config)


@pytest.mark.parametrize(("wide", "blocks"), [(True, 2), (False, 4)])
def test_heuristics_choose_constants(
    gpu: FakeCuda, kernels: ModuleType, wide: bool, blocks: int
) -> None:
    function = compiled(kernels.chosen, signature={"x": "*fp32[n]"}, constexprs={"WIDE": wide})
    function(tensor(128)[0])
    (launch,) = gpu.launches()
    assert launch.grid == (blocks, 1, 1)


@pytest.mark.parametrize(("given", "warps"), [({}, (2, 8)), ({"EVEN": False}, (8, 8))])
def test_what_a_heuristic_compares_the_call_decides(
    gpu: FakeCuda, kernels: ModuleType, given: dict[str, Any], warps: tuple[int, int]
) -> None:
    """Each outcome has a kernel of its own; an option of Triton can follow from it."""
    function = compiled(
        kernels.decided, signature={"x": "*fp32[n]"}, constexprs={"BLOCK": 64, **given}
    )
    function(tensor(128)[0])
    function(tensor(100)[0])
    assert [launch.block[0] // 32 for launch in gpu.launches()] == [*warps]


def test_a_heuristic_that_gives_what_a_call_knows_is_refused(kernels: ModuleType) -> None:
    with pytest.raises(CompileError, match="the heuristic of 'BLOCK' gives n .* which only a call"):
        compiled(kernels.undecided, signature={"x": "*fp32[n]"})


@pytest.mark.parametrize(
    ("heuristic", "message"),
    [
        (lambda args: 1 << args["n"], "the value of n is known only at the call"),
        (lambda args: args["x"].data_ptr() % 16, "x.data_ptr is not known while compiling"),
    ],
)
def test_a_heuristic_that_cannot_be_traced_says_what_to_do(
    kernels: ModuleType, heuristic: Any, message: str
) -> None:
    import triton

    kernel = triton.heuristics({"BLOCK": heuristic})(kernels.undecided.fn)
    with pytest.raises(CompileError, match=f"{message}(.*\n)*.*BLOCK itself can be given"):
        compiled(kernel, signature={"x": "*fp32[n]"})


def test_a_hook_knows_a_descriptor_of_gluon() -> None:
    hopper = pytest.importorskip("triton.experimental.gluon.nvidia.hopper")
    x = TracedTensor(specs.Tensor("x", (64,), "float16"))
    assert isinstance(TracedDescriptor(x, (16,), is_gluon=True), hopper.TensorDescriptor)
    assert not isinstance(TracedDescriptor(x, (16,)), hopper.TensorDescriptor)


def test_a_heuristic_sees_tensors_as_pytorch_has_them(gpu: FakeCuda, kernels: ModuleType) -> None:
    torch, triton = pytest.importorskip("torch"), pytest.importorskip("triton")

    def block(args: dict[str, Any]) -> int:
        is_tensor = isinstance(args["x"], torch.Tensor)
        return 64 if is_tensor and args["x"].dtype == torch.float32 else 32

    kernel = triton.heuristics({"BLOCK": block})(kernels.chosen.fn)
    function = compiled(kernel, signature={"x": "*fp32[n]"}, constexprs={"WIDE": True})
    function(tensor(128)[0])
    assert gpu.launches()[0].grid == (2, 1, 1)


def test_a_recorded_launch_is_frozen(gpu: FakeCuda, kernels: ModuleType) -> None:
    """As of Helion, whose host code computes the grid of the sizes that it sees."""
    (x, _), (y, _) = tensor(1000), tensor(1000)
    record = frontend.Recorder()
    record(kernels.scale, (8,), x, y, 1000, 2.5, 128, num_warps=2, num_stages=1)
    (launch,) = record.launches
    function = launch.compile(target="sm_90a")
    assert [type(each) for each in function.signature.params] == [specs.Tensor] * 2
    function(x, y)
    (made,) = gpu.launches()
    assert (made.grid, made.block) == ((8, 1, 1), (64, 1, 1))
    assert [len(each) for each in made.parameters[2:4]] == [4, 4]
    with pytest.raises(ValueError, match="Mismatched x.shape"):
        function(tensor(999)[0], y)


def test_a_recorded_launch_has_tuples(gpu: FakeCuda, kernels: ModuleType) -> None:
    (x, _), (y, _) = tensor(128), tensor(128)
    record = frontend.Recorder()
    record(kernels.added, (1,), (kernels.Strided(x, (1,)),), kernels.Strided(y, [2]), BLOCK=64)
    function = record.launches[0].compile(target="sm_90a")
    assert [param.name for param in function.signature.params] == ["inputs_0_data", "to_data"]
    function(x, y)
    assert [len(each) for each in gpu.launches()[0].parameters[:3]] == [8, 8, 4]


def test_a_recorded_launch_can_be_made_for_all_sizes(gpu: FakeCuda, kernels: ModuleType) -> None:
    (x, _), (y, _) = tensor(1000), tensor(1000)
    record = frontend.Recorder()
    record(kernels.scale, (8,), x, y, 1000, 2.5, 128)
    signature = {"x": "*fp32[n]", "y": "*fp32[n]", "n": "n", "factor": "fp32"}
    function = record.launches[0].compile(target="sm_90a", signature=signature, grid=in_blocks)
    function(tensor(300)[0], tensor(300)[0], 1.5)
    (made,) = gpu.launches()
    assert made.grid == (3, 1, 1)


def test_a_signature_of_tritons_own_names_what_is_compiled_in(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    spelled = {**COPY, "BLOCK": "constexpr"}
    function = frontend.compile(
        kernels.tuned.fn,
        signature=spelled,
        constexprs={"BLOCK": 64},
        grid=in_blocks,
        target="sm_90a",
    )
    assert shape_of_launch(gpu, function, 128)[0] == 2


def test_a_hook_that_changes_what_is_around_it_is_refused(kernels: ModuleType) -> None:
    import triton

    class Counter:
        count = 0

        def __call__(self, given: dict[str, Any]) -> None:
            self.count += 1

    def logs(given: dict[str, Any]) -> None:
        seen[given["BLOCK"]] = True

    log: list[int] = []
    seen: dict[int, bool] = {}
    for hook in (lambda given: log.append(1), logs, lambda given: logs(given), Counter()):
        seen.clear()
        config = triton.Config({"BLOCK": 64}, pre_hook=hook)
        with pytest.raises(CompileError, match="pre_hook of its config changes Python objects"):
            compiled(kernels.tuned, config=config)
