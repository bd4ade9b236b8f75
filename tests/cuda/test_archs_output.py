"""What kernels on a GPU print, and how their checks end: as PTX, which ptxas takes."""

import re
from pathlib import Path
from typing import Any

import pytest
from cuda_device import FakeCuda
from gpu_functions import compiled, floats, vector
from ptxas import ARCHS, assemble

import ferrule as fe

CUDA = "--target cuda --gpu-arch sm_90a"


@fe.kernel
def speaking_kernel(a: fe.Tensor, n: fe.Int32):
    tx, _, _ = fe.arch.thread_idx()
    fe.printf("100% of {}: {:8.3f} {}", tx, a[tx], tx > 3)
    fe.printf("no values")


@fe.jit
def speaking(a: fe.Tensor, n: fe.Int32):
    speaking_kernel(a, n).launch(grid=1, block=32)


@fe.kernel
def checking_kernel(a: fe.Tensor, n: fe.Int32):
    tx, _, _ = fe.arch.thread_idx()
    assert n > 0, "n must be positive"
    if tx >= n:
        raise IndexError(f"{tx} of {n}, {n > 8}: {a[tx]}%")
    a[tx] = 1.0


@fe.jit
def checking(a: fe.Tensor, n: fe.Int32):
    checking_kernel(a, n).launch(grid=1, block=32)


def ptx(function: Any, options: str = CUDA) -> str:
    text = compiled(function, vector(), fe.Int32, options=options).inspect_ptx()
    assert isinstance(text, str)
    return text


def texts(module: str) -> list[str]:
    """The constant texts of a PTX module."""
    found = re.findall(r"\.global \.align 1 \.b8 \S+\[\d+\] = \{([^}]*)\}", module)
    return [bytes(map(int, numbers.split(","))).rstrip(b"\0").decode() for numbers in found]


def test_printf_calls_vprintf_with_the_format() -> None:
    module = ptx(speaking)
    assert module.count("call.uni (retval0), vprintf") == 2
    assert "100%% of %lld: %8.3f %s\n" in texts(module)
    assert {"True", "False", "no values\n"} <= set(texts(module))
    assert len(re.findall(r"st\.local\.(?:v2\.)?b64", module)) >= 2


def test_a_check_calls_assertfail_with_message_file_line_and_function() -> None:
    module = ptx(checking)
    line = checking_kernel.function.__code__.co_firstlineno + 3
    assert module.count("call.uni __assertfail") == 2
    assert re.search(rf"st\.param\.b32\s+\[param2\], {line};", module)
    assert {"AssertionError: n must be positive", "checking_kernel"} <= set(texts(module))
    assert [text for text in texts(module) if text.endswith(f"cuda/{Path(__file__).name}")]


def test_the_values_of_a_message_are_printed_before() -> None:
    module = ptx(checking)
    assert "IndexError: %lld of %lld, %s: %g%%\n" in texts(module)
    assert "IndexError: ... of ..., ...: ...%" in texts(module)
    assert module.index("vprintf, (param0") < module.rindex("__assertfail, (param0")


def test_stripped_paths_are_not_in_the_messages() -> None:
    found = texts(ptx(checking, CUDA + " --strip-paths"))
    assert Path(__file__).name in found
    assert not [text for text in found if "/" in text]


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("function", [speaking, checking])
def test_ptxas_takes_output(function: Any, tmp_path: Path) -> None:
    options = "--target cuda --gpu-arch " + ",".join(ARCHS)
    modules: Any = compiled(function, vector(), fe.Int32, options=options).inspect_ptx()
    for arch, module in modules.items():
        assemble(module, arch, tmp_path)


def test_behind_a_failed_assertion_the_next_call_says_so(fake_cuda: FakeCuda) -> None:
    function = compiled(checking, vector(), fe.Int32, options=CUDA)
    function(floats(32), 32)
    fake_cuda.fail("cuLaunchKernelEx", 710)
    with pytest.raises(fe.CudaError, match="CUDA_ERROR_ASSERT") as caught:
        function(floats(32), 32)
    assert "an assertion failed in an earlier kernel" in str(caught.value)
    assert "the context of its device is lost" in str(caught.value)
