"""What stands for a parameter: in the terms of those who launch with Triton, and by name."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, Launch, forged, forged_at
from tensor_maps import decoded
from triton_launcher import Address, described, own_launch, same, tensor

import ferrule as fe
from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends import triton as frontend

pytestmark = pytest.mark.needs_cc

BLOCKS = {"BLOCK": 128}
VECTORS = {"x": "*fp32[n]", "y": "*fp32[n]"}


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def compiled(kernel: Any, *examples: Any, **how: Any) -> fe.Function:
    return frontend.compile(
        kernel, *examples, **{"grid": frontend.fixed(1), "target": "sm_90a", **how}
    )


def launched(gpu: FakeCuda, function: Any, *arguments: Any) -> Launch:
    """The launch of a call."""
    gpu.clear()
    function(*arguments)
    (launch,) = gpu.launches()
    return launch


def names(function: fe.Function) -> list[str]:
    return [param.name for param in function.signature.params]


def test_a_stride_that_is_a_number_is_bound_as_any(gpu: FakeCuda, kernels: ModuleType) -> None:
    """So is a size; a stride of 1 is folded, as Triton does."""
    x = specs.Tensor("x", (8, 64), "float32", strides=(specs.sym_int64(), 1))
    sig = specs.Signature("strided", [x, specs.Tensor("y", (8, 64), "float32")])
    function = compiled(
        kernels.strided,
        x=sig["x"],
        y=sig["y"],
        rows=sig["x"].shape[0],
        columns=sig["x"].shape[1],
        stride_row=sig["x"].strides[0],
        stride_column=sig["x"].strides[1],
        **BLOCKS,
    )
    assert names(function) == ["x", "y"]
    ours = launched(gpu, function, forged(np.zeros((8, 80), "f4")[:, :64]), tensor(8, 64)[0])
    sizes = [int.from_bytes(each, "little") for each in ours.parameters[2:5]]
    assert (sizes, len(ours.parameters)) == ([8, 64, 80], 7)


@pytest.mark.parametrize("how", ["signature", "keyword", "position"])
def test_a_number_by_name_is_that_of_every_call(
    gpu: FakeCuda, kernels: ModuleType, how: str
) -> None:
    """By position it is an example, as in a launch by Triton: callers give theirs."""
    numbers: dict[str, Any] = {"n": 100, "factor": 2.5}
    match how:
        case "signature":
            function = compiled(kernels.scale, signature={**VECTORS, **numbers}, **BLOCKS)
        case "keyword":
            function = compiled(kernels.scale, signature=VECTORS, **numbers, **BLOCKS)
        case _:
            function = compiled(kernels.scale, *VECTORS.values(), *numbers.values(), **BLOCKS)
    by_position = how == "position"
    assert names(function) == ["x", "y", *(numbers if by_position else ())]
    given = numbers.values() if by_position else ()
    ours = launched(gpu, function, tensor(100)[0], tensor(100)[0], *given)
    packed = [(100).to_bytes(4, "little"), np.float32(2.5).tobytes()]
    assert list(ours.parameters[2:4]) == packed
    documented = "In every call: n = 100, factor = 2.5" in str(function.__doc__)
    kept = function.notes.get("triton", {}).get("fixed")
    assert (documented, kept) == ((False, None) if by_position else (True, numbers))


def test_a_grid_sees_numbers_by_name(gpu: FakeCuda, kernels: ModuleType) -> None:
    numbers: dict[str, Any] = {"n": 512, "factor": 2.5}
    function = compiled(
        kernels.scale,
        signature={**VECTORS, **numbers},
        **BLOCKS,
        grid=lambda meta: (meta["n"] // meta["BLOCK"], int(meta["factor"])),
    )
    assert launched(gpu, function, tensor(4)[0], tensor(4)[0]).grid == (4, 2, 1)


def test_numbers_by_name_have_all_widths(gpu: FakeCuda, kernels: ModuleType) -> None:
    given = {"a": -float("inf"), "b": 0.1, "c": 2, "d": 1 << 40, "e": 5}
    (x, at), function = tensor(1), compiled(kernels.annotated, "*fp32:16", **given)
    assert function.notes["triton"]["fixed"] == {**given, "a": "-inf"}
    theirs = own_launch(gpu, kernels.annotated, (1,), at, *given.values())
    same(launched(gpu, function, x), theirs, apart={2: b"\xcd\x3d"})


def test_a_default_stays_one(gpu: FakeCuda, kernels: ModuleType) -> None:
    (x, at), function = tensor(128), compiled(kernels.defaulted, "*fp32:16", **BLOCKS)
    assert str(function.signature).endswith("step: int32 = 1, factor: float32 = 0.5)")
    theirs = own_launch(gpu, kernels.defaulted, (1,), at, 2, 0.25, **BLOCKS)
    same(launched(gpu, function, x, 2, 0.25), theirs)
    ours = launched(gpu, function, x)
    assert list(ours.parameters[1:3]) == [(1).to_bytes(4, "little"), np.float32(0.5).tobytes()]


@pytest.mark.parametrize("kind", ["numpy.float32", "numpy.dtype", "float", "tl", "a number"])
def test_numbers_and_dtypes_of_others(gpu: FakeCuda, kernels: ModuleType, kind: str) -> None:
    import triton.language as tl

    example = {
        "numpy.float32": np.float32,
        "numpy.dtype": np.dtype("float32"),
        "float": float,
        "tl": tl.float32,
        "a number": np.float32(3.0),
    }[kind]
    function = compiled(kernels.scale, *VECTORS.values(), np.int64(5), example, **BLOCKS)
    assert [param.dtype.name for param in function.signature.params[2:]] == ["int32", "float32"]


class View:
    """What a library hands over for a part of a tensor: no tensor, but Triton takes it."""

    def __init__(self, dtype: Any, address: int, shape: Any, strides: Any = None) -> None:
        self.dtype, self.shape, self.address = dtype, shape, address
        if strides is not None:
            self.stride = lambda: strides

    def data_ptr(self) -> int:
        return self.address


def test_what_has_an_address_and_a_dtype_is_a_pointer(gpu: FakeCuda, kernels: ModuleType) -> None:
    """By the names of Triton, PyTorch or NumPy; callers give tensors."""
    _, at = tensor(8)
    function = compiled(kernels.scale, at, at, 8, 2.0, **BLOCKS)
    launched(gpu, function, tensor(64)[0], tensor(64)[0], 64, 1.0)
    views = View(np.dtype("float32"), 64, (4, 8)), View("fp32", 8, (4, 8), (16, 1))
    function = compiled(kernels.scale, *views, 32, 2.0, **BLOCKS)
    x, y, *_ = function.signature.params
    assert isinstance(x, specs.Tensor) and isinstance(y, specs.Tensor)
    assert (x.align, y.align, y.strides[1], len(x.shape)) == (16, 4, 1, 2)
    wide = forged(np.zeros((6, 40), "f4")[:, :24])
    launched(gpu, function, tensor(6, 24)[0], wide, 32, 1.0)
    with pytest.raises(CompileError, match="the example of .x. is"):
        compiled(kernels.scale, View("text", 64, (4,)), at, 8, 2.0, **BLOCKS)


def test_a_reinterpreted_tensor_is_given_as_it_is(gpu: FakeCuda, kernels: ModuleType) -> None:
    import triton.language as tl
    from triton.runtime.jit import MockTensor, TensorWrapper

    (x, at), (y, to) = tensor(128, dtype=np.int8), tensor(128, dtype=np.int8)
    wrapped = TensorWrapper.__new__(TensorWrapper)
    wrapped.base, wrapped.dtype = x, tl.float8e5
    function = compiled(kernels.scale, wrapped, MockTensor(tl.int8), 128, 2.0, **BLOCKS)
    assert [param.dtype.name for param in function.signature.params[:2]] == ["int8", "int8"]
    ours = launched(gpu, function, x, y, 128, 2.0)
    assert [int.from_bytes(each, "little") for each in ours.parameters[:2]] == [
        at.address,
        to.address,
    ]
    with pytest.raises(fe.CompileError, match="read as float16: elements of another size"):
        wrapped.dtype = tl.float16
        compiled(kernels.scale, wrapped, y, 128, 2.0, **BLOCKS)


# ---- descriptors ----


def descriptor(kind: type, base: Any, block: int = 64, **more: Any) -> Any:
    """A descriptor of Triton's or Gluon's of 256 by 256 elements."""
    return described(base, [256, 256], [block, block], kind=kind, **more)


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_tritons_own_descriptor_is_an_example(
    gpu: FakeCuda, kernels: ModuleType, arch: int, padding: str
) -> None:
    """Without TMA the kernel takes it apart, as Triton's launcher does."""
    from triton.tools.tensor_descriptor import TensorDescriptor as Kind

    gpu.set_capability(0, arch)
    (source, at), (target, to) = (tensor(256, 256, dtype=np.float16) for _ in range(2))
    example = descriptor(Kind, source, padding=padding)
    how = {"grid": frontend.fixed((4, 4)), "SIZE": 64, "target": f"sm_{arch}"}
    function = compiled(kernels.copy_block, example, target, 256, **how)
    assert names(function) == ["source", "target", "n"]
    given = descriptor(Kind, at, padding=padding), to, 256
    theirs = own_launch(gpu, kernels.copy_block, (4, 4), *given, SIZE=64, arch=arch)
    same(launched(gpu, function, source, target, 256), theirs)


