"""What Triton assumes of a call's arguments is checked or chosen by, and never wrong."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend
from ferrule.runtime.errors import StageError

pytestmark = pytest.mark.needs_cc

SCALE = {"x": "*fp32[n]", "y": "*fp32[n]", "factor": "fp32"}
HINTED = {"x": "*fp32[n]:16", "y": "*fp32[n]:16", "factor": "fp32"}
STRIDED = {"x": "*fp32[rows, columns: s, t]", "y": "*fp32[rows, columns]"}
STRIDES = {"stride_row": "s", "stride_column": "t"}


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def compiled(
    kernel: Any, signature: dict[str, Any], block: int = 128, **options: Any
) -> fe.Function:
    """The function for one architecture, a block of the kernel for each row or 128 elements."""
    grid = (
        (lambda meta: (meta["rows"],))
        if "rows" in kernel.arg_names
        else (lambda meta: (frontend.ceil_div(meta["n"], meta["BLOCK"]),))
    )
    return frontend.compile(
        kernel,
        signature=signature,
        constexprs={"BLOCK": block},
        grid=grid,
        target="sm_90a",
        **options,
    )


def attributes(kernel: Any, signature: dict[str, Any], **options: Any) -> list[dict[Any, Any]]:
    """What each specialisation assumes, as Triton's compiler is told."""
    from ferrule.frontends.triton import examples, installed, specialise

    found = installed.kernel_of(kernel)
    given = {**signature, "BLOCK": 128}
    arguments = examples.arguments_of(found, "f", given)
    made, _ = specialise.specialisations(found, arguments, options.get("specialize", "check"))
    return [
        {found.names[at[0]]: 16 for at in each.attributes}
        | {found.names[at[0]]: value for at, value in each.constants.items()}
        for each in made
    ]


def test_nothing_is_assumed_that_nobody_said(kernels: ModuleType) -> None:
    assert attributes(kernels.scale, SCALE) == [{"BLOCK": 128}]


def test_what_a_spec_guarantees_is_assumed(kernels: ModuleType) -> None:
    n = fe.sym_int(divisibility=32)
    x = fe.make_fake_compact_tensor(fe.Float32, (n,), assumed_align=32)
    y = fe.make_fake_compact_tensor(fe.Float32, (n,))
    signature = {"x": x, "y": y, "n": n, "factor": fe.Float32}
    assert attributes(kernels.scale, signature) == [{"x": 16, "n": 16, "BLOCK": 128}]


def test_dispatch_leaves_out_one_operand_at_a_time(kernels: ModuleType) -> None:
    assert attributes(kernels.scale, SCALE, specialize="dispatch") == [
        {"x": 16, "y": 16, "n": 16, "BLOCK": 128},
        {"y": 16, "n": 16, "BLOCK": 128},
        {"x": 16, "n": 16, "BLOCK": 128},
        {"x": 16, "y": 16, "BLOCK": 128},
        {"BLOCK": 128},
    ]
    known = {"a": "*fp32[n: s]", "b": "*fp32[n: t]", "c": "*fp32[n]", "s": "s", "t": "t"}
    assert attributes(kernels.joined, {**known, "n": "n"}, specialize="dispatch") == [
        {"a": 16, "b": 16, "c": 16, "s": 1, "t": 1, "n": 16, "BLOCK": 128},
        {"b": 16, "c": 16, "t": 1, "n": 16, "BLOCK": 128},
        {"a": 16, "c": 16, "s": 1, "n": 16, "BLOCK": 128},
        {"a": 16, "b": 16, "s": 1, "t": 1, "n": 16, "BLOCK": 128},
        {"a": 16, "b": 16, "c": 16, "s": 1, "t": 1, "BLOCK": 128},
        {"a": 16, "b": 16, "c": 16, "BLOCK": 128},
        {"BLOCK": 128},
    ]


JOINED = {"a": "*fp32[n: s]", "b": "*fp32[n: t]", "c": "*fp32[n]", "s": "s", "t": "t"}


