"""Every kind of parameter and every way to launch, against the stand-in of the driver."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, Launch, forged
from tensor_maps import decoded
from triton_launcher import Address, described, example, own_launch, same, tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = pytest.mark.needs_cc

BLOCKS = {"BLOCK": 128}


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def in_blocks(meta: Any) -> tuple[Any]:
    return (frontend.ceil_div(meta["n"], meta["BLOCK"]),)


def launched(gpu: FakeCuda, function: Any, *arguments: Any) -> Launch:
    """The launch of a call."""
    gpu.clear()
    function(*arguments)
    (launch,) = gpu.launches()
    return launch


def test_a_kernel_without_parameters(gpu: FakeCuda, kernels: ModuleType) -> None:
    function = frontend.compile(kernels.nothing, grid=(3, 2), target="sm_90a")
    ours = launched(gpu, function)
    assert (ours.grid, ours.block) == ((3, 2, 1), (128, 1, 1))
    same(ours, own_launch(gpu, kernels.nothing, (3, 2)))


def test_scalars_have_their_own_width(gpu: FakeCuda, kernels: ModuleType) -> None:
    """2-byte floats are rounded to nearest even, small integers are a byte or two."""
    names = ("8", "16", "32", "64")
    scalars = {
        **{f"a{bits}": f"i{bits}" for bits in names},
        **{f"b{bits}": f"u{bits}" for bits in names},
        "flag": "u1",
        "half": "fp16",
        "brain": "bf16",
        "single": "fp32",
        "double": "fp64",
    }
    function = frontend.compile(
        kernels.every_type,
        signature={"x": "*fp32", **scalars},
        constexprs=BLOCKS,
        grid=frontend.fixed(1),
        target="sm_90a",
    )
    x, at = tensor(128)
    integers = -7, -700, -70_000, -(1 << 40), 250, 65_000, 1 << 31, 1 << 63
    ours = launched(gpu, function, x, *integers, True, 0.1, 0.1, 0.1, 0.1)
    packed = struct.pack("<bhiqBHIQ?", *integers, True)
    assert b"".join(ours.parameters[1:10]) == packed
    half, brain, single, double = ours.parameters[10:14]
    assert half == np.float16(0.1).tobytes()
    # 0.1 is 0x3DCCCCCD in float32; its nearest in 16 bits is above, what truncation gives below.
    assert brain == b"\xcd\x3d"
    assert single == np.float32(0.1).tobytes() and double == np.float64(0.1).tobytes()
    assert ours.parameters[0] == at.address.to_bytes(8, "little")


@pytest.mark.parametrize("version", ["gluon_copy", "scale"])
def test_what_is_given_as_in_a_launch_by_triton(
    gpu: FakeCuda, kernels: ModuleType, version: str
) -> None:
    """Examples by position and keyword, as `kernel[grid](…)` takes them; Gluon as well."""
    kernel, (x, at), (y, to) = getattr(kernels, version), tensor(1000), tensor(1000)
    more = (2.5,) if version == "scale" else ()
    function = frontend.compile(
        kernel, x, y, 1000, *more, **BLOCKS, num_warps=4, grid=in_blocks, target="sm_90a"
    )
    ours = launched(gpu, function, x, y, 1000, *more)
    given = at, to, 1000, *more
    same(ours, own_launch(gpu, kernel, (8,), *given, **BLOCKS, num_warps=4))


def test_a_number_has_the_type_that_the_kernel_says(gpu: FakeCuda, kernels: ModuleType) -> None:
    """Not that of the example: 0.1 is no float32, and 2 may be a float or become large."""
    given = 0.1, 0.1, 2, 3, 5
    x, at = tensor(16)
    function = frontend.compile(
        kernels.annotated, x, *given, grid=frontend.fixed(1), target="sm_90a"
    )
    dtypes = [param.dtype.name for param in function.signature.params[1:]]
    assert dtypes == ["float64", "bfloat16", "float32", "int64", "uint8"]
    ours = launched(gpu, function, x, *given)
    # Triton cuts a bfloat16 off where the nearest is above.
    same(ours, own_launch(gpu, kernels.annotated, (1,), at, *given), apart={2: b"\xcd\x3d"})
    wide = launched(gpu, function, x, 0.1, 0.1, 2, 1 << 40, 5)
    assert wide.parameters[4] == (1 << 40).to_bytes(8, "little")


@pytest.mark.parametrize("step", [3, 1, 1 << 40])
def test_tuples_are_flattened_in_place(gpu: FakeCuda, kernels: ModuleType, step: int) -> None:
    """Named ones, too; an element that is 1 is folded, as any number."""
    (x, at), (y, to) = tensor(512), tensor(512)
    strided = kernels.Strided
    inputs, result = (strided(x, (step,)), strided(y, [16])), strided(y, (1,))
    function = frontend.compile(
        kernels.added, inputs, result, **BLOCKS, grid=frontend.fixed(1), target="sm_90a"
    )
    assert [param.name for param in function.signature.params] == [
        *("inputs_0_data", "inputs_0_strides_0", "inputs_1_data", "inputs_1_strides_0"),
        *("to_data", "to_strides_0"),
    ]
    ours = launched(gpu, function, x, step, y, 16, y, 1)
    own = (strided(at, (step,)), strided(to, (16,))), strided(to, (1,))
    same(ours, own_launch(gpu, kernels.added, (1,), *own, **BLOCKS))


def test_elements_of_tuples_follow_from_sizes(gpu: FakeCuda, kernels: ModuleType) -> None:
    one = kernels.Strided("*fp32[n: s]", ("inputs_0_data.strides[0]",))
    function = frontend.compile(
        kernels.added,
        signature={"inputs": (one,), "to": kernels.Strided(fe.like("inputs_0_data"), (1,))},
        constexprs=BLOCKS,
        grid=lambda meta: (len(meta["inputs"]), meta["inputs"][0].data.shape[0]),
        target="sm_90a",
    )
    names = [param.name for param in function.signature.params]
    assert names == ["inputs_0_data"]


def test_names_of_elements_that_are_taken_are_refused(kernels: ModuleType) -> None:
    examples = {"x": ("*fp32",), "x_0": "*fp32"}
    with pytest.raises(fe.CompileError, match="an element of a tuple is called 'x_0'"):
        frontend.compile(kernels.clash, signature=examples, grid=frontend.fixed(1), target="sm_90a")


def test_a_grid_that_compares_is_decided_by_the_call(gpu: FakeCuda, kernels: ModuleType) -> None:
    """One kernel, launched with one grid or the other."""
    function = frontend.compile(
        kernels.scale,
        signature={"x": "*fp32[n]", "y": "*fp32[n]", "factor": "fp32"},
        constexprs=BLOCKS,
        grid=lambda meta: (min(4, frontend.ceil_div(meta["n"], meta["BLOCK"])),),
        target="sm_90a",
    )
    grids = []
    for n in (1, 512, 513, 1000):
        grids.append(launched(gpu, function, tensor(n)[0], tensor(n)[0], 2.0).grid[0])
    assert grids == [1, 4, 4, 4]
    assert function.inspect_ptx().count(".entry") == 1


def test_a_size_is_bound_to_the_tensors(gpu: FakeCuda, kernels: ModuleType) -> None:
    """By a name, an expression, a text, a function: callers give the tensors alone."""
    rows, columns, step = fe.sym_int32(symbol="rows"), fe.sym_int(), fe.sym_int()
    function = frontend.compile(
        kernels.strided,
        signature={
            "x": fe.make_fake_tensor(fe.Float32, (rows, columns), (step, 2)),
            "y": fe.make_fake_compact_tensor(fe.Float32, (rows, columns), stride_order=(1, 0)),
            "columns": columns,
            "stride_row": lambda sig: sig["x"].strides[0],
            "stride_column": "x.strides[1]",
        },
        constexprs=BLOCKS,
        grid=lambda meta: (meta["rows"],),
        target="sm_90a",
    )
    assert [param.name for param in function.signature.params] == ["x", "y"]
    ours = launched(
        gpu,
        function,
        forged(np.zeros((5, 60), np.float32)[:, ::2]),
        forged(np.zeros((5, 30), "f4")),
    )
    assert ours.grid == (5, 1, 1)
    sizes = [int.from_bytes(each, "little") for each in ours.parameters[2:6]]
    assert sizes == [5, 30, 60, 2]


def test_clusters_are_launched_whole(gpu: FakeCuda, kernels: ModuleType) -> None:
    function = frontend.compile(
        kernels.scale,
        signature={"x": "*fp32[n]:16", "y": "*fp32[n]:16", "factor": "fp32"},
        constexprs=BLOCKS,
        grid=in_blocks,
        target="sm_90a",
        num_ctas=2,
    )
    (x, at), (y, to) = tensor(1000), tensor(1000)
    ours = launched(gpu, function, x, y, 2.0)
    given = at, to, 1000, 2.0
    theirs = own_launch(gpu, kernels.scale, (8,), *given, **BLOCKS, num_ctas=2)
    same(ours, theirs)
    assert ours.grid == (16, 1, 1)
    cluster, scheduling = 4, 5
    for attribute, size in ((cluster, 12), (scheduling, 4)):
        assert ours.attributes[attribute][:size] == theirs.attributes[attribute][:size]


@pytest.mark.parametrize(
    ("option", "attribute"), [("launch_pdl", 6), ("launch_cooperative_grid", 2)]
)
def test_attributes_of_a_launch(
    gpu: FakeCuda, kernels: ModuleType, option: str, attribute: int
) -> None:
    function = frontend.compile(
        kernels.scale,
        signature={"x": "*fp32[n]:16", "y": "*fp32[n]:16", "factor": "fp32"},
        constexprs=BLOCKS,
        grid=in_blocks,
        target="sm_90a",
        **{option: True},
    )
    (x, at), (y, to) = tensor(1000), tensor(1000)
    ours = launched(gpu, function, x, y, 2.0)
    given = at, to, 1000, 2.0
    theirs = own_launch(gpu, kernels.scale, (8,), *given, **BLOCKS, **{option: True})
    same(ours, theirs)
    assert ours.attributes.keys() == theirs.attributes.keys() == {attribute}
    assert ours.attributes[attribute][:4] == theirs.attributes[attribute][:4]


def test_a_descriptor_of_the_host(gpu: FakeCuda, kernels: ModuleType) -> None:
    """The tensor map is that of the kernel's block, and sizes and strides follow it."""
    function = frontend.compile(
        kernels.copy_block,
        signature={
            "source": frontend.descriptor("*fp16[n, n]:16", (64, 64)),
            "target": "*fp16[n, n]:16",
        },
        constexprs={"SIZE": 64},
        grid=lambda meta: (frontend.ceil_div(meta["n"], 64), frontend.ceil_div(meta["n"], 64)),
        target="sm_90a",
    )
    (source, at), (target, to) = (tensor(256, 256, dtype=np.float16) for _ in range(2))
    ours = launched(gpu, function, source, target)
    assert ours.grid == (4, 4, 1)
    found = decoded(ours.parameters[0])
    assert (found.sizes, found.strides, found.box) == ((256, 256), (512,), (64, 64))
    assert (found.dtype, found.swizzle, found.promotion, found.address) == (6, 3, 2, at.address)
    assert struct.unpack("<iiqq", b"".join(ours.parameters[1:5])) == (256, 256, 256, 1)
    given = described(at, [256, 256], [64, 64]), to, 256
    same(ours, own_launch(gpu, kernels.copy_block, (4, 4), *given, SIZE=64))


