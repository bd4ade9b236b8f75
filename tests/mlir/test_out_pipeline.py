"""Compiled through MLIR: the same results as ferrule's own lowering, and PTX that assembles."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import interpreter
import numpy as np
import pytest
from agreement import outcome, require_same
from cooperative_programs import THREADS, cooperative_kernels
from cpu_machine import compile_program
from draws import hypothesised
from hypothesis import HealthCheck, Phase, given, note, settings
from interpreter import Memory
from mlir_functions import needs_mlir
from plain_python import examples
from ptxas import ARCHS, assemble
from random_programs import HOST, Generated, programs

import ferrule as fe
from ferrule import arch
from ferrule.compiler.mlir import jobs
from ferrule.language import stages
from ferrule.language.mlir import coroutines
from ferrule.language.mlir.pipeline import lower_cpu_by_mlir

pytestmark = needs_mlir
FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(
    path.stem for path in FOLDER.glob("*.py") if "def compiled(" in path.read_text("utf-8")
)
SINCE_SM_90 = ("tma_matmul",)
CPU = "--target cpu"
MLIR = f"{CPU} --pipeline mlir"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"out.{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def through_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is compiled goes through MLIR."""
    lowered: Callable[..., Any] = stages._lowered

    def other(program: Any, options: fe.Options, origins: Any) -> Any:
        return lowered(program, replace(options, pipeline="mlir"), origins)

    monkeypatch.setattr(stages, "_lowered", other)


# ---- examples ----


@pytest.mark.usefixtures("through_mlir")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_agrees_with_its_reference(name: str, capsys: Any) -> None:
    load(FOLDER / f"{name}.py").main()
    assert "equal" in capsys.readouterr().out


@pytest.mark.parametrize("name", EXAMPLES)
def test_upstream_verifies_the_text_of_an_example(name: str) -> None:
    target = "cuda --gpu-arch sm_90a" if name in SINCE_SM_90 else "cpu"
    function = load(FOLDER / f"{name}.py").compiled(f"--target {target}")
    text = jobs.verified(function.inspect_mlir())
    assert "gpu.module" in text and f"func.func @{function.signature.name}(" in text


def test_upstream_verifies_what_is_asked_of_tvm_ffi() -> None:
    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))

    def host(x: fe.Tensor, names: fe.Array[fe.Int64]):
        total = fe.Int64(0)
        for name in names:
            total += fe.call("their.sum", x, name, "text", result=int)
        y = fe.call("their.shape", x, total, result=vector)
        if total > 3:
            y = fe.empty_like(x)
        return y, fe.call("their.name", result=str)

    text = fe.compile(host, vector, None, options=CPU).inspect_mlir()
    assert "func.call @ferrule.receive" in jobs.verified(text)


def entries(ptx: str) -> list[tuple[str, str]]:
    """The names and parameters of a module's kernels."""
    found = re.findall(r"\.visible \.entry (\S+)\((.*?)\)", ptx, re.S)
    return [(name, re.sub(r"\s+", " ", params)) for name, params in found]


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_ptx_of_an_example_assembles(name: str, tmp_path: Path) -> None:
    module = load(FOLDER / f"{name}.py")
    archs = [each for each in ARCHS if name not in SINCE_SM_90 or int(each[3:].rstrip("a")) >= 90]
    options = f"--target cuda --gpu-arch {','.join(archs)}"
    made = module.compiled(f"{options} --pipeline mlir").inspect_ptx()
    # This pipeline makes one version of a kernel, that for tensors of every size.
    first = module.compiled(f"{options} --index-bitwidth 64").inspect_ptx()
    for each in archs:
        assemble(made[each], each, tmp_path)
        assert entries(made[each]) == entries(first[each])


