"""Functions under CuTe DSL's names: bits against Python's integers, pairs and maths against NumPy,
nested tuples against what CuTe DSL gives, options as objects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"
arch: Any = fe.arch
maths: Any = fe.math


def vector(dtype: Any) -> Any:
    return fe.row_major((fe.sym_int(),), dtype)


@fe.kernel
def bits_kernel(a, b, c, d, unsigned, signed, wide):
    i = arch.thread_idx()[0]
    x, y, p, q = a[i], b[i], c[i], d[i]
    sx, sy = fe.Int32(x), fe.Int32(y)
    unsigned[0, i] = arch.brev(x)
    unsigned[1, i] = arch.bfind(x >> p)
    unsigned[2, i] = arch.bfe(x, p, q)
    unsigned[3, i] = arch.bfi(x, y, p, q)
    unsigned[4, i] = arch.lop3(x, y, p, 0xCA)
    unsigned[5, i] = fe.Uint32(arch.prmt(x, y, x ^ y))
    unsigned[6, i] = arch.shf(x, y, p, "l")
    unsigned[7, i] = arch.shf(x, y, p, "clamp_right")
    unsigned[8, i] = arch.mul_hi(x, y)
    unsigned[9, i] = arch.mul24(x, y)
    unsigned[10, i] = arch.mad24(x, y, p, True)
    signed[0, i] = arch.bfe(sx, p, q)
    signed[1, i] = arch.mul_hi(sx, sy)
    signed[2, i] = arch.mul24(sx, sy)
    signed[3, i] = arch.add_sat_int(sx, sy)
    signed[4, i] = arch.sub_sat_int(sx, sy)
    signed[5, i] = fe.Int32(arch.bfind(sx >> fe.Int32(p)))
    wide[0, i] = arch.mul_wide(sx, sy)
    wide[1, i] = arch.mul_hi(wide[0, i], fe.Int64(sy) * sy - 7)
    wide[2, i] = arch.brev(wide[0, i])


@fe.jit
def bits(a, b, c, d, unsigned, signed, wide):
    bits_kernel(a, b, c, d, unsigned, signed, wide).launch(grid=1, block=a.shape[0])


ALL = (1 << 32) - 1


def signed_of(value: int, width: int = 32) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def field(x: int, start: int, length: int, *, sign: bool) -> int:
    """PTX's definition of `bfe`, bit by bit."""
    top = x >> min(start + length - 1, 31) & 1 if sign and length else 0
    inside = [k < length and start + k < 32 for k in range(32)]
    return sum((x >> (start + k) & 1 if inside[k] else top) << k for k in range(32))


def permuted(x: int, y: int, digits: int) -> int:
    both, result = x | y << 32, 0
    for place in range(4):
        digit = digits >> 4 * place & 15
        byte = both >> 8 * (digit & 7) & 255
        result |= (byte if digit < 8 else 255 * (byte >> 7)) << 8 * place
    return result


def highest(value: int) -> int:
    return ((value if value >= 0 else ~value).bit_length() - 1) & ALL


def bits_of(x: int, y: int, p: int, q: int) -> tuple[list[int], list[int], list[int]]:
    sx, sy, both = signed_of(x), signed_of(y), x | y << 32
    low24, low24s = (x & 0xFFFFFF, y & 0xFFFFFF), (signed_of(x & 0xFFFFFF, 24), y & 0xFFFFFF)
    mask = ((1 << q) - 1) << p & ALL
    limits = [max(-(2**31), min(2**31 - 1, each)) & ALL for each in (sx + sy, sx - sy)]
    unsigned = [
        *(int(f"{x:032b}"[::-1], 2), highest(x >> p), field(x, p, q, sign=False)),
        *(y & ~mask | x << p & mask, x & y | ~x & p, permuted(x, y, x ^ y)),
        *((both << p % 32) >> 32, both >> min(p, 32), x * y >> 32, math.prod(low24)),
        (math.prod(low24) >> 16) + p,
    ]
    product24 = low24s[0] * signed_of(low24s[1], 24)
    signed = [field(x, p, q, sign=True), sx * sy >> 32, product24, *limits, highest(sx >> p)]
    square, product = sy * sy - 7, sx * sy
    order = int(f"{product & (1 << 64) - 1:064b}"[::-1], 2)
    wide = [product, product * square >> 64, signed_of(order, 64)]
    return [v & ALL for v in unsigned], [signed_of(v & ALL) for v in signed], wide


