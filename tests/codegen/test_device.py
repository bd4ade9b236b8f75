"""Kernels as PTX: every op selects, ptxas takes the text, and the layout of parameters is right."""

import json
import subprocess
import sys
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from device_kernels import Make, kernel, lowered_for, program, text_of
from nightly import is_nightly
from ptxas import ARCHS, assemble, find_ptxas

from ferrule import specs
from ferrule.compiler.cuda import archs
from ferrule.compiler.errors import CompileError
from ferrule.language.codegen.cuda.kernels import entry_names
from ferrule.language.codegen.cuda.parameters import TensorParameter, kernel_parameters
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rules.verifier import VerifierError, verify
from ferrule.language.ir.types import TensorType
from ferrule.language.mathlib import expand_maths
from ferrule.specs import Int32, Int64, sym_int, sym_int64

DTYPES = (
    *(specs.Boolean, specs.Int8, specs.Int16, specs.Int32, specs.Int64, specs.Uint8),
    *(specs.Uint16, specs.Uint32, specs.Uint64, specs.Float16, specs.BFloat16, specs.Float32),
    specs.Float64,
)


def every_op() -> Iterator[ops.Function]:
    """One kernel for each op and dtype that the verifier allows."""
    count = 0
    for make, source, target in _ops():
        made = kernel(f"k{count}", source, target, make)
        try:
            verify(program(made))
        except VerifierError:
            continue
        count += 1
        yield made


def _ops() -> Iterator[tuple[Make, specs.DType, specs.DType]]:
    for dtype in DTYPES:
        for unary in typing.get_args(ops.UnaryOp):
            yield (lambda b, x, _, op=unary: b.unary(op, x)), dtype, dtype
        for binary in typing.get_args(ops.BinaryOp):
            yield (lambda b, x, y, op=binary: b.binary(op, x, y)), dtype, dtype
        yield (lambda b, x, y: b.fma(x, y, x)), dtype, dtype
        for test in typing.get_args(ops.CompareOp):
            yield (lambda b, x, y, op=test: b.compare(op, x, y)), dtype, specs.Boolean
        for target in DTYPES:
            if target is not dtype:
                yield (lambda b, x, _, to=target: b.cast(to, x)), dtype, target


def say_ptx_of_every_op(archs: Sequence[str]) -> None:
    """Prints a line for each architecture: one module with all of them, as JSON."""
    kernels = expand_maths(program(*every_op()))
    for arch in archs:
        print(json.dumps(text_of(lowered_for(kernels, arch))), flush=True)