def test_a_descriptor_has_its_own_rank(gpu: FakeCuda, kernels: ModuleType) -> None:
    """Its shape and strides count, whatever those of its base are: callers give such a tensor."""
    from triton.tools.tensor_descriptor import TensorDescriptor as Kind

    example = descriptor(Kind, tensor(256 * 256, dtype=np.float16)[0])
    function = compiled(kernels.copy_block, example, "*fp16", 256, SIZE=64)
    assert len(function.signature["source"].shape) == 2


def test_float32_is_rounded_by_a_descriptor_that_says_so(
    gpu: FakeCuda, kernels: ModuleType
) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor as Kind

    matrix, _ = tensor(256, 256)
    example = descriptor(Kind, matrix, 32, round_f32_to_tf32=True)
    function = compiled(kernels.copy_block, example, "*fp32", 256, SIZE=32)
    ours = launched(gpu, function, matrix, tensor(256)[0], 256)
    tfloat32 = 11
    assert decoded(ours.parameters[0]).dtype == tfloat32


def test_a_descriptor_of_gluon(gpu: FakeCuda, kernels: ModuleType) -> None:
    """Its layout is that of the block in shared memory."""
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as Kind

    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    (source, at), (target, to) = (tensor(256, 256, dtype=np.float16) for _ in range(2))
    example = descriptor(Kind, source, layout=layout)
    function = compiled(kernels.gluon_block, example, target, SIZE=64)
    given = descriptor(Kind, at, layout=layout), to
    theirs = own_launch(gpu, kernels.gluon_block, (1,), *given, SIZE=64)
    same(launched(gpu, function, source, target), theirs)


