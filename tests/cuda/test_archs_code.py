"""What options change in the PTX of kernels: lines of the source, loads of what nobody writes."""

import re
from pathlib import Path
from typing import Any

import pytest
from cuda_device import FakeCuda
from gpu_functions import compiled, floats, vector
from ptxas import ARCHS, assemble

import ferrule as fe
from ferrule.runtime import make_fake_compact_tensor

CUDA = "--target cuda --gpu-arch sm_90a"
SEVERAL = "--target cuda --gpu-arch " + ",".join(ARCHS)


def one(options: str, function: Any, *examples: Any) -> str:
    text = compiled(function, *examples, options=options).inspect_ptx()
    assert isinstance(text, str)
    return text


# ---- lines ----


def doubled(x: Any) -> Any:
    return x * 2.0


@fe.kernel
def long_kernel(a: fe.Tensor, b: fe.Tensor):
    i, _, _ = fe.arch.thread_idx()
    x = a[i]
    for _ in range(3):
        x = fe.math.exp(x) + doubled(x)
    if x > 1.0:
        b[i] = x


@fe.jit
def long(a: fe.Tensor, b: fe.Tensor):
    long_kernel(a, b).launch(grid=1, block=32)
    b[:] = a[:] + b[:]


def lines_of(module: str, kernel: str) -> set[int]:
    """The lines that the code of a kernel names."""
    (text,) = [part for part in module.split(".entry ")[1:] if part.startswith(kernel)]
    return {int(line) for line in re.findall(r"\.loc\s+\d+ (\d+) ", text)}


def test_line_info_names_the_lines_of_the_source() -> None:
    module = one(CUDA + " --generate-line-info --fmad=false", long)
    first = long_kernel.function.__code__.co_firstlineno
    expected = {first + offset for offset in (2, 3, 5, 7)}
    expected.add(doubled.__code__.co_firstlineno + 1)
    assert expected <= lines_of(module, "long_kernel")
    assert long.function.__code__.co_firstlineno + 3 in lines_of(module, "long_b")
    assert re.findall(r'\.file\s+\d+ "(.*)"', module) == [str(Path(__file__).absolute())]
    assert ".target sm_90a\n" in module


def test_line_info_changes_no_instruction() -> None:
    def instructions(module: str) -> list[str]:
        found = re.findall(r"^\t([a-z@][^\n]*;)", module, re.MULTILINE)
        return [text for text in found if not text.startswith(".")]

    plain, lines = one(CUDA, long), one(CUDA + " --generate-line-info", long)
    assert ".loc" not in plain
    assert instructions(plain) == instructions(lines)


def test_stripped_paths_leave_the_name_of_the_file() -> None:
    module = one(CUDA + " --generate-line-info --strip-paths", long)
    assert re.findall(r'\.file\s+\d+ "(.*)"', module) == [Path(__file__).name]


@pytest.mark.needs_ptxas
def test_ptxas_takes_lines(tmp_path: Path) -> None:
    options = f"{SEVERAL} --generate-line-info --keep-cubin --dump-dir {tmp_path}"
    compiled(long, vector(), vector(), options=options)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".cubin"] * len(ARCHS)
    for path in tmp_path.iterdir():
        assert b".debug_line" in path.read_bytes()


@pytest.mark.needs_ptxas
def test_the_driver_is_asked_for_lines_and_for_the_level(fake_cuda: FakeCuda) -> None:
    for options in ("", "--opt-level 1", "--generate-line-info", "--generate-line-info --cubin"):
        function = compiled(options=f"--target cuda --gpu-arch sm_80 {options}")
        function(floats(8), floats(8))
    loads = [call.numbers for call in fake_cuda.calls() if call.name == "cuLibraryLoadData"]
    assert loads == [(0, 0), (1, 0, 7, 1), (1, 0, 13, 1), (1, 0, 13, 1)]


# ---- loads of what nobody writes ----


@fe.kernel
def mixed_kernel(a: fe.Tensor, b: fe.Tensor):
    i, _, _ = fe.arch.thread_idx()
    own = fe.arch.alloc_smem(fe.Float32, 32)
    own[i] = a[i] * b[i]
    fe.arch.sync_threads()
    b[i] = own[31 - i]


@fe.jit
def mixed(a: fe.Tensor, b: fe.Tensor):
    mixed_kernel(a, b).launch(grid=1, block=32)


def test_with_the_promise_what_nobody_writes_is_loaded_through_the_read_only_cache() -> None:
    promised = one(CUDA + " --noalias", mixed)
    assert len(re.findall(r"ld\.global\.nc\.", promised)) == 1
    assert len(re.findall(r"ld\.global\.b32", promised)) == 1
    assert "ld.shared.b32" in promised
    assert ".nc." not in one(CUDA, mixed)


def test_views_of_what_nobody_writes_are_loaded_so_too() -> None:
    @fe.kernel
    def kernel(a: fe.Tensor, b: fe.Tensor):
        i, _, _ = fe.arch.thread_idx()
        x = a[i, None].load()
        b[i, None].store(x + x)

    @fe.jit
    def vectors(a: fe.Tensor, b: fe.Tensor):
        kernel(a, b).launch(grid=1, block=32)

    matrix = make_fake_compact_tensor(fe.Float32, (64, 4), stride_order=(1, 0), assumed_align=16)
    module = one(CUDA + " --noalias", vectors, matrix, matrix)
    assert "ld.global.nc.v4" in module
    assert "ld.global.v4" in one(CUDA, vectors, matrix, matrix)


@pytest.mark.needs_ptxas
def test_ptxas_takes_loads_of_what_nobody_writes(tmp_path: Path) -> None:
    texts: Any = compiled(mixed, vector(), vector(), options=SEVERAL + " --noalias").inspect_ptx()
    for arch, text in texts.items():
        assemble(text, arch, tmp_path)


def test_memory_that_a_launch_gives_twice_is_not_taken_for_two() -> None:
    @fe.kernel
    def kernel(x: fe.Tensor, y: fe.Tensor):
        i, _, _ = fe.arch.thread_idx()
        y[i] = x[31 - i]

    @fe.jit
    def apart(a: fe.Tensor, b: fe.Tensor):
        kernel(a, b).launch(grid=1, block=32)

    @fe.jit
    def together(a: fe.Tensor, b: fe.Tensor):
        kernel(a, b).launch(grid=1, block=32)
        kernel(b, b).launch(grid=1, block=32)

    assert ".nc." in one(CUDA + " --noalias", apart)
    assert ".nc." not in one(CUDA + " --noalias", together)


# ---- narrow floats ----


@fe.kernel
def narrowed_kernel(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    fe.local_tile(b, (4,), (i,)).store(fe.local_tile(a, (4,), (i,)).load().to(fe.BFloat16))


@fe.jit
def narrowed(a: fe.Tensor, b: fe.Tensor):
    narrowed_kernel(a, b).launch(grid=1, block=32)


@pytest.mark.needs_ptxas
def test_bfloat16_is_narrowed_by_an_instruction_where_there_is_one(tmp_path: Path) -> None:
    def conversions(arch: str) -> int:
        options = f"--target cuda --gpu-arch {arch}"
        module = one(options, narrowed, vector(fe.Float32), vector(fe.BFloat16))
        assemble(module, arch, tmp_path)
        return module.count("cvt.rn.bf16")

    assert conversions("sm_80") == 4
    assert conversions("sm_75") == 0