def test_bits_are_those_of_ptx() -> None:
    rng, n = np.random.default_rng(1), 64
    a, b = (rng.integers(0, 2**32, n, np.uint32) for _ in range(2))
    c, d = (rng.integers(0, 40, n, np.uint32) for _ in range(2))
    a[:4], b[:4] = (0, ALL, 1 << 31, 1), (ALL, ALL, 1 << 31, 0)
    rows = ((11, np.uint32), (6, np.int32), (3, np.int64))
    found = [np.zeros((count, n), dtype) for count, dtype in rows]
    outs = [fe.row_major(each.shape, each.dtype) for each in found]
    fe.compile(bits, *[vector(fe.Uint32)] * 4, *outs, options=CPU)(a, b, c, d, *found)
    for i in range(n):
        wanted = bits_of(*(int(each[i]) for each in (a, b, c, d)))
        assert [each[:, i].tolist() for each in found] == list(wanted), i


@fe.kernel
def lanes_kernel(out, floats):
    i = arch.lane_idx()
    masks = (arch.lanemask_eq(), arch.lanemask_lt(), arch.lanemask_le(), arch.lanemask_gt())
    for k in fe.range_constexpr(4):
        out[k, i] = masks[k]
    out[4, i] = arch.lanemask_ge()
    out[5, i] = arch.warp_redux_sync(fe.Uint32(i) + 1, "or")
    out[6, i] = arch.match_sync(arch.FULL_MASK, i & 3, "any")
    out[7, i] = fe.Uint32(arch.warpsize() + arch.cluster_size() + arch.block_idx_in_cluster())
    arch.red(floats.iterator, fe.Float32(i), op="max", dtype=fe.Float32)
    arch.store(floats.iterator + 1, 7.0)
    pair = arch.fma_packed_f32x2((1.5, floats[2]), (2.0, 3.0), (0.5, -1.0))
    arch.sync_warp()
    if i == 0:
        floats[3], floats[4] = pair
        floats[5] = arch.load(floats.iterator + 1, fe.Float32)
        floats[6], floats[7] = arch.add_packed_f16x2((2048.0, 0.5), (1.0, 0.25))


@fe.jit
def lanes(out, floats):
    lanes_kernel(out, floats).launch(grid=1, block=32)


def test_lanes_and_pairs() -> None:
    out, floats = np.zeros((8, 32), np.uint32), np.zeros(8, np.float32)
    floats[2] = 4
    fe.compile(lanes, fe.row_major(out.shape, out.dtype), vector(fe.Float32), options=CPU)(
        out, floats
    )
    lane = np.arange(32, dtype=np.uint64)
    one = np.uint64(1) << lane
    below = one - np.uint64(1)
    wanted = [one, below, one | below, ALL & ~(one | below), ALL & ~below]
    assert (out[:5] == np.array(wanted, np.uint32)).all()
    assert (out[5] == 63).all() and (out[6] == 0x11111111 << (lane % 4)).all()
    assert (out[7] == 33).all()
    assert floats.tolist() == [31, 7, 4, 3.5, 11, 7, 2048, 0.75]