def ptx_from_another_process(archs: Sequence[str]) -> dict[str, str]:
    """What LLVM cannot select ends the process: so this is done in one of its own."""
    code = f"import test_device; test_device.say_ptx_of_every_op({archs!r})"
    paths = [path for path in sys.path if path] + [str(Path(__file__).parent)]
    # tvm_ffi imports PyTorch where there is one, which takes longer than all the rest.
    start = f"import sys; sys.path[:] = {paths!r}; sys.modules['torch'] = None"
    done = subprocess.run(
        [sys.executable, "-c", f"{start}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{archs[len(made)]}: {done.stderr[-2000:]}"
    return dict(zip(archs, made, strict=True))


def test_every_op_selects_and_ptxas_takes_it(tmp_path: Path) -> None:
    """In one process for all architectures: the kernels are the same, and take longest to make.

    By day for the oldest that there are, and the newest."""
    archs = ARCHS if is_nightly() else (ARCHS[0], ARCHS[-1])
    modules = ptx_from_another_process(("sm_50", *archs))
    for arch, ptx in modules.items():
        assert ptx.count(".visible .entry") > 380, arch
        assert ".extern" not in ptx, arch
        if arch in ARCHS and find_ptxas() is not None:
            assemble(ptx, arch, tmp_path, "-O0")


def test_a_tensor_is_a_struct_of_its_address_and_its_dynamic_numbers() -> None:
    n, m = sym_int(symbol="n"), sym_int64(symbol="m")
    tensor = ops.Value(TensorType(specs.Float32, (n, 8, m), (8 * m, m, 1), 4), "a")
    (parameter,) = kernel_parameters(ops.Function("k", "kernel", (tensor,), ops.Region()))
    assert isinstance(parameter, TensorParameter)
    assert parameter.shape == (n, m)
    assert parameter.strides == (8 * m, m)
    assert str(parameter.type) == "{ptr, {{i32, i64}, {i64, i64}}}"
    layout = parameter.layout
    offsets = [layout.offset("data"), *(layout.offset(n.path) for n in parameter.numbers())]
    assert offsets == [0, 8, 16, 24, 32]
    assert layout.size == 40


def test_a_static_tensor_is_its_address() -> None:
    tensor = ops.Value(TensorType(specs.Float32, (4, 8), (8, 1), 4), "a")
    (parameter,) = kernel_parameters(ops.Function("k", "kernel", (tensor,), ops.Region()))
    assert str(parameter.type) == "{ptr}"
    assert isinstance(parameter, TensorParameter)
    assert parameter.layout.size == 8


def test_a_symbol_of_no_tensor_follows_the_parameters() -> None:
    n = sym_int(symbol="n")
    tensor = ops.Value(TensorType(specs.Int32, (4,), (1,), 4), "a")
    builder = Builder()
    with builder.region() as region:
        i = builder.special("thread_idx", 0)
        builder.store(tensor, (i,), builder.size(Int32, n + 1))
    function = ops.Function("k", "kernel", (tensor,), region.freeze())
    assert [str(p.type) for p in kernel_parameters(function)] == ["{ptr}", "i32"]
    code = lowered_for(ops.Program("p", (function,), program().host, {n: "n"}), "sm_80")
    assert ".param .b32 k_param_1" in text_of(code) or ".param .u32 k_param_1" in text_of(code)


def launched(block: ops.Value | None, size: int) -> ops.Program:
    """A program that launches its kernel with blocks of one size, a constant or a parameter."""
    made = kernel("k", Int32, Int32, lambda b, x, y: b.binary("add", x, y))
    params = tuple(ops.Value(param.type, param.hint) for param in made.params)
    builder = Builder()
    with builder.region() as region:
        one = builder.constant(Int64, 1)
        x = builder.constant(Int64, size) if block is None else block
        builder.append(ops.Launch("k", (one, one, one), (x, one, one), params))
    given = params if block is None else (*params, block)
    host = ops.Function("p", "host", given, region.freeze())
    return ops.Program("p", (made,), host, program(made).symbols)


def test_a_constant_block_is_required_of_the_launch() -> None:
    assert ".reqntid 96, 1, 1" in text_of(lowered_for(launched(None, 96), "sm_80"))


def test_registers_suffice_for_the_largest_block_that_may_come() -> None:
    block = ops.Value(Int64, "block")
    assert ".maxntid 1024" in text_of(lowered_for(launched(block, 0), "sm_80"))


def copies(*names: str) -> ops.Program:
    """Kernels that copy, with these names."""
    return program(*(kernel(name, Int32, Int32, lambda _, x, __: x) for name in names))


def test_names_that_ptx_does_not_have_are_spelled_out() -> None:
    code = lowered_for(copies("_", "", "WARP_SZ", "größe"), "sm_80")
    assert code.kernels == ("kernel__", "kernel_", "kernel_WARP_SZ", "gr$uf6$udfe")


def test_names_that_would_be_spelled_the_same_are_numbered() -> None:
    names = ("kernel__", "_", "gr$uf6$udfe", "größe", "a.foo", "a\u02efoo")
    spelled = entry_names(copies(*names))
    assert len(set(spelled.values())) == len(names)
    assert spelled["_"] == "kernel___1"


def wide(count: int) -> ops.Program:
    """A kernel with so many tensors of 40 bytes of parameters."""
    n, m = sym_int64(symbol="n"), sym_int64(symbol="m")
    kind = TensorType(Int32, (n, m), (2 * m, m * n), 4)
    params = tuple(ops.Value(kind, f"a{i}") for i in range(count))
    return program(ops.Function("k", "kernel", params, ops.Region()))


@pytest.mark.needs_ptxas
@pytest.mark.parametrize(
    ("arch", "count", "version"),
    [("sm_80", 102, "7.0"), ("sm_80", 103, "8.1"), ("sm_80", 819, "8.1"), ("sm_120", 819, "8.7")],
)
def test_many_parameters_need_a_newer_version_of_ptx(
    arch: str, count: int, version: str, tmp_path: Path
) -> None:
    code = lowered_for(wide(count), arch)
    assert f".version {version}\n" in text_of(code)
    assert f".param .align 8 .b8 k_param_{count - 1}[40]" in text_of(code)
    assemble(text_of(code), arch, tmp_path)


@pytest.mark.parametrize(("arch", "count", "limit"), [("sm_80", 820, 32764), ("sm_60", 103, 4096)])
def test_parameters_beyond_the_limit_are_refused(arch: str, count: int, limit: int) -> None:
    message = f"kernel k take {40 * count} bytes, but the target has room for {limit}: pass fewer"
    with pytest.raises(CodegenError, match=message):
        lowered_for(wide(count), arch)


@pytest.mark.parametrize("size", [0, 1025, 4096])
def test_a_constant_block_that_no_launch_accepts_is_not_required(size: int) -> None:
    # The call raises LaunchError before there is a launch.
    ptx = text_of(lowered_for(launched(None, size), "sm_80"))
    assert ".reqntid" not in ptx


@pytest.mark.needs_ptxas
def test_ptxas_takes_spelled_out_names(tmp_path: Path) -> None:
    names = ("_", "WARP_SZ", "größe", "add", "u32", "entry", "tid")
    made = (kernel(name, Int32, Int32, lambda _, x, __: x) for name in names)
    assemble(text_of(lowered_for(program(*made), "sm_80")), "sm_80", tmp_path)


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(CompileError, match="--gpu-arch is 'sm_91', but LLVM") as caught:
        archs.check_arch("sm_91", "--gpu-arch")
    assert "sm_90a" in str(caught.value.diagnostic.expected)


@pytest.mark.parametrize(
    ("arch", "hint"),
    [
        *((arch, "did you mean sm_90a?") for arch in ("90a", "SM_90a", "compute_90a", " sm_90a")),
        *((arch, "did you mean sm_90?") for arch in ("sm_91", "sm_90b", "sm_90f")),
        ("sm_35", "the oldest that can be used is sm_50"),
        ("sm_999", f"PTX for {archs.arch_of(99, 0)} runs on newer GPUs as well"),
        ("hopper", None),
    ],
)
def test_an_unknown_architecture_has_a_hint(arch: str, hint: str | None) -> None:
    with pytest.raises(CompileError) as caught:
        archs.check_arch(arch, "--gpu-arch")
    assert caught.value.diagnostic.hint == hint


def test_llvm_knows_every_architecture_of_the_table() -> None:
    # LLVM says so on stderr, and goes on, where it does not.
    code = (
        "from ferrule.compiler.cuda import archs\n"
        "for arch in archs.known_archs(): archs.machine(arch).target_data"
    )
    paths = [path for path in sys.path if path]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {paths!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "not a recognized" not in done.stderr


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((9, 0), "sm_90a"), ((8, 0), "sm_80"), ((8, 6), "sm_86"), ((12, 0), "sm_120a")],
)
def test_a_device_gets_its_own_architecture(capability: tuple[int, int], arch: str) -> None:
    assert archs.arch_of(*capability) == arch


def test_a_device_newer_than_llvm_gets_the_newest_plain_architecture() -> None:
    newest = archs.arch_of(99, 0)
    assert newest == [arch for arch in archs.known_archs() if arch[-1].isdigit()][-1]


def test_a_device_that_is_too_old_is_an_error() -> None:
    with pytest.raises(CompileError, match="compute capability 3.5, but PTX is made for sm_50"):
        archs.arch_of(3, 5)


def test_the_architecture_comes_from_option_environment_or_device() -> None:
    assert archs.choose_archs("sm_80", {"FERRULE_GPU_ARCH": "sm_90"}, list) == ("sm_80",)
    assert archs.choose_archs(None, {"FERRULE_GPU_ARCH": "sm_90"}, list) == ("sm_90",)
    assert archs.choose_archs(None, {}, lambda: [(8, 9), (9, 0)]) == ("sm_89",)
    with pytest.raises(CompileError, match="this machine has no GPU to take it from"):
        archs.choose_archs(None, {}, list)
    with pytest.raises(CompileError, match="variable FERRULE_GPU_ARCH is 'sm_1'"):
        archs.choose_archs(None, {"FERRULE_GPU_ARCH": "sm_1"}, list)
