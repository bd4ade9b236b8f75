"""While a GPU is emulated, what is compiled names the lines of its source by itself."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import ferrule as fe
from ferrule import arch

VECTOR = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))


@fe.kernel
def beyond_kernel(x: fe.Tensor):
    i = arch.thread_idx()[0]
    x[i + 1_000_000] = 1.0


@fe.jit
def beyond(x: fe.Tensor):
    beyond_kernel(x).launch(grid=1, block=32)


def line_of(text: str, function: object) -> int:
    """The line of this file with this text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("options", ["", " --opt-level 0", " --strip-paths"])
def test_an_error_names_the_line_of_the_source(options: str) -> None:
    with fe.emulated_gpu("sm_90a"):
        compiled = fe.compile(beyond, VECTOR, options="--target cuda" + options)
        with pytest.raises(fe.CudaError) as caught:
            compiled(fe.cuda.zeros(32))
    line = line_of("1_000_000", beyond_kernel.function)
    assert f"{Path(__file__).name}:{line}" in str(caught.value)


def test_a_direct_call_too() -> None:
    with fe.emulated_gpu("sm_90a"), pytest.raises(fe.CudaError, match=Path(__file__).name):
        beyond(fe.cuda.zeros(32))


def test_a_direct_call_is_compiled_for_each_gpu() -> None:
    for name in ("sm_90a", "sm_80", "sm_90a"):
        with fe.emulated_gpu(name), pytest.raises(fe.CudaError, match="ILLEGAL_ADDRESS"):
            beyond(fe.cuda.zeros(32))


def test_nothing_changes_without_an_emulated_gpu() -> None:
    options = "--target cuda --gpu-arch sm_90a"
    before = fe.compile(beyond, VECTOR, options=options).inspect_ptx()
    with fe.emulated_gpu("sm_90a"):
        during = fe.compile(beyond, VECTOR, options=options).inspect_ptx()
    after = fe.compile(beyond, VECTOR, options=options).inspect_ptx()
    assert before == after and ".loc" not in before
    assert ".loc" in during and ".file" in during
