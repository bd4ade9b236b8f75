"""The benchmarks run, and write what they promise. What they measure is no test's business."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmark_runs import quick_run

BENCHMARKS = (
    "argument_kinds",
    "c_calls",
    "call_overhead",
    "checked",
    "checks",
    "cold_start",
    "compile_time",
    "cooperative",
    "elementwise",
    "emulated",
    "export",
    "gpu",
    "kernels",
    "many",
    "maths",
    "overloads",
    "results",
    "sizes",
    "threads",
)
LONG = {"cold_start", "cooperative", "many", "results"}
"""They start many processes, or compile much, even when they are only tried."""
AT_NIGHT = LONG | {"argument_kinds", "checked", "maths", "overloads", "sizes", "threads"}
"""By day the others: these call public names alone, which other tests call."""
WITH_TORCH = {"call_overhead", "results"}
"""They measure what PyTorch does even when they are only tried."""

VERDICTS = {"met", "missed", "not measured"}


@pytest.mark.nightly
@pytest.mark.needs_torch
def test_operators_of_torch_are_measured(tmp_path: Path) -> None:
    content = quick_run("torch_ops", tmp_path / "torch_ops.json", torch=True)
    (table,) = content["tables"]
    assert [row["name"] for row in table["rows"]] == ["writes an argument", "makes its result"]
    assert {goal["verdict"] for goal in content["goals"]} == {"not measured"}
    assert [skipped["what"] for skipped in content["skipped"]] == ["C++ TORCH_LIBRARY"]


def test_calls_in_jax_are_measured(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    content = quick_run("jax_calls", tmp_path / "jax_calls.json", torch=False)
    rows = [row["name"] for table in content["tables"] for row in table["rows"]]
    assert rows == ["a call in jax.jit", "a direct call"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * (name in AT_NIGHT)) for name in BENCHMARKS],
)
def test_runs_and_writes_its_figures(root: Path, tmp_path: Path, name: str) -> None:
    content = quick_run(name, tmp_path / "new" / f"{name}.json", torch=name in WITH_TORCH)
    assert (content["benchmark"], content["quick"]) == (name, True)
    assert {"processor", "Python", "llvmlite", "apache-tvm-ffi"} <= set(content["machine"])
    assert content["goals"] and {goal["verdict"] for goal in content["goals"]} <= VERDICTS
    rows = [row for table in content["tables"] for row in table.get("rows", ())]
    assert rows and all(side["median"] > 0 for row in rows for side in row["sides"].values())
    assert str(root) not in json.dumps(content)
    if name == "compile_time":
        require_every_stage(content)


@pytest.mark.nightly
@pytest.mark.needs_cc
def test_kernels_are_measured_beside_numba_and_c(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="Numba is not installed")
    path = tmp_path / "newcomers.json"
    content = quick_run("newcomers", path, torch=False, only="points")
    kernels, sizes, compilations = content["tables"]
    assert all(len(row["sides"]) == 3 for row in (*kernels["rows"], *sizes["rows"]))
    assert all(len(row["sides"]) == 2 for row in compilations["rows"])
    assert len(kernels["rows"]) == len(sizes["rows"]) == len(compilations["rows"]) == 5
    assert len(content["goals"]) == 10


@pytest.mark.needs_cc
def test_launches_are_measured_beside_a_driver_that_does_nothing(tmp_path: Path) -> None:
    content = quick_run("launch_overhead", tmp_path / "launches.json", torch=False)
    (row,) = (row for table in content["tables"] for row in table["rows"])
    assert len(row["sides"]) == 3
    assert {goal["verdict"] for goal in content["goals"]} <= {"met", "missed"}


@pytest.mark.needs_cc
def test_launches_are_measured_beside_launchers_written_by_hand(tmp_path: Path) -> None:
    content = quick_run("launch", tmp_path / "launch.json", torch=False, only="given")
    left_out = {skipped["what"] for skipped in content["skipped"]}
    sides = {"ferrule", "C++", "C++ with checks"}
    if "launchers in C++" in left_out:
        sides = {"ferrule"}
    for table in content["tables"]:
        assert [set(row["sides"]) for row in table["rows"]] == [sides, sides]


def require_every_stage(content: dict[str, Any]) -> None:
    """A stage whose functions are no longer called would count as something else."""
    table = next(t for t in content["tables"] if "by stage" in t["title"])
    for stage, *times in table["lines"]:
        # Only the last column is of kernels for a GPU.
        counted = times[-1:] if stage == "kernels to PTX" else times
        assert all(float(time) > 0 for time in counted), stage


@pytest.mark.needs_cc
def test_launches_of_triton_kernels_are_measured_beside_tritons_launchers(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    content = quick_run("launch", tmp_path / "launch.json", only="triton")
    (table,) = content["tables"]
    assert [len(row["sides"]) for row in table["rows"]] == [3, 3, 3, 3]
    assert len(content["goals"]) == 8


@pytest.mark.nightly
def test_compilations_of_triton_kernels_are_measured(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    content = quick_run("triton_compile", tmp_path / "compile.json", torch=False)
    table, processor = content["tables"]
    assert [row["name"] for row in table["rows"]] == ["first", "warm", "kept"]
    assert [line[0] for line in processor["lines"]] == ["first", "warm", "kept"]
    assert {goal["verdict"] for goal in content["goals"]} <= VERDICTS