INVERSE = {"asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}
DTYPES = {np.float16: fe.Float16, np.float32: fe.Float32, np.float64: fe.Float64}


@pytest.mark.parametrize("name", INVERSE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_inverse_hyperbolic_functions(name: str, dtype: Any) -> None:
    function = getattr(maths, name)

    @fe.jit
    def compute(x: fe.Tensor, out: fe.Tensor):
        out[:] = function(x[:])

    x = _arguments(name).astype(dtype)
    out = np.empty_like(x)
    fe.compile(compute, vector(DTYPES[dtype]), vector(DTYPES[dtype]), options=CPU)(x, out)
    with np.errstate(all="ignore"):
        wanted = INVERSE[name](x.astype(np.longdouble)).astype(np.float64)
        size = np.spacing(np.abs(wanted).astype(dtype)).astype(np.float64)
        error = np.abs(out.astype(np.float64) - wanted) / size
    finite = np.isfinite(wanted)
    assert error[finite].max() < 2.5
    assert np.array_equal(out[~finite], wanted[~finite].astype(dtype), equal_nan=True)
    assert (np.signbit(out) == np.signbit(wanted))[~np.isnan(wanted)].all()


def _arguments(name: str) -> Any:
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3e4, math.inf, -math.inf, math.nan]
    small, large = np.exp2(rng.uniform(-15, 0, 2000)), np.exp2(rng.uniform(0, 15, 2000))
    own = {"asinh": [small, -small, large, -large], "acosh": [1 + small, large]}
    return np.concatenate([special, *own.get(name, [small * 0.99, -small, 1 - small / 2])])


@fe.jit
def arithmetic(o: fe.Tensor, n: fe.Int32, x: fe.Float32, h: fe.Float16):
    s, c = maths.sincos(x)
    values = (
        *(maths.abs(n), maths.absf(x), maths.absi(n), maths.neg(n), maths.add(n, 1)),
        *(maths.sub(x, 1), maths.mul(n, 2), maths.div(n, 2), maths.rem(n, 2), maths.div(x, 2)),
        *(maths.rem(x, 2), maths.rcp(x), maths.clamp(x, -1, 1), maths.roundeven(x), s, c),
        *(maths.isfinite(x), maths.isnormal(h), maths.ipowi(n, 3), maths.fpowi(x, -2)),
        *(maths.div(-7, 2), maths.rem(-7, 2), maths.asinh(0.5), maths.exp(x, True)),
    )
    for i, value in enumerate(values):
        o[i] = fe.Float32(value)


def test_names_of_arithmetic() -> None:
    out = np.zeros(24, np.float32)
    examples = (vector(fe.Float32), 1, 1.0, fe.Float16)
    fe.compile(arithmetic, *examples, options=CPU)(out, -7, -2.5, 1e-6)
    exact = [7, 2.5, 7, 7, -6, -3.5, -14, -3, -1, -1.25, -0.5, -0.4, -1, -2]
    rounded = [math.sin(-2.5), math.cos(-2.5), 1, 0, -343, 0.16, -3, -1, math.asinh(0.5)]
    assert np.allclose(out, [*exact, *rounded, math.exp(-2.5)], rtol=1e-6)


LAYOUT = fe.make_layout((3, 4))
TUPLES = {
    "flatten_to_tuple((1, (2, (3,))))": (1, 2, 3),
    "unwrap(((3,),))": 3,
    "wrap(3)": (3,),
    "repeat(3, 1)": 3,
    "repeat(3, 2)": (3, 3),
    "repeat_as_tuple(3, 1)": (3,),
    "find((3, (4, 5)), 4)": (1, 0),
    "find((3, (4, 5)), 4, hierarchical=False)": 1,
    "find((3, 4), 9)": None,
    "find_if((3, (4, 5)), lambda x, at: x > 3)": (1, 0),
    "front(((3, 4), 5))": 3,
    "has_underscore((1, (None, 2)))": True,
    "is_int_tuple((1, (2, 3)))": True,
    "is_int_tuple(('a',))": False,
    "filter_tuple((1, 2, 3), (4, 5, 6), f=lambda x, y: (x, y))": (1, 4, 2, 5, 3, 6),
    "transform_leaf(lambda x, y: x + y, (1, (2, 3)), (1, (2, 3)))": (2, (4, 6)),
    "transform_apply((1, 2), (3, 4), f=lambda a, b: a * b, g=lambda *x: sum(x))": 11,
    "product_like((2, 3, (4, 5)), (1, 1, 1))": (2, 3, 20),
    "product_like((2, (3, 4)), 1)": 24,
    "increment_coord((2, 0), (3, 4))": (0, 1),
    "increment_coord((2, 3), (3, 4))": (0, 4),
    "is_major(0, (1, 4))": True,
    "leading_dim((2, (3, 4)), (12, (4, 1)))": (1, 1),
    "leading_dim((1, 4), (1, 1))": 1,
    "leading_dim((3, 4), (4, 2))": None,
    "get_divisibility(12)": 12,
    "get_divisibility(size)": 8,
    "round_up((10, 5), (4, 2))": (12, 6),
    "size_in_bytes(fe.Int4, LAYOUT)": 6,
    "size_in_bytes(fe.Float16, LAYOUT)": 24,
    "append_ones(LAYOUT, 4)": fe.make_layout((3, 4, 1, 1)),
    "prepend_ones(LAYOUT)": fe.make_layout((1, 3, 4)),
    "slice_and_offset((None, 2), LAYOUT)": (fe.make_layout((3,)), 6),
    "pretty_str((1, (2, None)))": "(1,(2,_))",
}


@pytest.mark.parametrize("text", TUPLES)
def test_tuples(text: str) -> None:
    """In Python, and in a compiled function."""
    names = {"fe": fe, "LAYOUT": LAYOUT, "size": fe.sym_int(divisibility=8), "found": []}
    code = text if text.startswith("fe.") else f"fe.{text}"
    assert eval(code, names) == TUPLES[text]
    source = f"@fe.jit\ndef f():\n    found.append({code})\n"
    fe.compile(fe.from_source(source, names)["f"], options=CPU)
    assert names["found"] == [TUPLES[text]]


@fe.jit
def shapes(a: fe.Tensor, n: fe.Int32, out: fe.Tensor):
    m, k = fe.flatten_to_tuple(a.shape)
    out[0] = fe.round_up(m, 4) + fe.unwrap((n,))
    out[1] = fe.size_in_bytes(a.element_type, a.layout)
    out[2] = fe.assume(n, divby=2)
    fe.static_assert(fe.is_int_tuple((m, (n, 3))) and not fe.is_integer(a.element_type))
    fe.static_assert(fe.get_divisibility(k) == 8 and fe.leading_dim(a.shape, a.stride) == 1)
    i, j = fe.increment_coord((n, 0), a.shape)
    out[3] = i * 100 + j


def test_tuples_of_run_time_numbers() -> None:
    sizes = (fe.sym_int(), fe.sym_int(divisibility=8))
    f = fe.compile(shapes, fe.row_major(sizes, fe.Float32), 1, vector(fe.Int64), options=CPU)
    out = np.zeros(4, np.int64)
    f(np.zeros((5, 8), np.float32), 4, out)
    assert out.tolist() == [12, 160, 4, 1]
    with pytest.raises(ValueError, match="Invalid n, assumed to be divisible by 2, but got 3"):
        f(np.zeros((5, 8), np.float32), 3, out)


def test_assumptions_that_are_known() -> None:
    names = {"fe": fe}
    for call, message in {
        "fe.assume(6, 4)": "assume: 6 is not divisible by 4",
        "fe.assume(6, pow2=True)": "assume: 6 is no power of two",
        "fe.assume(6, 0)": "assume: divby is 0",
        "fe.assume(1.5, 1)": "assume takes an integer, but got 1.5",
    }.items():
        f = fe.from_source(f"@fe.jit\ndef f():\n    {call}\n", names)["f"]
        with pytest.raises(fe.CompileError, match=message):
            fe.compile(f, options=CPU)


@fe.jit
def nothing(a: fe.Tensor):
    pass


def test_options_as_objects() -> None:
    chosen = fe.compile[fe.OptLevel(0), fe.EnableAssertions, fe.KeepSASS(False)]
    assert chosen(nothing, vector(fe.Float32), options=CPU)(np.zeros(1, np.float32)) is None
    for option, message in {
        fe.KeepSASS: "ferrule has no option KeepSASS",
        fe.OptLevel(7): "opt_level must be 0, 1, 2 or 3, but got 7",
        3: r"fe.compile\[...\] got 3",
    }.items():
        with pytest.raises(fe.CompileError, match=message):
            fe.compile[option](nothing, vector(fe.Float32), options=CPU)


def test_kinds_of_values() -> None:
    @fe.jit
    def asks(a: fe.Tensor, out: fe.Tensor):
        vector = a.load()
        fe.static_assert(isinstance(vector, fe.TensorSSA) and not isinstance(a, fe.TensorSSA))
        fe.static_assert(
            not isinstance(vector, (fe.Tensor, float)) and type(vector) is fe.TensorSSA
        )
        out.store(vector)

    example = fe.row_major((4,), fe.Float32)
    fe.compile(asks, example, example, options=CPU)


def test_facts_of_fake_tensors() -> None:
    fake: Any = fe.row_major((3, 4), fe.Float32, device="cpu")
    assert isinstance(fake, fe.runtime.FakeTensor)
    assert (fake.leading_dim, fake.memspace) == (1, fe.AddressSpace.generic)
    columns: Any = fe.make_fake_compact_tensor(fe.Float32, (1, 4))
    assert (columns.leading_dim, columns.memspace) == (1, fe.AddressSpace.gmem)
    apart: Any = fe.make_fake_tensor(fe.Float32, (3, 4), (8, 2))
    assert apart.leading_dim is None


def test_widths() -> None:
    assert (fe.Float16.width, fe.Int4.width, fe.Float64.bytes, fe.Int4.bytes) == (16, 4, 8, 1)


def test_memory_and_alignment_are_known() -> None:
    @fe.jit
    def told(a: fe.Tensor, out: fe.Tensor):
        p = a.iterator
        out[0] = p.max_alignment
        out[1] = p.align(4).alignment
        out[2] = a.memspace == fe.AddressSpace.gmem and p.memspace == a.memspace

    out = np.zeros(3, np.int32)
    example = fe.make_fake_compact_tensor(fe.Float32, (8,), assumed_align=16)
    compiled = fe.compile(told, example, out, options=CPU)
    compiled(_aligned(8), out)
    assert out.tolist() == [16, 16, 1]


def _aligned(count: int) -> Any:
    memory = np.zeros(count + 4, np.float32)
    return memory[-memory.ctypes.data % 16 // 4 :][:count]


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        ("arch", "alloc_tmem", "cutlass.cute.arch.alloc_tmem is for Blackwell"),
        ("arch", "store_async_dsmem", "arch.store_async_dsmem is not in ferrule, or not yet"),
        ("arch", "addc", "instead: fe.Uint64 holds the carry"),
        ("arch", "thread_idxx", "fe.arch has no attribute 'thread_idxx'; did you mean thread_idx"),
        ("math", "sinn", "fe.math has no attribute 'sinn'; did you mean sin"),
        (
            "utils",
            "TmemAllocator",
            "cutlass.utils.TmemAllocator is for Blackwell, and not in ferrule",
        ),
        (
            "pipeline",
            "PipelineTmaUmma",
            "cutlass.pipeline.PipelineTmaUmma is for Blackwell, and not in ferrule",
        ),
        ("nvgpu", "tcgen05", "cutlass.cute.nvgpu.tcgen05 is for Blackwell, and not in ferrule"),
        (
            "nvgpu.warp",
            "MmaMXF8Op",
            "cutlass.cute.nvgpu.warp.MmaMXF8Op is for Blackwell, and not in ferrule",
        ),
    ],
)
def test_a_name_that_is_missing_says_so(module: str, name: str, message: str) -> None:
    owner: Any = fe
    for each in module.split("."):
        owner = getattr(owner, each)
    with pytest.raises(AttributeError, match=message):
        getattr(owner, name)
    if "did you mean" in message:
        return

    @fe.jit
    def uses(a: fe.Tensor):
        getattr(owner, name)(a)

    with pytest.raises(fe.CompileError, match=message):
        fe.compile(uses, vector(fe.Float32), options=CPU)