@pytest.fixture(scope="module")
def joined() -> tuple[fe.Function, frontend.Counts]:
    """Sums of two vectors, with their counts."""
    kernels = pytest.importorskip("triton_kernels")
    counts = frontend.Counts()
    with_grid: dict[str, Any] = {"specialize": "dispatch", "counts": counts}
    return compiled(kernels.joined, JOINED, 1024, **with_grid), counts


def vector(n: int, step: int = 1, shift: int = 0) -> Any:
    """A vector on the stand-in's GPU, with this stride, `shift` bytes past a multiple of 64."""
    memory = np.zeros(n * step + 64, np.float32)
    start = (-memory.ctypes.data % 64 + shift) // 4
    return forged(memory[start:][: n * step : step])


@pytest.mark.parametrize(
    ("a", "b", "parameters", "told"),
    [
        ({}, {}, 6, "joined takes all"),
        ({"step": 2}, {}, 7, "  not all: s == 1, but s = 2"),
        (
            {},
            {"shift": 4},
            7,
            "  not all: b is 16-byte aligned, but its address is 4 bytes past a multiple of 16",
        ),
        ({"step": 2}, {"step": 3}, 8, "  not all but a: t == 1, but t = 3"),
    ],
)
def test_an_unusual_operand_costs_its_own_assumptions(
    gpu: FakeCuda,
    joined: tuple[fe.Function, frontend.Counts],
    a: dict[str, int],
    b: dict[str, int],
    parameters: int,
    told: str,
) -> None:
    """The stride of the other one stays folded; what was taken is told, and counted."""
    function, counts = joined
    call = vector(1024, **a), vector(1024, **b), vector(1024)
    explained = function.explain(*call)
    counts.clear()
    function(*call)
    (launch,) = gpu.launches()
    assert len(launch.parameters) == parameters
    assert told in str(explained).splitlines()
    assert str(counts) == str({explained.variant: 1})
    assert counts[str(explained.variant)] == 1


def test_variants_are_explained_of_files_and_by_keywords(
    kernels: ModuleType, tmp_path: Path
) -> None:
    function = compiled(kernels.joined, JOINED, 1024, specialize="dispatch")
    function.export_to_c(tmp_path / "joined.o")
    loaded = fe.runtime.load_module(tmp_path / "joined.o").joined
    a, b = vector(1000), vector(1000)
    explained = loaded.explain(a, c=b, b=b)
    assert explained == function.explain(a, b, b)
    assert explained.variant == "all but sizes"
    assert explained.lacking["all"] == ("n % 16 == 0, but n = 1000",)
    with pytest.raises(ValueError, match="joined: b has 2 dims, expected 1"):
        loaded.explain(a, tensor(2, 2)[0], b)
    with pytest.raises(TypeError, match="missing"):
        loaded.explain(a)


def test_a_function_of_one_variant_is_explained(kernels: ModuleType) -> None:
    x, _ = tensor(64)
    explained = compiled(kernels.scale, SCALE).explain(x, x, 1.0)
    assert (str(explained), explained.lacking) == ("scale takes its only variant", {})
    listed = compiled(kernels.scale, SCALE, specialize=[{"n": 16}])
    assert listed.explain(x, x, 1.0).variant == "#0"
    refused = listed.explain(tensor(63)[0], x, 1.0)
    assert refused.variant is None
    assert str(refused).startswith("scale takes no variant: the call is refused\n  not #0: n % 16")


@pytest.mark.parametrize("from_file", [False, True])
def test_variants_of_a_function_that_allocates_its_result(
    gpu: FakeCuda, kernels: ModuleType, allocator: None, tmp_path: Path, from_file: bool
) -> None:
    """What the call allocates is aligned, as far as anybody knows before."""
    given = {**JOINED, "c": fe.like("a")}
    function = compiled(kernels.joined, given, 1024, specialize="dispatch")
    (group,) = function.notes["variants"]
    assert "c is 16-byte aligned" in group["variants"][0]["assumes"]
    if from_file:
        function.export_to_c(tmp_path / "joined.o")
        function = fe.runtime.load_module(tmp_path / "joined.o").joined
    assert function.explain(vector(1024), vector(1024)).variant == "all"
    explained = function.explain(vector(1024), vector(1024, shift=4))
    assert explained.variant == "all but b"
    function(vector(1024), vector(1024, shift=4))
    assert len(gpu.launches()[0].parameters) == 7