@pytest.mark.usefixtures("allocator")
def test_a_descriptor_of_a_result_and_of_a_flattened_tensor(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    """As attention has them: Triton's users flatten q, k and v in a view, and allocate."""
    function = frontend.compile(
        kernels.rows,
        signature={
            "source": frontend.descriptor("*fp16[b, m, 64]:16", (32, 64), flatten=True),
            "to": frontend.descriptor(
                frontend.zeros(("b", "m", 64), "float16"), (32, 64), flatten=True
            ),
        },
        constexprs={"SIZE": 32},
        grid=lambda meta: (frontend.ceil_div(meta["source"].shape[0], meta["SIZE"]),),
        target="sm_90a",
    )
    source, at = tensor(3, 64, 64, dtype=np.float16)
    result = function(source)
    assert result.shape == (3, 64, 64)
    fill, ours = gpu.launches()
    assert fill.parameters[1] == (3 * 64 * 64).to_bytes(8, "little")
    made = Address("fp16", decoded(ours.parameters[5]).address)
    given = described(at, [192, 64], [32, 64]), described(made, [192, 64], [32, 64])
    same(ours, own_launch(gpu, kernels.rows, (6,), *given, SIZE=32))


@pytest.mark.usefixtures("allocator")
def test_memory_that_a_kernel_asks_for_is_allocated(gpu: FakeCuda, kernels: ModuleType) -> None:
    """A descriptor made on the device lies in it: so many bytes a block, aligned."""
    function = frontend.compile(
        kernels.copy_through_scratch,
        signature={"source": "*fp16[n, n]:16", "target": "*fp16[n, n]:16", "n": "n"},
        constexprs={"SIZE": 64},
        grid=lambda meta: (frontend.ceil_div(meta["n"], 64), frontend.ceil_div(meta["n"], 64)),
        target="sm_90a",
    )
    (source, _), (target, _) = (tensor(256, 256, dtype=np.float16) for _ in range(2))
    ours = launched(gpu, function, source, target)
    scratch, profile = (int.from_bytes(each, "little") for each in ours.parameters[-2:])
    assert scratch % 128 == 0 and scratch != 0 and profile == 0


@pytest.mark.usefixtures("allocator")
def test_a_result_is_filled_before_the_launch(gpu: FakeCuda, kernels: ModuleType) -> None:
    function = frontend.compile(
        kernels.scale,
        signature={"x": "*fp32[n]", "y": frontend.zeros(("n",), "float32"), "factor": "fp32"},
        constexprs=BLOCKS,
        grid=in_blocks,
        target=["sm_80", "sm_90a"],
    )
    result = function(tensor(1000)[0], 2.0)
    fill, scale = gpu.launches()
    assert (fill.kernel, scale.kernel, result.shape) == ("fill", "scale", (1000,))
    assert fill.parameters[0] == scale.parameters[1]


def test_an_empty_grid_launches_nothing(gpu: FakeCuda, kernels: ModuleType) -> None:
    function = frontend.compile(
        kernels.scale,
        signature={"x": "*fp32[n]", "y": "*fp32[n]", "factor": "fp32"},
        constexprs=BLOCKS,
        grid=in_blocks,
        target="sm_90a",
    )
    function(forged(np.zeros(0, np.float32)), forged(np.zeros(0, np.float32)), 1.0)
    assert gpu.launches() == []


def test_a_gpu_without_a_kernel_is_named(gpu: FakeCuda, kernels: ModuleType) -> None:
    """What is launched differently on each architecture says which there are."""
    gpu.set_capability(0, 75)
    matmul = example("matmul").compiled(["sm_90a", "sm_100a"])
    matrices = [tensor(64, 64, dtype=np.float16)[0] for _ in range(3)]
    with pytest.raises(
        RuntimeError, match="sm_90a, sm_100a, but the GPU has compute capability 7.5"
    ):
        matmul(*matrices)


def test_each_gpu_gets_the_launch_for_its_architecture(gpu: FakeCuda) -> None:
    """Shared memory differs, and what is chosen for one device is not taken for another."""
    gpu.set_capability(0, 80)
    gpu.set_capability(1, 90)
    both = example("matmul").compiled(["sm_80", "sm_90a"])
    found, wanted = [], []
    for device, arch in ((0, "sm_80"), (1, "sm_90a"), (0, "sm_80"), (1, "sm_90a")):
        matrices = [tensor(64, 64, dtype=np.float16, device=device)[0] for _ in range(3)]
        found.append(launched(gpu, both, *matrices).smem)
        wanted.append(launched(gpu, example("matmul").compiled(arch), *matrices).smem)
    assert found == wanted
    assert len(set(found)) == 2


@pytest.mark.parametrize("how", ["keyword", "position", "config", "heuristic"])
def test_a_constant_with_the_name_of_an_option_is_both(
    gpu: FakeCuda, kernels: ModuleType, how: str
) -> None:
    """As Triton reads its options from all arguments by name, so not from one by position."""
    import triton

    kernel, (x, at), (y, to) = kernels.wide, tensor(1000), tensor(1000)
    positions, named = (x, y, 1000, *((128, 8) if how == "position" else ())), dict[str, Any]()
    if how != "position":
        named["BLOCK"] = 128
    theirs = dict(named) if how == "position" else {**named, "num_warps": 8}
    if how == "keyword":
        named["num_warps"] = 8
    if how == "config":
        kernel = triton.autotune([triton.Config({}, num_warps=8)], key=[])(kernel)
    if how == "heuristic":
        kernel = triton.heuristics({"num_warps": lambda args: args["BLOCK"] // 16})(kernel)
    function = frontend.compile(
        kernel, *positions, **named, grid=in_blocks, target="sm_90a",
        config=0 if how == "config" else None,
    )  # fmt: skip
    ours = launched(gpu, function, x, y, 1000)
    assert ours.block == (128 if how == "position" else 256, 1, 1)
    own = at, to, 1000, *positions[3:]
    same(ours, own_launch(gpu, kernels.wide, (8,), *own, **theirs))