def test_what_the_module_of_cute_dsl_has_is_there() -> None:
    import ferrule.cutlass.utils as utils

    assert fe.utils.LayoutEnum is utils.LayoutEnum


def test_a_tuple_is_no_leaf_to_find() -> None:
    assert fe.find((1, (2, 3)), 3) == (1, 1) and fe.find((1, 2), 3) is None
    with pytest.raises(TypeError, match=r"find\(t, x\): x is one leaf, .* but got \(1, \(2, 3\)\)"):
        fe.find(3, (1, (2, 3)))


def test_what_a_run_time_value_has_is_asked_as_in_python() -> None:
    @fe.jit
    def asked(a: fe.Tensor, out: fe.Tensor):
        x = a[0]
        out[0] = hasattr(a, "shape") and not hasattr(a, "shapes")
        out[1] = hasattr(x, "dtype") and not hasattr(x, "shape") and hasattr(a.load(), "reduce")
        out[2] = getattr(a, "shapes", (7,))[0] + getattr(a, "shape", (0,))[0]
        out[3] = getattr(x, "dtype", None) is fe.Float32

    out = np.zeros(4, np.int32)
    asked(np.zeros(5, np.float32), out)
    assert out.tolist() == [1, 1, 12, 1]


def test_a_field_of_a_struct_is_read_by_its_pointer() -> None:
    @fe.struct
    class Shared:
        count: fe.Int32

    @fe.kernel
    def wrong(out: fe.Tensor):
        storage = fe.utils.SmemAllocator().allocate(Shared)
        storage.count = 5
        out[0] = out[1] + storage.count

    @fe.jit
    def host(out: fe.Tensor):
        wrong(out).launch(grid=1, block=1)

    with pytest.raises(fe.CompileError, match=r"is read by its pointer: field\.ptr\.load\(\)"):
        fe.compile(host, vector(fe.Int32), options=CPU)


def test_structs_are_made_where_annotations_are_texts() -> None:
    @fe.struct
    class Shared:
        count: fe.Int32
        data: fe.struct.Align[fe.struct.MemRange[fe.Float32, 8], 16]

    assert Shared.size_in_bytes() == 48
    kind = fe.Int32
    with pytest.raises(TypeError, match=r"Bad\.x is the text 'kind', which cannot be evaluated"):

        @fe.struct
        class Bad:
            x: kind  # type: ignore[valid-type]