def test_what_does_not_change_the_code_is_not_asked_for(kernels: ModuleType) -> None:
    """Triton loads one number, wherever it lies: no variant is about its address."""
    function = compiled(kernels.shifted, {**SCALE, "by": "*fp32[1]"}, 1024, specialize="dispatch")
    (group,) = function.notes["variants"]
    assert [each["name"] for each in group["variants"]][:3] == ["all", "all but x", "all but y"]
    assert group["variants"][0]["assumes"] == [
        "x is 16-byte aligned",
        "y is 16-byte aligned",
        "n % 16 == 0",
    ]


def test_counts_are_of_variants(kernels: ModuleType) -> None:
    with pytest.raises(fe.CompileError, match='specialize="check" makes one'):
        compiled(kernels.scale, SCALE, counts=frontend.Counts())
    wrong: Any = {}
    with pytest.raises(TypeError, match=r"counts must be frontend.Counts\(\), but got {}"):
        compiled(kernels.scale, SCALE, specialize="dispatch", counts=wrong)


def test_functions_that_count_stay_in_their_process(
    joined: tuple[fe.Function, frontend.Counts], tmp_path: Path
) -> None:
    with pytest.raises(StageError, match="in this process"):
        joined[0].export_to_c(tmp_path / "joined.o")


def test_what_a_kernel_forbids_to_specialise_stays_so(kernels: ModuleType) -> None:
    signature = {"x": "*fp32[n]:16", "n": "i32:16"}
    assert attributes(kernels.unspecialised, signature) == [{"x": 16, "BLOCK": 128}]


def test_a_misaligned_address_is_refused(gpu: FakeCuda, kernels: ModuleType) -> None:
    function = compiled(kernels.scale, HINTED)
    (x, _), (y, _) = tensor(64), tensor(64, shift=4)
    function(x, x, 1.0)
    with pytest.raises(ValueError, match="Misaligned Tensor data on argument #1"):
        function(x, y, 1.0)
    assert len(gpu.launches()) == 1


@pytest.mark.usefixtures("allocator")
@pytest.mark.parametrize(
    ("value", "hint", "text"),
    [(1000, "i32:16", "n must be a multiple of 16"), (2, "i32:1", "n must be 1")],
)
def test_a_number_that_was_assumed_otherwise_is_refused(
    gpu: FakeCuda, kernels: ModuleType, value: int, hint: str, text: str
) -> None:
    function = compiled(
        kernels.scale, {"x": "*fp32[m]", "y": "*fp32[m]", "n": hint, "factor": "fp32"}
    )
    x, _ = tensor(2000)
    with pytest.raises(ValueError, match=f"{text}.*but got {value}"):
        function(x, x, value, 1.0)
    function(x, x, 16 if "16" in hint else 1, 1.0)
    (launch,) = gpu.launches()
    assert len(launch.parameters) == (6 if hint.endswith("16") else 5)


@pytest.mark.parametrize("n", [16, 1000, 1, 0x7FFFFFF0])
def test_an_example_of_triton_means_what_it_means_there(
    gpu: FakeCuda, kernels: ModuleType, n: int
) -> None:
    """1 is folded, 16 divides some."""
    x, _ = tensor(64)
    found = attributes(kernels.scale, {"x": x, "y": x, "n": n, "factor": 2.0})
    wanted = {"n": 1} if n == 1 else {"n": 16} if n % 16 == 0 else {}
    assert found == [{"x": 16, "y": 16, "BLOCK": 128, **wanted}]