# ---- random programs ----


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New files: a program that is compiled must have a source."""
    folder = tmp_path_factory.mktemp("programs")
    return (folder / f"program_{i}.py" for i in itertools.count())


@settings(
    max_examples=max(20, settings.default.max_examples // 5),
    deadline=None,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=list(HealthCheck),
)
@given(generated=hypothesised(programs(6)))
def test_random_programs_mean_the_same(files: Iterator[Path], generated: Generated) -> None:
    note(f"{generated.source}\n{generated.arguments}")
    path = next(files)
    path.write_text(f"import ferrule as fe\n{generated.source}", encoding="utf-8")
    function, given_ = getattr(load(path), HOST), examples(*generated.arguments)
    first, second = (
        outcome(fe.compile(function, *given_, options=options), generated.arguments)
        for options in (CPU, MLIR)
    )
    require_same(first, second, "through MLIR")


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=hypothesised(cooperative_kernels(most=4, depth=1)))
def test_threads_that_work_together_mean_the_same(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = 2
    sizes = (blocks, 1, 1, THREADS, 1, 1)
    a = np.random.default_rng(5).integers(-9, 9, blocks * THREADS, dtype=np.int32)
    wanted, found = np.zeros_like(a), np.zeros_like(a)
    symbols = dict.fromkeys(program.symbols, a.size)
    memory = [Memory.of(a), Memory.of(wanted)]
    interpreter.run(program, [*memory, *sizes], symbols, interpreter.upwards)
    for form in (coroutines.waits_apart, coroutines.cooperates):
        with monkeypatch.context() as patch:
            patch.setattr(coroutines, "waits_apart", form)
            compiled = compile_program(program, lower=lower_cpu_by_mlir)
        assert compiled(a, found, *sizes, a.size) == 0
        np.testing.assert_array_equal(found, wanted)
        found[:] = 0


# ---- numbers ----

KINDS = (fe.Float16, fe.BFloat16, fe.Float32, fe.Float64, fe.Int8, fe.Uint8, fe.Int64, fe.Uint64)


def numbers(dtype: Any) -> Any:
    import ml_dtypes

    kind = ml_dtypes.bfloat16 if dtype is fe.BFloat16 else np.dtype(dtype.name)
    if dtype.kind == "float":
        some = [0.0, -0.0, 1.5, -2.75, np.inf, -np.inf, np.nan, 3e-7, -65504.0, 7.0]
        return np.array(some).astype(kind)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    return np.array([0, 1, 2, 7, low, high, high - 1, low + 1], kind)


@pytest.mark.parametrize("dtype", KINDS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("to", [fe.Float32, fe.Int8, fe.Uint64, fe.Float16], ids=lambda to: to.name)
def test_numbers_of_all_kinds_and_their_casts(dtype: Any, to: Any) -> None:
    pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need ml_dtypes")

    @fe.jit
    def every_way(x: fe.Tensor, y: fe.Tensor, out: fe.Tensor):
        for i in range(x.shape[0]):
            for j in range(y.shape[0]):
                a, b = x[i], y[j]
                k = i * y.shape[0] + j
                out[k, 0] = to(max(a, b))
                out[k, 1] = to(min(a, b))
                out[k, 2] = to(a + b)
                out[k, 3] = to(a * b)
                out[k, 4] = to(-a)
                out[k, 5] = to(a < b)

    values = numbers(dtype)
    out = np.zeros((values.size**2, 6), to.name)
    shown = [fe.make_fake_compact_tensor(dtype, (fe.sym_int(),)) for _ in range(2)]
    given_ = (*shown, fe.make_fake_compact_tensor(to, out.shape, stride_order=(1, 0)))
    first, second = (
        outcome(fe.compile(every_way, *given_, options=options), (values, values, out))
        for options in (CPU, MLIR)
    )
    assert first.error is None and second.error is None
    np.testing.assert_array_equal(first.arguments[2], second.arguments[2])


# ---- faults, results, and what cannot be expressed ----


def test_a_fault_in_a_kernel_ends_the_call_and_gives_memory_back() -> None:
    @fe.kernel
    def device(x: fe.Tensor):
        shared = fe.make_tensor(arch.alloc_smem(fe.Float32, 32), fe.make_layout(32))
        i = arch.thread_idx()[0]
        shared[i] = x[i]
        arch.sync_threads()
        if shared[31 - i] < 0:
            raise ValueError(f"negative for {i}")
        x[i] = shared[31 - i]

    @fe.jit
    def reverse(x: fe.Tensor):
        device(x).launch(grid=1, block=32)

    x = np.arange(32, dtype=np.float32)
    outcomes = []
    for options in (CPU, MLIR):
        function = fe.compile(reverse, x, options=options)
        broken = x.copy()
        broken[5] = -1
        outcomes.append((outcome(function, (x,)), outcome(function, (broken,))))
    (right, wrong), (also_right, also_wrong) = outcomes
    require_same(right, also_right, "through MLIR")
    assert right.error is None
    assert wrong.error is not None and wrong.error == also_wrong.error


def test_a_function_that_makes_tensors_has_its_kernels_from_mlir() -> None:
    @fe.jit
    def doubled(x: fe.Tensor):
        y = fe.empty_like(x)
        y[:] = x[:] * 2
        return y

    x = np.arange(1000, dtype=np.float32)
    function = fe.compile(doubled, x, options=MLIR)
    np.testing.assert_array_equal(np.from_dlpack(function(x)), 2 * x)


def test_threads_that_wait_at_different_places_are_coroutines() -> None:
    @fe.kernel
    def device(x: fe.Tensor, n: fe.Int32, by: fe.Float16, strict: fe.Boolean):
        shared = fe.make_tensor(arch.alloc_smem(fe.Float32, 64), fe.make_layout(64))
        own = fe.make_fragment(2, fe.Float32)
        i = arch.thread_idx()[0]
        at = arch.block_idx()[0] * 64 + i
        total = fe.Float32(0)
        for k in range(i % 2 + 1):
            own[k] = x[at] + k
            if i < 32:
                shared[i] = own[k]
        if i % 2:
            total = arch.shuffle_sync_bfly(own[1], 2, mask=0xAAAAAAAA)
        if i < 32:
            arch.sync_threads()
        else:
            shared[i] = x[at] * fe.Float32(by)
            arch.sync_threads()
        if strict and shared[63 - i] < 0:
            raise ValueError(f"thread {i} of {n}")
        x[at] = shared[63 - i] + total + own[0]

    @fe.jit
    def parted(x: fe.Tensor, n: fe.Int32, by: fe.Float16, strict: fe.Boolean):
        device(x, n, by, strict).launch(grid=3, block=64)

    x = np.arange(192, dtype=np.float32) - 60
    functions = [
        fe.compile(parted, x, fe.Int32(64), fe.Float16(1.5), fe.Boolean(True), options=options)
        for options in (CPU, MLIR)
    ]
    for strict in (False, True):
        first, second = (outcome(f, (x.copy(), 64, 1.5, strict)) for f in functions)
        require_same(first, second, "through MLIR")
        assert (first.error is not None) is strict


def test_an_exported_object_runs_where_there_is_no_mlir(tmp_path: Path) -> None:
    x = np.ones(10, np.float32)

    @fe.jit
    def halved(x: fe.Tensor):
        x[:] = x[:] / 2

    fe.compile(halved, x, options=MLIR).export_library(tmp_path / "halved.so")
    import tvm_ffi

    tvm_ffi.load_module(tmp_path / "halved.so").halved(x)
    np.testing.assert_array_equal(x, 0.5)
