"""Copies of boxes of tensors, and matrices to shared memory, for targets without such instructions.

A box in shared memory has the hardware's layout: compact, the innermost dim fastest.  With a
swizzle of 32, 64 or 128 bytes, bits 4 to 6 of an offset are the chunk's bits xor its bits 7 to 9,
for the lowest one, two or three of them (PTX ISA, "Swizzling Modes").
"""

from __future__ import annotations

from typing import Final

from ferrule.compiler.cuda.tilings import Interleave, OobFill, Swizzle, Tiling
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.passes.map_words import Described
from ferrule.language.ir import ops, tensor_cores
from ferrule.language.ir.builder import Builder
from ferrule.specs import Boolean, Float32, Int32, Int64, Uint32

_SWIZZLED: Final = {Swizzle.NONE: 0, Swizzle.B32: 1, Swizzle.B64: 2, Swizzle.B128: 3}
"""The number of bits in an offset that change."""
_CHUNK: Final = 4
"""The lowest of these bits."""
_ROW: Final = 7
"""The lowest of the bits that they are combined with."""
_LANES: Final = 4
"""Lanes that share a row of a matrix."""
_ROWS: Final = 8


def require_known(tiling: Tiling) -> None:
    """Raises CodegenError for a form of boxes that only GPUs support."""
    if tiling.interleave is not Interleave.NONE or tiling.swizzle not in _SWIZZLED:
        raise CodegenError(
            f"a tensor map of {tiling} is known to GPUs alone: compile it for --target cuda"
        )


def copy_box(b: Builder, op: ops.TensorCopy) -> None:
    """A load or a store, element by element."""
    require_known(op.boxes.tiling)
    dims = tuple(reversed(range(op.boxes.tiling.rank)))
    known = None if op.descriptor is None else Described(b, op)
    _nested(b, op, dims, [], b.constant(Int32, 0), known)


def _nested(
    b: Builder,
    op: ops.TensorCopy,
    dims: tuple[int, ...],
    places: list[tuple[int, ops.Value]],
    number: ops.Value,
    known: Described | None,
) -> None:
    """Loops over the rest of a box's dims, the outermost first; `number` counts its elements."""
    if not dims:
        _element(b, op, dict(places), number, known)
        return
    tiling, dim = op.boxes.tiling, dims[0]
    step = tiling.steps[dim] if dim else 1
    count = -(-tiling.box[dim] // step)
    index = ops.Value(Int32, "box")
    zero, one, stop = (b.constant(Int32, n) for n in (0, 1, count))
    with b.region() as body:
        start = b.cast(Int64, op.coordinates[op.boxes.order[dim]])
        far = b.binary("mul", b.cast(Int64, index), b.constant(Int64, step))
        place = (op.boxes.order[dim], b.binary("add", start, far))
        inner = b.binary("add", b.binary("mul", number, stop), index)
        _nested(b, op, dims[1:], [*places, place], inner, known)
    b.append(ops.For((), index, zero, stop, one, (), (), body.freeze()))


def _element(
    b: Builder,
    op: ops.TensorCopy,
    places: dict[int, ops.Value],
    number: ops.Value,
    known: Described | None,
) -> None:
    assert op.shared is not None
    at = tuple(places[dim] for dim in range(len(places)))
    inside = b.constant(Boolean, value=True)
    for dim, place in enumerate(at):
        size = b.size(Int64, op.tensor.tensor.shape[dim]) if known is None else known.sizes[dim]
        inside = b.binary("and", inside, b.compare("ge", place, b.constant(Int64, 0)))
        inside = b.binary("and", inside, b.compare("lt", place, size))
    tensor = op.tensor
    if known is not None:
        tensor, at = known.memory, (known.offset(b, at),)
    offset = (_swizzled(b, op, number),)
    with b.region() as then:
        if op.kind == "load":
            b.store(op.shared, offset, b.load(tensor, at))
        else:
            b.store(tensor, at, b.load(op.shared, offset))
    with b.region() as otherwise:
        if op.kind == "load":
            b.store(op.shared, offset, _outside(b, op))
    b.if_(inside, then.freeze(), otherwise.freeze(), ())


def _outside(b: Builder, op: ops.TensorCopy) -> ops.Value:
    dtype = op.tensor.tensor.dtype
    if op.boxes.tiling.oob_fill is OobFill.NAN:
        return b.cast(dtype, b.constant(Float32, float("nan")))
    return b.cast(dtype, b.constant(Int32, 0))


def _swizzled(b: Builder, op: ops.TensorCopy, number: ops.Value) -> ops.Value:
    """The position of an element of a box; the bits are those of an offset in elements."""
    bits = _SWIZZLED[op.boxes.tiling.swizzle]
    if bits == 0:
        return number
    size = op.tensor.tensor.dtype.itemsize.bit_length() - 1
    row = b.binary("shr", number, b.constant(Int32, _ROW - size))
    low = b.binary("and", row, b.constant(Int32, (1 << bits) - 1))
    return b.binary("xor", number, b.binary("shl", low, b.constant(Int32, _CHUNK - size)))


# ---- matrices to shared memory ----


def store_matrix(b: Builder, op: ops.StoreMatrix) -> None:
    """Each lane collects the row to which it points from the lanes that have it, and stores it."""
    lane = _lane(b)
    row = b.binary("mod", lane, b.constant(Int32, _ROWS))
    mine = b.binary("floordiv", lane, b.constant(Int32, _ROWS))
    gather = _columns if op.transposed else _row
    for matrix in range(op.count):
        found = gather(b, op, matrix, row)
        with b.region() as then:
            for place, value in enumerate(found):
                b.store(op.target, (b.constant(Int32, place),), value)
        is_mine = b.compare("eq", mine, b.constant(Int32, matrix))
        b.if_(is_mine, then.freeze(), ops.Region(), ())


def _row(b: Builder, op: ops.StoreMatrix, matrix: int, row: ops.Value) -> list[ops.Value]:
    w = tensor_cores.words(op.source)
    own = [b.load(op.source, (b.constant(Int32, matrix * w + j),)) for j in range(w)]
    first = b.binary("mul", row, b.constant(Int32, _LANES))
    lanes = [b.binary("add", first, b.constant(Int32, t)) for t in range(_LANES)]
    return [_from(b, op, value, lane) for lane in lanes for value in own]


def _columns(b: Builder, op: ops.StoreMatrix, matrix: int, row: ops.Value) -> list[ops.Value]:
    two = b.constant(Int32, 2)
    own = [b.load(op.source, (b.constant(Int32, matrix * 2 + j),)) for j in range(2)]
    even = b.compare("eq", b.binary("mod", row, two), b.constant(Int32, 0))
    pair, found = b.binary("floordiv", row, two), []
    for column in range(_ROWS):
        lane = b.binary("add", b.constant(Int32, column * _LANES), pair)
        halves = [_from(b, op, value, lane) for value in own]
        found.append(b.select(even, halves[0], halves[1]))
    return found


def _from(b: Builder, op: ops.StoreMatrix, value: ops.Value, lane: ops.Value) -> ops.Value:
    clamp = b.constant(Uint32, 31)
    return b.shuffle("idx", value, lane, op.mask, clamp, op.location)


def thread(b: Builder) -> ops.Value:
    """The number of the running thread in its block."""
    number = b.special("thread_idx", 2)
    for axis in (1, 0):
        above = b.binary("mul", number, b.special("block_dim", axis))
        number = b.binary("add", above, b.special("thread_idx", axis))
    return number


def _lane(b: Builder) -> ops.Value:
    return b.binary("mod", thread(b), b.constant(Int32, ops.WARP_SIZE))