@pytest.mark.parametrize("shift", [0, 4])
@pytest.mark.parametrize("n", [1024, 1000])
def test_dispatch_launches_the_first_kernel_that_fits(
    gpu: FakeCuda, kernels: ModuleType, shift: int, n: int
) -> None:
    """Each kernel is a library of its own, loaded when it is launched first."""
    function = compiled(kernels.scale, SCALE, 1024, specialize="dispatch")
    (x, at), (y, to) = tensor(n, shift=shift), tensor(n)
    function(x, y, 2.0)
    (launch,) = gpu.launches()
    assert launch.parameters[0] == at.address.to_bytes(8, "little")
    assert launch.parameters[1] == to.address.to_bytes(8, "little")
    assert launch.parameters[2] == n.to_bytes(4, "little")
    loaded = gpu.libraries
    (best, _), (other, _) = tensor(2048), tensor(2048)
    function(best, other, 2.0)
    assert gpu.libraries - loaded == (0 if (shift, n) == (0, 1024) else 1)


@pytest.mark.parametrize(
    ("strides", "parameters"),
    [
        ((64, 1), 7),
        ((64, 2), 8),
        ((63, 1), 7),
    ],
)
def test_strides_are_folded_where_they_are_1(
    gpu: FakeCuda, kernels: ModuleType, strides: tuple[int, int], parameters: int
) -> None:
    known = {**STRIDED, **STRIDES}
    function = compiled(
        kernels.strided, known, specialize=[{"stride_column": 1, "stride_row": "i32"}, {}]
    )
    memory = np.zeros(8192, np.float32)
    steps = tuple(4 * stride for stride in strides)
    x = forged(np.lib.stride_tricks.as_strided(memory, (4, 30), steps))
    function(x, tensor(4, 30)[0])
    (launch,) = gpu.launches()
    assert len(launch.parameters) == parameters
    assert int.from_bytes(launch.parameters[4], "little") == strides[0]


def test_a_list_without_a_general_version_refuses_the_rest(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    function = compiled(kernels.scale, SCALE, specialize=[{"n": 16}])
    x, _ = tensor(1000)
    with pytest.raises(ValueError, match="n must be a multiple of 16"):
        function(x, x, 1.0)
    several = compiled(kernels.scale, SCALE, specialize=[{"n": 16, "x": 16}, {"n": 16}])
    with pytest.raises(ValueError, match="no code for these sizes"):
        several(x, x, 1.0)
    assert gpu.launches() == []


def test_a_size_beyond_32_bits_goes_to_the_wide_version(gpu: FakeCuda, kernels: ModuleType) -> None:
    function = compiled(kernels.strided, {**STRIDED, **STRIDES}, specialize="dispatch")
    x = forged(np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (2, 2), (4 << 33, 4)))
    function(x, tensor(2, 2)[0])
    (launch,) = gpu.launches()
    assert [len(each) for each in launch.parameters[2:6]] == [4, 4, 8, 8]


def test_what_is_assumed_is_in_the_notes(gpu: FakeCuda, kernels: ModuleType) -> None:
    """And in the docstring, and in both of them only where it is so."""
    known = {"x": "*fp32[n]:16", "y": "*fp32[n]", "factor": "fp32"}
    function = frontend.compile(
        kernels.scale,
        signature=known,
        constexprs={"BLOCK": 128},
        grid=lambda meta: (frontend.ceil_div(meta["n"], 128),),
        target="sm_90a",
    )
    assert function.notes["assumes"] == ["x is 16-byte aligned"]
    assert "Assumes: x is 16-byte aligned" in str(function.__doc__)
    known["x"] = "*fp32[n]"
    loose = frontend.compile(
        kernels.scale,
        signature=known,
        constexprs={"BLOCK": 128},
        grid=lambda meta: (frontend.ceil_div(meta["n"], 128),),
        target="sm_90a",
    )
    assert "assumes" not in loose.notes and "Assumes" not in str(loose.__doc__)