def test_a_descriptor_for_im2col(gpu: FakeCuda, kernels: ModuleType) -> None:
    """Its block is pixels and channels; corners and steps are in the order of the tensor's dims."""
    from triton.experimental.gluon import language as gl

    hopper = pytest.importorskip("triton.experimental.gluon.nvidia.hopper")
    if not hasattr(hopper, "TensorDescriptorIm2Col"):
        pytest.skip("this version of Triton has no im2col")
    (source, at), (out, to) = (
        tensor(3, 7, 6, 64, dtype=np.float16),
        tensor(32, 64, dtype=np.float16),
    )
    more = {
        "strides": [7 * 6 * 64, 6 * 64, 64, 1],
        "layout": gl.NVMMASharedLayout.get_default_for([32, 64], gl.float16),
        "pixel_box_lower_corner": [-1, -2], "pixel_box_upper_corner": [0, -1],
        "element_strides": [1, 2, 1, 1],
    }  # fmt: skip
    kind = hopper.TensorDescriptorIm2Col
    given = described(source, [3, 7, 6, 64], [32, 64], kind=kind, **more)
    where, sizes = (2, 3, 5, 0, 6, 7), {"PIXELS": 32, "WIDE": 64}
    function = compiled(kernels.gluon_column, given, "*fp16[r, 64]:16", *["i32"] * 6, **sizes)
    assert str(function.signature).startswith("gluon_column(source: Tensor([n0, n1, n2, 64]")
    ours = launched(gpu, function, source, out, *where)
    found = decoded(ours.parameters[0])
    assert (found.sizes, found.box, found.steps) == ((64, 6, 7, 3), (64, 32), (1, 1, 2, 1))
    assert found.corners == ((-2, -1), (-1, 0)) and found.strides == (128, 768, 5376)
    theirs = described(at, [3, 7, 6, 64], [32, 64], kind=kind, **more), to, *where
    same(ours, own_launch(gpu, kernels.gluon_column, (1,), *theirs, **sizes))
    given.pixel_box_upper_corner = [0, 128]
    message = r"descriptor 'source' cannot be encoded: Im2colMap of source: corners of 2 .* to 127"
    with pytest.raises(fe.CompileError, match=message):
        compiled(kernels.gluon_column, given, "*fp16[r, 64]:16", *["i32"] * 6, **sizes)


