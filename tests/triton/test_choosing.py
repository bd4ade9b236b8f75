"""Configurations by buckets of a size, and those of the files of libraries."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = pytest.mark.needs_cc

MOE = {
    "triton_version": "3.4.0",
    "1": {"BLOCK": 64, "num_warps": 1, "num_stages": 2},
    "16": {"BLOCK": 128, "num_warps": 2, "num_stages": 3},
    "64": {"BLOCK": 256, "num_warps": 4, "num_stages": 4},
}


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def compiled(kernel: Any, choose: Any, **how: Any) -> fe.Function:
    known = {"signature": {"x": "*fp32[m, 4]", "y": "*fp32[m, 4]", "n": "x.numel"}, **how}
    return frontend.compile(
        kernel,
        grid=lambda meta: (frontend.ceil_div(meta["n"], meta["BLOCK"]),),
        target="sm_90a",
        choose=choose,
        **known,
    )


def warps(gpu: FakeCuda, function: fe.Function, rows: int) -> int:
    """The warps with which a call for these rows is launched."""
    gpu.clear()
    x, _ = tensor(rows, 4)
    function(x, x)
    (launch,) = gpu.launches()
    return launch.block[0] // 32


def nearest(size: int) -> int:
    """The bucket that vLLM's own code takes: the first of the nearest."""
    return min((1, 16, 64), key=lambda each: abs(each - size))


def test_a_file_of_vllm_by_the_nearest_number(
    gpu: FakeCuda, kernels: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3.json"
    path.write_text(json.dumps(MOE))
    function = compiled(kernels.tuned.fn, frontend.vllm_configs(path, "m"))
    for rows in (1, 2, 8, 9, 16, 39, 40, 41, 64, 4096):
        bucket: Any = MOE[str(nearest(rows))]
        assert warps(gpu, function, rows) == bucket["num_warps"], rows
    configs = function.notes["triton"]["configs"]
    assert [each.get("when") for each in configs] == ["m <= 8", "m <= 40", None]
    assert "Triton config for m <= 8: BLOCK=64, num_warps=1" in str(function.__doc__)


def test_buckets_of_a_size(gpu: FakeCuda, kernels: ModuleType) -> None:
    import triton

    configs = {16 << at: triton.Config({"BLOCK": 64}, num_warps=1 << at) for at in range(3)}
    function = compiled(kernels.tuned, frontend.by_size("x.shape[0]", configs))
    found = [warps(gpu, function, rows) for rows in (1, 16, 17, 32, 33, 64, 999)]
    assert found == [1, 1, 2, 2, 4, 4, 4]
    numbered = compiled(kernels.tuned, frontend.by_size("n", {64: 0, 128: 2}))
    assert [warps(gpu, numbered, rows) for rows in (16, 17)] == [2, 8]


def entry(key: list[Any], block: int, warps: int) -> dict[str, Any]:
    config = {"kwargs": {"BLOCK": block}, "num_warps": warps, "num_stages": 3, "num_ctas": 1}
    return {"autotune_key": key, "config": {**config, "maxnreg": None}}


def fla(tmp_path: Path, entries: list[dict[str, Any]], default: int | None = None) -> Path:
    path = tmp_path / "tuned.json"
    told: dict[str, Any] = {"kernel_name": "tuned", "triton_version": "3.9.0"}
    told["autotune_entries"] = {str(at): each for at, each in enumerate(entries)}
    if default is not None:
        told["default_config"] = entry([], 64, default)["config"]
    path.write_text(json.dumps(told))
    return path


def test_a_file_of_flash_linear_attention_by_the_key(
    gpu: FakeCuda, kernels: ModuleType, tmp_path: Path
) -> None:
    """Its own order: the key, then one that differs in numbers alone, then the default."""
    two, halves = ["torch.float32"] * 2, ["torch.float16"] * 2
    entries = [entry([9999, *halves], 64, 16), entry([400, *two], 64, 2), entry([8, *two], 64, 4)]
    function = compiled(kernels.tuned, frontend.fla_configs(fla(tmp_path, entries, 1)))
    assert [warps(gpu, function, rows) for rows in (100, 2, 50)] == [2, 4, 2]
    function = compiled(kernels.tuned, frontend.fla_configs(fla(tmp_path, entries[:1], 1)))
    assert warps(gpu, function, 2) == 1
    with pytest.raises(fe.CompileError, match="tuned: no config is for these arguments"):
        compiled(kernels.tuned, frontend.fla_configs(fla(tmp_path, entries[:1])))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "it has a list"),
        ("{", "is no file of configs: Expecting"),
        ("{}", "it has no configs"),
        ('{"x": {}}', "it has 'x': {}"),
        ('{"16": 3}', "it has '16': 3"),
        ('{"16": {"BLOCK": [1]}}', r"it has 'BLOCK': \[1\]"),
    ],
)
def test_files_of_another_form_are_refused(
    kernels: ModuleType, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    with pytest.raises(fe.CompileError, match=said):
        frontend.vllm_configs(path, "m")
    path.write_text('{"autotune_entries": {"0": 3}}' if text[0] == "[" else text)
    if "16" not in text and "x" not in text:
        with pytest.raises(fe.CompileError, match=r"it has|is no file of configs"):
            frontend.fla_configs(path)


def test_wrong_choices_are_refused(kernels: ModuleType) -> None:
    choice = frontend.by_size("rows", {1: 0})
    with pytest.raises(fe.CompileError, match="give one of them"):
        compiled(kernels.tuned, choice, config=0)
    with pytest.raises(TypeError, match=r"choose must be by_size\(…\)"):
        compiled(kernels.tuned, {16: 0})
    several = frontend.by_size("rows", {1: 0, 2: 1})
    with pytest.raises(fe.CompileError, match="chosen by 'rows', which is no size of a call"):
        compiled(kernels.tuned, several)
    with pytest.raises(fe.CompileError, match=r"x.shape\[7\] is none of the 2 dims"):
        compiled(kernels.tuned, frontend.by_size("x.shape[7]", {1: 0, 2: 1}))
    wrong: Any = "16"
    with pytest.raises(TypeError, match="numbers of at least 0, but got '16'"):
        frontend.by_size("m", {wrong: 0})
    with pytest.raises(TypeError, match=r"a name or x.shape\[0\], but got 16"):
        frontend.by_size(16, {1: 0})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no config for any m"):
        frontend.by_size("m", {})
