"""Constants and options that follow from sizes and numbers of the call."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from triton_launcher import own_launch, same, tensor

import ferrule as fe
from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends import triton as frontend

pytestmark = pytest.mark.needs_cc

ROWS = {"x": "*fp32[m, columns<=2048]", "y": "*fp32[m, columns]", "eps": "fp32", "scaled": "fp32"}


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def rows(meta: Any) -> Any:
    return (meta["x"].shape[0],)


def block(meta: Any) -> Any:
    import triton

    return triton.next_power_of_2(meta["columns"])


def warps(meta: Any) -> int:
    return 8 if meta["BLOCK"] >= 1024 else 4


def compiled(kernel: Any, **how: Any) -> Any:
    known = {"signature": {**ROWS}, "grid": rows, "target": "sm_90a"}
    return frontend.compile(kernel, **{**known, **how})


def with_heuristics(kernel: Any, **functions: Any) -> Any:
    import triton

    return triton.heuristics(functions)(kernel)


@pytest.fixture(scope="module")
def normed() -> Any:
    kernels = pytest.importorskip("triton_kernels")
    how = {"constexprs": {"BLOCK": block}, "num_warps": warps}
    return compiled(kernels.row_norm, specialize=[{"x": 16, "y": 16, "columns": 16}, {}], **how)


@pytest.mark.parametrize("columns", [2, 3, 64, 65, 1000, 1024, 2048])
def test_a_block_that_covers_a_row_is_chosen_by_the_call(
    gpu: FakeCuda, kernels: ModuleType, normed: Any, columns: int
) -> None:
    """What is launched is what Triton launches for these sizes."""
    (x, at_x), (y, at_y) = tensor(3, columns), tensor(3, columns)
    normed(x, y, 1e-6, 2.0)
    (ours,) = gpu.launches()
    size = 1 << (columns - 1).bit_length()
    how = {"BLOCK": size, "num_warps": 8 if size >= 1024 else 4}
    same(ours, own_launch(gpu, kernels.row_norm, (3,), at_x, at_y, columns, 1e-6, 2.0, **how))


@pytest.mark.parametrize(
    ("columns", "message"),
    [(2049, "at most 2048|2048"), (0, r"columns - 1 is negative, .*got columns = 0")],
)
def test_a_row_that_no_block_covers_is_refused(
    gpu: FakeCuda, normed: Any, columns: int, message: str
) -> None:
    x = tensor(3, columns)[0]
    with pytest.raises(ValueError, match=message):
        normed(x, x, 1e-6, 2.0)
    assert gpu.launches() == []


def test_sizes_without_bounds_are_too_many_kernels(kernels: ModuleType) -> None:
    free = {**ROWS, "x": "*fp32[m, columns]"}
    with pytest.raises(CompileError, match="choose among 32 kernels(.*\n)*.*n<=65536"):
        compiled(kernels.row_norm, signature=free, constexprs={"BLOCK": block})


@pytest.mark.parametrize(("kind", "error"), [(RuntimeError, RuntimeError), (OSError, RuntimeError)])
def test_what_a_function_raises_is_the_error_of_the_call(
    gpu: FakeCuda, kernels: ModuleType, kind: type[Exception], error: type[Exception]
) -> None:
    """It bounds the sizes as well: no kernel is compiled for those that it refuses."""

    def settled(meta: Any) -> Any:
        if block(meta) > 256:
            raise kind("a row of {} is too long")
        return block(meta)

    free = {**ROWS, "x": "*fp32[m, columns]"}
    function = compiled(kernels.row_norm, signature=free, constexprs={"BLOCK": settled})
    long, short = tensor(2, 300)[0], tensor(2, 200)[0]
    with pytest.raises(error, match=r"heuristic of 'BLOCK' refuses .*of \{\} is.*columns = 300"):
        function(long, long, 1e-6, 1.0)
    assert gpu.launches() == []
    function(short, short, 1e-6, 1.0)
    assert len(gpu.launches()) == 1


def test_a_grid_refuses_calls(gpu: FakeCuda, kernels: ModuleType) -> None:
    def even(meta: Any) -> Any:
        assert meta["columns"] % 2 == 0, "odd columns"
        return rows(meta)

    function = compiled(kernels.row_norm, constexprs={"BLOCK": 2048}, grid=even)
    function(tensor(2, 8)[0], tensor(2, 8)[0], 1e-6, 1.0)
    with pytest.raises(AssertionError, match=r"the grid refuses the call: odd(.*\n)*.*columns = 9"):
        function(tensor(2, 9)[0], tensor(2, 9)[0], 1e-6, 1.0)


def raising(meta: Any) -> Any:
    raise ValueError("no grid")


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (raising, "the grid cannot be traced: ValueError: no grid"),
        (lambda meta: raising(meta) if meta["m"] > 1 else raising(meta), "raises ValueError in ev"),
        (lambda meta: meta["m"] if meta["m"] > 1 else {}["m"], "asks for 'm', which is no param"),
        (lambda meta: meta["m"] if meta["m"] > 1 else None + 1, "cannot be traced: TypeError"),
    ],
)
def test_mistakes_are_errors_of_the_compilation(
    kernels: ModuleType, grid: Any, message: str
) -> None:
    signature = {**ROWS, "x": "*fp32[m, columns]"}
    with pytest.raises(CompileError, match=message):
        seen = {"grid": lambda meta: grid({"m": meta["x"].shape[0]})}
        compiled(kernels.row_norm, signature=signature, constexprs={"BLOCK": 64}, **seen)


SCALARS = {"f32": ("fp32", 0.1), "f16": ("fp16", 0.1), "f64": ("fp64", 0.1), "bf16": ("bf16", 0.1)}


@pytest.mark.parametrize("name", SCALARS)
def test_a_heuristic_compares_floats(gpu: FakeCuda, kernels: ModuleType, name: str) -> None:
    """As the kernel gets them: a number that is rounded to 0.1 is not more."""
    dtype, number = SCALARS[name]
    kernel = with_heuristics(kernels.row_norm, num_warps=lambda a: 1 if a["scaled"] > 0.1 else 2)
    function = compiled(kernel, signature={**ROWS, "scaled": dtype}, constexprs={"BLOCK": 64})
    x = tensor(1, 8)[0]
    values = [number, number + 1e-12, 0.2, -1.0, float("inf"), float("nan")]
    for value in values:
        function(x, x, 1e-6, value)
    more = 1 if name == "f64" else 2
    assert [each.block[0] // 32 for each in gpu.launches()] == [2, more, 1, 2, 1, 2]


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (lambda args: 1 if args["scaled"] is True else 2, [1, 2]),
        (lambda args: 1 if args.get("scaled") and args["eps"] else 2, [1, 2]),
        (lambda args: 4 >> (not args["scaled"]), [4, 2]),
        (lambda args: 1 << (args["scaled"] == 1), [2, 1]),
    ],
)
def test_a_heuristic_reads_bools(
    gpu: FakeCuda, kernels: ModuleType, chosen: Any, found: list[int]
) -> None:
    signature = {**ROWS, "scaled": "i1"}
    kernel = with_heuristics(kernels.row_norm, num_warps=chosen)
    function = compiled(kernel, signature=signature, constexprs={"BLOCK": 64})
    for value in (True, False):
        function(tensor(1, 8)[0], tensor(1, 8)[0], 1e-6, value)
    assert [each.block[0] // 32 for each in gpu.launches()] == found


def test_a_heuristic_gives_a_value_of_the_call(gpu: FakeCuda, kernels: ModuleType) -> None:
    """A flag, and a number of blocks with few values."""
    functions = {
        "SCALED": lambda args: args["scaled"] != 0.0,
        "num_warps": lambda args: 1 << frontend.ceil_div(args["columns"], 1024) - 1,
    }
    kernel = with_heuristics(kernels.row_norm, **functions)
    with pytest.raises(CompileError, match="the value of .* is known only at the call"):
        compiled(kernel, constexprs={"BLOCK": 2048})
    functions["num_warps"] = lambda args: 2 * args["PARTS"]
    functions = {"PARTS": lambda args: frontend.ceil_div(args["columns"], 1024), **functions}
    kernel = with_heuristics(kernels.parted, **functions)
    with pytest.raises(CompileError, match=r"num_warps is 0(.*\n)*.*for calls with.*columns"):
        compiled(kernel, constexprs={"BLOCK": 2048})
    signature = {**ROWS, "x": "*fp32[m, 1<=columns<=2048]"}
    function = compiled(kernel, signature=signature, constexprs={"BLOCK": 2048})
    for columns, scaled in ((1000, 0.0), (1500, 2.0)):
        (x, at_x), (y, at_y) = tensor(2, columns), tensor(2, columns)
        gpu.clear()
        function(x, y, 1e-6, scaled)
        (ours,) = gpu.launches()
        parts = -(-columns // 1024)
        how = {"PARTS": parts, "SCALED": scaled != 0, "BLOCK": 2048, "num_warps": 2 * parts}
        given = at_x, at_y, columns, 1e-6, scaled
        same(ours, own_launch(gpu, kernels.parted, (2,), *given, **how))


def test_a_number_with_bounds_chooses(gpu: FakeCuda, kernels: ModuleType) -> None:
    """A parameter of its own, as a library passes its number of columns."""
    signature = {**ROWS, "x": "*fp32[m, k]", "y": "*fp32[m, k]"}
    signature["columns"] = specs.sym_int32(symbol="columns", min=1, max=256)
    function = compiled(kernels.row_norm, signature=signature, constexprs={"BLOCK": block})
    x = tensor(2, 256)[0]
    function(x, x, 200, 1e-6, 1.0)
    with pytest.raises(ValueError, match="columns <= 256, but got"):
        function(x, x, 257, 1e-6, 1.0)
    with pytest.raises(ValueError, match="columns >= 1, but got"):
        function(x, x, 0, 1e-6, 1.0)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"constexprs": {"BLOCK": block}, "BLOCK": block}, "'BLOCK' is given twice"),
        ({"constexprs": {"BLOCK": block, "SIZE": block}}, "has no parameter 'SIZE'"),
        ({"constexprs": {"BLOCK": 64}, "warps": warps}, "'warps' is neither a parameter of"),
        ({"constexprs": {"BLOCK": 64}, "num_warps": lambda args: 3}, "num_warps is 3"),
    ],
)
def test_wrong_functions(kernels: ModuleType, how: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(kernels.row_norm, **how)


def test_a_function_and_a_config_for_one_constant(kernels: ModuleType) -> None:
    with pytest.raises(CompileError, match="'BLOCK' is given twice, by its config and by a func"):
        frontend.compile(
            kernels.tuned,
            signature={"x": "*fp32[n<=64]", "y": "*fp32[n]"},
            constexprs={"BLOCK": lambda args: 64},
            config=0,
            grid=lambda meta: (meta["n"],),
            target="sm_90a",
        )


def test_the_choice_is_explained_and_in_files(
    gpu: FakeCuda, kernels: ModuleType, normed: Any, tmp_path: Any
) -> None:
    """A float among the conditions is read back from the notes."""
    kernel = with_heuristics(kernels.row_norm, SCALED=lambda args: args["scaled"] > 0.5)
    function = compiled(kernel, constexprs={"BLOCK": 64}, specialize="dispatch", name="norm")
    (group, _) = function.notes["variants"]
    assert group["when"] == "scaled > 0.5"
    path = tmp_path / "norm.so"
    function.export_library(path)
    x = tensor(1, 64)[0]
    loaded = fe.load_library(path)["norm"] if hasattr(fe, "load_library") else function
    assert loaded.explain(x, x, 1e-6, 0.7).variant == "all"
    assert normed.explain(tensor(1, 3)[0], tensor(1, 3)[0], 1e-6, 1.0).variant is not None
    with pytest.raises(ValueError, match="negative"):
        normed(tensor(1, 0)[0], tensor(1, 0)[0], 1e-6, 1.0)
    assert normed.explain(tensor(1, 0)[0], tensor(1, 0)[0], 1e-6, 1.0).variant is None


def test_empty_arrays_of_rows_launch_nothing(gpu: FakeCuda, normed: Any) -> None:
    x = np.zeros((0, 64), np.float32)
    assert x.size == 0
    normed(tensor(0, 64)[0], tensor(0, 64)[0], 1e-6, 1.0)
    assert gpu.launches() == []


@pytest.mark.parametrize("columns", [100, 1500])
def test_an_option_follows_from_a_constant_of_a_heuristic(
    gpu: FakeCuda, kernels: ModuleType, columns: int
) -> None:
    """The kernel's own heuristics come before options; options of which one of them asks, before
    that."""
    kernel = with_heuristics(kernels.row_norm, BLOCK=block)
    function = compiled(kernel, num_warps=warps)
    gpu.clear()
    function(tensor(3, columns)[0], tensor(3, columns)[0], 1.0, 1.0)
    (launch,) = gpu.launches()
    assert launch.block == (32 * (8 if columns > 1000 else 4), 1, 1)

    def by_warps(meta: Any) -> Any:
        return block(meta) if meta["num_warps"] == 8 else 2048

    asks = with_heuristics(kernels.row_norm, BLOCK=by_warps)
    compiled(asks, num_warps=lambda meta: 8 if meta["columns"] > 1000 else 4)