def test_a_descriptor_of_padded_elements(gpu: FakeCuda, kernels: ModuleType) -> None:
    """mxfp8 by mxfp4: the kernel decides that bytes are pairs of elements of 4 bits."""
    shapes = (256, 256), (256, 128), (256, 8), (256, 8)
    pairs = [tensor(*shape, dtype=np.uint8) for shape in shapes] + [tensor(256, 256)]
    tiles = {"TILE_M": 128, "TILE_N": 128, "TILE_K": 128}
    signature = {
        "a": frontend.descriptor("*fp8e4nv[m, k]:16", (128, 128)),
        "b": frontend.descriptor("*u8[n, h]:16", (128, 64)),
        "a_scale": "*u8[m, s]:16", "b_scale": "*u8[n, s]:16", "out": "*fp32[m, n]:16",
        "n": "n", "k": "k",
    }  # fmt: skip
    function = frontend.compile(
        kernels.mixed_matmul, signature=signature, constexprs=tiles, grid=frontend.fixed((2, 2)),
        specialize=[{"n": 16, "k": 16}], target="sm_100a",
    )  # fmt: skip
    gpu.set_capability(0, 100)
    (_, at_a), *rest = pairs
    float8 = 10 | 8 << 8 | 1 << 16  # as DLPack has it
    a = forged_at(at_a.address, (256, 256), (256, 1), float8)
    ours = launched(gpu, function, a, *(each for each, _ in rest))
    found = decoded(ours.parameters[5])
    assert (found.dtype, found.sizes, found.strides) == (14, (256, 256), (128,))
    assert (found.box, found.swizzle, found.address) == ((128, 128), 3, rest[0][1].address)
    left = described(Address("fp8e4nv", at_a.address), [256, 256], [128, 128])
    right = described(rest[0][1], [256, 128], [128, 64])
    given = left, right, *(at for _, at in rest[1:]), 256, 256
    theirs = own_launch(gpu, kernels.mixed_matmul, (2, 2), *given, **tiles, arch=100)
    # Before 3.9 Triton's launcher tells the kernel the size in elements, not in bytes.
    same(ours, theirs, apart={7: (128).to_bytes(4, "little")})


def test_a_descriptor_of_what_is_no_tensor_is_refused(kernels: ModuleType) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor as Kind

    with pytest.raises(fe.CompileError, match=r"base of the descriptor for 'source'(.*\n)*.*hint"):
        compiled(kernels.copy_block, descriptor(Kind, object()), "*fp16", 256, SIZE=64)


@pytest.mark.parametrize(
    ("text", "found"),
    [("x.shape[-1]", 30), ("x.size(0)", 5), ("x.stride(-2)", 60), ("x.numel()", 150)],
)
def test_sizes_are_named_as_pytorch_does(
    gpu: FakeCuda, kernels: ModuleType, text: str, found: int
) -> None:
    function = compiled(
        kernels.scale,
        signature={"x": "*fp32[rows, columns: s, 1]", "y": "*fp32", "n": text, "factor": 1.0},
        **BLOCKS,
    )
    x = forged(np.zeros((5, 60), np.float32)[:, :30])
    ours = launched(gpu, function, x, tensor(4)[0])
    assert int.from_bytes(ours.parameters[2], "little") == found


def test_sizes_have_bounds(gpu: FakeCuda, kernels: ModuleType) -> None:
    k = specs.sym_int(min=1, max=64, symbol="k")
    strided = {"rows": "m", "columns": "n", "stride_row": "s", "stride_column": 1}
    texts = {"x": "*fp32[1<=m<=64, n<=32: s<=4096, 1]", "y": "*fp32[m, n]"}
    function = compiled(kernels.strided, signature={**texts, **strided}, **BLOCKS)
    assert function.signature.text().partition(" where ")[2] == (
        "m: int32 in 1..64, n: int32 in ..32, s: int64 in ..4096"
    )
    for shape, text in (((65, 8), "at most 64, but got 65"), ((2, 33), "at most 32, but got 33")):
        with pytest.raises(ValueError, match=text):
            function(tensor(*shape)[0], tensor(*shape)[0])
    even = specs.divisible(specs.sym_int(symbol="m"), 2)
    required = compiled(kernels.strided, signature={**texts, **strided}, requires=[even], **BLOCKS)
    with pytest.raises(ValueError, match="expected m % 2 == 0, but got m = 3"):
        required(tensor(3, 8)[0], tensor(3, 8)[0])
    number = compiled(kernels.scale, **VECTORS, n=k, factor="fp32", **BLOCKS)
    assert number.signature.text().endswith("requires n.value >= 1, n.value <= 64")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ("*fp32[n<=4]", "*fp32[n<=8]", "the size 'n' has different bounds in two texts"),
        ("*fp32[8<=n<=4]", "*fp32[n]", "the size 'n': sym_int: min must be at most max"),
        ("*fp32[n<=4]", fe.make_fake_compact_tensor(fe.Float32, (specs.sym_int(symbol="n"),)),
         "the size 'n' has other bounds in a text than in another example"),
    ],
)  # fmt: skip
def test_bounds_are_said_once(kernels: ModuleType, x: Any, y: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        compiled(kernels.scale, x=x, y=y, n="i32", factor="fp32", **BLOCKS)
