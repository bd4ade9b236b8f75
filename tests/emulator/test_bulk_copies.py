"""Bulk copies and boxes of tensor maps against NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from ptx_programs import HEADER, Array, launch, machine

from ferrule.emulator.machine import Fault, Machine
from ferrule.emulator.tensormaps import TensorMap, TensorMapError

DTYPES = {0: np.uint8, 1: np.uint16, 2: np.uint32, 3: np.int32, 4: np.uint64, 5: np.int64,
          6: np.float16, 7: np.float32, 8: np.float64}  # fmt: skip
SIZE = 16384


def program(body: str, parameters: int) -> str:
    """Thread 0 executes `body`; %r1 is an mbarrier of one arrival, %r2 the data."""
    names = ", ".join(f".param .u64 a{i}" for i in range(parameters))
    loads = "\n".join(f"ld.param.u64 %rd{i}, [a{i}];" for i in range(parameters))
    return f"""{HEADER}
    .visible .entry k({names}) {{
    .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .b16 %h<4>;
    .shared .align 1024 .b8 data[{SIZE}];
    .shared .align 8 .b64 bar;
    {loads}
    mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, data;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared.b64 [%r1], 1;
    bar.sync 0;
    {body}
    ret; }}"""


WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra W;"


def out(number: int, size: int) -> str:
    """Copy shared memory to the array of a number."""
    return f"""
    mov.u32 %r20, %r0;
    O: mad.lo.u32 %r21, %r20, 4, %r2; ld.shared.u32 %r22, [%r21];
    mul.wide.u32 %rd20, %r20, 4; add.u64 %rd20, %rd20, %rd{number}; st.global.u32 [%rd20], %r22;
    add.u32 %r20, %r20, 32; setp.lt.u32 %p5, %r20, {size // 4}; @%p5 bra O;"""


def into(number: int, size: int) -> str:
    return f"""
    mov.u32 %r20, %r0;
    I: mad.lo.u32 %r21, %r20, 4, %r2;
    mul.wide.u32 %rd20, %r20, 4; add.u64 %rd20, %rd20, %rd{number}; ld.global.u32 %r22, [%rd20];
    st.shared.u32 [%r21], %r22;
    add.u32 %r20, %r20, 32; setp.lt.u32 %p5, %r20, {size // 4}; @%p5 bra I;
    bar.sync 0;"""


def load(text: str, size: int) -> str:
    return f"@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], {size};\n@%p0 {text}\n"


BYTES = np.random.default_rng(0).integers(0, 256, SIZE, dtype=np.uint8)
PLAIN = (
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 1024, [%r1];"
)


@pytest.mark.parametrize("text", [
    PLAIN,
    PLAIN.replace("shared::cluster.global", "shared::cta.global"),
    PLAIN.replace("bytes [", "bytes.L2::cache_hint [").replace("];", "], %rd1;"),
])  # fmt: skip
def test_load(text: str) -> None:
    ptx = program(load(text, 1024) + WAIT + out(1, 2048), 2)
    found = launch(ptx, [BYTES[:1024], np.zeros(2048, np.uint8)])[1]
    assert np.array_equal(found[:1024], BYTES[:1024])
    assert set(found[1024:]) == {0xCD}


def test_load_ends_late() -> None:
    found = launch(
        program(load(PLAIN, 1024) + out(1, 1024), 2), [BYTES[:1024], np.zeros(1024, np.uint8)]
    )[1]
    assert set(found) == {0xCD}


def test_load_of_other_bytes_never_ends() -> None:
    with pytest.raises(Fault, match="try_wait") as caught:
        launch(program(load(PLAIN, 1040) + WAIT, 2), [BYTES[:1024], np.zeros(4)])
    assert caught.value.kind == "deadlock"


STORE = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 1024;"


@pytest.mark.parametrize(
    "wait", ["cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;", ""]
)
def test_store(wait: str) -> None:
    """What is stored is what shared memory has at the wait, or at the end."""
    body = into(0, 1024) + STORE + "cp.async.bulk.commit_group;" + wait
    body += "st.shared.u32 [%r2], %r0;" if wait else ""
    found = launch(program(body, 2), [BYTES[:1024], np.zeros(1040, np.uint8)])[1]
    assert np.array_equal(found[:1024], BYTES[:1024])
    assert not found[1024:].any()


def test_store_reads_late() -> None:
    body = (
        into(0, 1024)
        + STORE
        + "cp.async.bulk.commit_group; @%p0 st.shared.u32 [%r2], %r0; cp.async.bulk.wait_group 0;"
    )
    found = launch(program(body, 2), [BYTES[:1024], np.zeros(1024, np.uint8)])[1]
    assert not found[:4].any() and np.array_equal(found[4:], BYTES[4:1024])


REDUCTIONS: list[tuple[str, Any, Any]] = [
    ("add.u32", np.uint32, np.add), ("add.s64", np.int64, np.add),
    ("min.s32", np.int32, np.minimum),
    ("max.u64", np.uint64, np.maximum), ("and.b32", np.uint32, np.bitwise_and),
    ("or.b64", np.uint64, np.bitwise_or), ("xor.b32", np.uint32, np.bitwise_xor),
    ("inc.u32", np.uint32, lambda a, b: np.where(a >= b, 0, a + 1)),
    ("dec.u32", np.uint32, lambda a, b: np.where((a == 0) | (a > b), b, a - 1)),
    ("add.noftz.f16", np.float16, np.add), ("max.f16", np.float16, np.maximum),
    ("add.f32", np.float32, np.add), ("add.f64", np.float64, np.add),
]  # fmt: skip


@pytest.mark.parametrize(("op", "dtype", "wanted"), REDUCTIONS)
def test_reductions(op: str, dtype: Any, wanted: Any) -> None:
    rng = np.random.default_rng(3)
    floats = np.dtype(dtype).kind == "f"
    drawn = (rng.standard_normal(64) * 50 if floats else rng.integers(0, 99, 64) for _ in "ab")
    a, b = (each.astype(dtype) for each in drawn)
    body = (
        into(0, a.nbytes)
        + f"""
    @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%rd1], [%r2], {a.nbytes};
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
    )
    found = launch(program(body, 2), [a, b])[1]
    assert np.array_equal(found, wanted(b, a).astype(dtype))


# ---- tensor maps ----


def boxed(
    tensor: Array, start: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], fill: Any
) -> Array:
    """The box at a place, outermost dim first, element by element."""
    counts = [
        -(-b // s) if i < len(box) - 1 else b
        for i, (b, s) in enumerate(zip(box, steps, strict=True))
    ]
    found = np.full(counts, fill, tensor.dtype)
    for index in product(*map(range, counts)):
        where = tuple(
            begin + i * (step if dim < len(box) - 1 else 1)
            for dim, (begin, i, step) in enumerate(zip(start, index, steps, strict=True))
        )
        if all(0 <= x < n for x, n in zip(where, tensor.shape, strict=True)):
            found[index] = tensor[where]
    return found


def swizzle(data: bytes, mode: int) -> bytes:
    """Line i of 16 bytes goes to i xor the number of its 128 bytes, cut to the span."""
    lines = np.frombuffer(data, np.uint8).reshape(-1, 16)
    found = np.empty_like(lines)
    for i, line in enumerate(lines):
        row = i // 8
        found[i ^ {0: 0, 1: row >> 0 & 1, 2: row & 3, 3: row & 7}[mode]] = line
    return found.tobytes()


def encoded(gpu: Machine, tensor: Array, box: tuple[int, ...], steps: tuple[int, ...], dtype: int,
            swizzle_mode: int, fill: int = 0) -> tuple[int, Array]:  # fmt: skip
    """The tensor in memory, and its map; dims here are outermost first."""
    address = gpu.memory.allocate(tensor.nbytes)
    made = TensorMap(dtype, address, tensor.shape[::-1], tensor.strides[-2::-1], box[::-1],
                     steps[::-1],
                     swizzle=swizzle_mode, fill=fill).encoded()  # fmt: skip
    return address, np.frombuffer(made, np.uint8)


def test_a_mode_that_cutlass_clears_is_none_of_the_address() -> None:
    """Bit 21 of the second word, for small tensors and drivers up to 13.1."""
    for address in (0x7F26F2200100, 0x7F26F2000100):
        made = TensorMap(7, address, (64, 64), (256,), (32, 8), (1, 1)).encoded()
        assert not int.from_bytes(made[8:16], "little") >> 21 & 1


def values(shape: tuple[int, ...], dtype: int) -> Array:
    kind = np.dtype(DTYPES[dtype])
    rng = np.random.default_rng(len(shape))
    return rng.integers(1, 100, shape).astype(kind)


CASES = [
    ((100,), (64,), (1,), (40,), 7, 0, 0),
    ((16, 64), (8, 32), (1, 1), (4, 16), 6, 2, 0),
    ((16, 64), (8, 64), (1, 1), (-3, -5), 6, 3, 0),
    ((20, 32), (16, 16), (1, 1), (10, 24), 6, 1, 1),
    ((16, 64), (16, 32), (1, 1), (8, 40), 7, 3, 1),
    ((9, 10, 32), (2, 5, 16), (1, 1, 1), (8, 7, 20), 2, 0, 0),
    ((9, 20, 32), (3, 12, 16), (2, 3, 1), (1, 2, 0), 5, 3, 0),
    ((4, 5, 6, 32), (2, 2, 3, 32), (1, 1, 1, 1), (3, -1, 4, 16), 0, 1, 0),
    ((3, 4, 5, 6, 16), (2, 2, 2, 2, 16), (1, 2, 1, 1, 1), (2, 1, 4, 5, 4), 8, 3, 1),
]


@pytest.mark.parametrize(("shape", "box", "steps", "start", "dtype", "mode", "fill", "schedule"), [
    *[(*case, None) for case in CASES], *[(*case, "random:5") for case in CASES[2::3]],
])  # fmt: skip
def test_boxes(shape: Any, box: Any, steps: Any, start: Any, dtype: int, mode: int, fill: int,
               schedule: str | None) -> None:  # fmt: skip
    gpu = machine(schedule=schedule)
    tensor = values(shape, dtype)
    address, made = encoded(gpu, tensor, box, steps, dtype, mode, fill)
    put(address, tensor)
    wanted = boxed(tensor, start, box, steps, np.nan if fill else 0)
    rank = len(shape)
    coordinates = "{" + ", ".join(str(x) for x in start[::-1]) + "}"
    text = (
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        f"[%r2], [%rd0, {coordinates}], [%r1];"
    )
    ptx = program(load(text, wanted.nbytes) + WAIT + out(1, wanted.nbytes), 2)
    found = launch(ptx, [made, np.zeros(wanted.nbytes, np.uint8)], on=gpu)[1]
    whole = wanted.tobytes().ljust(-(-wanted.nbytes // 1024) * 1024, b"\0")
    expected = np.frombuffer(swizzle(whole, mode)[: wanted.nbytes], tensor.dtype)
    assert np.array_equal(found.view(tensor.dtype), expected, equal_nan=bool(fill))


@pytest.mark.parametrize(("shape", "box", "steps", "start", "dtype", "mode", "fill", "reduces"), [
    *[(*case, False) for case in CASES[::2]], *[(*case, True) for case in CASES[1::2] if case[4]],
])  # fmt: skip
def test_boxes_are_stored(shape: Any, box: Any, steps: Any, start: Any, dtype: int, mode: int,
                          fill: int, reduces: bool) -> None:  # fmt: skip
    gpu = machine()
    tensor = values(shape, dtype)
    address, made = encoded(gpu, tensor, box, steps, dtype, mode, 0)
    put(address, tensor)
    given = boxed(tensor, start, box, steps, 0)
    given = values(given.shape, dtype)
    wanted = tensor.copy()
    for index in product(*map(range, given.shape)):
        where = tuple(
            begin + i * (step if dim < len(box) - 1 else 1)
            for dim, (begin, i, step) in enumerate(zip(start, index, steps, strict=True))
        )
        if all(0 <= x < n for x, n in zip(where, shape, strict=True)):
            wanted[where] = given[index] + (tensor[where] if reduces else 0)
    whole = given.tobytes().ljust(-(-given.nbytes // 1024) * 1024, b"\0")
    data = np.frombuffer(swizzle(whole, mode), np.uint8)
    coordinates = "{" + ", ".join(str(x) for x in start[::-1]) + "}"
    name = "cp.reduce" if reduces else "cp"
    op = ".add" if reduces else ""
    body = (
        into(1, data.nbytes)
        + f"""
    @%p0 {name}.async.bulk.tensor.{len(shape)}d.global.shared::cta{op}.tile.bulk_group
        [%rd0, {coordinates}], [%r2];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"""
    )
    launch(program(body, 2), [made, data], on=gpu)
    assert np.array_equal(got(address, tensor), wanted)


def put(address: int, tensor: Array) -> None:
    import ctypes

    ctypes.memmove(address, np.ascontiguousarray(tensor).ctypes.data, tensor.nbytes)


def got(address: int, like: Array) -> Array:
    import ctypes

    found = np.empty_like(like)
    ctypes.memmove(found.ctypes.data, address, like.nbytes)
    return found


BOX = (
    "cp.async.bulk.tensor.{dims}d.shared::cluster.global{tile}.mbarrier::complete_tx::bytes "
    "[%r2], [%rd0, {at}], [%r1];"
)


# ---- maps that kernels make ----


def replaced(space: str, place: str, address: int, tensor: Array, box: tuple[int, ...],
             elements: int, mode: int) -> str:  # fmt: skip
    """Thread 0 replaces every field of a map; what is not said is 0."""
    head = f"@%p0 tensormap.replace.tile.{{}}.{space}.b1024.{{}} [{place}], {{}};\n"
    text = f"mov.b64 %rd9, {address};\n" + head.format("global_address", "b64", "%rd9")
    text += head.format("rank", "b32", tensor.ndim - 1)
    for dim in range(tensor.ndim):
        for field, value in (
            ("box_dim", box[::-1][dim]), ("global_dim", tensor.shape[::-1][dim]),
            ("element_stride", 1),
        ):  # fmt: skip
            text += f"mov.b32 %r9, {value};\n" + head.format(field, "b32", f"{dim}, %r9")
    for dim, stride in enumerate(tensor.strides[-2::-1]):
        text += f"mov.b64 %rd9, {stride};\n" + head.format("global_stride", "b64", f"{dim}, %rd9")
    text += head.format("elemtype", "b32", elements) + head.format("fill_mode", "b32", 1)
    return text + head.format("swizzle_mode", "b32", mode)


@pytest.mark.parametrize("elements", [6, 9, 10])
@pytest.mark.parametrize("space", ["global", "shared::cta"])
def test_a_map_that_the_kernel_makes(space: str, elements: int) -> None:
    """Numbers of types are those of the instruction, where 9 is float64 and 10 bfloat16."""
    gpu = machine()
    dtype = {6: 6, 9: 8, 10: 1}[elements]
    wide = np.dtype(DTYPES[dtype]).itemsize
    tensor, box = values((6, 5, 128 // wide), dtype), (2, 3, 64 // wide)
    address = gpu.memory.allocate(tensor.nbytes)
    put(address, tensor)
    in_shared = space != "global"
    body = replaced(space, "%r2" if in_shared else "%rd0", address, tensor, box, elements, 2)
    if in_shared:
        zeros = "mad.lo.u32 %r9, %r0, 4, %r2; mov.b32 %r8, 0; st.shared.b32 [%r9], %r8;\n"
        body = zeros + "bar.warp.sync -1;\n" + body + "bar.warp.sync -1;\n"
        body += (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
            " [%rd0], [%r2], 128;\n"
        )
    body += "fence.proxy.tensormap::generic.acquire.gpu [%rd0], 128;\n"
    nan = {6: np.nan, 9: np.nan, 10: 0x7FFF}[elements]
    wanted = boxed(tensor, (5, 1, 0), box, (1, 1, 1), nan)
    copy = BOX.format(dims=3, tile=".tile", at="{0, 1, 5}")
    text = program(body + load(copy, wanted.nbytes) + WAIT + out(1, wanted.nbytes), 2)
    arrays = [np.zeros(128, np.uint8), np.zeros(wanted.nbytes, np.uint8)]
    found = launch(text, arrays, on=gpu)[1].view(tensor.dtype)
    expected = np.frombuffer(swizzle(wanted.tobytes().ljust(1024, b"\0"), 2), tensor.dtype)
    assert np.array_equal(found, expected[: found.size], equal_nan=elements != 10)


@pytest.mark.parametrize(("field", "words"), [
    ("box_dim.global.b1024.b32 [%rd0], 0, 257", "the value 257"),
    ("element_stride.global.b1024.b32 [%rd0], 1, 9", "the value 9"),
    ("global_stride.global.b1024.b64 [%rd0], 0, 24", "the value 24"),
    ("global_address.global.b1024.b64 [%rd0], 8", "the value 8"),
    ("elemtype.global.b1024.b32 [%rd0], 14", "the value 14"),
    ("rank.global.b1024.b32 [%rd0], 5", "the value 5"),
    ("interleave_layout.global.b1024.b32 [%rd0], 1", "the value 1"),
    ("swizzle_mode.global.b1024.b32 [%rd0], 4", "the value 4"),
    ("box_dim.global.b1024.b32 [%rd0], 5, 1", "the value 1"),
    ("rank.global.b1024.b32 [%rd0], 0", "has no elements"),
    ("rank.shared::cta.b1024.b32 [%r2+32], 0", "no multiple of 64"),
])  # fmt: skip
def test_wrong_fields(field: str, words: str) -> None:
    text = f"@%p0 tensormap.replace.tile.{field};\n"
    text += load(BOX.format(dims=1, tile="", at="{%r0}"), 16)
    with pytest.raises(Fault, match=words):
        launch(program(text + WAIT, 1), [np.zeros(128, np.uint8)])


# ---- columns of im2col ----

Corners = tuple[tuple[int, ...], tuple[int, ...]]


def column(
    tensor: Array, start: tuple[int, ...], box: tuple[int, int], steps: tuple[int, ...],
    corners: Corners, offsets: tuple[int, ...], fill: Any,
) -> Array:  # fmt: skip
    """Pixels one after the other; all but offsets and corners is here with the channels last."""
    pixels, channels = box
    found = np.full((pixels, channels), fill, tensor.dtype)
    *at, first = start
    for pixel in found:
        where = [at[0], *(x + offset for x, offset in zip(at[1:], offsets[::-1], strict=True))]
        if all(0 <= x < n for x, n in zip(where, tensor.shape[:-1], strict=True)):
            for c in range(channels):
                if 0 <= first + c < tensor.shape[-1]:
                    pixel[c] = tensor[(*where, first + c)]
        for dim in range(len(at) - 1, 0, -1):
            at[dim] += steps[dim]
            if at[dim] <= tensor.shape[dim] - 1 + corners[1][-dim]:
                break
            at[dim] = corners[0][-dim]
        else:
            at[0] += 1
    return found


COLUMNS = [
    # A convolution of 3 in a row of 9 with a margin of 1, and one of 3x3 with strides of 2.
    ((2, 9, 16), (0, 3, 0), (16, 16), (1, 1, 1), ((-1,), (-1,)), (2,), 6, 1, 0),
    ((3, 7, 6, 40), (0, -1, 1, 32), (32, 16), (1, 2, 2, 1), ((-1, -1), (-1, -1)), (1, 2), 6, 0, 0),
    ((3, 7, 6, 32), (1, 4, 4, 0), (40, 32), (1, 1, 1, 1), ((0, 0), (-1, -2)), (1, 0), 7, 3, 1),
    ((2, 3, 4, 5, 16), (0, 0, -1, 3, 8), (64, 8), (1, 1, 3, 2, 1),
     ((1, -1, -1), (0, 0, -1)), (0, 2, 1), 2, 0, 0),
]  # fmt: skip


def column_map(gpu: Machine, tensor: Array, case: Any) -> tuple[int, Array]:
    """The tensor in memory, and its map for im2col."""
    _, _, box, steps, corners, _, dtype, mode, fill = case
    address = gpu.memory.allocate(tensor.nbytes)
    given = dtype, address, tensor.shape[::-1], tensor.strides[-2::-1], box[::-1], steps[::-1]
    made = TensorMap(*given, swizzle=mode, fill=fill, corners=corners).encoded()
    return address, np.frombuffer(made, np.uint8)


@pytest.mark.parametrize("case", COLUMNS)
def test_columns(case: Any) -> None:
    shape, start, box, steps, corners, offsets, dtype, mode, fill = case
    gpu = machine()
    tensor = values(shape, dtype)
    address, made = column_map(gpu, tensor, case)
    put(address, tensor)
    wanted = column(tensor, start, box, steps, corners, offsets, np.nan if fill else 0)
    text = (
        f"cp.async.bulk.tensor.{len(shape)}d.shared::cluster.global.im2col"
        f".mbarrier::complete_tx::bytes [%r2], [%rd0, {{{', '.join(map(str, start[::-1]))}}}], "
        f"[%r1], {{{', '.join(map(str, offsets))}}};"
    )
    ptx = program(load(text, wanted.nbytes) + WAIT + out(1, wanted.nbytes), 2)
    found = launch(ptx, [made, np.zeros(wanted.nbytes, np.uint8)], on=gpu)[1]
    whole = wanted.tobytes().ljust(-(-wanted.nbytes // 1024) * 1024, b"\0")
    expected = np.frombuffer(swizzle(whole, mode)[: wanted.nbytes], tensor.dtype)
    assert np.array_equal(found.view(tensor.dtype), expected, equal_nan=bool(fill))


def test_columns_are_stored() -> None:
    """Without offsets: pixels outside of the tensor are left out."""
    case = COLUMNS[1]
    shape, start, box, steps, corners, _, dtype, _, _ = case
    gpu = machine()
    tensor, given = values(shape, dtype), values(box, dtype)
    address, made = column_map(gpu, tensor, case)
    put(address, tensor)
    places = np.arange(1, tensor.size + 1).reshape(shape)
    where = column(places, start, box, steps, corners, (0, 0), 0)
    wanted = np.append(tensor.ravel(), 0)
    wanted[where.ravel() - 1] = given.ravel()
    at = ", ".join(map(str, start[::-1]))
    body = (
        into(1, given.nbytes)
        + f"""
    @%p0 cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group
        [%rd0, {{{at}}}], [%r2];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"""
    )
    launch(program(body, 2), [made, given.view(np.uint8).ravel()], on=gpu)
    assert np.array_equal(got(address, tensor).ravel(), wanted[:-1])


@pytest.mark.parametrize(("start", "mode", "offsets", "words"), [
    ("0, 5, 0, 0", ".im2col", ", {0, 0}", "no pixel of the bounding box"),
    ("0, 0, 0, 0", ".im2col", ", {0, 0}", "no pixel of the bounding box"),
    ("0, 1, 1, 0", ".tile", "", "is for im2col, the other not"),
])  # fmt: skip
def test_wrong_columns(start: str, mode: str, offsets: str, words: str) -> None:
    """Behind the box, between two steps, of the other mode."""
    gpu = machine()
    address, made = column_map(gpu, values(COLUMNS[1][0], 6), COLUMNS[1])
    text = (
        f"cp.async.bulk.tensor.4d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes "
        f"[%r2], [%rd0, {{{start}}}], [%r1]{offsets};"
    )
    with pytest.raises(Fault, match=words):
        launch(program(load(text, 1024) + WAIT, 1), [made], on=gpu)


# ---- padded elements of 4 bits ----


@pytest.mark.parametrize("mode", [0, 3])
def test_padded_boxes(mode: int) -> None:
    """8 bytes of 16 elements, and a gap of 8; the mbarrier counts the bytes without gaps."""
    gpu = machine()
    tensor = values((6, 128), 0)
    address = gpu.memory.allocate(tensor.nbytes)
    put(address, tensor)
    made = TensorMap(14, address, (256, 6), (128,), (128, 8), (1, 1), swizzle=mode).encoded()
    text = BOX.format(dims=2, tile=".tile", at="{128, 2}")
    ptx = program(load(text, 512) + WAIT + out(1, 2048), 2)
    found = launch(ptx, [np.frombuffer(made, np.uint8), np.zeros(2048, np.uint8)], on=gpu)[1]
    lines = np.full((8, 8, 16), 0xCD, np.uint8)
    lines[:, :, :8] = boxed(tensor, (2, 64), (8, 64), (1, 1), 0).reshape(8, 8, 8)
    expected = np.frombuffer(swizzle(lines.tobytes(), mode), np.uint8)
    assert np.array_equal(found[:1024], expected) and set(found[1024:]) == {0xCD}


@pytest.mark.parametrize(("text", "words"), [
    (BOX.format(dims=2, tile="", at="{64, 0}"), "multiple of 128"),
    ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd0, {0, 0}], [%r2];",
     "only loaded"),
])  # fmt: skip
def test_wrong_padded_boxes(text: str, words: str) -> None:
    gpu = machine()
    address = gpu.memory.allocate(256)
    made = TensorMap(14, address, (256, 2), (128,), (128, 2), (1, 1)).encoded()
    with pytest.raises(Fault, match=words):
        launch(program(load(text, 128) + WAIT, 1), [np.frombuffer(made, np.uint8)], on=gpu)


def test_a_map_of_another_driver_is_refused() -> None:
    text = BOX.format(dims=1, tile=".tile", at="{%r0}")
    with pytest.raises(Fault, match="no tensor map"):
        launch(program(load(text, 128) + WAIT, 1), [np.zeros(128, np.uint8)])


def test_a_tensor_that_was_freed_is_named() -> None:
    gpu = machine()
    tensor = values((16, 64), 6)
    address, made = encoded(gpu, tensor, (8, 32), (1, 1), 6, 2)
    gpu.memory.free(address)
    text = BOX.format(dims=2, tile="", at="{%r0, %r0}")
    with pytest.raises(Fault, match=r"cp.async.bulk.tensor.* freed before") as caught:
        launch(program(load(text, 512) + WAIT, 1), [made], on=gpu)
    assert caught.value.kind == "memory"


IMAGE: dict[str, Any] = {"dims": (64, 8, 2), "strides": (128, 1024), "steps": (1, 1, 1)}


@pytest.mark.parametrize(("change", "words", "known"), [
    ({"dims": (0, 8)}, "dims", True), ({"box": (3, 8)}, "no multiple of 16", True),
    ({"strides": (24,)}, "strides", True), ({"address": 8}, "address", True),
    ({"interleave": 1}, "interleave 1 is not emulated", False),
    ({"swizzle": 3}, "swizzle of 128", False),
    ({"dtype": 11}, "not emulated", False), ({"fill": 1, "dtype": 2}, "fill", True),
    ({"box": (128, 8), "swizzle": 1}, "do not fit", True),
    ({"dtype": 14}, "row has 128", True), ({"dtype": 14, "address": 16}, "multiple of 32", True),
    ({"dtype": 14, "strides": (16,)}, "multiples of 32", True),
    ({"dtype": 14, "fill": 1}, "fill", True), ({"dtype": 14, "swizzle": 2}, "swizzle 2", True),
    ({"dtype": 13}, "not emulated", False), ({"dtype": 16}, "not emulated", True),
    ({"corners": ((0,), (0,))}, "from 3 to 5 dims", True),
    (IMAGE | {"corners": ((8,), (0,))}, "is empty", True),
    (IMAGE | {"corners": ((1 << 15,), (0,))}, "from -32768 to 32767", True),
    (IMAGE | {"box": (16, 1025), "corners": ((0,), (0,))}, "1024 pixels", True),
    (IMAGE | {"corners": ((0, 0), (0, 0))}, "have 1", True),
])  # fmt: skip
def test_wrong_maps(change: dict[str, Any], words: str, known: bool) -> None:
    given: dict[str, Any] = {
        "dtype": 6, "address": 256, "dims": (64, 8), "strides": (128,), "box": (16, 8),
        "steps": (1, 1),
    }  # fmt: skip
    with pytest.raises(TensorMapError, match=words) as caught:
        TensorMap(**(given | change)).encoded()
    assert caught.value.emulated is known
